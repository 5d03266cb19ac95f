package reports

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	"maragu.dev/gomponents/html"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/internal/remedies"
	"lockcheck/nemesis"
)

// RemedyAdvice is what a remedy does against one cause of a run's violations.
type RemedyAdvice struct {
	Cause  string `json:"cause"` // one of the checker.Cause constants
	Remedy string `json:"remedy"`
	Words  string `json:"words"` // the remedy in a few words
	// Flag is the flag of "lockcheck test" that tries the remedy; "" for none.
	Flag   string          `json:"flag,omitempty"`
	Effect remedies.Effect `json:"effect"`
	Why    string          `json:"why"`
	// Lacks says what the lock lacks for the remedy; "" for nothing. InForce says that the run already had
	// the remedy.
	Lacks   string `json:"lacks,omitempty"`
	InForce bool   `json:"in_force,omitempty"`
	// Shown lists runs that show the effect.
	Shown []ShownBy `json:"shown"`

	helps bool
}

// ShownBy is an experiment of lockcheck, and the command that runs it.
type ShownBy struct {
	Experiment string `json:"experiment"`
	Command    string `json:"command"`
	Docker     bool   `json:"docker,omitempty"` // it needs Docker
}

// name is the flag, or the words if there is no flag.
func (a RemedyAdvice) name() string {
	if strings.Count(a.Flag, "--") > 1 { // only one of the flags is the remedy, the others fit the test to it
		return a.Words + " (" + a.Flag + ")"
	}
	return cmp.Or(a.Flag, a.Words)
}

// adviceFor lists remedies for the violations of a run, by cause, the most frequent cause first.
func adviceFor(h history.Header, r checker.Results) []RemedyAdvice {
	var all []RemedyAdvice
	if h.Application != nil {
		return adviceForApplication(r)
	}
	for _, cause := range causesOf(r) {
		for _, o := range remedies.Offers(cause, h) {
			remedy := remedies.ByName(o.Remedy)
			advice := RemedyAdvice{
				Cause: cause, Remedy: remedy.Name, Words: remedy.Words, Flag: flagFor(h, cause, remedy.Change),
				Effect: o.Effect, Why: o.Why, Lacks: o.Lacks, InForce: o.InForce, helps: o.Helps(),
			}
			if remedy.Name == remedies.Fence && r.Finding(checker.FencingOrder).Verdict == checker.Violation {
				advice.Lacks, advice.helps = "gave tokens that did not increase", false
			}
			for _, name := range o.Experiments(h.Lock) {
				advice.Shown = append(advice.Shown, ShownBy{name, remedies.Command(name), remedies.OnDocker(name)})
			}
			all = append(all, advice)
		}
	}
	return all
}

// flagFor is the flag that makes a change for a run whose violations had a cause; "" if no flag does. Random
// pauses and cuts grow with the lease, so a longer lease alone would change nothing. The flag of a longer
// lease therefore also sets a pause that the lease outlasts. No flag keeps the length of a cut, or of a pause
// in a schedule.
func flagFor(h history.Header, cause string, c remedies.Change) string {
	stops := func(kind string) bool { return history.Does(kind, history.Stops) }
	switch {
	case c.Leases == 0 || h.Lease == 0:
		return c.Flag(h.Lock, h.Lease)
	case cause == checker.CauseCutOff:
		return ""
	case !slices.ContainsFunc(h.Faults, stops):
		return c.Flag(h.Lock, h.Lease) + limitOf(h, c)
	case h.Parameters["schedule"] != "":
		return ""
	}
	pause, err := time.ParseDuration(h.Parameters["pause"])
	if err != nil || pause <= 0 {
		pause = nemesis.UsualPause(h.Lease)
	}
	c.Leases = max(c.Leases, int(pause/h.Lease)+2)
	if lock, _ := remedies.LockOf(h); lock.MaxTTL != 0 && time.Duration(c.Leases)*h.Lease > lock.MaxTTL {
		return ""
	}
	return fmt.Sprintf("%s --pause %s%s", c.Flag(h.Lock, h.Lease), pause, limitOf(h, c))
}

// limitOf is the flag of a time limit that goes with a longer lease, after a space: the period without faults at the end
// grows by twice the lease at most, and the faults keep their time. It is "" for a run without a limit of its own, which
// is as long as its lease asks for.
func limitOf(h history.Header, c remedies.Change) string {
	const step = 5 * time.Second
	limit, err := time.ParseDuration(h.Parameters["time-limit"])
	if err != nil {
		return ""
	}
	more := 2 * time.Duration(c.Leases-1) * h.Lease
	return " --time-limit " + (limit + more + step - 1).Truncate(step).String()
}

