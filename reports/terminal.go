package reports

import (
	"bytes"
	"cmp"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"lockcheck/checker"
	"lockcheck/history"
)

// TerminalOptions says how the report at the end of a run looks.
type TerminalOptions struct {
	Width  int  // columns; 0 means 80
	Color  bool // ANSI colours; the caller handles NO_COLOR and detects terminals
	Folder string
	Header history.Header
	// Program is the name by which lockcheck was called, for commands to paste; "" for lockcheck.
	Program string
}

// CommandLine is a command of lockcheck in a form that the reader can paste.
func (o TerminalOptions) CommandLine(line string) string {
	arguments, is := strings.CutPrefix(line, "lockcheck ")
	if !is || o.Program == "" {
		return line
	}
	return CommandLine([]string{o.Program}) + " " + arguments
}

// Widths of the report, in columns.
const (
	defaultWidth     = 80
	minWidth         = 40
	terminalExamples = 3
)

// Terminal writes the report at the end of a run: the verdict in one sentence, which properties it rests on,
// every property, the faults, a few incidents, and what would have helped. No line is wider than o.Width,
// except a long path, because a broken path could not be copied.
func Terminal(w io.Writer, r checker.Results, o TerminalOptions) error {
	t := newTerminal(o)
	t.headline(r)
	t.run(r, o.Header)
	t.properties(r)
	t.faults(r, o.Header)
	t.examples(r)
	t.remedies(r, o)
	t.folder(o.Folder)
	_, err := w.Write(t.out.Bytes())
	return err
}

type terminal struct {
	out     bytes.Buffer
	width   int
	color   bool
	program string
}

func newTerminal(o TerminalOptions) *terminal {
	return &terminal{width: max(cmp.Or(o.Width, defaultWidth), minWidth), color: o.Color, program: o.Program}
}

// pasteable replaces the program of a command by the name under which lockcheck was called.
func (t *terminal) pasteable(command []string) []string {
	if t.program == "" || command[0] != "lockcheck" {
		return command
	}
	return append([]string{t.program}, command[1:]...)
}

func (t *terminal) headline(r checker.Results) {
	t.verdict(Plain(r.Verdict), Sentence(r))
	t.blank()
}

// verdict is the line that everything else explains.
func (t *terminal) verdict(v checker.Verdict, sentence string) {
	t.writeConclusion(string(v), colorOf(v), sentence)
}

// writeConclusion writes a sentence after its conclusion.
func (t *terminal) writeConclusion(word, color, sentence string) {
	word = strings.ToUpper(word)
	t.writeIndented(word+"  ", t.paint(bold+color, word)+"  ", sentence)
}

func (t *terminal) run(r checker.Results, h history.Header) {
	t.writeIndented("judged: ", t.paint(dim, "judged: "), judged(r))
	var parts []string
	for _, f := range factsOf(h, r) {
		switch f.Name {
		case "lock", "workload":
			parts = append(parts, f.Value)
		case "workers":
			parts = append(parts, f.Value+" workers")
		default:
			parts = append(parts, f.Name+" "+f.Value)
		}
	}
	for _, p := range parametersOf(h) {
		parts = append(parts, strings.TrimSuffix(p.Name+" "+p.Value, " true"))
	}
	t.writeIndented("run:    ", t.paint(dim, "run:    "), strings.Join(parts, "; "))
	t.blank()
}

func (t *terminal) properties(r checker.Results) {
	name, verdict := 0, len("violation")
	for _, f := range r.Findings {
		name = max(name, utf8.RuneCountInString(clean(string(f.Property))))
	}
	name = min(name, t.width/3)
	for _, f := range ordered(r.Findings) {
		word := wordOf(f)
		if rank(f) == violated {
			word = strings.ToUpper(word)
		}
		summary := clean(f.Summary)
		if rank(f) == violatedNotRequired {
			summary += " (reported, not judged)"
		}
		lead := "  " + pad(shorten(clean(string(f.Property)), name), name) + "  "
		t.writeIndented(lead+pad(word, verdict)+"  ", lead+t.paint(findingColor(f), pad(word, verdict))+"  ", summary)
	}
	if len(r.Findings) > 0 {
		t.blank()
	}
}

func (t *terminal) faults(r checker.Results, h history.Header) {
	groups := coverages(h, r.Faults)
	if len(groups) == 0 {
		return
	}
	kind := 0
	for _, c := range groups {
		kind = max(kind, utf8.RuneCountInString(c.name))
	}
	kind = min(kind, t.width/3)
	t.line(t.paint(bold, "faults"))
	for _, c := range groups {
		lead := "  " + pad(shorten(c.name, kind), kind) + "  "
		t.writeIndented(lead, lead, c.line())
		for _, why := range c.notCounted() {
			lead = strings.Repeat(" ", kind+4)
			t.writeIndented(lead+"  ", lead, why)
		}
	}
	t.blank()
}

