package reports

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"lockcheck/clients/conformance"
)

// Conformance writes a client's conformance to the protocol for people. It has a conclusion, the result of
// each rule, and the exchange of each broken rule. With whole, the lines of the exchange are not wrapped, for
// output that is not a terminal.
func Conformance(w io.Writer, r conformance.Report, whole bool, o TerminalOptions) error {
	t := newTerminal(o)
	t.conclusion(r)
	t.rules(r)
	for _, result := range r.Results {
		if result.Outcome == conformance.Failed {
			t.blank()
			t.broken(result, whole)
		}
	}
	_, err := w.Write(t.out.Bytes())
	return err
}

func (t *terminal) conclusion(r conformance.Report) {
	client := cmp.Or(clean(r.Client), "the client")
	sentence, color := "not every rule could be tried on "+client, yellow
	switch r.Conclude() {
	case conformance.Conforms:
		sentence, color = client+" keeps the protocol", green
	case conformance.Fails:
		sentence, color = client+" breaks the protocol", red
	}
	counts := fmt.Sprintf("%d rules passed, %d failed, %d not tried, %d not applicable", r.Count(conformance.Passed),
		r.Count(conformance.Failed), r.Count(conformance.NotTried), r.Count(conformance.NotApplicable))
	said := sentence + ": " + counts
	if i := slices.IndexFunc(r.Results, func(result conformance.Result) bool { return result.Unstarted }); i >= 0 {
		said = clean(r.Results[i].Reason) + " (" + counts + ")"
	}
	t.writeConclusion(string(r.Conclude()), color, said)
	t.blank()
}

// rules has a line for each rule: what was tried, or why nothing was.
func (t *terminal) rules(r conformance.Report) {
	var names []string
	for _, result := range r.Results {
		names = append(names, clean(result.Rule))
	}
	colors := map[conformance.Outcome]string{conformance.Passed: green, conformance.Failed: red, conformance.NotTried: yellow}
	for _, result := range r.Results {
		about := result.Tries
		outcome := string(result.Outcome)
		switch result.Outcome {
		case conformance.Failed:
			outcome, about = strings.ToUpper(outcome), clean(result.Reason)
		case conformance.NotTried:
			about = clean(result.Reason)
		case conformance.NotApplicable:
			outcome, about = "-", clean(result.Reason)
		}
		lead := pad(clean(result.Rule), widest(names)) + "  "
		outcome = pad(outcome, len(conformance.NotTried))
		t.writeIndented(lead+outcome+"  ", lead+t.paint(cmp.Or(colors[result.Outcome], dim), outcome)+"  ", about)
	}
}

func (t *terminal) broken(r conformance.Result, whole bool) {
	lead := clean(r.Rule) + ": "
	t.writeIndented("  ", t.paint(bold, lead), clean(r.Reason))
	if !r.Unstarted {
		t.writeIndented("  ", "  ", "docs/protocol.md: "+r.Says)
	}
	for _, line := range r.Exchange {
		t.exchanged(line, whole)
	}
}

// arrows show the direction of a line.
var arrows = map[conformance.Direction]string{conformance.Sent: "→", conformance.Received: "←", conformance.Log: "|"}

func (t *terminal) exchanged(line conformance.Line, whole bool) {
	if line.Direction == conformance.Omitted {
		t.line(t.paint(dim, fmt.Sprintf("  … %d lines", line.N)))
		return
	}
	mark, style := " ", ""
	switch {
	case line.Wrong:
		mark, style = ">", bold+red
	case line.Direction == conformance.Log:
		style = dim
	}
	lead := fmt.Sprintf("%s %9.3f ms %s %s ", mark, line.Milliseconds, clean(line.Client), arrows[line.Direction])
	if whole {
		t.line(lead + Printable(line.Text))
		return
	}
	t.writeIndented(strings.Repeat(" ", utf8.RuneCountInString(lead)), t.paint(style, lead), Printable(line.Text))
}

// ConformanceJSON writes the result of a check as JSON.
func ConformanceJSON(w io.Writer, r conformance.Report) error {
	return WriteJSON(w, struct {
		Conclusion conformance.Conclusion `json:"conclusion"`
		conformance.Report
	}{r.Conclude(), r})
}
