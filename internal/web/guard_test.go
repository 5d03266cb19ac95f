package web

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// secret must never be readable through a store.
const secret = "the-secret"

// guardedStore has secrets outside the store and inside it but in no run, and links to both.
func guardedStore(t *testing.T) *shelf {
	s := newShelf(t)
	s.run("redis/1", document("redis", "2026-01-01T00:00:00Z", 0))
	s.file("notes.txt", secret)
	s.file("redis/notes.txt", secret)
	s.file("../outside.txt", secret)
	s.file("../other/history.jsonl", secret)
	s.link("latest", "redis/1")
	s.link("redis/1/to-notes", "../notes.txt")
	s.link("redis/1/to-outside", filepath.Join(s.folder, "../outside.txt"))
	s.link("redis/1/up", "../../..")
	s.link("redis/1/own.log", "logs/n1.log")
	s.link("escape", "..")
	s.link("other", "../other")
	if err := syscall.Mkfifo(filepath.Join(s.folder, "redis/1/pipe.log"), 0o644); err != nil {
		t.Fatal(err)
	}
	return s
}

// raw sends a path unchanged, which HTTP clients do not do.
func (s *site) raw(path string) (status int, body string) {
	s.t.Helper()
	host := strings.TrimPrefix(s.url, "http://")
	connection, err := net.Dial("tcp", host)
	if err != nil {
		s.t.Fatal(err)
	}
	defer connection.Close()
	fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, host)
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// TestOutside: files outside runs cannot be read. Next to each attempt stands a similar one that is allowed.
func TestOutside(t *testing.T) {
	s := guardedStore(t)
	absolute := filepath.Join(s.folder, "../outside.txt")
	site := s.serve()
	for _, c := range []struct {
		path string
		good bool
	}{
		{"/files/redis/1/logs/n1.log", true},
		{"/files/redis/1/%6cogs/n1.log", true},
		{"/files/latest/logs/n1.log", true}, // a link within the store
		{"/files/redis/1/own.log", true},    // and one within the run
		{"/files/redis/1/../../../outside.txt", false},
		{"/files/redis/1/..%2f..%2f..%2foutside.txt", false},
		{"/files/redis/1/%2e%2e/%2e%2e/%2e%2e/outside.txt", false},
		{"/files/redis/1/logs/../logs/n1.log", false}, // within the run, but written as a path that may leave it
		{"/files/redis/1/..%5c..%5coutside.txt", false},
		{"/files/" + absolute, false},
		{"/files/%2f" + strings.TrimPrefix(absolute, "/"), false},
		{"/files//etc/passwd", false},
		{"/files/notes.txt", false},
		{"/files/redis/notes.txt", false},
		{"/files/redis/1/to-notes", false},
		{"/files/redis/1/to-outside", false},
		{"/files/redis/1/up/outside.txt", false},
		{"/files/redis/1/up/store/notes.txt", false},
		{"/files/escape/outside.txt", false},
		{"/files/other/history.jsonl", false},
		{"/files/other/", false},
		{"/files/redis/1/pipe.log", false},
		{"/files/redis/1/logs", false},
		{"/files/redis/1/n%00.log", false},
		{"/files/", false},
		{"/files/.", false},
		{"/files/redis/", false},
		{"/download/redis/1", true},
		{"/download/redis", false},
		{"/download/.", false},
		{"/download/", false},
		{"/download/redis/1/logs", false},
		{"/download/escape", false},
		{"/download/other", false},
		{"/download/..%2fother", false},
		{"/download/redis/1/../../../other", false},
	} {
		status, body := site.raw(c.path)
		if (status == http.StatusOK) != c.good || strings.Contains(body, secret) || strings.Contains(body, "root:") {
			t.Errorf("%s: %d\n%s", c.path, status, body)
		}
	}
}

