package web

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	"maragu.dev/gomponents/html"

	"lockcheck/internal/runs"
	"lockcheck/reports"
)

// maxRows is how many runs one page lists.
const maxRows = 200

// Filter values for missing properties.
const (
	noFaults  = "none"
	noResults = "no results"
)

// filter narrows the list by one property of runs.
type filter struct {
	name string // of the query parameter
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

// faults are the kinds of faults of a run, or the value for none; empty if unknown.
func (r run) faults() []string {
	if len(r.Faults) == 0 && r.Lock != "" {
		return []string{noFaults}
	}
	return r.Faults
}

func (r run) verdict() string { return cmp.Or(r.Verdict, noResults) }

func (h *handler) list(w http.ResponseWriter, r *http.Request) {
	all := h.store.look(h.store.patience)
	if all.unread > 0 {
		w.Header().Set("Refresh", "1") // the list continues where it was
	}
	title, query := "Runs", r.URL.Query()
	if len(all.comparisons) > 0 {
		title = "Comparisons and runs"
	}
	write(w, http.StatusOK, "Runs", html.Header(html.H1(g.Text(title))), html.Main(
		comparisonsOf(all.comparisons), pagesOf(all.pages),
		g.If(len(all.comparisons)+len(all.pages) > 0, html.H2(g.Text("Runs"))),
		h.runsOf(all, query),
		g.If(len(all.problems) > 0, reports.Section("Not looked into", html.Ul(html.Class("plain"), g.Map(all.problems, func(problem string) g.Node {
			return html.Li(html.Class("soft"), reports.CleanText(problem))
		})))),
	))
}

// pagesOf lists pages about several runs.
func pagesOf(names []string) g.Node {
	if len(names) == 0 {
		return nil
	}
	list := html.Ul(html.Class("plain pages"), g.Map(names, func(name string) g.Node { return html.Li(link(address("files", name), name)) }))
	if len(names) > 5 {
		list = html.Details(html.Summary(g.Textf("%d pages", len(names))), list)
	}
	return reports.Section("Other pages", list)
}

// runsOf is the requested part of all runs, with controls to request others.
func (h *handler) runsOf(all inventory, query url.Values) g.Node {
	s := newSelection(all.runs, query)
	from, to := partOf(len(s.runs), query)
	count := fmt.Sprintf("%d of %d runs", len(s.runs), len(all.runs))
	if all.unread > 0 {
		count += fmt.Sprintf("; %d more are being read", all.unread)
	}
	none := html.P(html.Class("empty"), g.Text("There are no runs in this store yet. "), html.Code(g.Text("lockcheck test")), g.Text(" makes one."))
	if s.filtered {
		none = html.P(html.Class("empty"), g.Text("No run is like that."))
	}
	return html.Form(html.Action("/"), html.Method("get"),
		html.Div(html.Class("bar"), s.controls,
			html.Button(html.Type("submit"), g.Text("Filter")),
			g.If(s.filtered, link("/", "all")),
			html.Span(html.Class("count"), html.Role("status"), g.Text(count)),
			html.Button(html.Type("submit"), html.FormAction("/compare"), g.Text("Compare two"))),
		h.tableOf(s.runs[from:to], all.runs, query["run"]),
		g.If(len(s.runs) == 0, none),
		parts("/", query, from, to, len(s.runs)))
}

// tableOf lists runs. Above them it lists runs that were chosen before and are not among them, so that two runs
// that no single filter shows can be compared.
func (h *handler) tableOf(rows, all []run, chosen []string) g.Node {
	isChosen := func(r run) bool { return slices.Contains(chosen, r.Folder) }
	others := selected(all, func(r run) bool {
		return isChosen(r) && !slices.ContainsFunc(rows, func(listed run) bool { return listed.Folder == r.Folder })
	})
	if len(rows)+len(others) == 0 {
		return nil
	}
	row := func(r run) g.Node { return h.row(r, isChosen(r)) }
	return reports.Wide("Runs", html.Table(html.Class("runs"),
		html.THead(html.Tr(html.Th(html.Scope("col"), reports.Span("hidden", "Compare")), heads("Started (UTC)", "Lock", "Workload", "Faults", "Guard", "Verdict", "What was found", "Lost updates"))),
		g.If(len(others) > 0, html.TBody(html.Class("chosen"),
			html.Tr(html.Th(html.Scope("rowgroup"), html.ColSpan("9"), g.Text("Chosen, and not in the list below"))), g.Map(others, row))),
		html.TBody(g.Map(rows, row))))
}

func (h *handler) row(r run, chosen bool) g.Node {
	return html.Tr(
		html.Td(html.Input(html.Type("checkbox"), html.Name("run"), html.Value(r.Folder), html.Aria("label", "Compare "+reports.Clean(r.Folder)),
			g.If(chosen, html.Checked()), g.If(r.Problem != "", html.Disabled()))),
		cell("time", timeOf(r.Started)), reports.RowHead(reports.CleanText(cmp.Or(r.Lock, "–"))),
		cell("", r.Workload), cell("", strings.Join(r.faults(), ", ")), cell("", r.Guard), html.Td(badge(r.Verdict)),
		html.Td(html.Class("sentence"), reports.CleanText(r.said()), html.Div(html.Class("links"), h.linksOf(r), link(r.trend(), "over time"))),
		cell("number", r.Lost))
}

// linksOf links to the pages of a run.
func (h *handler) linksOf(r run) g.Node {
	return links(link(h.report(r), "report"), link(r.files(), "files"), link(r.download(), "download"))
}

// report is the address of the report of a run; "" if there is none.
func (h *handler) report(r run) string {
	if !h.store.holds(r.Folder, runs.ReportFile) {
		return ""
	}
	return address("files", r.Folder, runs.ReportFile)
}

func (r run) files() string    { return address("files", r.Folder) + "/" }
func (r run) download() string { return address("download", r.Folder) }

// trend is the address of the history that a run belongs to; "" if there is none.
func (r run) trend() string {
	if !r.ofHistory() {
		return ""
	}
	return "/trend?" + url.Values{"lock": {r.Lock}, "settings": {r.Settings}}.Encode()
}

// said is what was found in a run, or why that is unknown.
func (r run) said() string { return cmp.Or(r.Problem, r.Sentence) }

// valuesOf are the values that a filter can have: those that occur, and the current one.
func valuesOf(f filter, runs []run, set string) []string {
	values := make(map[string]bool)
	for _, r := range runs {
		for _, v := range f.of(r) {
			values[v] = true
		}
	}
	values[set] = true
	delete(values, "") // "" means any
	return slices.Sorted(maps.Keys(values))
}

func selected(runs []run, wanted func(run) bool) []run {
	return slices.DeleteFunc(slices.Clone(runs), func(r run) bool { return !wanted(r) })
}

// timeOf formats a time in UTC, as everywhere in the store.
func timeOf(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

// address is the address of something in the store, with escaping.
func address(page string, names ...string) string {
	return (&url.URL{Path: "/" + page + "/" + path.Join(names...)}).EscapedPath()
}

// partOf is the range of a long list that is requested.
func partOf(all int, query url.Values) (from, to int) {
	from = min(max(0, atoi(query.Get("from"))), max(0, all-1))
	return from, min(from+maxRows, all)
}

// parts links to the other parts of a long list, if there are any.
func parts(page string, query url.Values, from, to, all int) g.Node {
	if from == 0 && to == all {
		return nil
	}
	return html.Nav(html.Class("parts"), html.Aria("label", "Parts of the list"),
		g.If(from > 0, link(partAt(page, query, max(0, from-maxRows)), "newer", html.Rel("prev"))),
		g.Text(" "), html.Span(g.Textf("%d to %d", from+1, to)), g.Text(" "),
		g.If(to < all, link(partAt(page, query, to), "older", html.Rel("next"))))
}

// partAt is the address of another part of a list.
func partAt(page string, query url.Values, from int) string {
	query = maps.Clone(query)
	query.Set("from", strconv.Itoa(from))
	return page + "?" + query.Encode()
}

// atoi is the number in a text, or 0.
func atoi(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}
