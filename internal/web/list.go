package web

import (
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockcheck/internal/runs"
)

// maxRows is how many runs one page lists.
const maxRows = 200

// Names of what stands for the lack of something, in filters.
const (
	noFaults  = "none"
	noResults = "no results"
)

// filter narrows the list by one property of runs.
type filter struct {
	name string // of the parameter
	of   func(run) []string
}

func filters() []filter {
	return []filter{
		{"lock", func(r run) []string { return []string{r.Lock} }},
		{"fault", run.faults},
		{"guard", func(r run) []string { return []string{r.Guard} }},
		{"verdict", func(r run) []string { return []string{r.verdict()} }},
	}
}

// faults is the kinds of faults of a run, or what stands for none; nothing if they are
// not known.
func (r run) faults() []string {
	if len(r.Faults) == 0 && r.Lock != "" {
		return []string{noFaults}
	}
	return r.Faults
}

func (r run) verdict() string {
	if r.Verdict == "" {
		return noResults
	}
	return r.Verdict
}

type listPage struct {
	selection
	Shown, All int   // runs that the filters let through, and all
	Chosen     []row // to be compared, and not among Rows
	Rows       []row
	part       // which of those shown Rows are
	// Comparisons are the newest; Earlier are the others.
	Comparisons, Earlier []comparisonRow
	// Pages are others of several runs.
	Pages    []pageRow
	Problems []string
	Unread   int // runs that are not read yet
}

// pageRow is a page of several runs: its path in the store, and its address.
type pageRow struct{ Name, To string }

// choice is a filter with what there is to choose from.
type choice struct {
	Name, Value string
	Values      []string
}

type row struct {
	run
	Verdict       string
	Class         string // of the verdict, for the style sheet
	Time, Kinds   string // Kinds of faults
	Chosen        bool
	Files, Report string // addresses; Report is "" if there is none
	Trend         string // address of the runs like it; "" if it is part of no history
	Download      string
}

func (h *handler) list(w http.ResponseWriter, r *http.Request) {
	page := h.newListPage(r.URL.Query())
	if page.Unread > 0 {
		w.Header().Set("Refresh", "1") // it goes on where it was
	}
	h.pages.write(w, http.StatusOK, "list", page)
}

func (h *handler) newListPage(query url.Values) listPage {
	all := h.store.look(h.store.patience)
	page := listPage{All: len(all.runs), Problems: all.problems, Unread: all.unread}
	shown := page.of(all.runs, query)
	page.Shown = len(shown)
	var rows []run
	rows, page.part = partOf(shown, "/", query)
	h.addRows(&page, all.runs, rows, query["run"])
	for _, name := range all.pages {
		page.Pages = append(page.Pages, pageRow{name, address("files", name)})
	}
	for n, c := range all.comparisons {
		list := &page.Comparisons
		if n >= maxComparisons {
			list = &page.Earlier
		}
		*list = append(*list, newComparisonRow(c))
	}
	return page
}

// addRows lists some of all runs, and those chosen before that are not among them: two
// runs that no one filter shows can be compared, too.
func (h *handler) addRows(page *listPage, all, rows []run, chosen []string) {
	listed := make(map[string]bool)
	for _, r := range rows {
		listed[r.Folder] = true
		page.Rows = append(page.Rows, h.newRow(r, slices.Contains(chosen, r.Folder)))
	}
	for _, r := range all {
		if slices.Contains(chosen, r.Folder) && !listed[r.Folder] {
			page.Chosen = append(page.Chosen, h.newRow(r, true))
		}
	}
}

// valuesOf is what a filter can be set to: what there is, and what it is set to.
func valuesOf(f filter, runs []run, set string) []string {
	values := make(map[string]bool)
	for _, r := range runs {
		for _, v := range f.of(r) {
			values[v] = true
		}
	}
	values[set] = true
	delete(values, "") // which stands for any
	return slices.Sorted(maps.Keys(values))
}

func selected(runs []run, wanted func(run) bool) []run {
	return slices.DeleteFunc(slices.Clone(runs), func(r run) bool { return !wanted(r) })
}

func (h *handler) newRow(r run, chosen bool) row {
	one := row{
		run: r, Verdict: r.verdict(), Class: r.Line.Verdict, Chosen: chosen,
		Time: timeOf(r.Started), Kinds: strings.Join(r.faults(), ", "), Files: address("files", r.Folder) + "/", Download: address("download", r.Folder),
	}
	if h.store.holds(r.Folder, runs.ReportFile) {
		one.Report = address("files", r.Folder, runs.ReportFile)
	}
	if r.ofHistory() {
		one.Trend = "/trend?" + url.Values{"lock": {r.Lock}, "settings": {r.Settings}}.Encode()
	}
	return one
}

// timeOf is a moment in the time of all that is stored.
func timeOf(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

// address is the address of something in the store, with what must be escaped in it.
func address(page string, names ...string) string {
	return (&url.URL{Path: "/" + page + "/" + path.Join(names...)}).EscapedPath()
}

// part is a stretch of a list that is too long for one page.
type part struct {
	First, Last  int    // from 1; 0 for an empty list
	Newer, Older string // addresses of other parts; "" for none
}

// partOf is the part of some runs that the query of a page asks for.
func partOf(runs []run, page string, query url.Values) ([]run, part) {
	from := min(max(0, atoi(query.Get("from"))), max(0, len(runs)-1))
	to := min(from+maxRows, len(runs))
	address := func(from int) string {
		other := maps.Clone(query)
		other.Set("from", strconv.Itoa(from))
		return page + "?" + other.Encode()
	}
	p := part{First: min(from+1, to), Last: to}
	if from > 0 {
		p.Newer = address(max(0, from-maxRows))
	}
	if to < len(runs) {
		p.Older = address(to)
	}
	return runs[from:to], p
}

// atoi is the number in a text, or 0.
func atoi(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}
