package reports

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/internal/remedies"
)

// RemedyAdvice is what a remedy does against a cause of the violations of a run.
type RemedyAdvice struct {
	Cause  string `json:"cause"` // one of the checker.Cause constants
	Remedy string `json:"remedy"`
	Words  string `json:"words"` // the remedy in a few words
	// Flag of "lockcheck test" that tries it; "" for none.
	Flag   string          `json:"flag,omitempty"`
	Effect remedies.Effect `json:"effect"`
	Why    string          `json:"why"`
	// Lacks says what the lock lacks for it, "" for nothing; InForce that the run had it.
	Lacks   string `json:"lacks,omitempty"`
	InForce bool   `json:"in_force,omitempty"`
	// Shown are the runs that show it.
	Shown []ShownBy `json:"shown"`

	helps bool
}

// ShownBy is an experiment of lockcheck, and the command that runs it.
type ShownBy struct {
	Experiment string `json:"experiment"`
	Command    string `json:"command"`
	Docker     bool   `json:"docker,omitempty"` // it needs Docker
}

// name is the flag, or the words where there is none.
func (a RemedyAdvice) name() string { return cmp.Or(a.Flag, a.Words) }

// adviceFor lists remedies for what was violated in a run, by causes, the most frequent first.
func adviceFor(h history.Header, r checker.Results) []RemedyAdvice {
	var all []RemedyAdvice
	for _, cause := range causesOf(r) {
		for _, o := range remedies.Offers(cause, h) {
			remedy := remedies.ByName(o.Remedy)
			advice := RemedyAdvice{
				Cause: cause, Remedy: remedy.Name, Words: remedy.Words, Flag: remedy.Change.Flag(h.Lock, h.Lease),
				Effect: o.Effect, Why: o.Why, Lacks: o.Lacks, InForce: o.InForce, helps: o.Helps(),
			}
			for _, name := range o.Experiments(h.Lock) {
				advice.Shown = append(advice.Shown, ShownBy{name, remedies.Command(name), remedies.OnDocker(name)})
			}
			all = append(all, advice)
		}
	}
	return all
}

// causesOf lists the causes of what was violated, and not made harmless, the most frequent
// first.
func causesOf(r checker.Results) []string {
	times := make(map[string]int64)
	for _, f := range r.Findings {
		if Plain(f.Verdict) != checker.Violation || f.Tolerated {
			continue
		}
		for cause, n := range f.Causes {
			times[cause] += n
		}
	}
	return slices.SortedFunc(maps.Keys(times), func(a, b string) int {
		return cmp.Or(cmp.Compare(times[b], times[a]), cmp.Compare(a, b))
	})
}

// maxCauses is how many causes the terminal has remedies for.
const maxCauses = 2

// remedies says in a few lines what would have helped.
func (t *terminal) remedies(r checker.Results, o TerminalOptions) {
	all := adviceFor(o.Header, r)
	causes := causesOf(r)
	for _, cause := range causes[:min(len(causes), maxCauses)] {
		var lines []fact
		shown := ""
		for _, effect := range []remedies.Effect{remedies.Prevents, remedies.Contains, remedies.Rarer} {
			var names []string
			for _, a := range all {
				if a.Cause == cause && a.Effect == effect && a.helps {
					names = append(names, a.name())
					shown = cmp.Or(shown, a.Shown[0].Command)
				}
			}
			if len(names) > 0 {
				lines = append(lines, fact{string(effect), strings.Join(names, ", ")})
			}
		}
		if len(lines) == 0 {
			continue
		}
		t.hang("  ", t.paint(bold, "what would help")+": ", clean(cause))
		for _, l := range append(lines, fact{"shown by", o.CommandLine(shown)}) {
			t.hang("    ", "  "+l.Name+": ", l.Value)
		}
		t.blank()
	}
}

type remedyView struct {
	Cause   string
	Rows    []RemedyAdvice
	Lacking []RemedyAdvice
}

func remedyViews(h history.Header, r checker.Results) []remedyView {
	var views []remedyView
	for _, a := range adviceFor(h, r) {
		if n := len(views); n == 0 || views[n-1].Cause != a.Cause {
			views = append(views, remedyView{Cause: a.Cause})
		}
		v := &views[len(views)-1]
		if a.Lacks != "" {
			v.Lacking = append(v.Lacking, a)
			continue
		}
		v.Rows = append(v.Rows, a)
	}
	return views
}
