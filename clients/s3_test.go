//go:build s3

package clients

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeStore is an object store that keeps conditions, and answers as the test chooses.
type fakeStore struct {
	mu      sync.Mutex
	objects map[string]string // by path
	// swallow is how many writes take effect and are answered by the end of the connection.
	swallow int
	writes  int // requests to write
	// meanwhile is called before such a write is repeated; nil for nothing.
	meanwhile func()
}

func etagOf(content string) string { return fmt.Sprintf(`"%x"`, md5.Sum([]byte(content))) }

func (f *fakeStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path := strings.TrimSuffix(r.URL.Path, "/")
	content, exists := f.objects[path]
	switch r.Method {
	case http.MethodGet:
		if !exists {
			refuseS3(w, http.StatusNotFound, "NoSuchKey")
			return
		}
		w.Header().Set("ETag", etagOf(content))
		_, _ = io.WriteString(w, content)
	case http.MethodDelete:
		delete(f.objects, path)
		w.WriteHeader(http.StatusNoContent)
	case http.MethodPut:
		f.put(w, r, path, content, exists)
	}
}

func (f *fakeStore) put(w http.ResponseWriter, r *http.Request, path, content string, exists bool) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		refuseS3(w, http.StatusBadRequest, "IncompleteBody")
		return
	}
	if strings.Count(path, "/") == 1 {
		return // a bucket
	}
	f.writes++
	if match := r.Header.Get("If-Match"); match != "" && !exists {
		refuseS3(w, http.StatusNotFound, "NoSuchKey")
		return
	} else if r.Header.Get("If-None-Match") == "*" && exists || match != "" && match != etagOf(content) {
		refuseS3(w, http.StatusPreconditionFailed, "PreconditionFailed")
		return
	}
	f.objects[path] = string(body)
	if f.swallow > 0 {
		f.swallow--
		if f.meanwhile != nil {
			f.meanwhile()
		}
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("ETag", etagOf(string(body)))
}

func refuseS3(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", code)
}

// swallowNext loses the answers to the next writes.
func (f *fakeStore) swallowNext(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.swallow, f.writes = n, 0
}

// wantTwoWrites fails the test unless the library has sent one write twice since swallowNext.
func (f *fakeStore) wantTwoWrites(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.writes != 2 {
		t.Fatalf("%d requests to write, expected the first one and its repetition", f.writes)
	}
}

func openFake(t *testing.T, lock string) (Lock, *fakeStore) {
	t.Helper()
	store := &fakeStore{objects: make(map[string]string)}
	server := httptest.NewServer(store)
	t.Cleanup(server.Close)
	info, known := ByName(lock)
	if !known {
		t.Fatalf("no lock %s", lock)
	}
	opened, err := info.Open(Config{Worker: "w1", Nodes: []string{strings.TrimPrefix(server.URL, "http://")}})
	if err != nil {
		t.Fatal(err)
	}
	return opened, store
}

