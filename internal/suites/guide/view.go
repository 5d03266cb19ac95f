package guide

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"lockcheck/history"
	"lockcheck/internal/runs"
	"lockcheck/reports"
)

// Sentences that every page has. External says what no lock can do.
const (
	External     = "No lock stops a second card charge, mail or call to a service: give each an idempotency key that the other side checks (`lockcheck repro claims run --only claim/jobs-paused`)."
	oneRunProves = "A run shows that a lock can break, never that it cannot."
)

// Texts for a query without an answer.
const (
	nothingFits = "No lock fits."
	alternative = "Let one host do the work and accept that no other host takes over, or add a database."
)

// maxChoices bounds the rows of a decision.
const maxChoices = 6

// Advice is the answer in a few sentences.
func (d Decision) Advice() string {
	if len(d.Choices) == 0 {
		return d.noAnswer()
	}
	first := d.Choices[0]
	text := "Use " + first.name() + " (" + first.Family.Name + ")"
	if first.Guard != history.GuardNone {
		text += ": " + d.guardText(first) + ". " + d.breaks(first)
	} else {
		text += ". Work is done twice when " + d.breakText(first) + "."
	}
	if len(d.Choices) > 1 {
		text += " Second choice: " + d.Choices[1].name() + "."
	}
	return text + d.doNot()
}

// guardText says how to use the guard of a choice. If the result of a job goes into the lock's database, that database
// checks the key; effects elsewhere need a key at the other side too.
func (d Decision) guardText(c Choice) string {
	const row = "insert a unique row, such as (job, date), in the transaction that writes the result; if the row is there, the job was done"
	info, _ := infoOf(c.Lock)
	switch text := guardNamed(c.Guard).text; {
	case d.Need != NeedOnce || !info.Data:
		return text
	case d.External:
		return text + ". For the result in your database: " + row
	}
	return row
}

func (d Decision) breaks(c Choice) string {
	return "Without the guard it breaks when " + d.breakText(c) + "."
}

// breakText is how a lock breaks according to a run, or else according to its mechanism.
func (d Decision) breakText(c Choice) string {
	if c.Alone == nil {
		return c.Family.Breaks + " (by mechanism; no run shows it)"
	}
	return c.Alone.words()
}

// noAnswer says why no lock is an answer.
func (d Decision) noAnswer() string {
	text := nothingFits
	for _, c := range d.Out[:min(3, len(d.Out))] {
		text += " Do not use " + c.Lock + ", because " + c.because() + "."
	}
	if slices.Equal(d.Have, []string{noServers}) {
		text += " With nothing but a shared disk: " + alternative
	}
	return text
}

func (c Choice) because() string {
	if c.AgainstShown == nil {
		return c.Against
	}
	return c.Against + " (" + c.AgainstShown.measured() + ")"
}

// doNot names the worst likely mistake: a lock that was ruled out, or, without a guard, the lock that fails
// under most faults.
func (d Decision) doNot() string {
	guarded := d.Need == NeedData || d.Need == NeedOnce || d.Need == NeedLong
	i := slices.IndexFunc(d.Out, func(c Choice) bool { return c.AgainstShown != nil })
	worst := slices.MaxFunc(d.Choices, func(a, b Choice) int { return a.faultyKinds() - b.faultyKinds() })
	switch {
	case i >= 0 && !(guarded && len(d.Choices) > 1):
		return " Do not use " + d.Out[i].Lock + ", because " + d.Out[i].because() + "."
	case len(d.Out) > 0 && !guarded:
		return " Do not use " + d.Out[0].Lock + ", because " + d.Out[0].because() + "."
	case d.Need == NeedWaste:
		return " Do not use it for data that must not be lost: it has no guard."
	case worst.Lock != d.Choices[0].Lock && len(worst.Faulty) > 0:
		return " Do not use " + worst.Lock + " without a guard, because it breaks when " + worst.Faulty[0].words() + "."
	}
	return ""
}

// Title says what was asked.
func (d Decision) Title() string {
	parts := []string{d.Need.Title()}
	if d.Have != nil {
		parts = append(parts, "have "+strings.Join(d.Have, ", "))
	}
	if d.External {
		parts = append(parts, "effects elsewhere")
	}
	for _, figure := range []struct {
		name string
		d    time.Duration
	}{{"work ", d.Work}, {"failover ", d.Failover}} {
		if figure.d > 0 {
			parts = append(parts, figure.name+short(figure.d))
		}
	}
	return strings.Join(parts, " · ")
}

// Unknown says in one sentence what no run has shown of the first choice.
func (d Decision) Unknown() string {
	if len(d.Choices) == 0 || len(d.Choices[0].Untried) == 0 {
		return oneRunProves
	}
	c := d.Choices[0]
	return "Not tried with " + c.Lock + " without a guard: " + strings.Join(c.Untried, ", ") + ". " + oneRunProves
}

type fact struct{ Name, Text string }

