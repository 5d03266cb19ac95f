package reports

import (
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"lockcheck/checker"
	"lockcheck/history"
)

// junitIncidents is how many incidents a failure spells out.
const junitIncidents = 20

// JUnit writes one test suite with one test case per property, and one for the run, which carries the time.
// Only a valid or tolerated property passes. JUnit has no word for undecided: it becomes an error if the
// property affects the verdict, and a skip otherwise. A run that is not valid always has a failure or an
// error.
func JUnit(w io.Writer, h history.Header, r checker.Results) error {
	class := "lockcheck." + orNone(clean(h.Lock)) + "." + orNone(clean(h.Workload))
	s := junit.Testsuite{
		Name:      class,
		Time:      JUnitSeconds(time.Duration(r.End - r.Begin)),
		Timestamp: clean(h.Started),
	}
	for _, f := range factsOf(h, r) {
		s.AddProperty(f.Name, f.Value)
	}
	s.AddProperty("verdict", string(Plain(r.Verdict)))
	s.AddProperty("judged", judged(r))
	for _, f := range r.Findings {
		s.AddTestcase(junitOf(class, f, r.Begin))
	}
	s.AddTestcase(runCase(class, r, s.Failures+s.Errors > 0))
	return WriteJUnit(w, s)
}

// JUnitSeconds formats a duration as JUnit does.
func JUnitSeconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }

// WriteJUnit writes a file with one suite. The library writes no XML header, and it writes texts unchanged, so
// they must be clean.
func WriteJUnit(w io.Writer, s junit.Testsuite) error {
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	var all junit.Testsuites
	all.AddSuite(s)
	return all.WriteXML(w)
}

// runCase is the test case of the run. It fails only if the run is not valid and no property explains that,
// as in a run with too few operations.
func runCase(class string, r checker.Results, explained bool) junit.Testcase {
	c := junit.Testcase{Classname: class, Name: "run", Time: JUnitSeconds(time.Duration(r.End - r.Begin))}
	if explained {
		c.SystemOut = &junit.Output{Data: string(Plain(r.Verdict)) + ": " + Sentence(r)}
		return c
	}
	return JUnitVerdict(c, r.Verdict, Sentence(r), "")
}

func junitOf(class string, f checker.Finding, begin int64) junit.Testcase {
	summary := clean(f.Summary)
	c := junit.Testcase{Classname: class, Name: clean(string(f.Property)), Time: "0"}
	outcome := &junit.Result{Message: summary, Type: wordOf(f), Data: incidentLines(f, begin)}
	switch v := Plain(f.Verdict); {
	case v == checker.Violation && f.Required:
		c.Failure = outcome
	case v == checker.Broken, v == checker.Undecided && f.Required:
		c.Error = outcome
	case v == checker.NotApplicable:
		c.Skipped = &junit.Result{Message: "not applicable: " + summary}
	case v == checker.Undecided:
		c.Skipped = &junit.Result{Message: "undecided, and not required: " + summary}
	case v == checker.Violation && f.Tolerated:
		c.SystemOut = &junit.Output{Data: "tolerated: " + summary + "\n" + outcome.Data}
	case v == checker.Violation:
		c.SystemOut = &junit.Output{Data: "violated, but not required: " + summary + "\n" + outcome.Data}
	default:
		c.SystemOut = &junit.Output{Data: summary}
	}
	return c
}

// incidentLines spells out the first incidents of a finding.
func incidentLines(f checker.Finding, begin int64) string {
	var b strings.Builder
	for n, i := range f.Violations {
		if n == junitIncidents {
			break
		}
		fmt.Fprintf(&b, "at %s: %s%s\n", at(i.From, begin), clean(i.What), inBrackets(i))
	}
	if rest := f.Total - min(len(f.Violations), junitIncidents); rest > 0 && b.Len() > 0 {
		fmt.Fprintf(&b, "and %d more\n", rest)
	}
	return b.String()
}
