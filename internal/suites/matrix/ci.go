package matrix

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"lockcheck/checker"
	"lockcheck/reports"
)

// WriteJUnit writes a suite with a test case for each threshold of a cell, or for each cell if there are no
// thresholds. The first case of a cell carries the time of its runs. An undecided or broken cell is an error.
// An unsupported cell is skipped.
func (c Comparison) WriteJUnit(w io.Writer) error {
	s := junit.Testsuite{
		Name: "lockcheck.compare", Time: reports.JUnitSeconds(c.Took),
		Timestamp: c.Began.UTC().Format("2006-01-02T15:04:05Z"),
	}
	if c.Verdict != "" {
		s.AddProperty("verdict", string(reports.Plain(c.Verdict)))
	}
	if few := reports.Clean(c.tooFew()); few != "" {
		s.AddProperty("baseline", few)
	}
	for _, cell := range c.Cells {
		for i, test := range cell.junit(c.Shard != "") {
			if i == 0 {
				test.Time = reports.JUnitSeconds(cell.totalTime())
			}
			s.AddTestcase(test)
		}
	}
	if lack := c.Lack(); lack != "" && s.Failures+s.Errors == 0 {
		all := junit.Testcase{Classname: "lockcheck", Name: "all cells", Time: "0"}
		s.AddTestcase(reports.JUnitVerdict(all, checker.Undecided, lack, ""))
	}
	return reports.WriteJUnit(w, s)
}

// junit returns the test cases of a cell, of a whole comparison or of a part.
func (c Cell) junit(part bool) []junit.Testcase {
	test := junit.Testcase{
		Classname: "lockcheck." + strings.ReplaceAll(reports.Clean(c.Lock), ".", "_"),
		Name:      reports.Clean(c.Fault + ", guard " + c.Guard), Time: "0",
	}
	skipped := func(why, text string) junit.Testcase {
		test.Skipped = &junit.Result{Message: reports.Clean(why), Data: text}
		return test
	}
	switch {
	case c.Unavailable != "":
		return []junit.Testcase{skipped(c.Unavailable, "")}
	case len(c.Runs) == 0 && part:
		return []junit.Testcase{skipped("not run by this part of the comparison", "")}
	}
	var all []junit.Testcase
	if c.Missing > 0 && !part {
		missing := test
		missing.Name += ": all runs"
		all = append(all, reports.JUnitVerdict(missing, checker.Undecided, reports.Many(c.Missing, "run")+" not made yet", ""))
	}
	if len(c.Runs) == 0 {
		return all
	}
	whole := func(v checker.Verdict) junit.Testcase {
		note := strings.Join(append([]string{c.note()}, c.remarks()...), "; ")
		return reports.JUnitVerdict(test, v, reports.Clean(note), c.runLines())
	}
	switch {
	case c.excused():
		return append(all, skipped(strings.Join(c.remarks(), "; "), c.runLines()))
	case c.Verdict == checker.Valid && c.countedVerdict() != checker.Valid, c.Compared != nil:
		return append(all, whole(c.countedVerdict()))
	}
	for _, t := range c.Thresholds {
		bound := test
		bound.Name += ": " + reports.Clean(t.Name)
		all = append(all, reports.JUnitVerdict(bound, t.Verdict, reports.Clean(t.String()), c.runLines()))
	}
	// Thresholds decide nothing for a cell whose runs violate something else or are undecided or broken.
	if len(c.Thresholds) == 0 || c.OfRuns != checker.Valid {
		all = append(all, whole(c.OfRuns))
	}
	return all
}

// runLines says what came of each run, how long the run took, and how to repeat a run that is not valid.
func (c Cell) runLines() string {
	var b strings.Builder
	for _, r := range c.Runs {
		fmt.Fprintf(&b, "seed %d, %s: %s: %s", r.Seed, r.Took.Round(100*time.Millisecond), reports.Plain(r.Verdict), r.sentence())
		if r.Folder != "" {
			fmt.Fprintf(&b, " (%s)", reports.Printable(r.Folder))
		}
		b.WriteString("\n")
		for _, how := range r.HowViolated {
			fmt.Fprintf(&b, "  %s\n", reports.Clean(how))
		}
		if r.Verdict != checker.Valid && r.Command != nil {
			fmt.Fprintf(&b, "  again: %s\n", reports.CommandLine(r.Command))
		}
	}
	return b.String()
}

// WriteAnnotations writes the workflow commands with which GitHub Actions annotates a job. A violated cell is
// an error, an undecided or broken cell a warning. Another warning says which runs the whole comparison
// lacks. GitHub shows the first ten annotations of each kind. See docs.github.com/actions, "Workflow
// commands".
func (c Comparison) WriteAnnotations(w io.Writer) error {
	var b strings.Builder
	for _, cell := range c.Cells {
		level := "error"
		switch cell.countedVerdict() {
		case checker.Valid, "":
			continue
		case checker.Undecided, checker.Broken:
			level = "warning"
		}
		b.WriteString(reports.Annotation(level, "lockcheck: "+cell.String(), cell.reason()))
	}
	if lack := c.Lack(); lack != "" {
		b.WriteString(reports.Annotation("warning", "lockcheck: all cells", lack))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// reason says why a cell is not valid. It names the missed thresholds or the result of the runs, the first
// violation of each property, and the command that repeats it.
func (c Cell) reason() string {
	text := c.missedThresholds()
	if text == "" {
		text = string(reports.Plain(c.Verdict)) + ": " + c.note()
	}
	var seen []checker.Property
	for _, r := range c.Runs {
		for i, p := range r.Violated {
			if !slices.Contains(seen, p) && i < len(r.HowViolated) {
				seen = append(seen, p)
				text += fmt.Sprintf("; seed %d: %s", r.Seed, r.HowViolated[i])
			}
		}
	}
	for _, remark := range c.remarks() {
		text += "; " + remark
	}
	if command := c.repetition(); command != nil {
		text += "; again: " + reports.CommandLine(command)
	}
	return text
}
