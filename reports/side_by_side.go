package reports

import (
	"slices"
	"strings"
	"time"

	g "maragu.dev/gomponents"

	"lockcheck/checker"
	"lockcheck/history"
)

// Clean makes text from outside safe for one line, as in all reports: it removes what could rewrite the
// surrounding text. It escapes nothing.
func Clean(s string) string { return clean(s) }

// Line is a run as one line of a list for people. Its texts are cleaned but not escaped.
type Line struct {
	Started               time.Time // zero if unknown
	Lock, Workload, Guard string
	Faults                []string
	// Verdict is one of the four verdicts of a run. Verdict and Sentence are "" if the run was not judged.
	Verdict, Sentence string
	Lost              string // "2 of 119" acknowledged updates; "" if there were none
	// LostShare is Lost as a share; 0 if there were no updates.
	LostShare float64
	// LostLow and LostHigh are the 95 % interval of LostShare; 0 and 1 if unknown.
	LostLow, LostHigh float64
	// Wait is the 99th percentile of Measures.Wait, and WaitText the same for people; 0 and "" without any
	// grant.
	Wait     time.Duration
	WaitText string
	// Versions of servers, client libraries and lockcheck.
	Versions string
	// Settings is equal for runs of a lock that were made in the same way.
	Settings string
}

// NewLine is the line of a judged run.
func NewLine(d Document) Line {
	line := UnjudgedLine(d.Header)
	line.Verdict, line.Sentence = string(Plain(d.Results.Verdict)), Sentence(d.Results)
	if u := d.Results.Updates; u.Acknowledged > 0 {
		line.Lost = Grouped(u.Lost) + " of " + Grouped(u.Acknowledged)
		line.LostShare = float64(u.Lost) / float64(u.Acknowledged)
		line.LostHigh = 1
		if u.IntervalKnown() {
			line.LostLow, line.LostHigh = u.LostLow, u.LostHigh
		}
	}
	line.Wait, _ = d.Results.Measures.Wait.Quantile(0.99)
	line.WaitText = Quantile(d.Results.Measures.Wait, 0.99)
	return line
}

// UnjudgedLine is the line of a run of which only the header is known.
func UnjudgedLine(h history.Header) Line {
	line := Line{
		Lock: orNone(clean(h.Lock)), Workload: orNone(clean(h.Workload)), Guard: orNone(clean(h.Guard)),
		Faults: cleanAll(h.Faults), Settings: settings(h),
	}
	var versions []string
	for _, v := range append(pairs(h.Versions), fact{"lockcheck", clean(h.Version)}) {
		if v.Value != "" {
			versions = append(versions, v.Name+" "+v.Value)
		}
	}
	line.Versions = strings.Join(versions, ", ")
	if started, err := time.Parse(time.RFC3339, h.Started); err == nil {
		line.Started = started
	}
	return line
}

// settings describes what was asked for in a run. It leaves out the lock, the versions, which may change from
// run to run, and parameters that do not affect the run.
func settings(h history.Header) string {
	var parts []string
	for _, f := range facts(h) {
		if !slices.Contains([]string{"lock", "seed", "servers"}, f.Name) {
			parts = append(parts, f.Name+" "+f.Value)
		}
	}
	for _, p := range parametersOf(h) {
		if p.Name != "version" && p.Name != "image" {
			parts = append(parts, p.Name+" "+p.Value)
		}
	}
	return strings.Join(parts, "; ")
}

// parametersOf are the parameters that the facts do not include, without parameters that do not affect the
// run.
func parametersOf(h history.Header) []fact {
	said := []string{"lock", "workload", "guard", "concurrency", "ttl"}
	same := []string{"seed", "store", "test-count", "with-remedies", "expect", "skip-unsupported"}
	return slices.DeleteFunc(pairs(h.Parameters), func(p fact) bool {
		plain := p.Name == "nemesis" && p.Value == clean(strings.Join(h.Faults, ","))
		told := h.Renewed && p.Name == "renew" || h.Checked && p.Name == "check-before-write"
		return plain || told || slices.Contains(said, p.Name) || slices.Contains(same, p.Name)
	})
}

// SideBySide compares two runs for people. Its texts are cleaned but not escaped.
type SideBySide struct {
	Facts       []Pair // what the headers say
	Properties  []Opinions
	Figures     []Pair
	Differences []Pair // how often the compared events happened
	Note        string // how to read the differences
}

