package reports

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"lockcheck/checker"
)

// ComparisonTerminal writes the table of a comparison for people: a lock a line, a fault
// a column, for each guard.
func ComparisonTerminal(w io.Writer, c Comparison, o TerminalOptions) error {
	t := newTerminal(o)
	for _, guard := range c.Guards {
		t.matrix(c, guard)
		for _, g := range c.gaps(guard) {
			t.hang("    ", "  – ", g.where+" ("+g.why+")")
		}
		if len(c.gaps(guard)) > 0 {
			t.blank()
		}
	}
	t.thresholds(c)
	t.hang("", "", legend)
	t.blank()
	if v := c.Verdict(); v != "" {
		t.verdict(plain(v), c.summary())
	} else {
		t.hang("", "", c.summary())
	}
	_, err := w.Write(t.out.Bytes())
	return err
}

// leastName is what is left of the name of a lock in a table that is too wide.
const leastName = 12

// matrix shows the words of all cells with a guard, below the faults, a word a line.
func (t *terminal) matrix(c Comparison, guard string) {
	locks := c.locksBehind(guard)
	if len(locks) == 0 {
		return
	}
	heads := 0
	for _, fault := range c.Faults {
		heads = max(heads, len(faultWords(fault)))
	}
	columns, width := make([][]string, len(c.Faults)), 0
	for i, fault := range c.Faults {
		columns[i] = make([]string, heads)
		copy(columns[i], faultWords(fault))
		for _, lock := range locks {
			columns[i] = append(columns[i], shortWord(c.cell(lock, guard, fault).word()))
		}
		width += 1 + widest(columns[i])
	}
	first := min(widest(cleanAll(locks)), max(leastName, t.width-width))
	t.line(t.paint(bold, "guard "+clean(guard)))
	for row := range heads + len(locks) {
		lead := ""
		if row >= heads {
			lead = shorten(clean(locks[row-heads]), first)
		}
		t.line(strings.TrimRight(pad(lead, first)+t.row(columns, row, heads), " "))
	}
	t.blank()
}

// faultWords are the words above a column: the fault, and whom it hits.
func faultWords(fault string) []string {
	kind, target, _ := strings.Cut(clean(fault), ":")
	return append([]string{kind}, strings.Fields(target)...)
}

func (t *terminal) row(columns [][]string, row, heads int) string {
	var text strings.Builder
	for _, column := range columns {
		word := pad(column[row], widest(column))
		if row >= heads {
			word = t.paint(wordColor(column[row]), word)
		}
		text.WriteString(" " + word)
	}
	return text.String()
}

// undecidedWord is undecided where eight columns have to fit.
const undecidedWord = "undec."

func shortWord(word string) string {
	if word == string(checker.Undecided) {
		return undecidedWord
	}
	return word
}

// wordColor is the colour of a word of the table.
func wordColor(word string) string {
	switch v := checker.Verdict(word); v {
	case checker.Valid, checker.Undecided, checker.Broken:
		return colorOf(v)
	}
	switch word {
	case undecidedWord:
		return colorOf(checker.Undecided)
	case "–", "…":
		return dim
	}
	return colorOf(checker.Violation)
}

func widest(texts []string) int {
	n := 0
	for _, text := range texts {
		n = max(n, utf8.RuneCountInString(text))
	}
	return n
}

// thresholds lists those that were missed, or for which there were no data, and what is
// wrong with a cell that no threshold takes the place of.
func (t *terminal) thresholds(c Comparison) {
	if !c.Thresholds {
		return
	}
	held, missed := 0, 0
	for _, cell := range c.Cells {
		for _, r := range cell.Thresholds {
			if r.Verdict == checker.Valid {
				held++
				continue
			}
			missed++
			t.wrong(r.Verdict, cell.name()+": "+r.String())
		}
		switch v := cell.foundation(); v {
		case checker.Valid, "":
		case checker.Violation:
			t.wrong(v, cell.name()+": "+strings.Join(cell.unbounded(), ", "))
		default:
			t.wrong(v, cell.name()+": the runs themselves")
		}
	}
	t.line(many(int64(held), "threshold") + " kept, " + grouped(int64(missed)) + " not")
	t.blank()
}

func (t *terminal) wrong(v checker.Verdict, what string) {
	t.hang("  ", t.paint(colorOf(plain(v)), string(plain(v)))+"  ", what)
}

// unbounded lists the properties that runs of the cell violate and no threshold takes the
// place of.
func (c ComparedCell) unbounded() []string {
	var names []string
	for _, r := range c.Runs {
		for _, p := range c.violated(r) {
			if !slices.Contains(names, string(p)) {
				names = append(names, string(p))
			}
		}
	}
	return names
}

// name of a cell in a list.
func (c ComparedCell) name() string {
	return clean(c.Lock) + ", " + clean(c.Fault) + ", guard " + clean(c.Guard)
}

// String is the threshold in words.
func (r ThresholdResult) String() string {
	return clean(r.Name) + " is " + clean(r.Value) + ", bound " + clean(r.Bound)
}
