package web

import (
	"net/http"
	"strings"
	"testing"
)

// pair is a store with two runs, the second without losses.
func pair(t *testing.T) *shelf {
	s := newShelf(t)
	s.run("redis/1", document("redis", "2026-01-01T00:00:00Z", 30, "pause"))
	fenced := document("redis", "2026-01-02T00:00:00Z", 0, "pause")
	fenced.Header.Guard = "fence"
	s.run("redis/2", fenced)
	s.file("redis/3/history.jsonl", "")
	return s
}

func TestCompare(t *testing.T) {
	site := pair(t).serve()
	page := site.page("/compare?a=redis%2F1&b=redis%2F2")
	site.contains(page, "updates of redis are gone", "some lost", "none lost",
		"30 of 100 (30 %)", "0 of 100 (0 %)", "Not compared: what happens within one run has common causes",
		`src="/files/redis/1/report.html"`, `src="/files/redis/2/report.html"`, `href="/download/redis/2"`,
		`href="/compare?a=redis%2F2&amp;b=redis%2F1"`)
	for name, differs := range map[string]bool{"guard": true, "lock": false, "section": false, "no-lost-update": true, "no-stale-write": false} {
		marked := strings.Contains(page, `<tr class="differs"><th scope="row">`+name+" ")
		plain := strings.Contains(page, `<tr><th scope="row">`+name+"<")
		if marked != differs || plain == differs {
			t.Errorf("%s: marked %v, plain %v, want it marked: %v", name, marked, plain, differs)
		}
	}
	if strings.Contains(page, "the second is") || strings.Contains(page, "no difference shown") {
		t.Error("a single run was compared with another")
	}
	nothing := site.page("/compare?a=redis%2F2&b=redis%2F2")
	site.contains(nothing, "Nothing happened that could be compared.")
}

// TestChosenToCompare: the runs chosen in a list become an address with the older run first. Runs that cannot
// be compared get an error.
func TestChosenToCompare(t *testing.T) {
	site := pair(t).serve()
	for _, c := range []struct {
		query  string
		status int
		want   string // in the redirect's address, or on the page
	}{
		{"run=redis/1&run=redis/2", http.StatusSeeOther, "/compare?a=redis%2F1&b=redis%2F2"},
		{"run=redis/2&run=redis/1&lock=redis", http.StatusSeeOther, "/compare?a=redis%2F1&b=redis%2F2"},
		{"run=redis/1", http.StatusBadRequest, "Choose two runs to compare, not 1."},
		{"run=redis/1&run=redis/2&run=redis/3", http.StatusBadRequest, "Choose two runs to compare, not 3."},
		{"run=redis/1&run=redis/3", http.StatusNotFound, "The run redis/3 has no results.json yet."},
		{"run=redis/1&run=redis/4", http.StatusNotFound, "There is no run"},
		{"run=redis/1&run=redis", http.StatusNotFound, "There is no run"},
		{"a=redis/1", http.StatusNotFound, "There is no run"},
		{"a=redis/1&b=../store/redis/2", http.StatusNotFound, "There is no run"},
		{"", http.StatusNotFound, "There is no run"},
	} {
		response, body := site.get("/compare?" + c.query)
		if response.StatusCode != c.status || !strings.Contains(response.Header.Get("Location")+body, c.want) {
			t.Errorf("%s: %s to %q, want %d and %q in\n%s", c.query, response.Status, response.Header.Get("Location"), c.status, c.want, body)
		}
	}
}
