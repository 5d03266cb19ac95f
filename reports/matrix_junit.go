package reports

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"lockcheck/checker"
)

// MatrixJUnit writes a suite with a case for each threshold of a cell, or for each
// cell where there are none. What is undecided or broken is an error: JUnit has no word
// for it, and it must not pass. A cell that is not supported is skipped.
func MatrixJUnit(w io.Writer, m Matrix) error {
	s := junit.Testsuite{
		Name: "lockcheck.compare", Time: strconv.FormatFloat(m.Took.Seconds(), 'f', 3, 64),
		Timestamp: m.Began.UTC().Format("2006-01-02T15:04:05Z"),
	}
	if m.Verdict != "" {
		s.AddProperty("verdict", string(plain(m.Verdict)))
	}
	for _, cell := range m.Cells {
		for _, test := range cell.junit(m.Shard != "") {
			s.AddTestcase(test)
		}
	}
	if lack := m.Lack(); lack != "" && s.Failures+s.Errors == 0 {
		all := junit.Testcase{Classname: "lockcheck", Name: "all cells", Time: "0"}
		s.AddTestcase(withVerdict(all, checker.Undecided, lack, ""))
	}
	return writeJUnit(w, s)
}

func (c Cell) junit(part bool) []junit.Testcase {
	class := "lockcheck." + strings.ReplaceAll(clean(c.Lock), ".", "_")
	name := clean(c.Fault) + ", guard " + clean(c.Guard)
	one := junit.Testcase{Classname: class, Name: name, Time: "0"}
	switch {
	case c.Unavailable != "":
		one.Skipped = &junit.Result{Message: clean(c.Unavailable)}
		return []junit.Testcase{one}
	case len(c.Runs) == 0 && part:
		one.Skipped = &junit.Result{Message: "not run by this part of the comparison"}
		return []junit.Testcase{one}
	}
	var all []junit.Testcase
	if c.Missing > 0 && !part {
		missing := one
		missing.Name += ": all runs"
		missing.Error = &junit.Result{Message: many(int64(c.Missing), "run") + " not made yet", Type: string(checker.Undecided)}
		all = append(all, missing)
	}
	if len(c.Runs) == 0 {
		return all
	}
	for _, t := range c.Thresholds {
		bound := one
		bound.Name += ": " + clean(t.Name)
		all = append(all, withVerdict(bound, t.Verdict, t.String(), c.sentences()))
	}
	// Thresholds say nothing of a cell whose runs violate something else, or are undecided or
	// broken.
	if len(c.Thresholds) == 0 || c.OfRuns != checker.Valid {
		all = append(all, withVerdict(one, c.OfRuns, c.note(), c.sentences()))
	}
	return all
}

// withVerdict is a test that passes only if the verdict is valid.
func withVerdict(test junit.Testcase, v checker.Verdict, message, text string) junit.Testcase {
	outcome := &junit.Result{Message: message, Type: string(plain(v)), Data: text}
	switch plain(v) {
	case checker.Valid:
		test.SystemOut = &junit.Output{Data: message + "\n" + text}
	case checker.Violation:
		test.Failure = outcome
	default:
		test.Error = outcome
	}
	return test
}

// sentences says what each run resulted in.
func (c Cell) sentences() string {
	var b strings.Builder
	for _, r := range c.Runs {
		fmt.Fprintf(&b, "seed %d: %s: %s", r.Seed, plain(r.Verdict), r.said())
		if r.Folder != "" {
			fmt.Fprintf(&b, " (%s)", printable(r.Folder))
		}
		b.WriteString("\n")
		for _, how := range r.HowViolated {
			fmt.Fprintf(&b, "  %s\n", how)
		}
	}
	return b.String()
}