// TestS3RepeatedWrite: the answer to a write is lost, and the AWS SDK repeats the write, whose condition its own
// effect has made false.
func TestS3RepeatedWrite(t *testing.T) {
	attempt := Attempt{Key: "k", ID: "w1-1", TTL: time.Minute}
	t.Run("a record", func(t *testing.T) {
		lock, store := openFake(t, "s3-conditional")
		store.swallowNext(1)
		grant, err := lock.Acquire(t.Context(), attempt)
		if err != nil || grant.Token != 1 {
			t.Fatalf("%+v, %v", grant, err)
		}
		store.wantTwoWrites(t)
		store.swallowNext(1)
		if _, err := lock.(Renewer).Renew(t.Context(), grant, time.Minute); err != nil {
			t.Fatal(err)
		}
		store.wantTwoWrites(t)
		store.swallowNext(1)
		if err := lock.Release(t.Context(), grant); err != nil {
			t.Fatal(err)
		}
		store.wantTwoWrites(t)
	})
	t.Run("a release, and the next holder", func(t *testing.T) {
		lock, store := openFake(t, "s3-conditional")
		grant, err := lock.Acquire(t.Context(), attempt)
		if err != nil {
			t.Fatal(err)
		}
		store.meanwhile = func() {
			for path := range store.objects {
				store.objects[path] = `{"id": "w2-1", "held": true, "epoch": 2, "lease_ms": 60000}`
			}
		}
		store.swallowNext(1)
		// The first request has released the lock, so a plain ErrNotHeld would be wrong.
		if err := lock.Release(t.Context(), grant); OutcomeOf(err) != Unknown {
			t.Errorf("%v, expected an unknown outcome", err)
		}
		store.wantTwoWrites(t)
	})
	t.Run("a record, whose renewals trust a refusal", func(t *testing.T) {
		lock, store := openFake(t, "s3-conditional-412")
		grant, err := lock.Acquire(t.Context(), attempt)
		if err != nil {
			t.Fatal(err)
		}
		store.swallowNext(1)
		if _, err := lock.(Renewer).Renew(t.Context(), grant, time.Minute); !errors.Is(err, ErrNotHeld) {
			t.Fatalf("%v, expected a loss that is untrue", err)
		}
		store.wantTwoWrites(t)
		if holds, err := lock.(Asker).Holds(t.Context(), grant); !holds || err != nil {
			t.Errorf("holds: %t, %v", holds, err)
		}
		if err := lock.Release(t.Context(), grant); err != nil {
			t.Error(err)
		}
	})
	t.Run("a lock file", func(t *testing.T) {
		lock, store := openFake(t, "s3-lockfile")
		store.swallowNext(1)
		_, err := lock.Acquire(t.Context(), attempt)
		var busy *BusyError
		if !errors.As(err, &busy) || busy.Holder != attempt.ID {
			t.Fatalf("%v, expected the attempt to be refused because of itself", err)
		}
		store.wantTwoWrites(t)
	})
	t.Run("a lock file, read again", func(t *testing.T) {
		lock, store := openFake(t, "s3-lockfile+reread")
		store.swallowNext(1)
		if _, err := lock.Acquire(t.Context(), attempt); err != nil {
			t.Fatal(err)
		}
		store.wantTwoWrites(t)
	})
}

// TestS3TakeOver: a lease is taken over when this client has seen it unchanged for its length. A renewal starts
// the count again.
func TestS3TakeOver(t *testing.T) {
	holder, store := openFake(t, "s3-conditional")
	server := httptest.NewServer(store)
	t.Cleanup(server.Close)
	waiter, err := openS3Conditional(Config{Worker: "w2", Nodes: []string{strings.TrimPrefix(server.URL, "http://")}})
	if err != nil {
		t.Fatal(err)
	}
	const lease = 200 * time.Millisecond
	first, err := holder.Acquire(t.Context(), Attempt{Key: "k", ID: "w1-1", TTL: lease})
	if err != nil {
		t.Fatal(err)
	}
	until := first.Until
	var second Grant
	n := 0
	for ; second.ID == "" && t.Context().Err() == nil; n++ {
		if n == 3 {
			if until, err = holder.(Renewer).Renew(t.Context(), first, lease); err != nil {
				t.Fatal(err)
			}
		}
		second, err = waiter.Acquire(t.Context(), Attempt{Key: "k", ID: "w2-1", TTL: lease})
		if outcome := OutcomeOf(err); outcome != Done && outcome != Busy {
			t.Fatal(err)
		}
	}
	if granted := second.Until - lease.Nanoseconds(); granted < until {
		t.Errorf("granted %s before the validity of the first grant ended", time.Duration(until-granted))
	}
	if n <= 4 {
		t.Errorf("granted at the attempt number %d, before the renewal", n)
	}
	if second.Token != first.Token+1 {
		t.Errorf("token %d after %d", second.Token, first.Token)
	}
	for name, err := range map[string]error{
		"release": holder.Release(context.WithoutCancel(t.Context()), first),
		"renewal": func() error { _, err := holder.(Renewer).Renew(t.Context(), first, lease); return err }(),
	} {
		if !errors.Is(err, ErrNotHeld) {
			t.Errorf("%s by the former holder: %v", name, err)
		}
	}
}
