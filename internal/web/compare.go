package web

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"

	g "maragu.dev/gomponents"
	"maragu.dev/gomponents/html"

	"lockcheck/internal/runs"
	"lockcheck/reports"
)

// compare shows two runs side by side. A list does not know the order of its runs: it names both as "run", and
// the older becomes the first.
func (h *handler) compare(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if chosen := query["run"]; len(chosen) > 0 {
		h.compareChosen(w, r, chosen)
		return
	}
	if runs, documents, ok := h.judged(w, query.Get("a"), query.Get("b")); ok {
		h.writeTwo(w, runs[0], runs[1], reports.NewSideBySide(documents[0], documents[1]))
	}
}

func (h *handler) writeTwo(w http.ResponseWriter, a, b run, both reports.SideBySide) {
	var properties g.Group
	for _, p := range both.Properties {
		properties = append(properties, pairRow(p.Property, p.Differ(), p.First.Node(), p.Second.Node()))
	}
	write(w, http.StatusOK, "Two runs",
		html.Header(trail(), html.H1(g.Text("Two runs side by side")), html.P(link(addressOfTwo(b.Folder, a.Folder), "Swap first and second"))),
		html.Main(
			html.Section(html.Class("cards"), html.Aria("label", "Verdicts"), h.card(a), h.card(b)),
			reports.Section("What they are compared by", pairTable(pairRows(both.Differences, false)), html.P(html.Class("note"), reports.CleanText(both.Note))),
			reports.Section("Properties", pairTable(properties)),
			reports.Section("In figures", pairTable(pairRows(both.Figures, false))),
			reports.Section("How they were run", pairTable(pairRows(both.Facts, true))),
			framed(h.report(a), h.report(b))))
}

// card summarizes a run.
func (h *handler) card(r run) g.Node {
	return html.Div(html.Class("card"), html.P(badge(r.Verdict)), html.P(html.Class("finding"), reports.CleanText(r.Sentence)),
		html.P(html.Class("soft"), reports.CleanText(timeOf(r.Started)+" UTC · "+r.Folder)), html.P(html.Class("links"), h.linksOf(r)))
}

func pairTable(rows g.Node) g.Node {
	return table("pair", g.Group{html.Td(), heads("First", "Second")}, rows)
}

// pairRows has a row for each pair. With marked, rows that differ are marked.
func pairRows(pairs []reports.Pair, marked bool) g.Node {
	return g.Map(pairs, func(p reports.Pair) g.Node {
		return pairRow(p.Name, marked && p.Differ(), reports.CleanText(p.First), reports.CleanText(p.Second))
	})
}

func pairRow(name string, differs bool, first, second g.Node) g.Node {
	mark := g.If(differs, g.Group{g.Text(" "), html.Span(html.Class("mark"), html.Title("differs"), g.Text("≠"))})
	return html.Tr(g.If(differs, html.Class("differs")), reports.RowHead(reports.CleanText(name), mark), html.Td(first), html.Td(second))
}

// framed shows two reports in frames, if both exist.
func framed(first, second string) g.Node {
	if first == "" || second == "" {
		return nil
	}
	frame := func(report, which string) g.Node {
		return html.IFrame(html.Src(reports.SafeAddress(report)), html.Title("Report of the "+which+" run"), html.Loading("lazy"))
	}
	return reports.Section("Reports", html.Details(html.Summary(g.Text("Both reports side by side")),
		html.Div(html.Class("cards"), frame(first, "first"), frame(second, "second"))))
}

func (h *handler) compareChosen(w http.ResponseWriter, r *http.Request, folders []string) {
	if len(folders) != 2 {
		tell(w, http.StatusBadRequest, fmt.Sprintf("Choose two runs to compare, not %d.", len(folders)))
		return
	}
	runs, _, ok := h.judged(w, folders...)
	if !ok {
		return
	}
	slices.SortFunc(runs, newestFirst)
	http.Redirect(w, r, addressOfTwo(runs[1].Folder, runs[0].Folder), http.StatusSeeOther)
}

// judged reads the results of runs. If a run is missing or its results cannot be read, the HTTP response says so.
func (h *handler) judged(w http.ResponseWriter, folders ...string) (all []run, documents []reports.Document, ok bool) {
	for _, folder := range folders {
		if !h.store.isRun(folder) {
			tell(w, http.StatusNotFound, fmt.Sprintf("There is no run %q in the store.", folder))
			return nil, nil, false
		}
		document, err := h.store.document(folder)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			tell(w, http.StatusNotFound, fmt.Sprintf("The run %s has no %s yet.", folder, runs.ResultsFile))
			return nil, nil, false
		case err != nil:
			tell(w, http.StatusInternalServerError, fmt.Sprintf("The results of %s cannot be read: %v.", folder, err))
			return nil, nil, false
		}
		all, documents = append(all, run{Folder: folder, Line: reports.NewLine(document)}), append(documents, document)
	}
	return all, documents, true
}

func addressOfTwo(first, second string) string {
	return "/compare?" + url.Values{"a": {first}, "b": {second}}.Encode()
}
