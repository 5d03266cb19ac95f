package web

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	"maragu.dev/gomponents/html"

	"lockcheck/internal/runs"
	"lockcheck/reports"
)

// ofHistory says whether a run belongs to the history of its lock. Runs of a search or an experiment show what
// may happen, not how a lock develops.
func (r run) ofHistory() bool {
	first, _, _ := strings.Cut(r.Folder, "/")
	return r.Lock != "" && !slices.Contains([]string{runs.RemediesFolder, runs.SweepFolder, runs.ProfileFolder, runs.HuntFolder}, first)
}

// trend shows comparable runs of one lock over time.
func (h *handler) trend(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	lock, settings := reports.Clean(query.Get("lock")), reports.Clean(query.Get("settings"))
	like := selected(h.store.look(math.MaxInt64).runs, func(r run) bool {
		return r.ofHistory() && r.Lock == lock && r.Settings == settings
	})
	from, to := partOf(len(like), query)
	var strip, rows g.Group
	for i, r := range like[from:to] {
		before := from + i + 1
		strip = append(strip, h.column(r))
		rows = append(rows, h.trendRow(r, before < len(like) && like[before].Versions != r.Versions))
	}
	slices.Reverse(strip) // the oldest first
	content := g.Group{html.P(html.Class("empty"), g.Text("No run is like that."))}
	if len(rows) > 0 {
		content = g.Group{
			html.H2(g.Text("Lost updates and verdicts")),
			html.Div(html.Class("overtime"),
				html.Div(html.Class("scale"), html.Aria("hidden", "true"), html.Span(g.Text("100 %")), html.Span(g.Text("50 %")), html.Span(g.Text("0 %"))),
				html.Ol(html.Class("strip"), html.Aria("label", "Lost updates and verdicts, the oldest first"), strip)),
			html.P(html.Class("soft"), g.Text("A column is a run, the oldest first: the share of acknowledged updates that were lost as a line, its 95 % interval as a bar, and the verdict as a colour below.")),
			reports.Wide("Runs over time", table("trend",
				heads("Started (UTC)", "Verdict", "Lost updates", "Wait p99", "Versions", "Run"), rows)),
		}
	}
	write(w, http.StatusOK, "Over time",
		html.Header(trail(), html.H1(g.Text(cmp.Or(lock, "–")+" over time")),
			html.P(g.Text("Runs made alike: "+cmp.Or(settings, "–")+". "), html.Span(html.Role("status"), g.Textf("%d runs", len(like))))),
		html.Main(content, parts("/trend", query, from, to, len(like))))
}

// column is a run in the chart: the share of lost updates, its interval, and the verdict.
func (h *handler) column(r run) g.Node {
	text := timeOf(r.Started) + ": " + r.verdict()
	var drawn g.Group
	if r.Lost != "" {
		text += ", " + r.Lost + " updates lost"
		class := "none"
		if r.LostShare > 0 {
			class = "lost"
		}
		y := percent(1 - r.LostShare)
		drawn = g.Group{
			g.El("rect", html.Class("interval"), g.Attr("x", "3"), html.Width("8"), g.Attr("y", percent(1-r.LostHigh)), html.Height(percent(r.LostHigh-r.LostLow))),
			g.El("line", html.Class(class), g.Attr("x1", "0"), g.Attr("x2", "14"), g.Attr("y1", y), g.Attr("y2", y)),
		}
	}
	return html.Li(html.A(reports.Href(cmp.Or(h.report(r), r.files())), html.Title(text), reports.Span("hidden", text),
		html.SVG(html.Width("14"), html.Height("100"), html.Aria("hidden", "true"), drawn), reports.Span("badge "+r.Verdict, "")))
}

func percent(share float64) string { return fmt.Sprint(100*share) + "%" }

// trendRow is a run in the table. changed marks other versions than in the previous run.
func (h *handler) trendRow(r run, changed bool) g.Node {
	return html.Tr(g.If(changed, html.Class("differs")),
		cell("time", timeOf(r.Started)), html.Td(badge(r.Verdict)), cell("number lost", r.Lost), cell("number waited", r.WaitText),
		html.Td(reports.CleanText(cmp.Or(r.Versions, "–")), g.If(changed, g.Group{g.Text(" "), reports.Span("mark", "(changed)")})),
		html.Td(html.Class("links"), links(link(h.report(r), "report"), link(r.files(), "files"))))
}