// facts of a choice: mechanism first, then measurements.
func (c Choice) facts() []fact {
	all := []fact{{"ends with", c.Family.Ends}}
	if c.Guard == history.GuardFence || c.Guard == history.GuardDatabase { // other guards need nothing from the lock
		all = append(all, fact{"safe behind", c.Family.Behind})
	}
	if c.Alone != nil {
		name := "unguarded" // the lock breaks only without the guard
		if c.Guard == history.GuardNone {
			name = "breaks"
		}
		all = append(all, fact{name, "when " + c.Alone.words()})
	}
	all = append(all, fact{"measured", c.keptText()})
	if len(c.Faulty) > 0 {
		all = append(all, fact{"by itself", c.faultyText()})
	}
	if set := slices.Concat(c.Warnings, c.Notes); len(set) > 0 {
		all = append(all, fact{"mind", strings.Join(set, "; ")})
	}
	return all
}

type page struct {
	b     strings.Builder
	width int
}

func (p *page) line(text string) { p.b.WriteString(strings.TrimRight(text, " ") + "\n") }

// writeIndented writes text after a lead and indents further lines to the end of the lead.
func (p *page) writeIndented(lead, text string) {
	indent := strings.Repeat(" ", len(lead))
	const glue = "\x00" // replaces spaces within a command, which users will paste
	var all strings.Builder
	for _, s := range spans(text) {
		if s.Code && len(s.Text) < p.width-len(lead)-2 { // the surrounding punctuation needs room too
			s.Text = strings.ReplaceAll(s.Text, " ", glue)
		}
		all.WriteString(s.Text)
	}
	for i, line := range reports.Wrap(all.String(), p.width-len(lead), p.width-len(lead), true) {
		line = strings.ReplaceAll(line, glue, " ")
		if i == 0 {
			p.line(lead + line)
		} else {
			p.line(indent + line)
		}
	}
}

// Terminal writes a decision with its evidence, in at most 40 lines of 80 columns. Further choices are only
// named.
func (d Decision) Terminal(w io.Writer, o reports.TerminalOptions) error {
	const lines = 40
	text := ""
	for shown := min(4, len(d.Choices)); ; shown-- {
		if text = d.text(o, shown); shown <= 1 || strings.Count(text, "\n") <= lines {
			break
		}
	}
	_, err := io.WriteString(w, text)
	return err
}

func width(o reports.TerminalOptions) int {
	if o.Width == 0 {
		return 80
	}
	return max(o.Width, 40)
}

func (d Decision) text(o reports.TerminalOptions, shown int) string {
	p := page{width: width(o)}
	p.line(d.Title())
	p.line("")
	p.writeIndented("", d.Advice())
	for i, c := range d.Choices[:shown] {
		p.line("")
		p.writeIndented(fmt.Sprintf("%d ", i+1), c.name()+c.label())
		for _, f := range c.facts() {
			switch {
			case i == 0 && slices.Contains([]string{"breaks", "unguarded"}, f.Name): // the advice says it already
				continue
			case i > 0 && slices.Contains([]string{"safe behind", "measured", "by itself"}, f.Name):
				continue
			}
			p.writeIndented(fmt.Sprintf("  %-12s", f.Name), f.Text)
		}
	}
	p.line("")
	if rest := names(d.Choices[shown:]); rest != "" {
		p.writeIndented("Then: ", rest+".")
	}
	p.writeIndented("", d.Unknown())
	if d.External || d.Need == NeedData || d.Need == NeedOnce {
		p.writeIndented("", External)
	}
	return p.b.String()
}

// label has the version and the other locks of the family.
func (c Choice) label() string {
	var all []string
	if c.Version != "" {
		all = append(all, c.Version)
	}
	if len(c.Others) > 0 {
		all = append(all, "also "+strings.Join(c.Others, ", "))
	}
	if len(all) == 0 {
		return ""
	}
	return " (" + strings.Join(all, "; ") + ")"
}

// names lists choices. It names the guard once if all have the same.
func names(all []Choice) string {
	var locks, list []string
	same := len(all) > 1 && all[0].Guard != history.GuardNone
	for _, c := range all {
		locks, list = append(locks, c.Lock), append(list, c.name())
		same = same && c.Guard == all[0].Guard
	}
	if same {
		return strings.Join(locks, ", ") + ", all with guard " + all[0].Guard
	}
	return strings.Join(list, ", ")
}

// All decides each need without any further information.
func (e Evidence) All() []Decision {
	var all []Decision
	for _, need := range Needs() {
		all = append(all, e.Decide(Query{Need: need}))
	}
	return all
}

