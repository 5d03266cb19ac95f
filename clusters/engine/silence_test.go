package engine_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"lockcheck/clusters/engine"
)

// fakeEngine serves an engine that answers pings and the given requests, matched by the end of their path.
// Every other request hangs.
func fakeEngine(t *testing.T, answers map[string]http.HandlerFunc) {
	t.Helper()
	end := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for path, answer := range answers {
			if strings.HasSuffix(r.URL.Path, path) {
				answer(w, r)
				return
			}
		}
		if strings.HasSuffix(r.URL.Path, "/_ping") {
			w.Header().Set("Api-Version", "1.41")
			return
		}
		<-end
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(end) })
	t.Setenv("DOCKER_HOST", "tcp://"+server.Listener.Addr().String())
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

// TestStuckNetworks: an engine that never answers a request for its networks is refused, and the reason says
// what helps.
func TestStuckNetworks(t *testing.T) {
	fakeEngine(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // shorter than the usual limit
	defer cancel()
	_, err := engine.Connect(ctx)
	var unavailable *engine.UnavailableError
	if !errors.As(err, &unavailable) || !strings.Contains(err.Error(), "not when it is asked for its networks: restart it") {
		t.Errorf("got %v", err)
	}
}

// connected returns a client of a fakeEngine that also answers the request for its networks.
func connected(t *testing.T, answers map[string]http.HandlerFunc) *engine.Engine {
	t.Helper()
	all := map[string]http.HandlerFunc{"/networks": says("[]")}
	for path, answer := range answers {
		all[path] = answer
	}
	fakeEngine(t, all)
	docker, err := engine.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = docker.Close() })
	return docker
}

// TestStuck: every request to an engine that has stopped answerContext ends.
func TestStuck(t *testing.T) {
	start := func(ctx context.Context, e *engine.Engine) error {
		_, err := e.Start(ctx, engine.Spec{Name: "n", Attach: true})
		return err
	}
	build := func(ctx context.Context, e *engine.Engine) error {
		return e.Build(ctx, "image", "FROM scratch\n", func(string) {})
	}
	created := map[string]http.HandlerFunc{"/containers/create": says(`{"Id":"abc"}`)}
	attached := map[string]http.HandlerFunc{"/containers/create": says(`{"Id":"abc"}`), "/attach": upgraded}
	for _, c := range []struct {
		name    string
		answers map[string]http.HandlerFunc
		ask     func(context.Context, *engine.Engine) error
	}{
		{"image", nil, func(ctx context.Context, e *engine.Engine) error { _, _, err := e.Image(ctx, "x"); return err }},
		{"images", nil, func(ctx context.Context, e *engine.Engine) error { _, err := e.ImagesWith(ctx, "x"); return err }},
		{"remove an image", nil, func(ctx context.Context, e *engine.Engine) error { _, err := e.RemoveImage(ctx, "x"); return err }},
		{"pull", nil, func(ctx context.Context, e *engine.Engine) error { return e.Pull(ctx, "x") }},
		{"import", nil, func(ctx context.Context, e *engine.Engine) error { return e.Import(ctx, "x", strings.NewReader("")) }},
		{"build", nil, build},
		{"build, after its first line", map[string]http.HandlerFunc{"/build": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"stream":"Step 1"}`)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}}, build},
		{"runs", nil, func(ctx context.Context, e *engine.Engine) error { _, err := e.Runs(ctx); return err }},
		{"remove a run", nil, func(ctx context.Context, e *engine.Engine) error { _, err := e.RemoveRun(ctx, "x"); return err }},
		{"remove a container", map[string]http.HandlerFunc{"/containers/json": says(`[{"Id":"abc"},{"Id":"def"}]`)},
			func(ctx context.Context, e *engine.Engine) error { _, err := e.RemoveRun(ctx, "x"); return err }},
		{"write", nil, func(ctx context.Context, e *engine.Engine) error { return e.Write(ctx, "n", "/", nil) }},
		{"make a volume", nil, func(ctx context.Context, e *engine.Engine) error { return e.CreateVolume(ctx, "v", nil) }},
		{"make a container", nil, start},
		{"attach", created, start},
		{"wait", attached, start},
	} {
		t.Run(c.name, func(t *testing.T) {
			docker := connected(t, c.answers)
			const short = 100 * time.Millisecond
			docker.Limit(short, short)
			asked := make(chan error, 1)
			go func() { asked <- c.ask(t.Context(), docker) }()
			select {
			case err := <-asked:
				var silent *engine.SilentError
				if !errors.As(err, &silent) || silent.For != short || strings.Count(err.Error(), "restart it") != 1 {
					t.Errorf("got %v", err)
				}
			case <-time.After(10 * time.Second):
				t.Error("it hangs")
			}
		})
	}
}

// upgraded lets a client attach to a container that never writes anything.
func upgraded(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_, _ = io.WriteString(conn, "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
	}
}

// TestSlowBuild: a build may take any time while it keeps writing output.
func TestSlowBuild(t *testing.T) {
	const limit = 3 * time.Second
	docker := connected(t, map[string]http.HandlerFunc{"/build": func(w http.ResponseWriter, _ *http.Request) {
		for began := time.Now(); time.Since(began) < limit+limit/3; time.Sleep(limit / 6) {
			_, _ = io.WriteString(w, `{"stream":"a line"}`)
			w.(http.Flusher).Flush()
		}
	}})
	docker.Limit(limit, limit)
	if err := docker.Build(t.Context(), "image", "FROM scratch\n", func(string) {}); err != nil {
		t.Error(err)
	}
}
