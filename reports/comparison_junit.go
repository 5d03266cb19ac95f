package reports

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"lockcheck/checker"
)

// ComparisonJUnit writes a suite with a case for each threshold of a cell, or for each
// cell where there are none. What is undecided or broken is an error: JUnit has no word
// for it, and it must not pass. A cell that cannot be had is skipped.
func ComparisonJUnit(w io.Writer, c Comparison) error {
	s := junitSuite{
		Name: "lockcheck.compare", Time: strconv.FormatFloat(c.Took.Seconds(), 'f', 3, 64),
		Timestamp: c.Began.UTC().Format("2006-01-02T15:04:05Z"),
	}
	if v := c.Verdict(); v != "" {
		s.Properties = append(s.Properties, junitProperty{"verdict", string(plain(v))})
	}
	for _, cell := range c.Cells {
		for _, junit := range cell.junit(c.Shard != "") {
			s.add(junit)
		}
	}
	if lack := c.lack(); lack != "" && s.Failures+s.Errors == 0 {
		all := junitCase{Class: "lockcheck", Name: "all cells", Time: "0"}
		all.judge(checker.Undecided, lack, "")
		s.add(all)
	}
	return s.write(w)
}

func (c ComparedCell) junit(part bool) []junitCase {
	class := "lockcheck." + strings.ReplaceAll(clean(c.Lock), ".", "_")
	name := clean(c.Fault) + ", guard " + clean(c.Guard)
	one := junitCase{Class: class, Name: name, Time: "0"}
	switch {
	case c.Unavailable != "":
		one.Skipped = &junitOutcome{Message: clean(c.Unavailable)}
		return []junitCase{one}
	case len(c.Runs) == 0 && part:
		one.Skipped = &junitOutcome{Message: "not run by this part of the comparison"}
		return []junitCase{one}
	}
	var all []junitCase
	if c.Missing > 0 && !part {
		missing := one
		missing.Name += ": all runs"
		missing.Error = &junitOutcome{Message: many(int64(c.Missing), "run") + " not made yet", Type: string(checker.Undecided)}
		all = append(all, missing)
	}
	if len(c.Runs) == 0 {
		return all
	}
	for _, t := range c.Thresholds {
		junit := one
		junit.Name += ": " + clean(t.Name)
		junit.judge(t.Verdict, t.String(), c.sentences())
		all = append(all, junit)
	}
	// Thresholds say nothing of a cell whose runs violate something else, or are undecided or
	// broken.
	if v := c.foundation(); len(c.Thresholds) == 0 || v != checker.Valid {
		one.judge(v, c.note(), c.sentences())
		all = append(all, one)
	}
	return all
}

// foundation is the verdict of the runs alone, without what thresholds take the place of.
func (c ComparedCell) foundation() checker.Verdict {
	c.Thresholds = nil
	c.Judge()
	return c.Verdict
}

// judge makes the case pass only if the verdict is valid.
func (j *junitCase) judge(v checker.Verdict, message, text string) {
	outcome := &junitOutcome{Message: message, Type: string(plain(v)), Text: text}
	switch plain(v) {
	case checker.Valid:
		j.Out = message + "\n" + text
	case checker.Violation:
		j.Failure = outcome
	default:
		j.Error = outcome
	}
}

// sentences says what each run came to.
func (c ComparedCell) sentences() string {
	var b strings.Builder
	for _, r := range c.Runs {
		fmt.Fprintf(&b, "seed %d: %s: %s", r.Seed, plain(r.Verdict), clean(r.Sentence))
		if r.Folder != "" {
			fmt.Fprintf(&b, " (%s)", printable(r.Folder))
		}
		b.WriteString("\n")
	}
	return b.String()
}
