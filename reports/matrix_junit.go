package reports

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"lockcheck/checker"
)

// MatrixJUnit writes a suite with a case for each threshold of a cell, or for each
// cell where there are none. The first case of a cell has the time that its runs took. What is undecided or broken is an error: JUnit has no word
// for it, and it must not pass. A cell that is not supported is skipped.
func MatrixJUnit(w io.Writer, m Matrix) error {
	s := junit.Testsuite{
		Name: "lockcheck.compare", Time: inSeconds(m.Took),
		Timestamp: m.Began.UTC().Format("2006-01-02T15:04:05Z"),
	}
	if m.Verdict != "" {
		s.AddProperty("verdict", string(plain(m.Verdict)))
	}
	if few := m.tooFew(); few != "" {
		s.AddProperty("baseline", few)
	}
	for _, cell := range m.Cells {
		for i, test := range cell.junit(m.Shard != "") {
			if i == 0 {
				test.Time = inSeconds(cell.took())
			}
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
	remarks := strings.Join(c.remarks(), "; ")
	switch {
	case c.passes():
		one.Skipped = &junit.Result{Message: remarks, Data: c.sentences()}
		return append(all, one)
	case c.Verdict == checker.Valid && c.counted() != checker.Valid, c.Compared != nil:
		return append(all, withVerdict(one, c.counted(), strings.TrimSuffix(c.note()+"; "+remarks, "; "), c.sentences()))
	}
	for _, t := range c.Thresholds {
		bound := one
		bound.Name += ": " + clean(t.Name)
		all = append(all, withVerdict(bound, t.Verdict, t.String(), c.sentences()))
	}
	// Thresholds say nothing of a cell whose runs violate something else, or are undecided or
	// broken.
	if len(c.Thresholds) == 0 || c.OfRuns != checker.Valid {
		all = append(all, withVerdict(one, c.OfRuns, strings.TrimSuffix(c.note()+"; "+remarks, "; "), c.sentences()))
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

// took is how long the runs of the cell took together.
func (c Cell) took() time.Duration {
	var sum time.Duration
	for _, r := range c.Runs {
		sum += r.Took
	}
	return sum
}

// sentences says what each run resulted in, how long it took, and how one that is not valid is
// made again.
func (c Cell) sentences() string {
	var b strings.Builder
	for _, r := range c.Runs {
		fmt.Fprintf(&b, "seed %d, %s: %s: %s", r.Seed, r.Took.Round(100*time.Millisecond), plain(r.Verdict), r.said())
		if r.Folder != "" {
			fmt.Fprintf(&b, " (%s)", printable(r.Folder))
		}
		b.WriteString("\n")
		for _, how := range r.HowViolated {
			fmt.Fprintf(&b, "  %s\n", how)
		}
		if r.Verdict != checker.Valid && r.Command != nil {
			fmt.Fprintf(&b, "  again: %s\n", CommandLine(r.Command))
		}
	}
	return b.String()
}
