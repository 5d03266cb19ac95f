package web

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"lockcheck/history"
)

// TestTrend: comparable runs are shown over time, others are not, and changes of versions are marked.
func TestTrend(t *testing.T) {
	s := newShelf(t)
	for day := 1; day <= 3; day++ {
		d := document("redis", fmt.Sprintf("2026-01-0%dT00:00:00Z", day), int64(30*(day/3)), "pause")
		d.Header.Versions = map[string]string{"redis": fmt.Sprint(7 + day/3)}
		s.run(fmt.Sprintf("redis/%d", day), d)
	}
	s.run("redis/calm", document("redis", "2026-01-04T00:00:00Z", 0))
	s.run("etcd/1", document("etcd", "2026-01-05T00:00:00Z", 0, "pause"))
	for _, folder := range []string{"remedies", "sweep", "profile", "hunt"} {
		s.run(folder+"/1/runs/redis/1", document("redis", "2026-01-06T00:00:00Z", 0, "pause"))
	}
	site := s.serve()
	page := site.page(linkOf(t, site.page("/?lock=redis&fault=pause"), "over time"))
	site.contains(page, ">3 runs<", "redis over time", "30 of 100", "redis 8", `href="/files/redis/3/report.html"`)
	if strings.Contains(page, "etcd") || strings.Contains(page, "calm") {
		t.Error("runs of another kind are shown")
	}
	if n := strings.Count(page, "(changed)"); n != 1 {
		t.Errorf("%d changes of versions are marked, want 1:\n%s", n, page)
	}
	// 30 of 100 are lost in the last run, none in the others.
	if n := strings.Count(page, `<line class="none" x1="0" x2="14" y1="100%" y2="100%"></line>`); n != 2 || !strings.Contains(page, `<line class="lost" x1="0" x2="14" y1="70%" y2="70%"></line>`) {
		t.Errorf("the chart is not that of the runs:\n%s", page)
	}
	strip := page[strings.Index(page, `class="strip"`):]
	if strings.Index(strip, "2026-01-01") > strings.Index(strip, "2026-01-03") {
		t.Error("the strip does not begin with the oldest")
	}
	site.contains(site.page("/trend?lock=nothing"), "No run is like that.")
	part := linkOf(t, site.page("/?lock=redis&fault=pause&order=oldest"), "over time") + "&from=99"
	site.contains(site.page(part), ">3 runs<", "2026-01-01")
	if n := strings.Count(site.page("/?lock=redis&fault=pause"), "over time"); n != 3 {
		t.Errorf("%d runs lead to a history, want 3: those that search are part of none", n)
	}
}

// TestTrendLike: runs with other parameters are another history. Other seeds, other versions and explicit
// defaults are not.
func TestTrendLike(t *testing.T) {
	s := newShelf(t)
	day := 0
	run := func(folder string, change func(*history.Header)) {
		day++
		d := document("redis", fmt.Sprintf("2026-01-%02dT00:00:00Z", day), 0, "pause")
		d.Header.Lease = 2 * time.Second
		change(&d.Header)
		s.run(folder, d)
	}
	run("like/1", func(*history.Header) {})
	run("like/2", func(h *history.Header) { h.Seed, h.Versions = 7, map[string]string{"redis": "8"} })
	run("like/3", func(h *history.Header) {
		maps.Copy(h.Parameters, map[string]string{"nemesis": "pause", "store": "elsewhere", "seed": "7", "guard": "none"})
	})
	run("other/1", func(h *history.Header) { h.Parameters["renew"] = "true" })
	run("other/2", func(h *history.Header) { h.Parameters["nemesis"] = "pause:holder" })
	run("other/3", func(h *history.Header) { h.Lease = time.Second })
	run("other/4", func(h *history.Header) { h.Workload = "counter" })
	run("other/5", func(h *history.Header) { h.Workers = []string{"w1"} })
	run("other/6", func(h *history.Header) { h.Guard = "fence" })
	site := s.serve()
	for search, count := range map[string]string{
		"like/1": ">3 runs<", "like/2": ">3 runs<", "like/3": ">3 runs<",
		"other/1": ">1 runs<", "other/2": ">1 runs<", "other/3": ">1 runs<", "other/4": ">1 runs<", "other/5": ">1 runs<", "other/6": ">1 runs<",
	} {
		page := site.page(linkOf(t, site.page("/?search="+search), "over time"))
		if !strings.Contains(page, count) {
			t.Errorf("the history of %s has not %s", search, count)
		}
	}
}

// TestSearchAndOrder: the list shows the runs that mention all words, in the requested order.
func TestSearchAndOrder(t *testing.T) {
	s := newShelf(t)
	s.run("redis/1", document("redis", "2026-01-01T00:00:00Z", 1, "pause"))
	s.run("redis/2", document("redis", "2026-01-02T00:00:00Z", 30, "pause"))
	s.run("etcd/1", document("etcd", "2026-01-03T00:00:00Z", 0))
	site := s.serve()
	for _, c := range []struct {
		query, want, count string
	}{
		{"", "etcd/1 redis/2 redis/1", "3 of 3 runs"},
		{"order=oldest", "redis/1 redis/2 etcd/1", "3 of 3 runs"},
		{"order=most+lost", "redis/2 redis/1 etcd/1", "3 of 3 runs"},
		{"order=lock", "etcd/1 redis/2 redis/1", "3 of 3 runs"},
		{"order=nonsense", "etcd/1 redis/2 redis/1", "3 of 3 runs"},
		{"search=GONE+pause", "redis/2 redis/1", "2 of 3 runs"},
		{"search=redis/2", "redis/2", "1 of 3 runs"},
		{"search=nothing", "", "0 of 3 runs"},
		{"search=valid&lock=etcd", "etcd/1", "1 of 3 runs"},
	} {
		folders, count := listed(site.page("/?" + c.query))
		if got := strings.Join(folders, " "); got != c.want || count != c.count {
			t.Errorf("%s: %s (%s), want %s (%s)", c.query, got, count, c.want, c.count)
		}
	}
	if page := site.page("/?search=%3Cscript%3E"); strings.Contains(page, "<script>") {
		t.Error("what is searched for is not escaped")
	}
}