func (t *terminal) examples(r checker.Results) {
	list := examples(r, ordered(r.Findings), terminalExamples)
	if len(list) == 0 {
		return
	}
	t.line(t.paint(bold, "what happened"))
	for _, e := range list {
		lead := "  at " + at(e.Incident.From, r.Begin) + ": "
		t.writeIndented("    ", lead, clean(e.Incident.What)+inBrackets(e.Incident))
		if e.Incident.Why != "" {
			t.writeIndented("      ", "    why: ", withCause(clean(e.Incident.Why), e.Incident))
		}
	}
	total := 0
	for _, f := range r.Findings {
		total += max(f.Total, len(f.Violations))
	}
	if rest := total - len(list); rest > 0 {
		t.line("  and " + Grouped(int64(rest)) + " more")
	}
	t.blank()
}

func (t *terminal) folder(folder string) {
	if folder == "" {
		return
	}
	t.line(t.paint(dim, "folder  ") + Printable(folder))
	t.line(t.paint(dim, "page    ") + Printable(filepath.Join(folder, "report.html")))
}

// withCause adds the cause of an incident to its explanation. A stuck lock has no cause.
func withCause(why string, i checker.Incident) string {
	if i.Cause == "" {
		return why
	}
	return why + " (" + clean(i.Cause) + ")"
}

// inBrackets is the class, key and faults of an incident in brackets; "" if there are none.
func inBrackets(i checker.Incident) string {
	var parts []string
	if i.Class != "" {
		parts = append(parts, clean(i.Class))
	}
	if i.Key != "" {
		parts = append(parts, "key "+clean(i.Key))
	}
	if len(i.Faults) > 0 {
		parts = append(parts, "during "+strings.Join(cleanAll(i.Faults), ", "))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

func (t *terminal) line(s string) { t.out.WriteString(s + "\n") }

func (t *terminal) blank() { t.line("") }

// writeIndented writes text after a lead and indents wrapped lines by the width of indent. The lead is separate from
// the indent because colours have no width.
func (t *terminal) writeIndented(indent, lead, text string) {
	left := utf8.RuneCountInString(indent)
	first := t.width - visible(lead)
	lines := Wrap(text, first, t.width-left, true)
	for n, l := range lines {
		if n > 0 {
			lead = strings.Repeat(" ", left)
		}
		t.line(strings.TrimRight(lead+l, " "))
	}
}

// Wrap breaks text between words into lines: the first of at most first columns, the others of at most rest.
// A longer word is cut if cut is set. Otherwise it has its own line, because a cut address could not be
// copied.
func Wrap(text string, first, rest int, cut bool) []string {
	var lines []string
	line, space := "", first
	flush := func() {
		lines = append(lines, line)
		line, space = "", rest
	}
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > space {
			flush()
		}
		if line != "" {
			line += " " + word
			continue
		}
		for runes := []rune(word); len(runes) > 0; {
			n := len(runes)
			if cut {
				n = min(n, max(space, 1))
			}
			line, runes = string(runes[:n]), runes[n:]
			if len(runes) > 0 {
				flush()
			}
		}
	}
	return append(lines, line)
}

// ANSI sequences.
const (
	reset   = "\x1b[0m"
	bold    = "\x1b[1m"
	dim     = "\x1b[2m"
	red     = "\x1b[31m"
	green   = "\x1b[32m"
	yellow  = "\x1b[33m"
	magenta = "\x1b[35m"
)

func (t *terminal) paint(style, s string) string {
	if !t.color || style == "" {
		return s
	}
	return style + s + reset
}

func colorOf(v checker.Verdict) string {
	switch v {
	case checker.Violation:
		return red
	case checker.Valid:
		return green
	case checker.Undecided:
		return yellow
	case checker.Broken:
		return magenta
	}
	return dim
}

func findingColor(f checker.Finding) string {
	if rank(f) == tolerated {
		return yellow
	}
	return colorOf(Plain(f.Verdict))
}

// visible is the number of columns of s, without escape sequences.
func visible(s string) int {
	n, escape := 0, false
	for _, r := range s {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		default:
			n++
		}
	}
	return n
}

func pad(s string, n int) string {
	return s + strings.Repeat(" ", max(0, n-utf8.RuneCountInString(s)))
}
