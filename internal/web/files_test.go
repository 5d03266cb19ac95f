package web

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFiles: each file is sent in a way that is safe for it.
func TestFiles(t *testing.T) {
	s := newShelf(t)
	s.run("redis/1", document("redis", "2026-01-01T00:00:00Z", 0))
	s.file("redis/1/junit.xml", "<testsuites/>")
	s.file("redis/1/schedule.yaml", "steps: []")
	s.file("redis/1/odd.svg", "<svg/>")
	for _, name := range []string{"porcupine.html", "other.html", "logs/report.html"} {
		s.file("redis/1/"+name, "<script>1</script>")
	}
	s.file("compare/1/comparison.html", "<p>a comparison</p>")
	site := s.serve()
	for _, c := range []struct {
		name, kind, disposition string
		scripts                 bool
	}{
		{"redis/1/report.html", "text/html; charset=utf-8", "", true},
		{"redis/1/porcupine.html", "text/html; charset=utf-8", "", true},
		{"redis/1/other.html", "text/html; charset=utf-8", "", false},
		{"redis/1/logs/report.html", "text/html; charset=utf-8", "", false},
		{"compare/1/comparison.html", "text/html; charset=utf-8", "", false},
		{"redis/1/results.json", "application/json", "", false},
		{"redis/1/logs/n1.log", "text/plain; charset=utf-8", "", false},
		{"redis/1/junit.xml", "text/plain; charset=utf-8", "", false},
		{"redis/1/schedule.yaml", "text/plain; charset=utf-8", "", false},
		{"redis/1/history.jsonl", "application/octet-stream", "attachment; filename=history.jsonl", false},
		{"redis/1/odd.svg", "application/octet-stream", "attachment; filename=odd.svg", false},
	} {
		response, _ := site.get("/files/" + c.name)
		header := response.Header
		if response.StatusCode != http.StatusOK || header.Get("Content-Type") != c.kind || header.Get("Content-Disposition") != c.disposition ||
			!strings.Contains(header.Get("Content-Security-Policy"), "; sandbox") || header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %s, %v", c.name, response.Status, header)
		}
		if scripts := strings.Contains(header.Get("Content-Security-Policy"), "script"); scripts != c.scripts {
			t.Errorf("%s: scripts run: %v", c.name, scripts)
		}
	}
	page := site.page("/files/redis/1/")
	site.contains(page, `href="/files/redis/1/logs/n1.log"`, `href="/files/redis/1/history.jsonl"`, "(download)", "19 B")
	response, _ := site.get("/files/redis/1")
	if to := response.Header.Get("Location"); response.StatusCode != http.StatusSeeOther || to != "/files/redis/1/" {
		t.Errorf("%s to %q", response.Status, to)
	}
}

// TestDownload: the archive has all files of the run unchanged, in a folder of their own, and nothing that a
// link leads to.
func TestDownload(t *testing.T) {
	s := newShelf(t)
	s.run("redis/1", document("redis", "2026-01-01T00:00:00Z", 0))
	s.run("redis/2", document("redis", "2026-01-02T00:00:00Z", 0))
	s.file("secret", "not of this run")
	s.link("redis/1/link", "../../secret")
	s.link("redis/1/folder", "../2")
	if err := syscall.Mkfifo(filepath.Join(s.folder, "redis/1/pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	site := s.serve()
	response, body := site.get("/download/redis/1")
	if got := response.Header.Get("Content-Disposition"); response.StatusCode != http.StatusOK || got != "attachment; filename=redis-1.tar.gz" {
		t.Errorf("%s, %q", response.Status, got)
	}
	files := unpacked(t, body)
	for name, want := range map[string]string{
		"redis-1/history.jsonl": "history of redis/1\n",
		"redis-1/report.html":   "<p>report of redis/1</p>",
		"redis-1/logs/n1.log":   "log of redis/1\n",
		"redis-1/test.json":     "{}\n",
		"redis-1/results.json":  files["redis-1/results.json"],
	} {
		if files[name] != want || want == "" {
			t.Errorf("%s is %q, want %q", name, files[name], want)
		}
		delete(files, name)
	}
	for name := range files {
		t.Errorf("%s is in the archive", name)
	}
	if response, body := site.do(http.MethodHead, "/download/redis/1"); response.StatusCode != http.StatusOK || body != "" {
		t.Errorf("HEAD: %s, %q", response.Status, body)
	}
}

func unpacked(t *testing.T, archive string) map[string]string {
	t.Helper()
	plain, err := gzip.NewReader(strings.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for packed := tar.NewReader(plain); ; {
		header, err := packed.Next()
		if errors.Is(err, io.EOF) {
			return files
		} else if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(packed)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(text)
	}
}

func TestSize(t *testing.T) {
	for _, c := range []struct {
		bytes int64
		want  string
	}{
		{0, "0 B"}, {1, "1 B"}, {999, "999 B"}, {1000, "1 kB"}, {1234, "1.23 kB"}, {999499, "999 kB"}, {999500, "1 MB"},
		{5_300_000, "5.3 MB"}, {2_000_000_000, "2 GB"}, {3_000_000_000_000, "3 TB"},
	} {
		if got := sizeOf(c.bytes); got != c.want {
			t.Errorf("%d bytes are %s, want %s", c.bytes, got, c.want)
		}
	}
}