// Pair is a name and its values in two runs.
type Pair struct{ Name, First, Second string }

// Differ says whether the two values differ.
func (p Pair) Differ() bool { return p.First != p.Second }

// Opinions is what was found about one property in two runs.
type Opinions struct {
	Property      string
	First, Second Opinion
}

// Differ says whether the verdicts differ.
func (o Opinions) Differ() bool { return o.First.Word != o.Second.Word }

// Opinion is what was found about one property. Class is Word as a name for style sheets.
type Opinion struct {
	Property, Word, Class, Summary string
	Required                       bool
	To                             string // address of the incidents on the page of the run; "" for none
}

// Node shows the opinion, with a remark if it does not affect the verdict.
func (o Opinion) Node() g.Node {
	said := g.Group{Span("word "+o.Class, o.Word)}
	if o.Summary != "" {
		said = append(said, g.Text(" "+o.Summary), o.notJudged())
	}
	return said
}

// NewSideBySide compares two runs.
func NewSideBySide(a, b Document) SideBySide {
	differences := checker.Differences([]checker.Results{a.Results}, []checker.Results{b.Results})
	return SideBySide{
		Facts:       pairUp(allFacts(a.Header), allFacts(b.Header)),
		Properties:  opinions(a.Results, b.Results),
		Figures:     pairUp(figures(a.Results), figures(b.Results)),
		Differences: portions(differences),
		Note:        strings.TrimSpace(Incomparable([]history.Header{a.Header}, []history.Header{b.Header}) + " " + chanceNote(differences, 1, 1)),
	}
}

// Incomparable says what else differs between two runs, or two sets of runs, so that different results show
// little; "" for nothing.
func Incomparable(a, b []history.Header) string {
	var why []string
	for _, p := range pairUp(allOf(a), allOf(b)) {
		if slices.Contains([]string{"workload", "guard", "faults", "workers"}, p.Name) && p.Differ() {
			why = append(why, p.Name+" ("+p.First+"; "+p.Second+")")
		}
	}
	if len(why) == 0 {
		return ""
	}
	what := "The two runs"
	if len(a)+len(b) > 2 {
		what = "The two sets of runs"
	}
	return what + " differ in " + listNames(why) + ", so a difference below may come from that alone."
}

// allOf merges the facts of several runs. Each fact has all values that occur.
func allOf(headers []history.Header) []fact {
	var all []fact
	values := make(map[string][]string)
	for _, h := range headers {
		for _, f := range facts(h) {
			if values[f.Name] == nil {
				all = append(all, fact{Name: f.Name})
			}
			if !slices.Contains(values[f.Name], f.Value) {
				values[f.Name] = append(values[f.Name], f.Value)
			}
		}
	}
	for i := range all {
		slices.Sort(values[all[i].Name])
		all[i].Value = strings.Join(values[all[i].Name], " or ")
	}
	return all
}

// allFacts lists what may explain why two runs differ.
func allFacts(h history.Header) []fact {
	all := append(facts(h), pairs(h.Parameters)...)
	all = append(all, pairs(h.Versions)...)
	return append(all, fact{"lockcheck", orNone(clean(h.Version))})
}

// missing stands for a value that one of two runs lacks.
const missing = "–"

// pairUp joins two lists by name, in the order of the first.
func pairUp(a, b []fact) []Pair {
	var out []Pair
	at := make(map[string]int)
	for _, f := range a {
		at[f.Name] = len(out)
		out = append(out, Pair{f.Name, f.Value, missing})
	}
	for _, f := range b {
		if i, both := at[f.Name]; both {
			out[i].Second = f.Value
			continue
		}
		out = append(out, Pair{f.Name, missing, f.Value})
	}
	return out
}

// opinions joins the findings of two runs by property, in the order of the first run's ranking.
func opinions(a, b checker.Results) []Opinions {
	var out []Opinions
	at := make(map[string]int)
	none := Opinion{Word: missing, Class: "na"}
	for _, f := range opinionsOf(a) {
		at[f.Property] = len(out)
		out = append(out, Opinions{f.Property, f, none})
	}
	for _, f := range opinionsOf(b) {
		if i, both := at[f.Property]; both {
			out[i].Second = f
			continue
		}
		out = append(out, Opinions{f.Property, none, f})
	}
	return out
}
