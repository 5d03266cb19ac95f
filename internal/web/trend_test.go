package web

import (
	"fmt"
	"strings"
	"testing"
)

// TestTrend: the runs like one are shown over time, others are not, and where versions change is
// marked.
func TestTrend(t *testing.T) {
	s := newShelf(t)
	for day := 1; day <= 3; day++ {
		d := document("redis", fmt.Sprintf("2026-01-0%dT00:00:00Z", day), int64(30*(day/3)), "pause")
		d.Header.Versions = map[string]string{"redis": fmt.Sprint(7 + day/3)}
		s.run(fmt.Sprintf("redis/%d", day), d)
	}
	s.run("redis/calm", document("redis", "2026-01-04T00:00:00Z", 0))
	s.run("etcd/1", document("etcd", "2026-01-05T00:00:00Z", 0, "pause"))
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
	if n := strings.Count(page, `<line class="none" x1="0" x2="14" y1="100%" y2="100%"/>`); n != 2 || !strings.Contains(page, `<line class="lost" x1="0" x2="14" y1="70%" y2="70%"/>`) {
		t.Errorf("the chart is not that of the runs:\n%s", page)
	}
	strip := page[strings.Index(page, `class="strip"`):]
	if strings.Index(strip, "2026-01-01") > strings.Index(strip, "2026-01-03") {
		t.Error("the strip does not begin with the oldest")
	}
	site.contains(site.page("/trend?lock=nothing"), "No run is like that.")
	site.contains(site.page("/trend?lock=redis&fault=pause&guard=none&from=99"), ">3 runs<", "2026-01-01")
}

// TestSearchAndOrder: the list shows what mentions all words, in the order asked for.
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
