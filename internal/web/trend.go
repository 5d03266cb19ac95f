package web

import (
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"lockcheck/internal/runs"
	"lockcheck/reports"
)

// trendPage is the content of the page with the runs of one lock that were made alike, over time.
type trendPage struct {
	Lock, Settings string
	Shown          int
	Strip          []trendRow // the oldest first
	Rows           []trendRow // the newest first
	First, Last    int        // of those shown, from 1
	Newer, Older   string     // addresses of other parts
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

// ofHistory says whether a run is part of the history of its lock: those that search, or try
// something, say what may happen, not what became of a lock.
func (r run) ofHistory() bool {
	first, _, _ := strings.Cut(r.Folder, "/")
	return r.Lock != "" && !slices.Contains([]string{runs.RemediesFolder, runs.SweepFolder, runs.ProfileFolder, runs.HuntFolder}, first)
}

func (h *handler) trend(w http.ResponseWriter, r *http.Request) {
	h.pages.write(w, http.StatusOK, "trend", h.newTrendPage(r.URL.Query()))
}

func (h *handler) newTrendPage(query url.Values) trendPage {
	page := trendPage{Lock: reports.Clean(query.Get("lock")), Settings: reports.Clean(query.Get("settings"))}
	like := selected(h.store.look(math.MaxInt64).runs, func(r run) bool {
		return r.ofHistory() && r.Lock == page.Lock && r.Settings == page.Settings
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
