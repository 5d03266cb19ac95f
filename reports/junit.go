package reports

import (
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"

	"lockcheck/checker"
	"lockcheck/history"
)

type junitSuite struct {
	XMLName    xml.Name        `xml:"testsuite"`
	Name       string          `xml:"name,attr"`
	Tests      int             `xml:"tests,attr"`
	Failures   int             `xml:"failures,attr"`
	Errors     int             `xml:"errors,attr"`
	Skipped    int             `xml:"skipped,attr"`
	Time       string          `xml:"time,attr"`
	Timestamp  string          `xml:"timestamp,attr,omitempty"`
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitOutcome `xml:"failure"`
	Error   *junitOutcome `xml:"error"`
	Skipped *junitOutcome `xml:"skipped"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitOutcome struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// junitIncidents is how many incidents a failure spells out.
const junitIncidents = 20

// JUnit writes one test suite with one test case a property. Only a valid or
// tolerated property passes: JUnit has no word for undecided, so that becomes
// an error where the verdict rests on it and a skip elsewhere. A run whose
// verdict is not valid never yields a suite without a failure or an error.
func JUnit(w io.Writer, h history.Header, r checker.Results) error {
	class := "lockcheck." + orNone(clean(h.Lock)) + "." + orNone(clean(h.Workload))
	s := junitSuite{
		Name:      class,
		Time:      strconv.FormatFloat(float64(r.End-r.Begin)/1e9, 'f', 3, 64),
		Timestamp: clean(h.Started),
	}
	for _, f := range facts(h) {
		s.Properties = append(s.Properties, junitProperty(f))
	}
	s.Properties = append(s.Properties, junitProperty{"verdict", string(plain(r.Verdict))}, junitProperty{"judged", judged(r)})
	for _, f := range r.Findings {
		s.add(junitOf(class, f, r.Begin))
	}
	if s.Failures+s.Errors == 0 && r.Verdict != checker.Valid {
		s.add(runCase(class, r))
	}
	return s.write(w)
}

func (s *junitSuite) write(w io.Writer) error {
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(s); err != nil {
		return fmt.Errorf("results as JUnit: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *junitSuite) add(c junitCase) {
	s.Tests++
	s.Failures += one(c.Failure != nil)
	s.Errors += one(c.Error != nil)
	s.Skipped += one(c.Skipped != nil)
	s.Cases = append(s.Cases, c)
}

// runCase stands for a verdict that no single property explains, such as a run
// with too few operations.
func runCase(class string, r checker.Results) junitCase {
	c := junitCase{Class: class, Name: "run", Time: "0"}
	o := &junitOutcome{Message: sentence(r), Type: string(plain(r.Verdict))}
	if r.Verdict == checker.Violation {
		c.Failure = o
	} else {
		c.Error = o
	}
	return c
}

func junitOf(class string, f checker.Finding, begin int64) junitCase {
	summary := clean(f.Summary)
	c := junitCase{Class: class, Name: clean(string(f.Property)), Time: "0"}
	outcome := &junitOutcome{Message: summary, Type: wordOf(f), Text: incidentLines(f, begin)}
	switch v := plain(f.Verdict); {
	case v == checker.Violation && f.Required:
		c.Failure = outcome
	case v == checker.Broken, v == checker.Undecided && f.Required:
		c.Error = outcome
	case v == checker.NotApplicable:
		c.Skipped = &junitOutcome{Message: "not applicable: " + summary}
	case v == checker.Undecided:
		c.Skipped = &junitOutcome{Message: "undecided, and not required: " + summary}
	case v == checker.Violation && f.Tolerated:
		c.Out = "tolerated: " + summary + "\n" + outcome.Text
	case v == checker.Violation:
		c.Out = "violated, but not required: " + summary + "\n" + outcome.Text
	default:
		c.Out = summary
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
