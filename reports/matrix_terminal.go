package reports

import (
	"io"
	"strings"
	"unicode/utf8"

	"lockcheck/checker"
)

// MatrixTerminal writes the tables of a matrix for people: a lock a line, a fault
// a column, for each guard.
func MatrixTerminal(w io.Writer, m Matrix, o TerminalOptions) error {
	t := newTerminal(o)
	for _, guard := range m.Guards {
		t.guard(m, guard)
		for _, g := range m.gaps(guard) {
			t.hang("    ", "  – ", g.where+" ("+g.why+")")
		}
		if len(m.gaps(guard)) > 0 {
			t.blank()
		}
	}
	t.thresholds(m)
	t.remarks(m)
	t.again(m)
	t.hang("", "", legend)
	t.blank()
	if m.Verdict != "" {
		t.verdict(plain(m.Verdict), m.summary())
	} else {
		t.hang("", "", m.summary())
	}
	_, err := w.Write(t.out.Bytes())
	return err
}

// leastName is what is left of the name of a lock in a table that is too wide.
const leastName = 12

// guard shows the words of all cells with a guard, below the faults, a word a line.
func (t *terminal) guard(m Matrix, guard string) {
	locks := m.locksBehind(guard)
	if len(locks) == 0 {
		return
	}
	heads := 0
	for _, fault := range m.Faults {
		heads = max(heads, len(faultWords(fault)))
	}
	columns, width := make([][]string, len(m.Faults)), 0
	for i, fault := range m.Faults {
		columns[i] = make([]string, heads)
		copy(columns[i], faultWords(fault))
		for _, lock := range locks {
			columns[i] = append(columns[i], shortWord(m.cell(lock, guard, fault).word()))
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
func (t *terminal) thresholds(m Matrix) {
	if !m.Thresholds {
		return
	}
	held, missed := 0, 0
	for _, cell := range m.Cells {
		if cell.passes() {
			continue // its remark says why
		}
		for _, r := range cell.Thresholds {
			if r.Verdict == checker.Valid {
				held++
				continue
			}
			missed++
			t.wrong(r.Verdict, cell.name()+": "+r.String())
		}
		switch cell.OfRuns {
		case checker.Valid, "":
		case checker.Violation:
			t.wrong(cell.OfRuns, cell.name()+": "+namesOf(cell.Violated))
		default:
			t.wrong(cell.OfRuns, cell.name()+": the runs themselves")
		}
	}
	t.line(many(int64(held), "threshold") + " kept, " + grouped(int64(missed)) + " not")
	t.blank()
}

func (t *terminal) wrong(v checker.Verdict, what string) {
	t.hang("  ", t.paint(colorOf(plain(v)), string(plain(v)))+"  ", what)
}

// name of a cell in a list.
func (c Cell) name() string {
	return clean(c.Lock) + ", " + clean(c.Fault) + ", guard " + clean(c.Guard)
}

// String is the threshold in words.
func (r ThresholdResult) String() string {
	return clean(r.Name) + " is " + clean(r.Value) + ", bound " + clean(r.Bound)
}
