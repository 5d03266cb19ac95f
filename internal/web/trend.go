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
	part                      // which of those shown Rows are
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
	var rows []run
	rows, page.part = partOf(like, "/trend", query)
	for i, r := range rows {
		before := page.First + i
		changed := before < len(like) && like[before].Versions != r.Versions
		page.Rows = append(page.Rows, trendRow{h.newRow(r, false), changed})
	}
	page.Strip = slices.Clone(page.Rows)
	slices.Reverse(page.Strip)
	return page
}
