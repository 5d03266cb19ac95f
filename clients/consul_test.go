package clients

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// consulForms are the ways in which Consul's lock is used.
var consulForms = []string{"consul", "consul+withdraw"}

// TestConsulRefused: if no server listens, the attempt leaves nothing behind.
func TestConsulRefused(t *testing.T) {
	for _, name := range consulForms {
		lock := mustOpen(t, name, refuse(t, "tcp", "127.0.0.1:0"))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		attempt := Attempt{Key: "k", ID: "w1-1", TTL: time.Second}
		if _, err := lock.Acquire(ctx, attempt); OutcomeOf(err) != NoEffect {
			t.Errorf("%s: acquire: %v", name, err)
		}
		// There is no session that could be destroyed.
		if err := lock.Release(ctx, Grant{Key: "k", ID: "w1-1"}); OutcomeOf(err) != Unknown {
			t.Errorf("%s: release: %v", name, err)
		}
	}
}

// consulServer is a Consul whose lock is free. With stops it no longer answers reads once the lock was granted.
type consulServer struct {
	*httptest.Server
	stops   bool
	granted atomic.Bool
	lost    atomic.Bool   // a release finds the lock lost
	stopped atomic.Bool   // no request is answered
	readers chan struct{} // receives a value for each read that is never answered
}

