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

	"lockcheck/history"
)

// TestConsulRefused: where nobody listens, nothing was left behind.
func TestConsulRefused(t *testing.T) {
	lock := mustOpen(t, "consul", refuse(t, "tcp", "127.0.0.1:0"))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	attempt := Attempt{Key: "k", ID: "w1-1", TTL: time.Second}
	if _, err := lock.Acquire(ctx, attempt); OutcomeOf(err) != NoEffect {
		t.Errorf("acquire: %v", err)
	}
	// There is no session that could be taken back.
	if err := lock.Release(ctx, Grant{Key: "k", ID: "w1-1"}); OutcomeOf(err) != Unknown {
		t.Errorf("release: %v", err)
	}
}

// consulServer is a Consul whose lock is free, and that can be stopped once the
// lock was granted: then it answers no reader any more.
type consulServer struct {
	*httptest.Server
	stops   bool
	granted atomic.Bool
	readers chan struct{} // one for each that waits in vain
}

func newConsulServer(t *testing.T, stops bool) *consulServer {
	s := &consulServer{stops: stops, readers: make(chan struct{}, 10)}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func (s *consulServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := "true"
	switch {
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
	}
	_, _ = io.WriteString(w, answer)
}

// TestConsulStopsWithTheContext: also while it reads the token, from a server
// that was stopped after it had granted the lock; beside it one that was not.
func TestConsulStopsWithTheContext(t *testing.T) {
	for name, stops := range map[string]bool{"stopped": true, "control": false} {
		t.Run(name, func(t *testing.T) {
			server := newConsulServer(t, stops)
			lock := mustOpen(t, "consul", server.Listener.Addr().String())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() {
				grant, err := lock.Acquire(ctx, Attempt{Key: "k", ID: "w1-1", TTL: time.Minute})
				if err == nil && grant.Token != 3 {
					t.Errorf("granted %+v", grant)
				}
				done <- err
			}()
			want := Done
			if stops {
				want = Busy
				for range 2 { // the watch on the key, and the look at its token
					<-server.readers
				}
				cancel()
			}
			select {
			case err := <-done:
				if OutcomeOf(err) != want {
					t.Errorf("%v is outcome %d, want %d", err, OutcomeOf(err), want)
				}
			case <-time.After(30 * time.Second):
				t.Fatal("it goes on without its context")
			}
		})
	}
}

// TestConsulReleaseUnanswered: the end of the session may have released what
// could not be unlocked.
func TestConsulReleaseUnanswered(t *testing.T) {
	for name, want := range map[string]Outcome{"gone": Unknown, "control": Done} {
		t.Run(name, func(t *testing.T) {
			server := newConsulServer(t, false)
			lock := mustOpen(t, "consul", server.Listener.Addr().String())
			grant, err := lock.Acquire(t.Context(), Attempt{Key: "k", ID: "w1-1", TTL: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			if name == "gone" {
				// In this order: the watch on the key connects again at once.
				server.Listener.Close()
				server.CloseClientConnections()
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if err := lock.Release(ctx, grant); OutcomeOf(err) != want {
				t.Errorf("%v is outcome %d, want %d", err, OutcomeOf(err), want)
			}
		})
	}
}

// TestConsulPromise: a session that nobody renews is good for its TTL; one that
// is kept alive promises no end.
func TestConsulPromise(t *testing.T) {
	for _, kept := range []bool{false, true} {
		server := newConsulServer(t, false)
		lock, err := openConsul(Config{Worker: "w1", Nodes: []string{server.Listener.Addr().String()}, NoKeepAlive: !kept})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = lock.Close() })
		before := history.Now()
		grant, err := lock.Acquire(t.Context(), Attempt{Key: "k", ID: "w1-1", TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		ttl, now := time.Minute.Nanoseconds(), history.Now()
		if kept && grant.Until != 0 || !kept && (grant.Until < before+ttl || grant.Until > now+ttl) {
			t.Errorf("kept alive %v: promise until %d, now %d", kept, grant.Until, now)
		}
	}
}