// TestOutsideControl: without the root, the refused paths do lead to the secrets.
func TestOutsideControl(t *testing.T) {
	s := guardedStore(t)
	for _, name := range []string{
		"redis/1/../../../outside.txt", "redis/1/to-notes", "redis/1/to-outside", "redis/1/up/outside.txt",
		"redis/1/up/store/notes.txt", "escape/outside.txt", "other/history.jsonl", "notes.txt", "redis/notes.txt",
	} {
		if text, err := os.ReadFile(s.folder + "/" + name); err != nil || string(text) != secret {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

// TestListOutside: the search for runs does not follow links out of the store.
func TestListOutside(t *testing.T) {
	folders, count := listed(guardedStore(t).serve().page("/"))
	if len(folders) != 1 || folders[0] != "redis/1" || count != "1 of 1 runs" {
		t.Errorf("%s: %q", count, folders)
	}
}

// TestHost: a request must name this machine and the right port.
func TestHost(t *testing.T) {
	site := guardedStore(t).serve()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(site.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		host string
		good bool
	}{
		{"127.0.0.1:" + port, true},
		{"localhost:" + port, true},
		{"LOCALHOST:" + port, true},
		{"[::1]:" + port, true},
		{"127.0.0.1", false},
		{"localhost", false},
		{"[::1]", false},
		{"127.0.0.1:1", false},
		{"evil.example:" + port, false},
		{"localhost.evil.example:" + port, false},
		{"127.0.0.1.evil.example:" + port, false},
		{"192.0.2.1:" + port, false},
		{"0.0.0.0:" + port, false},
		{"evil.example", false},
	} {
		for _, path := range []string{"/", "/style.css", "/files/redis/1/report.html", "/download/redis/1"} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, site.url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Host = c.host
			response, err := http.DefaultTransport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if want := map[bool]int{true: http.StatusOK, false: http.StatusForbidden}[c.good]; response.StatusCode != want {
				t.Errorf("%s of %s: %s, want %d", path, c.host, response.Status, want)
			}
		}
	}
}

// TestMethods: no method can change anything.
func TestMethods(t *testing.T) {
	site := guardedStore(t).serve()
	for _, path := range []string{"/", "/compare", "/files/redis/1/report.html", "/download/redis/1"} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions} {
			if response, _ := site.do(method, path); response.StatusCode != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %s", method, path, response.Status)
			}
		}
	}
	for _, path := range []string{"/", "/files/redis/1/report.html", "/download/redis/1"} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			if response, _ := site.do(method, path); response.StatusCode != http.StatusOK {
				t.Errorf("%s %s: %s", method, path, response.Status)
			}
		}
	}
}

// TestHeaders: all answers, including refusals, have the strict headers.
func TestHeaders(t *testing.T) {
	site := guardedStore(t).serve()
	for _, path := range []string{"/", "/style.css", "/compare", "/nothing", "/files/redis/1/", "/files/redis/1/report.html", "/download/redis/1"} {
		response, _ := site.get(path)
		header := response.Header
		if header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Referrer-Policy") != "no-referrer" ||
			header.Get("Cross-Origin-Resource-Policy") != "same-origin" || !strings.HasPrefix(header.Get("Content-Security-Policy"), "default-src 'none'; ") {
			t.Errorf("%s: %v", path, header)
		}
	}
	if policy := site.header("/").Get("Content-Security-Policy"); strings.Contains(policy, "script") || strings.Contains(policy, "unsafe") {
		t.Errorf("scripts run in the list: %s", policy)
	}
}

func (s *site) header(path string) http.Header {
	s.t.Helper()
	response, _ := s.get(path)
	return response.Header
}

// TestHostile: text from a run and the name of its folder are shown as text.
func TestHostile(t *testing.T) {
	const name, shown = "\"><script>alert(1)</script>\u202e\x1b[31m", "&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"
	hostile := document(name, "2026-01-01T00:00:00Z", 1, name)
	hostile.Header.Guard, hostile.Header.Workload, hostile.Header.Version = name, name, name
	hostile.Header.Parameters = map[string]string{name: name}
	hostile.Results.Findings[0].Summary = name
	hostile.Results.Sentence = name
	s := newShelf(t)
	folder := `x"><script>alert(2)<` + "\u202e"
	s.run(folder, hostile)
	s.file(folder+`/"><script>.log`, "")
	s.run("tame/1", document("redis", "2026-01-02T00:00:00Z", 0))
	site := s.serve()
	query := "a=tame/1&b=" + escaped(folder)
	for path, wanted := range map[string]bool{
		"/": true, "/?lock=" + escaped(name): true, "/compare?" + query: true, "/files/" + escaped(folder) + "/": true,
		"/files/tame/1/": false, // the control: a page without that name
	} {
		page := site.page(path)
		for _, bad := range []string{"<script", "\u202e", "\x1b"} {
			if strings.Contains(values.ReplaceAllString(page, ""), bad) {
				t.Errorf("%s has %q:\n%s", path, bad, page)
			}
		}
		if strings.Contains(page, shown) != wanted {
			t.Errorf("%s shows the name: %v, want %v\n%s", path, !wanted, wanted, page)
		}
	}
	response, _ := site.get("/download/" + escaped(folder))
	if got := response.Header.Get("Content-Disposition"); response.StatusCode != http.StatusOK || !strings.HasPrefix(got, "attachment; filename*=utf-8''") {
		t.Errorf("%s, %q", response.Status, got)
	}
}

// values are hidden values of forms
var values = regexp.MustCompile(` value="[^"<>]*"`)

func escaped(name string) string { return strings.ReplaceAll(address("", name)[2:], "&", "%26") }
