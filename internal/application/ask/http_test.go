package ask

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lockcheck/clusters/clustertest"
	"lockcheck/history"
)

// endless writes a text again and again until nobody reads any more.
func endless(text string, pause time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, text); err != nil {
				return
			}
			if pause > 0 {
				w.(http.Flusher).Flush()
				time.Sleep(pause)
			}
		}
	}
}

func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

// TestRequest: what a response means.
func TestRequest(t *testing.T) {
	handlers := http.NewServeMux()
	handlers.HandleFunc("/empty", text(""))
	handlers.HandleFunc("/newline", text("\n"))
	handlers.HandleFunc("/rows", text("w1\tleads\r\nw2\tleads"))
	handlers.HandleFunc("/failed", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "w1", http.StatusServiceUnavailable) })
	handlers.Handle("/moved", http.RedirectHandler("/empty", http.StatusTemporaryRedirect))
	handlers.HandleFunc("/none", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	handlers.HandleFunc("/hangs", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	handlers.HandleFunc("/drips", endless("row\n", 10*time.Millisecond))
	handlers.HandleFunc("/floods", endless(strings.Repeat("row\n", 1000), 0))
	handlers.HandleFunc("/line", endless(strings.Repeat("x", 1000), 0))
	handlers.HandleFunc("/blank", endless(strings.Repeat("\n", 1000), 0))
	handlers.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "row\n")
	})
	handlers.HandleFunc("/header", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", 2*maxHeader))
	})
	server := httptest.NewServer(handlers)
	t.Cleanup(server.Close)
	never, always, kept := history.InvariantNever, history.InvariantAlways, history.InvariantKept
	rows, many := []string{"w1\tleads", "w2\tleads"}, slicesOf("row", shownRows)
	for _, c := range []struct {
		kind, path string
		want       outcome
	}{
		{never, "/empty", outcome{kind: history.OK}}, {never, "/newline", outcome{kind: history.OK}}, {never, "/none", outcome{kind: history.OK}},
		{never, "/rows", outcome{kind: history.Fail, rows: rows}},
		{always, "/rows", outcome{kind: history.OK, rows: rows}}, {always, "/empty", outcome{kind: history.Fail}},
		{kept, "/rows", outcome{kind: history.OK, rows: rows}}, {kept, "/empty", outcome{kind: history.OK}},
		{never, "/failed", outcome{kind: history.Info, error: "status 503"}}, {always, "/failed", outcome{kind: history.Info, error: "status 503"}},
		{never, "/moved", outcome{kind: history.Info, error: "status 307"}},
		{never, "/hangs", outcome{kind: history.Info, error: "no answer within"}},
		{never, "/drips", outcome{kind: history.Info, error: "no answer within"}},
		{never, "/floods", outcome{kind: history.Fail, rows: many, count: maxRows}},
		{kept, "/floods", outcome{kind: history.Info, error: "more than"}},
		{never, "/line", outcome{kind: history.Fail, rows: []string{strings.Repeat("x", shownSize) + "…"}}},
		{never, "/blank", outcome{kind: history.Info, error: "more than"}},
		{never, "/cut", outcome{kind: history.Info, error: "unexpected EOF"}},
		{never, "/header", outcome{kind: history.Info, error: "exceeded"}},
	} {
		t.Run(c.kind+c.path, func(t *testing.T) {
			t.Parallel()
			q := question(c.kind, HTTP, server.URL+c.path, "")
			if c.want.error == "no answer within" {
				q.Timeout = time.Second
			} else {
				q.Timeout = clustertest.Slow(time.Minute)
			}
			asked(t, q, c.want)
		})
	}
}

func slicesOf(row string, n int) (all []string) {
	for range n {
		all = append(all, row)
	}
	return all
}

// TestResource: of a key of lockcheck's resource, that it was never written is an answer, and nothing else that fails.
func TestResource(t *testing.T) {
	handlers := http.NewServeMux()
	handlers.HandleFunc("/rows", text("w1\nw2\n"))
	handlers.HandleFunc("/failed", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "w1", http.StatusServiceUnavailable) })
	server := httptest.NewServer(handlers)
	t.Cleanup(server.Close)
	for path, want := range map[string]outcome{
		"/rows": {kind: history.Fail, rows: []string{"w1", "w2"}}, "/unwritten": {kind: history.OK}, "/failed": {kind: history.Info, error: "status 503"},
	} {
		q := question(history.InvariantNever, Resource, server.URL+path, "")
		q.Timeout = clustertest.Slow(time.Minute)
		asked(t, q, want)
	}
}

// TestRequestAgain: a server that is gone is unknown, and answers again once it is back.
func TestRequestAgain(t *testing.T) {
	serve := func(listener net.Listener, body string) *http.Server {
		server := &http.Server{Handler: text(body)}
		go func() { _ = server.Serve(listener) }()
		return server
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	first := serve(listener, "")
	a := started(t, question(history.InvariantNever, HTTP, "http://user:secret@"+address+"/two-leaders", ""))
	a.answers(history.InvariantNever, history.OK)
	_ = first.Close()
	if e := a.answers(history.InvariantNever, history.Info); strings.Contains(e.Error, "secret") {
		t.Errorf("the password is in the history: %s", e.Error)
	}
	clustertest.Eventually(t, time.Minute, func() error {
		listener, err = net.Listen("tcp", address)
		return err
	})
	second := serve(listener, "w1 and w2")
	defer second.Close()
	if e := a.answers(history.InvariantNever, history.Fail); e.Answer.Rows[0] != "w1 and w2" {
		t.Errorf("%+v", e.Answer)
	}
}

// TestFinal: after the line each question is asked until it is answered, and no longer.
func TestFinal(t *testing.T) {
	var said atomic.Bool
	var after atomic.Int64 // requests since then
	const refused = 3
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/busy" && said.Load() && after.Add(1) <= refused {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		if said.Load() {
			fmt.Fprintln(w, "at last")
		}
	}))
	defer server.Close()
	busy, calm := question(history.InvariantKept, HTTP, server.URL+"/busy", ""), question(history.InvariantWork, HTTP, server.URL+"/calm", "")
	a := started(t, busy, calm)
	a.answers(history.InvariantKept, history.OK)
	a.answers(history.InvariantWork, history.OK)
	said.Store(true)
	if _, err := io.WriteString(a.input, Final+"\n"); err != nil {
		t.Fatal(err)
	}
	a.wait() // the input has not ended
	for _, name := range []string{busy.Invariant.Name, calm.Invariant.Name} {
		if e := a.last(name); e.Type != history.OK || len(e.Answer.Rows) != 1 || e.Answer.Rows[0] != "at last" {
			t.Errorf("%s: the last event is %+v", name, e)
		}
	}
	if n := after.Load(); n <= refused {
		t.Errorf("%d requests after %s, want more than %d", n, Final, refused)
	}
}
