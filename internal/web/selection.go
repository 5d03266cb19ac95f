package web

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"lockcheck/reports"
)

// selection is which runs of a store are shown, and in what order.
type selection struct {
	Filters  []choice
	Search   string
	Order    choice
	Filtered bool
}

// order is one in which runs can be shown.
type order struct {
	name string
	by   func(a, b run) int
}

// orders lists all of them, the usual one first. Runs that are equal stay as they were: the
// newest first.
func orders() []order {
	return []order{
		{"newest", func(run, run) int { return 0 }},
		{"oldest", func(a, b run) int { return newestFirst(b, a) }},
		{"most lost", func(a, b run) int { return cmp.Compare(b.LostShare, a.LostShare) }},
		{"longest wait", func(a, b run) int { return cmp.Compare(b.Wait, a.Wait) }},
		{"lock", func(a, b run) int { return cmp.Compare(a.Lock, b.Lock) }},
	}
}

// of keeps what is asked for, and returns the runs that it selects.
func (s *selection) of(runs []run, query url.Values) []run {
	through := runs
	for _, f := range filters() {
		value := reports.Clean(query.Get(f.name)) // as what it is compared with
		s.Filters = append(s.Filters, choice{f.name, value, valuesOf(f, runs, value)})
		if value != "" {
			s.Filtered = true
			through = selected(through, func(r run) bool { return slices.Contains(f.of(r), value) })
		}
	}
	if s.Search = reports.Clean(query.Get("search")); s.Search != "" {
		s.Filtered = true
		through = selected(through, func(r run) bool { return r.mentions(s.Search) })
	}
	s.Order = choice{Name: "order", Value: query.Get("order")}
	for _, o := range orders() {
		s.Order.Values = append(s.Order.Values, o.name)
		if o.name == s.Order.Value {
			through = slices.Clone(through)
			slices.SortStableFunc(through, o.by)
		}
	}
	return through
}

// mentions says whether all words of a text are in what is known of a run, in any case.
func (r run) mentions(text string) bool {
	known := strings.ToLower(strings.Join(append([]string{r.Folder, r.Lock, r.Workload, r.Guard, r.Sentence, r.Versions, r.verdict()}, r.faults()...), " "))
	return !slices.ContainsFunc(strings.Fields(strings.ToLower(text)), func(word string) bool { return !strings.Contains(known, word) })
}
