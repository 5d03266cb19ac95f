package resource

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"lockcheck/history"
)

// recorded serves a store whose events are kept.
type recorded struct {
	*httptest.Server
	mu     sync.Mutex
	events []history.Event
}

func serve(t *testing.T) *recorded {
	t.Helper()
	r := new(recorded)
	r.Server = httptest.NewServer(newHandler([]string{"b 1", "b2"}, newStore(func(e history.Event) int64 {
		r.mu.Lock()
		defer r.mu.Unlock()
		e.Time = history.Now()
		r.events = append(r.events, e)
		return e.Time
	})))
	t.Cleanup(r.Close)
	return r
}

// request sends headers such as "Token: 3", and returns status, version and body.
func (r *recorded) request(t *testing.T, method, path, body string, headers ...string) (int, string, string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, r.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		q.Header.Set(name, value)
	}
	answer, err := r.Client().Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	version := answer.Header.Get("Version")
	if tag := answer.Header.Get("ETag"); version != "" && version != "0" && tag != `"`+version+`"` {
		t.Errorf("%s %s: version %s, ETag %s", method, path, version, tag)
	}
	return answer.StatusCode, version, string(text)
}

// TestRequests is a session, and what each request of it records.
func TestRequests(t *testing.T) {
	r := serve(t)
	for _, c := range []struct {
		request string // method, path, body after "="
		headers []string
		status  int
		version string
		body    string // "" for any
		event   string // f, client, key, version, type; "" for none
	}{
		{"GET /b%201/c", nil, 404, "0", "c was never written\n", "read b 1 c 0 ok"},
		{"PUT /b%201/c=1", nil, 204, "1", "", "write b 1 c 1 ok"},
		{"GET /b2/c", nil, 200, "1", "1", "read b2 c 1 ok"},
		{"PUT /b2/c=2", []string{`If-Match: "1"`}, 204, "2", "", "write b2 c 2 ok"},
		{"PUT /b%201/c=2", []string{`If-Match: "1"`}, 412, "2", "the version of c is 2, not 1\n", "write b 1 c 2 fail"},
		{"PUT /b%201/c=3", []string{"If-Match: *"}, 204, "3", "", "write b 1 c 3 ok"},
		{"PUT /b2/c=4", []string{`If-Match: "0"`}, 412, "3", "c was written before: its version is 3\n", "write b2 c 3 fail"},
		{"PUT /b2/new=4", []string{"If-None-Match: *"}, 204, "1", "", "write b2 new 1 ok"},
		{"GET /b2/c", nil, 200, "3", "3", "read b2 c 3 ok"},
		{"POST /b2/c=a line\n", nil, 204, "4", "", "write b2 c 4 ok"},
		{"POST /b2/c=another", nil, 204, "5", "", "write b2 c 5 ok"},
		{"GET /b2/c", nil, 200, "5", "3\na line\nanother\n", "read b2 c 5 ok"},
		{"PUT /b2/d=x", []string{"Token: 5"}, 204, "1", "", "write b2 d 1 ok"},
		{"PUT /b%201/d=y", []string{"Token: 4"}, 409, "1", "token 4 is smaller than 5, which was used for d before\n", "write b 1 d 1 fail"},
		{"GET /b%201/d", []string{"Token: 6"}, 200, "1", "x", "read b 1 d 1 ok"},
		{"POST /b2/d=z", []string{"Token: 5"}, 409, "1", "", "write b2 d 1 fail"},
		{"POST /b2/d=z", nil, 204, "2", "", "write b2 d 2 ok"},
		{"GET /invariants/d", nil, 200, "2", "x\nz\n", ""},
		{"PUT /invariants/d=1", nil, 403, "", "", ""},
		{"GET /b3/d", nil, 403, "", "no client has this URL: use $LOCKCHECK_RESOURCE/KEY\n", ""},
		{"GET /b2/a/b", nil, 400, "", "", ""},
		{"GET /b2/", nil, 400, "", "", ""},
		{"GET /b2/c?x=1", nil, 400, "", "", ""},
		{"GET /b2/c", []string{`If-Match: "1"`}, 400, "", "", ""},
		{"PUT /b2/c=1", []string{"If-Match: one"}, 400, "", "", ""},
		{"PUT /b2/c=1", []string{`If-None-Match: "1"`}, 400, "", "", ""},
		{"PUT /b2/c=1", []string{"Token: -1"}, 400, "", "", ""},
		{"POST /b2/c=two\nlines", nil, 400, "", "", ""},
		{"POST /b2/c=", nil, 400, "", "", ""},
		{"POST /b2/c=" + strings.Repeat("x", maxLine+1), nil, 400, "", "", ""},
		{"POST /b2/c=\xff", nil, 400, "", "", ""},
		{"DELETE /b2/c", nil, 405, "", "", ""},
		{"PUT /b2/c=" + strings.Repeat("x", maxValue+1), nil, 413, "", "", ""},
		{"PUT /b2/c=" + strings.Repeat("x", maxValue), nil, 204, "6", "", "write b2 c 6 ok"},
		{"POST /b2/c=x", nil, 413, "6", "", ""},
	} {
		target, body, _ := strings.Cut(c.request, "=")
		if strings.Contains(target, "?") {
			target, body = c.request, ""
		}
		method, path, _ := strings.Cut(target, " ")
		before := len(r.events)
		status, version, text := r.request(t, method, path, body, c.headers...)
		if status != c.status || version != c.version || c.body != "" && text != c.body {
			t.Errorf("%.60s: %d, version %q, %.60q", c.request, status, version, text)
		}
		if status >= 400 && strings.Count(text, "\n") != 1 {
			t.Errorf("%.60s: the error is no line: %q", c.request, text)
		}
		var event string
		for _, e := range r.events[before:] {
			event += strings.Join([]string{string(e.F), e.Client, e.Key, string(rune('0' + e.Version)), string(e.Type)}, " ")
			if e.From <= 0 || e.From > e.Time || (e.Type == history.Fail) != (e.Error != "") {
				t.Errorf("%.60s: %+v", c.request, e)
			}
		}
		if event != c.event {
			t.Errorf("%.60s: event %q, want %q", c.request, event, c.event)
		}
	}
	h := &history.History{Header: history.Header{Application: &history.Application{Replicas: []string{"b 1", "b2"}, Resource: true}}, Events: r.events}
	for i := range h.Events {
		h.Events[i].Index, h.Events[i].Process = int64(i), history.Resource
	}
	if err := history.Validate(h); err != nil {
		t.Error(err)
	}
}

