package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lockcheck/checker"
)

// counted is the verdict with which the cell counts. Older files do not say it.
func (c Cell) counted() checker.Verdict { return cmp.Or(c.Counts, c.Verdict) }

// passes says that a cell is not valid and counts as if it were.
func (c Cell) passes() bool { return c.counted() == checker.Valid && c.Verdict != checker.Valid }

// passed is how many cells do.
func (m Matrix) passed() int {
	n := 0
	for _, c := range m.Cells {
		if c.passes() {
			n++
		}
	}
	return n
}

// remarks say what else is to be known of a verdict: whether it was expected, how often it
// recurred, and what was not made.
func (c Cell) remarks() []string {
	var all []string
	if e := c.Expected; e != nil {
		text := "not as expected: " + string(plain(e.Verdict))
		switch {
		case e.Met:
			text = "as expected"
		case c.Verdict == checker.Valid:
			text = "unexpectedly valid: expected is " + string(plain(e.Verdict))
		case len(e.Properties) > 0:
			text += " of nothing but " + namesOf(e.Properties)
		}
		if e.Because != "" {
			text += " (" + clean(e.Because) + ")"
		}
		all = append(all, text)
	}
	switch n := len(c.Rounds); n {
	case 0:
	case 1:
		all = append(all, "to be made again with other seeds, and was not yet")
	default:
		bad := 0
		for _, v := range c.Rounds {
			if v != checker.Valid {
				bad++
			}
		}
		all = append(all, fmt.Sprintf("made again %s with other seeds: not valid in %d of %d", many(int64(n-1), "time"), bad, n))
	}
	if c.Compared != nil {
		all = append(all, c.Compared.remarks()...)
	}
	if c.OutOfTime > 0 {
		all = append(all, many(int64(c.OutOfTime), "run")+" not made for lack of time")
	}
	return all
}

// remarks shows those of all cells.
func (t *terminal) remarks(m Matrix) {
	for _, cell := range m.Cells {
		for _, text := range cell.remarks() {
			t.hang("  ", "  ", cell.name()+": "+text)
		}
	}
}

// markdownRemarks lists those of all cells.
func markdownRemarks(b *strings.Builder, m Matrix) {
	before := b.Len()
	for _, cell := range m.Cells {
		for _, text := range cell.remarks() {
			b.WriteString("- " + markdown(cell.name()+": "+text) + "\n")
		}
	}
	if b.Len() > before {
		b.WriteString("\n")
	}
}

// wanted says that no run of a cell need be made again to see what is wrong with it. That it cannot
// be held against a baseline is nothing that a run of a valid one would show.
func (c Cell) wanted() bool {
	return c.counted() == checker.Valid || c.Verdict == checker.Valid && c.counted() != checker.Violation
}

// again is the command that makes the run again which tells most of a cell that is not as
// wanted: the first one with the verdict of the runs, else the first. It is nil for a cell that
// is, or has no run, and where the command is not known.
func (c Cell) again() []string {
	if len(c.Runs) == 0 || c.wanted() {
		return nil
	}
	i := slices.IndexFunc(c.Runs, func(r CellRun) bool { return r.Verdict == c.OfRuns })
	return c.Runs[max(i, 0)].Command
}

// red are the cells that are not as wanted and of which a run can be made again.
func (m Matrix) red() []Cell {
	return slices.DeleteFunc(slices.Clone(m.Cells), func(c Cell) bool { return c.again() == nil })
}

// maxAgain is how many commands the terminal shows: the files have all of them.
const maxAgain = 10

// again shows how runs of the cells that are not as wanted are made by themselves.
func (t *terminal) again(m Matrix) {
	red := m.red()
	if len(red) == 0 {
		return
	}
	t.line(t.paint(bold, "one by one"))
	for _, cell := range red[:min(len(red), maxAgain)] {
		t.hang("  ", "  ", cell.name())
		t.line("    " + strings.Join(continued(cell.again(), t.width-len("      ")), "\n      "))
	}
	if rest := len(red) - maxAgain; rest > 0 {
		t.line("  and " + grouped(int64(rest)) + " more, in comparison.md and junit.xml")
	}
	t.blank()
}

// markdownAgain lists how runs of the cells that are not as wanted are made by themselves.
func markdownAgain(b *strings.Builder, m Matrix) {
	red := m.red()
	if len(red) == 0 {
		return
	}
	b.WriteString("<details><summary>The cells that are not as wanted, one by one</summary>\n\n")
	for _, cell := range red {
		b.WriteString("- " + markdown(cell.name()) + ": " + markdownCommand(cell.again()) + "\n")
	}
	b.WriteString("\n</details>\n\n")
}
