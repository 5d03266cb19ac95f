package web

import (
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// mixed is a store with runs of all kinds.
func mixed(t *testing.T) *shelf {
	s := newShelf(t)
	s.run("redis-set-pause/1", document("redis", "2026-01-01T00:00:00Z", 3, "pause"))
	s.run("redis-set-none/2", document("redis", "2026-01-02T00:00:00Z", 0))
	fenced := document("etcd", "2026-01-03T00:00:00Z", 0, "clock", "pause")
	fenced.Header.Guard = "fence"
	s.run("compare/3/runs/etcd/1", fenced)
	s.file("compare/3/comparison.html", `<a href="runs/etcd/1/report.html">a comparison</a>`)
	s.file("consul-set-kill/4/test.json", `{"lock":"consul","guard":"none","workload":"set","faults":["kill"],"started":"2026-01-04T00:00:00Z"}`)
	s.file("consul-set-kill/4/history.jsonl", "")
	s.link("latest", "redis-set-none/2")
	s.link("redis-set-pause/latest", "1")
	return s
}

// Folders of mixed, the newest first.
const unfinished, etcd, redis, redisPaused = "consul-set-kill/4-", "compare/3/runs/etcd/1", "redis-set-none/2", "redis-set-pause/1"

// TestListProgress: a list does not wait until all runs of a large store are read. It shows the newest, says
// how many are missing, and reloads until none is.
func TestListProgress(t *testing.T) {
	s := newShelf(t)
	const all = 50
	for n := range all {
		s.run(fmt.Sprintf("redis-set-none/%03d", n), document("redis", fmt.Sprintf("2026-01-01T00:%02d:00Z", n), 0))
	}
	store, err := Open(s.folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	store.patience = 0
	server := httptest.NewServer(store.Handler())
	t.Cleanup(server.Close)
	unread := all
	for unread > 0 {
		answer, err := http.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(answer.Body)
		if err := errors.Join(err, answer.Body.Close()); err != nil {
			t.Fatal(err)
		}
		before := unread
		unread = 0
		if said := regexp.MustCompile(`; (\d+) more are being read`).FindSubmatch(page); said != nil {
			unread, _ = strconv.Atoi(string(said[1]))
		}
		if before == all && unread < all/2 {
			t.Errorf("the first page waited for %d of %d runs", all-unread, all)
		}
		if unread >= before || !strings.Contains(string(page), fmt.Sprintf("%d of %d runs", all-unread, all-unread)) ||
			!strings.Contains(string(page), fmt.Sprintf("redis-set-none/%03d", all-1)) || (answer.Header.Get("Refresh") != "") != (unread > 0) {
			t.Fatalf("%d, then %d unread, refreshed: %q\n%s", before, unread, answer.Header.Get("Refresh"), page)
		}
	}
}

func TestList(t *testing.T) {
	for _, c := range []struct {
		query string
		want  []string
		count string
	}{
		{"", []string{unfinished, etcd, redis, redisPaused}, "4 of 4 runs"},
		{"?lock=redis", []string{redis, redisPaused}, "2 of 4 runs"},
		{"?lock=consul", []string{unfinished}, "1 of 4 runs"},
		{"?lock=unheard-of", nil, "0 of 4 runs"},
		{"?lock=", []string{unfinished, etcd, redis, redisPaused}, "4 of 4 runs"},
		{"?fault=pause", []string{etcd, redisPaused}, "2 of 4 runs"},
		{"?fault=none", []string{redis}, "1 of 4 runs"},
		{"?guard=fence", []string{etcd}, "1 of 4 runs"},
		{"?verdict=valid", []string{etcd, redis}, "2 of 4 runs"},
		{"?verdict=violation", []string{redisPaused}, "1 of 4 runs"},
		{"?verdict=no+results", []string{unfinished}, "1 of 4 runs"},
		{"?lock=redis&verdict=valid", []string{redis}, "1 of 4 runs"},
		{"?lock=etcd&fault=none", nil, "0 of 4 runs"},
		{"?from=1", []string{etcd, redis, redisPaused}, "4 of 4 runs"},
		{"?from=99", []string{redisPaused}, "4 of 4 runs"},
		{"?from=-1", []string{unfinished, etcd, redis, redisPaused}, "4 of 4 runs"},
		{"?run=redis-set-none/2", []string{unfinished, etcd, redis + "+", redisPaused}, "4 of 4 runs"},
		// A chosen run stays listed above a list whose filter excludes it.
		{"?lock=etcd&run=redis-set-none/2", []string{redis + "+", etcd}, "1 of 4 runs"},
		{"?lock=etcd&run=gone/1", []string{etcd}, "1 of 4 runs"},
	} {
		t.Run(c.query, func(t *testing.T) {
			page := mixed(t).serve().page("/" + c.query)
			if got, count := listed(page); !slices.Equal(got, c.want) || count != c.count {
				t.Errorf("%s: %q, want %s: %q", count, got, c.count, c.want)
			}
		})
	}
}

// TestListRow: each row shows what the run was and its result.
func TestListRow(t *testing.T) {
	site := mixed(t).serve()
	page := site.page("/?lock=redis&fault=pause")
	site.contains(page, "2026-01-01 00:00:00", "updates of redis are gone", "3 of 100", ">violation<",
		`href="/files/redis-set-pause/1/report.html"`, `href="/download/redis-set-pause/1"`, `<option selected>redis</option>`)
	page = site.page("/?lock=consul")
	site.contains(page, "No results yet: it is being made, or was killed.", ">no results<")
	if strings.Contains(page, "report.html") {
		t.Error("a run without report has a link to it")
	}
	page = site.page("/")
	site.contains(page, `href="/files/compare/3/comparison.html"`, "<option>clock</option>", "<option>fence</option>", "<option>no results</option>")
	site.contains(site.page("/files/compare/3/comparison.html"), `href="runs/etcd/1/report.html"`)
	site.contains(site.page("/files/compare/3/runs/etcd/1/report.html"), "report of compare/3/runs/etcd/1")
}

// TestNothingKnown: a run with only a history is listed, and no filter confuses unknown with none.
func TestNothingKnown(t *testing.T) {
	s := newShelf(t)
	s.run("redis/1", document("redis", "2026-01-01T00:00:00Z", 0))
	s.file("other/1/history.jsonl", "")
	site := s.serve()
	for query, want := range map[string][]string{"": {"other/1-", "redis/1"}, "?fault=none": {"redis/1"}, "?verdict=no+results": {"other/1-"}} {
		if folders, _ := listed(site.page("/" + query)); !slices.Equal(folders, want) {
			t.Errorf("%s: %q, want %q", query, folders, want)
		}
	}
}

// TestEmpty: only a store without runs says how to make one.
func TestEmpty(t *testing.T) {
	const hint = "There are no runs in this store yet."
	s := newShelf(t)
	site := s.serve()
	site.contains(site.page("/"), hint, "0 of 0 runs")
	s.run("redis/1", document("redis", "2026-01-01T00:00:00Z", 0))
	if page := site.page("/"); strings.Contains(page, hint) {
		t.Error("a store with a run is called empty")
	}
}

// TestStray: files of a run that lie directly in the store make it no run, and hide no run.
func TestStray(t *testing.T) {
	s := newShelf(t)
	s.run("redis/1", document("redis", "2026-01-01T00:00:00Z", 0))
	site := s.serve()
	s.file("history.jsonl", "")
	if folders, count := listed(site.page("/")); !slices.Equal(folders, []string{"redis/1"}) || count != "1 of 1 runs" {
		t.Errorf("%s: %q", count, folders)
	}
}

// TestUnreadable: unreadable results are reported, and hide no other run.
func TestUnreadable(t *testing.T) {
	for _, c := range []struct{ name, results, want string }{
		{"cut off", `{"schema": 1,`, "unexpected end of JSON input"},
		{"of another schema", `{"schema": 4}`, "schema 4, and this lockcheck knows 3"},
		{"of schema 1", `{"schema": 1, "results": {"verdict": "valid", "sentence": "all was well"}}`, "all was well"},
		{"of schema 2", `{"schema": 2, "results": {"verdict": "valid", "sentence": "all was right"}}`, "all was right"},
		{"whole", `{"schema": 3, "results": {"verdict": "valid", "sentence": "all is well"}}`, "all is well"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShelf(t)
			s.run("redis/1", document("redis", "2026-01-01T00:00:00Z", 0))
			s.file("other/1/results.json", c.results)
			site := s.serve()
			page := site.page("/")
			site.contains(page, c.want, "no violation" /* of the other */, "2 of 2 runs")
		})
	}
}

// TestParts: the parts of a long list have each run once, and keep the filter.
func TestParts(t *testing.T) {
	s := newShelf(t)
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 2*maxRows + 1 {
		started := begin.Add(time.Duration(i) * time.Second).Format(time.RFC3339)
		s.run(fmt.Sprintf("redis/%03d", i), document("redis", started, 0))
	}
	s.run("etcd/1", document("etcd", begin.Format(time.RFC3339), 0))
	site := s.serve()
	older := regexp.MustCompile(`<a href="([^"]*)" rel="next">`)
	seen, parts := make(map[string]bool), 0
	for address := "/?lock=redis"; address != ""; parts++ {
		page := site.page(address)
		folders, count := listed(page)
		if want := fmt.Sprintf("%d of %d runs", 2*maxRows+1, 2*maxRows+2); count != want {
			t.Errorf("%s: %s, want %s", address, count, want)
		}
		for _, folder := range folders {
			seen[folder] = true
		}
		address = ""
		if m := older.FindStringSubmatch(page); m != nil {
			address = html.UnescapeString(m[1])
		}
	}
	if parts != 3 || len(seen) != 2*maxRows+1 || seen["etcd/1"] {
		t.Errorf("%d runs in %d parts", len(seen), parts)
	}
}

// TestKnown: results are read again only after their file has changed.
func TestKnown(t *testing.T) {
	s := newShelf(t)
	s.run("redis/1", document("redis", "2026-01-01T00:00:00Z", 0))
	site := s.serve()
	site.contains(site.page("/"), "updates of redis")
	path := filepath.Join(s.folder, "redis/1/results.json")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	s.run("redis/1", document("lemon", "2026-01-01T00:00:00Z", 0)) // same length as before
	touch := func(changed time.Time) {
		if err := os.Chtimes(path, changed, changed); err != nil {
			t.Fatal(err)
		}
	}
	touch(info.ModTime())
	site.contains(site.page("/"), "updates of redis")
	touch(info.ModTime().Add(time.Second))
	site.contains(site.page("/"), "updates of lemon")
}