func newConsulServer(t *testing.T, stops bool) *consulServer {
	s := &consulServer{stops: stops, readers: make(chan struct{}, 10)}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

// gone closes the listener before the connections, because the watch on the key reconnects at once.
func (s *consulServer) gone() {
	s.Listener.Close()
	s.CloseClientConnections()
}

func (s *consulServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := "true"
	switch {
	case s.stopped.Load():
		<-r.Context().Done()
		return
	case strings.HasSuffix(r.URL.Path, "/session/create"):
		answer = `{"ID":"s1"}`
	case r.Method == http.MethodGet && !s.granted.Load():
		w.WriteHeader(http.StatusNotFound)
		return
	case r.Method == http.MethodGet && s.stops, r.URL.Query().Has("index"):
		s.readers <- struct{}{}
		<-r.Context().Done()
		return
	case r.Method == http.MethodGet:
		w.Header().Set("X-Consul-Index", "7")
		answer = `[{"Key":"k","Session":"s1","LockIndex":3,"Flags":3304740253564472344}]`
	case r.URL.Query().Has("acquire"):
		s.granted.Store(true)
	case r.URL.Query().Has("release") && s.lost.Load():
		answer = "false"
	}
	_, _ = io.WriteString(w, answer)
}

// TestConsulToken: the token is the first one that the library's own watch reads. Without an answer to that
// read, the attempt waits for as long as the watch does. With the option withdraw it ends with its context, and
// then certainly had no effect.
func TestConsulToken(t *testing.T) {
	for _, c := range []struct {
		lock   string
		stops  bool
		want   Outcome
		undone Outcome // outcome of the attempt's release
	}{
		{"consul", false, Done, Done},
		{"consul", true, Unknown, Unknown},
		{"consul+withdraw", false, Done, Done},
		{"consul+withdraw", true, Busy, Unknown},
	} {
		server := newConsulServer(t, c.stops)
		lock := mustOpen(t, c.lock, server.Listener.Addr().String())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() {
			grant, err := lock.Acquire(ctx, Attempt{Key: "k", ID: "w1-1", TTL: time.Minute})
			if err == nil && (grant.Token != 3 || grant.Lost == nil || grant.Until != 0) {
				t.Errorf("granted %+v", grant)
			}
			done <- err
		}()
		if c.stops {
			<-server.readers // the watch on the key
			cancel()
		}
		if c.stops && c.want == Unknown {
			server.gone()
		}
		select {
		case err := <-done:
			if OutcomeOf(err) != c.want {
				t.Errorf("%s, stopped %v: %v is outcome %d, want %d", c.lock, c.stops, err, OutcomeOf(err), c.want)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("it goes on without its context")
		}
		if err := lock.Release(t.Context(), Grant{Key: "k", ID: "w1-1"}); OutcomeOf(err) != c.undone {
			t.Errorf("%s, stopped %v: release: %v is outcome %d, want %d", c.lock, c.stops, err, OutcomeOf(err), c.undone)
		}
	}
}

// TestConsulRelease: although the library discards the answer, Release knows whether the lock was still held. A
// release without an answer has an unknown outcome.
func TestConsulRelease(t *testing.T) {
	for _, name := range consulForms {
		for what, want := range map[string]Outcome{"held": Done, "lost": NotHeld, "unanswered": Unknown} {
			server := newConsulServer(t, false)
			lock := mustOpen(t, name, server.Listener.Addr().String())
			grant, err := lock.Acquire(t.Context(), Attempt{Key: "k", ID: "w1-1", TTL: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			switch what {
			case "lost":
				server.lost.Store(true)
			case "unanswered":
				server.gone()
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if err := lock.Release(ctx, grant); OutcomeOf(err) != want {
				t.Errorf("%s, %s: %v is outcome %d, want %d", name, what, err, OutcomeOf(err), want)
			}
		}
	}
}

// TestConsulAbandonLost: with the option abandon-lost, Release unlocks a lock unless its loss was reported.
func TestConsulAbandonLost(t *testing.T) {
	for lost, want := range map[bool]Outcome{false: Done, true: NoEffect} {
		server := newConsulServer(t, false)
		lock := mustOpen(t, "consul+abandon-lost", server.Listener.Addr().String())
		grant, err := lock.Acquire(t.Context(), Attempt{Key: "k", ID: "w1-1", TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if lost {
			server.gone()
			<-grant.Lost
		}
		if err := lock.Release(t.Context(), grant); OutcomeOf(err) != want {
			t.Errorf("lost %v: %v is outcome %d, want %d", lost, err, OutcomeOf(err), want)
		}
	}
}

// TestConsulNextServer: with the option withdraw, the worker uses the next server after one that did not
// answer. Without the option it stays with its server.
func TestConsulNextServer(t *testing.T) {
	for name, next := range map[string]bool{"consul": false, "consul+withdraw": true} {
		stopped, healthy := newConsulServer(t, true), newConsulServer(t, false)
		lock := mustOpen(t, name, stopped.Listener.Addr().String(), healthy.Listener.Addr().String()).(*consulLock)
		lock.turn.Store(0)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-stopped.readers
			stopped.stopped.Store(true)
			cancel()
			if !next { // without the option the attempt waits until the connection ends
				stopped.gone()
			}
		}()
		if _, err := lock.Acquire(ctx, Attempt{Key: "k", ID: "w1-1", TTL: time.Minute}); err == nil {
			t.Error("granted without an answer")
		}
		if (lock.server() == 1) != next {
			t.Errorf("%s asks server %d after a failure", name, lock.server())
		}
	}
}

// TestConsulSemaphoreHandle: an attempt can be released while it is in progress, until it is known to have left
// nothing behind.
func TestConsulSemaphoreHandle(t *testing.T) {
	server := newConsulServer(t, true)
	lock := mustOpen(t, "consul-semaphore", server.Listener.Addr().String()).(*consulSemaphore)
	done := make(chan error, 1)
	go func() {
		_, err := lock.Acquire(t.Context(), Attempt{Key: "k", ID: "w1-1", TTL: time.Minute})
		done <- err
	}()
	<-server.readers // the read of the list of holders
	if _, known := lock.attempts.get("w1-1"); !known {
		t.Error("an attempt under way cannot be taken back")
	}
	server.gone()
	if err := <-done; OutcomeOf(err) != NoEffect {
		t.Errorf("%v is outcome %d", err, OutcomeOf(err))
	}
	if _, known := lock.attempts.get("w1-1"); known {
		t.Error("an attempt without effect is kept")
	}
}