// Overview writes a short block for each need.
func (e Evidence) Overview(w io.Writer, o reports.TerminalOptions) error {
	p := page{width: width(o)}
	p.writeIndented("", e.rests()+" Say what you have for a closer answer.")
	for _, d := range e.All() {
		p.line("")
		p.line(d.Title() + " (--need " + string(d.Need) + ")")
		p.writeIndented("  ", d.Advice())
		if len(d.Choices) > 2 {
			p.writeIndented("  then ", names(d.Choices[2:min(len(d.Choices), maxChoices)]))
		}
	}
	p.line("")
	p.writeIndented("", External)
	p.writeIndented("", Rule)
	p.line("")
	for _, line := range []string{"lockcheck guide --need data --have postgres,redis --work 10m", "lockcheck guide --why etcd/pause:leader", "lockcheck guide stories", "lockcheck guide --html guide.html"} {
		p.line("  " + o.CommandLine(line))
	}
	_, err := io.WriteString(w, p.b.String())
	return err
}

func (e Evidence) rests() string {
	all := e.withoutDuplicates()
	from, to := "9", ""
	for _, r := range all {
		from, to = min(from, r.day()), max(to, r.day())
	}
	return fmt.Sprintf("Which lock to choose, from %s of %s to %s and from how locks work.", runsOf(numberOf(all)), from, to)
}

// numberOf is the number of runs behind the entries.
func numberOf(all []Run) (n int64) {
	for _, r := range all {
		n += max(1, r.Of)
	}
	return n
}

// Markdown writes the whole guide as a page for docs.
func (e Evidence) Markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Which lock to choose\n\n%s %s Closer answers: `lockcheck guide --need data --have postgres,redis --work 10m`. Runs behind one: `lockcheck guide --why etcd/pause:leader`.\n\n%s\n\n%s\n", e.rests(), oneRunProves, External, Rule)
	for _, d := range e.All() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| lock (guard) | service fails under; mind |\n| --- | --- |\n", d.Title(), d.Advice())
		for _, c := range d.Choices[:min(len(d.Choices), maxChoices-3)] {
			mind := slices.Insert(slices.Clone(c.Warnings), 0, countWords(c.faultyKinds()))
			fmt.Fprintf(&b, "| %s (%s) | %s |\n", c.Lock, c.Guard, strings.Join(mind, "; "))
		}
	}
	b.WriteString("\n## Families, by mechanism\n\n| family | ends with | breaks when | safe behind |\n| --- | --- | --- | --- |\n")
	for _, f := range Families() {
		fmt.Fprintf(&b, "| %s: %s | %s | %s | %s |\n", f.Name, strings.Join(f.Locks, ", "), f.Ends, f.Breaks, f.Behind)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func countWords(n int) string {
	switch n {
	case 0:
		return "none known"
	case 1:
		return "1 fault"
	}
	return fmt.Sprintf("%d faults", n)
}

// Why writes the runs behind a cell, by version. The cell's name is lock/fault or lock/fault/guard.
func (e Evidence) Why(w io.Writer, name string, o reports.TerminalOptions) error {
	parts := strings.Split(name, "/")
	lock, fault, guard := parts[0], None, history.GuardNone
	if len(parts) > 1 {
		fault = Normal(parts[1])
	}
	if len(parts) > 2 {
		guard = parts[2]
	}
	if !slices.Contains(e.Locks(), lock) {
		return runs.Usagef("no run of a lock named %q is known; the cell is named LOCK/FAULT or LOCK/FAULT/GUARD", lock)
	}
	p := page{width: width(o)}
	p.line(fmt.Sprintf("%s, %s, guard %s", lock, fault, guard))
	if f, is := FamilyOf(lock); is {
		p.writeIndented("by mechanism: ", "it ends with "+f.Ends+"; it breaks when "+f.Breaks)
	}
	var versions []string
	for _, l := range e.Locks() {
		if l == lock || strings.HasPrefix(l, lock+"@") {
			versions = append(versions, l)
		}
	}
	for _, l := range versions {
		cell := e.Cell(l, fault, guard)
		p.line("")
		p.line(l + ": " + cell.Text())
		for _, g := range cell.Groups {
			how := "held"
			if g.Broke > 0 {
				how = brokenWords(g.Class)
			}
			p.writeIndented("  ", fmt.Sprintf("%s %d of %d, %s%s", how, max(g.Broke, g.N*int64(boolToInt(g.Broke == 0))), g.N, g.Version, moreWords(g)))
			p.line("    " + o.CommandLine(g.Command()))
		}
		for _, note := range []struct {
			what string
			n    int64
		}{{"held, in sections too short to tell", numberOf(cell.Short)}, {"said nothing", numberOf(cell.Silent)}} {
			if note.n > 0 {
				p.writeIndented("  ", fmt.Sprintf("%s %s", runsOf(note.n), note.what))
			}
		}
	}
	_, err := io.WriteString(w, p.b.String())
	return err
}

// moreWords adds setup, other faults and lost updates of a group.
func moreWords(g Group) string {
	text := ", " + g.name()
	if len(g.Setup) > 0 {
		text += " (" + strings.Join(g.Setup, ", ") + ")"
	}
	if len(g.With) > 0 {
		text += ", also in force: " + strings.Join(g.With, ", ")
	}
	if g.Pool.Acknowledged > 0 {
		text += fmt.Sprintf(", %d of %d updates lost", g.Pool.Lost, g.Pool.Acknowledged)
	}
	return text
}
