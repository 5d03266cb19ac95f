package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"lockcheck/reports"
)

// trendPage is the content of the page with the runs of one lock under some faults over time.
type trendPage struct {
	Lock, Kinds, Guard string
	Shown              int
	Strip              []trendRow // the oldest first
	Rows               []trendRow // the newest first
	First, Last        int        // of those shown, from 1
	Newer, Older       string     // addresses of other parts
}

// trendRow is one run among those like it.
type trendRow struct {
	row
	// Changed: the versions are others than those of the run before.
	Changed bool
}

// Places in the chart, in percent from above: of the interval of lost updates, and of their
// share.
func (r trendRow) IntervalTop() float64    { return 100 * (1 - r.LostHigh) }
func (r trendRow) IntervalHeight() float64 { return 100 * (r.LostHigh - r.LostLow) }
func (r trendRow) LostTop() float64        { return 100 * (1 - r.LostShare) }

func (h *handler) trend(w http.ResponseWriter, r *http.Request) {
	h.pages.write(w, http.StatusOK, "trend", h.newTrendPage(r.URL.Query()))
}

func (h *handler) newTrendPage(query url.Values) trendPage {
	page := trendPage{Lock: reports.Clean(query.Get("lock")), Kinds: reports.Clean(query.Get("fault")), Guard: reports.Clean(query.Get("guard"))}
	like := selected(h.store.look().runs, func(r run) bool {
		return r.Lock == page.Lock && strings.Join(r.faults(), ", ") == page.Kinds && r.Guard == page.Guard
	})
	page.Shown = len(like)
	from := min(max(0, atoi(query.Get("from"))), max(0, len(like)-1))
	to := min(from+maxRows, len(like))
	for i, r := range like[from:to] {
		before := from + i + 1
		changed := before < len(like) && like[before].Versions != r.Versions
		page.Rows = append(page.Rows, trendRow{h.newRow(r, false), changed})
	}
	page.Strip = slices.Clone(page.Rows)
	slices.Reverse(page.Strip)
	page.First, page.Last = min(from+1, len(like)), to
	if from > 0 {
		page.Newer = partAt("/trend", query, max(0, from-maxRows))
	}
	if to < len(like) {
		page.Older = partAt("/trend", query, to)
	}
	return page
}
