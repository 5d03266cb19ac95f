package web

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	"maragu.dev/gomponents/html"

	"lockcheck/reports"
)

// selection is the runs of a store that are shown, in their order, with the controls.
type selection struct {
	runs     []run
	controls g.Group
	filtered bool
}

// order is a way to sort runs.
type order struct {
	name string
	by   func(a, b run) int
}

// orders lists all orders, the default first. Sorting is stable: equal runs stay in the order newest first.
func orders() []order {
	return []order{
		{"newest", func(run, run) int { return 0 }},
		{"oldest", func(a, b run) int { return newestFirst(b, a) }},
		{"most lost", func(a, b run) int { return cmp.Compare(b.LostShare, a.LostShare) }},
		{"longest wait", func(a, b run) int { return cmp.Compare(b.Wait, a.Wait) }},
		{"lock", func(a, b run) int { return cmp.Compare(a.Lock, b.Lock) }},
	}
}

// newSelection selects the requested runs.
func newSelection(all []run, query url.Values) selection {
	s := selection{runs: all}
	for _, f := range filters() {
		value := reports.Clean(query.Get(f.name)) // cleaned like the values that it is compared with
		s.controls = append(s.controls, chooser(f.name, value, html.Option(html.Value(""), g.Text("any")), valuesOf(f, all, value)))
		if value != "" {
			s.filtered = true
			s.runs = selected(s.runs, func(r run) bool { return slices.Contains(f.of(r), value) })
		}
	}
	search := reports.Clean(query.Get("search"))
	if search != "" {
		s.filtered = true
		s.runs = selected(s.runs, func(r run) bool { return r.mentions(search) })
	}
	var names []string
	for _, o := range orders() {
		names = append(names, o.name)
		if o.name == query.Get("order") {
			s.runs = slices.Clone(s.runs)
			slices.SortStableFunc(s.runs, o.by)
		}
	}
	s.controls = append(s.controls, chooser("order", query.Get("order"), nil, names),
		html.Label(g.Text("search "), html.Input(html.Type("search"), html.Name("search"), html.Value(search))))
	return s
}

// chooser is a selection among values, one of them current.
func chooser(name, set string, first g.Node, values []string) g.Node {
	return html.Label(g.Text(name+" "), html.Select(html.Name(name), first, g.Map(values, func(v string) g.Node {
		return html.Option(g.If(v == set, html.Selected()), g.Text(v))
	})))
}

// mentions says whether all words of a text occur in what is known of a run, ignoring case.
func (r run) mentions(text string) bool {
	known := strings.ToLower(strings.Join(append([]string{r.Folder, r.Lock, r.Workload, r.Guard, r.Sentence, r.Versions, r.verdict()}, r.faults()...), " "))
	return !slices.ContainsFunc(strings.Fields(strings.ToLower(text)), func(word string) bool { return !strings.Contains(known, word) })
}
