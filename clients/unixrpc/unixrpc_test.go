package unixrpc_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"lockcheck/clients/unixrpc"
	"lockcheck/clusters/clustertest"
)

type question struct {
	Name string `json:"name"`
}

type answer struct {
	Greeting string `json:"greeting"`
}

func greet(q question) answer { return answer{Greeting: "hello " + q.Name} }

// socketPath returns a short path, because the path of a Unix socket may have at most 107 bytes.
func socketPath(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "rpc-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return filepath.Join(folder, "s")
}

// serve serves until the test ends or the returned function is called.
func serve(t *testing.T, socket string, methods map[string]http.HandlerFunc) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- unixrpc.Serve(ctx, socket, methods) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(stop)
	clustertest.Eventually(t, 10*time.Second, func() error {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
	return stop
}

func client(t *testing.T, socket string) *unixrpc.Client {
	c := unixrpc.NewClient(socket)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestRoundTrip(t *testing.T) {
	socket := socketPath(t)
	serve(t, socket, map[string]http.HandlerFunc{"greet": unixrpc.Method(greet)})
	c := client(t, socket)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			var got answer
			if err := c.Call(t.Context(), "greet", question{Name: fmt.Sprint("w", i)}, &got); err != nil {
				t.Error(err)
			}
			if want := fmt.Sprint("hello w", i); got.Greeting != want {
				t.Errorf("got %q, want %q", got.Greeting, want)
			}
		})
	}
	all.Wait()
}

func TestServerSaysNo(t *testing.T) {
	socket := socketPath(t)
	serve(t, socket, map[string]http.HandlerFunc{"greet": unixrpc.Method(greet)})
	for _, c := range []struct {
		name, method string
		request      any
		want         string // "" for no error
	}{
		{"control", "greet", question{}, ""},
		{"unknown method", "dance", question{}, "404"},
		{"malformed request", "greet", "a string", "400"},
		{"request that is no JSON", "greet", func() {}, "unsupported type"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got answer
			err := client(t, socket).Call(t.Context(), c.method, c.request, &got)
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
			if unixrpc.NeverSent(err) {
				t.Error("regarded as never sent")
			}
		})
	}
}

// TestNeverSent: NeverSent tells whether a failed call may have had its effect. A wrong true would lose updates
// silently, while a wrong false only costs a release.
func TestNeverSent(t *testing.T) {
	for _, c := range []struct {
		name  string
		start func(t *testing.T, socket string)
		want  bool
	}{
		{"no socket", func(*testing.T, string) {}, true},
		{"socket of a dead server", leaveDeadSocket, true},
		{"reply lost", hangUpAfterRequest, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			socket := socketPath(t)
			c.start(t, socket)
			var got answer
			err := client(t, socket).Call(t.Context(), "greet", question{Name: "w1"}, &got)
			if err == nil {
				t.Fatal("no error")
			}
			if unixrpc.NeverSent(err) != c.want {
				t.Errorf("NeverSent(%v) is %v", err, !c.want)
			}
		})
	}
	if unixrpc.NeverSent(nil) {
		t.Error("success regarded as never sent")
	}
}

func leaveDeadSocket(t *testing.T, socket string) {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false) // SIGKILL would leave the socket behind, too
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
}

// hangUpAfterRequest serves a server that dies after the request and before its answer.
func hangUpAfterRequest(t *testing.T, socket string) {
	serve(t, socket, map[string]http.HandlerFunc{"greet": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }})
}

func TestDeadline(t *testing.T) {
	socket := socketPath(t)
	called, release := make(chan struct{}), make(chan struct{})
	serve(t, socket, map[string]http.HandlerFunc{
		"greet": unixrpc.Method(greet),
		"hang": unixrpc.Method(func(q question) answer {
			close(called)
			<-release
			return greet(q)
		}),
	})
	t.Cleanup(func() { close(release) })
	c := client(t, socket)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() { failed <- c.Call(ctx, "hang", question{}, new(answer)) }()
	<-called
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) || unixrpc.NeverSent(err) {
		t.Errorf("got %v: want the context's error, and not never sent", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 0)
	defer cancel()
	if err := c.Call(ctx, "greet", question{}, new(answer)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	// A call that hangs does not block other calls.
	if err := c.Call(t.Context(), "greet", question{}, new(answer)); err != nil {
		t.Error(err)
	}
}

// TestRestart: a new server replaces the socket that a killed server left behind.
func TestRestart(t *testing.T) {
	socket := socketPath(t)
	methods := map[string]http.HandlerFunc{"greet": unixrpc.Method(greet)}
	leaveDeadSocket(t, socket)
	stop := serve(t, socket, methods)
	c := client(t, socket)
	if err := c.Call(t.Context(), "greet", question{}, new(answer)); err != nil {
		t.Fatal(err)
	}
	stop()
	// The first call may still be sent on the old connection.
	clustertest.Eventually(t, 10*time.Second, func() error {
		if err := c.Call(t.Context(), "greet", question{}, new(answer)); !unixrpc.NeverSent(err) {
			return fmt.Errorf("got %v from a stopped server, want one that was never sent", err)
		}
		return nil
	})
	serve(t, socket, methods)
	if err := c.Call(t.Context(), "greet", question{}, new(answer)); err != nil {
		t.Errorf("after the restart: %v", err)
	}
}

func TestServeFails(t *testing.T) {
	if err := unixrpc.Serve(t.Context(), filepath.Join(t.TempDir(), "missing", "s"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