// TestRoom: there is an end of keys and of bytes, and what is there can still be written.
func TestRoom(t *testing.T) {
	s := newStore(func(history.Event) int64 { return 0 })
	put := func(key string, size int) error {
		_, _, err := s.apply(access{Event: history.Event{F: history.Write, Key: key}, value: make([]byte, size)}, true)
		return err
	}
	for n := range maxTotal / maxValue {
		if err := put(string(rune('A'+n)), maxValue); err != nil {
			t.Fatal(err)
		}
	}
	if put("more", 1) == nil {
		t.Error("there is no end of bytes")
	}
	if err := put("A", 1); err != nil {
		t.Error(err)
	}
	if err := put("more", 1); err != nil {
		t.Error(err)
	}
}

// TestAtOnce: requests that come at once are applied one after the other, so that of two with one version one is refused.
func TestAtOnce(t *testing.T) {
	s, clients := newStore(func(history.Event) int64 { return 0 }), 8
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for done := 0; done < 100; {
				value, version, _ := s.apply(access{Event: history.Event{F: history.Read, Key: "c"}}, true)
				next := access{Event: history.Event{F: history.Write, Key: "c", Base: version}, absent: version == 0, value: append([]byte("x"), value...)}
				if _, _, err := s.apply(next, true); err == nil {
					done++
				}
			}
		})
	}
	all.Wait()
	if value, _, _ := s.apply(access{Event: history.Event{F: history.Read, Key: "c"}}, true); len(value) != 100*clients {
		t.Errorf("%d of %d updates are there", len(value), 100*clients)
	}
}

// TestRun: the first line is the address, the others are events, and the end of the input ends it.
func TestRun(t *testing.T) {
	input, end := io.Pipe()
	read, output := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- Run(t.Context(), Config{Listen: "127.0.0.1:0", Clients: []string{"b1"}}, input, output)
		_ = output.Close()
	}()
	lines := bufio.NewReader(read)
	address, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		answer, err := http.Post(URL(strings.TrimSpace(address), "b1")+"/jobs", "text/plain", strings.NewReader("job-1"))
		if err == nil {
			_ = answer.Body.Close()
		}
	}()
	var e history.Event
	line, err := lines.ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &e) != nil || e.ID != "job-1" || e.Process != history.Resource || e.Version != 1 {
		t.Errorf("%v: %s", err, line)
	}
	_ = end.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// argument is one of a command line, in quotation marks or without.
var argument = regexp.MustCompile(`'[^']*'|\S+`)

// TestPage: the session on the page goes as it says.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/resource.md")
	if err != nil {
		t.Fatal(err)
	}
	_, session, _ := strings.Cut(string(page), "```console\n")
	session, _, _ = strings.Cut(session, "```")
	r, requests := serve(t), strings.Split(session, "$ curl ")[1:]
	for _, request := range requests {
		line, want, _ := strings.Cut(request, "\n")
		method, path, body, headers, shown := http.MethodGet, "", "", []string(nil), false
		for words := argument.FindAllString(line, -1); len(words) > 0; words = words[1:] {
			switch word := words[0]; word {
			case "-i":
				shown = true
			case "-X", "-d", "-H":
				words = words[1:]
				value := strings.Trim(words[0], "'")
				switch {
				case word == "-X":
					method = value
				case word == "-H":
					headers = append(headers, value)
				default:
					body = value
					if method == http.MethodGet {
						method = http.MethodPost
					}
				}
			default:
				path = "/b2" + strings.TrimPrefix(word, "$LOCKCHECK_RESOURCE")
			}
		}
		status, version, got := r.request(t, method, path, body, headers...)
		if shown {
			got = fmt.Sprintf("HTTP/1.1 %d %s\nETag: %q\nVersion: %s\n\n%s\n", status, http.StatusText(status), version, version, got)
		}
		if got != want {
			t.Errorf("curl %s: %q, and the page has %q", line, got, want)
		}
	}
	if len(requests) < 5 {
		t.Errorf("the page has %d requests", len(requests))
	}
}
