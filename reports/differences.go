package reports

import (
	"fmt"
	"io"
	"slices"

	"lockcheck/checker"
	"lockcheck/internal/stats"
	"lockcheck/present"
)

// Differences writes for people how two sets of runs differ. first and second are the numbers of runs. What
// makes the sets incomparable comes first; "" for nothing.
func Differences(w io.Writer, differences []checker.Difference, first, second int, incomparable string, o TerminalOptions) error {
	t := newTerminal(o)
	if incomparable != "" {
		t.writeIndented("    ", "", incomparable)
	}
	open := figuresOf(differences)
	for i, p := range portions(differences) {
		t.writeIndented("    ", "", p.Name+": "+p.First+" against "+p.Second+": "+conclusion(differences[i], open))
	}
	t.writeIndented("    ", "", chanceNote(differences, first, second))
	_, err := w.Write(t.out.Bytes())
	return err
}

// conclusion says what a difference shows. Among several figures, one may differ by chance alone. So the p of
// each must be as small as Holm's method requires.
func conclusion(d checker.Difference, figures int64) string {
	text := "no difference shown"
	switch {
	case !d.Open():
		return "nothing to compare"
	case !d.Compared:
		return "not compared"
	case d.Worse():
		text = "the second is worse"
	case d.Better():
		text = "the second is better"
	}
	if !d.Shown && figures > 1 && d.Chance < checker.Chance {
		return fmt.Sprintf("%s (p = %.2g; with %d figures the smallest p must be at most %.2g)", text, d.Chance, figures, checker.Chance/float64(figures))
	}
	return fmt.Sprintf("%s (p = %.2g)", text, d.Chance)
}

// chanceNote says how to read the differences between two sets of runs.
func chanceNote(all []checker.Difference, first, second int) string {
	needed := checker.RunsNeeded(all)
	switch {
	case needed == 0:
		return "Nothing happened that could be compared."
	case !slices.ContainsFunc(all, func(d checker.Difference) bool { return d.Compared }):
		return fmt.Sprintf("Not compared: what happens within one run has common causes, so only whole runs can show that a difference is more than chance. "+
			"With %s to compare, that takes %d runs a side at least (--test-count %[2]d); here are %d and %d.",
			Many(figuresOf(all), "figure"), needed, first, second)
	}
	return fmt.Sprintf("p is how likely a difference this large is by chance alone (permutation of %d and %d runs). "+
		"If there is no difference, the probability that any figure is called different is at most %g (Holm).", first, second, checker.Chance)
}

// figuresOf counts the figures that have anything to compare.
func figuresOf(all []checker.Difference) int64 {
	n := int64(0)
	for _, d := range all {
		if d.Open() {
			n++
		}
	}
	return n
}

func portions(differences []checker.Difference) []Pair {
	var all []Pair
	for _, d := range differences {
		all = append(all, Pair{present.Quantity(d.What), portion(d.First), portion(d.Second)})
	}
	return all
}

func portion(c stats.Count) string {
	text := Grouped(c.K) + " of " + Grouped(c.N)
	if c.N > 0 {
		text += " (" + Percent(c.Share()) + ")"
	}
	return text
}