// adviceForApplication lists what to change in an application.
func adviceForApplication(r checker.Results) []RemedyAdvice {
	var all []RemedyAdvice
	for _, cause := range remedies.CausesOfApplication(r) {
		for _, a := range remedies.ForApplication(cause) {
			if slices.ContainsFunc(all, func(named RemedyAdvice) bool { return named.Remedy == a.Remedy }) {
				continue // one change helps against several causes
			}
			all = append(all, RemedyAdvice{Cause: cause, Remedy: a.Remedy, Words: remedies.ByName(a.Remedy).Words, Effect: a.Effect, Why: a.Why, helps: true})
		}
	}
	return all
}

// causesOf lists the causes of violations that were not made harmless, the most frequent first.
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

// maxCauses bounds the causes for which the terminal lists remedies.
const maxCauses = 2

// remedies says in a few lines what would have helped.
func (t *terminal) remedies(r checker.Results, o TerminalOptions) {
	all := adviceFor(o.Header, r)
	var causes []string
	separator := ", " // between flags
	if o.Header.Application != nil {
		separator = "; "
	}
	for _, of := range chunks(all, func(a, b RemedyAdvice) bool { return a.Cause == b.Cause }) {
		causes = append(causes, of[0].Cause)
	}
	for _, cause := range causes[:min(len(causes), maxCauses)] {
		var lines []fact
		shown := ""
		for _, effect := range []remedies.Effect{remedies.Prevents, remedies.Contains, remedies.Rarer, remedies.Softens} {
			var names []string
			for _, a := range all {
				if a.Cause == cause && a.Effect == effect && a.helps {
					names = append(names, a.name())
					if len(a.Shown) > 0 {
						shown = cmp.Or(shown, a.Shown[0].Command)
					}
				}
			}
			if len(names) > 0 {
				lines = append(lines, fact{string(effect), alternatives(names, separator)})
			}
		}
		if len(lines) == 0 {
			continue
		}
		t.writeIndented("  ", t.paint(bold, "what would help")+" ", "(cause: "+clean(cause)+")")
		if shown != "" {
			lines = append(lines, fact{"shown by", o.CommandLine(shown)})
		}
		for _, l := range lines {
			t.writeIndented("    ", "  "+l.Name+": ", l.Value)
		}
		t.blank()
	}
}

// alternatives joins names of which each is enough.
func alternatives(names []string, separator string) string {
	last := len(names) - 1
	switch last {
	case 0:
		return names[0]
	case 1:
		separator = strings.TrimPrefix(separator, ",")
	}
	return strings.Join(names[:last], separator) + separator + "or " + names[last]
}

// remediesSection says what would have helped, by cause.
func remediesSection(all []RemedyAdvice, application bool) g.Node {
	if len(all) == 0 {
		return nil
	}
	var causes g.Group
	columns := []string{"Remedy", "It", "Because, and how far", "Shown by"}
	if application {
		columns = columns[:3] // no flag tries a change of the application
	}
	for _, of := range chunks(all, func(a, b RemedyAdvice) bool { return a.Cause == b.Cause }) {
		var rows, lacking g.Group
		for _, a := range of {
			if a.Lacks != "" {
				lacking = append(lacking, note("Not supported: "+a.Words+"; the lock "+a.Lacks+"."))
				continue
			}
			rows = append(rows, a.row())
		}
		causes = append(causes, html.H3(CleanText(of[0].Cause)), g.If(len(rows) > 0, Wide("Remedies: "+of[0].Cause, html.Table(html.Class("remedies"),
			g.If(!application, html.Caption(g.Text("Each can be shown by a run."))), Heads(columns...), html.TBody(rows)))), lacking)
	}
	if application {
		return Section("What would help", html.ID("remedies"), causes)
	}
	return Section("What would help", html.ID("remedies"), causes, html.P(html.Class("note"), g.Text("All that the lock supports, with the same seed: the line under "),
		html.I(g.Text("How it was run")), g.Text(" with "), html.Code(g.Text("--with-remedies")), g.Text(".")))
}

func (a RemedyAdvice) row() g.Node {
	var shown g.Group
	for i, s := range a.Shown {
		shown = append(shown, html.Code(g.If(i > 0, html.Class("more")), g.Text(s.Command)), g.If(s.Docker, g.Group{g.Text(" "), Soft("(on Docker)")}), g.Text(" "))
	}
	return html.Tr(RowHead(g.Text(a.Words), g.If(a.Flag != "", g.Group{html.Br(), html.Code(g.Text(a.Flag))})),
		html.Td(g.Text(string(a.Effect)), g.If(a.InForce, g.Group{g.Text(" "), Soft("(this run had it)")})), html.Td(g.Text(a.Why)), g.If(len(shown) > 0, html.Td(shown)))
}

// chunks cuts a list between neighbours that are not alike.
func chunks[T any](all []T, alike func(a, b T) bool) (out [][]T) {
	for i, one := range all {
		if i == 0 || !alike(all[i-1], one) {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], one)
	}
	return out
}
