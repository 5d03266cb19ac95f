package reports

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"lockcheck/clients/conformance"
)

// brokenClient is the result of a client that breaks a rule and tries to rewrite the terminal.
func brokenClient() conformance.Report {
	return conformance.Report{Client: "library 1.0\x1b[2J", Results: []conformance.Result{
		{Rule: "hello", Tries: "three clients begin", Says: "The client connects", Outcome: conformance.Passed},
		{Rule: "release-twice", Tries: "a second release is not ok", Says: "`not_held` says", Outcome: conformance.Failed, Reason: "it was answered by ok", Exchange: []conformance.Line{
			{Client: "w1", Direction: conformance.Sent, Text: `{"id":7,"op":"release","key":"k7","attempt":"w1-30","token":11}`},
			{Direction: conformance.Omitted, N: 17},
			{Client: "w1", Direction: conformance.Log, Milliseconds: 0.5, Text: "released\x1b[2J " + strings.Repeat("and so on ", 30)},
			{Client: "w1", Direction: conformance.Received, Milliseconds: 1.25, Text: `{"id":7,"ok":{}}`, Wrong: true},
		}},
		{Rule: "renew", Outcome: conformance.NotTried, Reason: "needs release-twice"},
		{Rule: "work", Outcome: conformance.NotApplicable, Reason: "the lock is not described with work"},
	}}
}

func TestConformance(t *testing.T) {
	for _, width := range []int{60, 80} {
		var out bytes.Buffer
		if err := Conformance(&out, brokenClient(), false, TerminalOptions{Width: width}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d columns, want at most %d: %s", n, width, line)
			}
		}
		for _, want := range []string{
			"FAILS  library 1.0", "release-twice  FAILED     it was answered by ok", "hello          passed     three clients begin",
			"renew          not tried  needs release-twice", "work           -", "… 17 lines", ">     1.250 ms w1 ← {\"id\":7,\"ok\":{}}",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q is not said:\n%s", want, &out)
			}
		}
		if strings.ContainsRune(out.String(), '\x1b') {
			t.Error("it has escape sequences")
		}
	}
}

// TestConformanceUnstarted: a client that could not be started is not blamed for a broken rule.
func TestConformanceUnstarted(t *testing.T) {
	r := brokenClient()
	r.Results = []conformance.Result{{Rule: "hello", Says: "The client connects and answers", Outcome: conformance.Failed, Unstarted: true,
		Reason: `the client could not be started: exec: "python9": executable file not found in $PATH`}}
	var out bytes.Buffer
	if err := Conformance(&out, r, true, TerminalOptions{Width: 200}); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if !strings.Contains(text, `FAILS  the client could not be started: exec: "python9"`) || strings.Contains(text, "breaks the protocol") || strings.Contains(text, "docs/protocol.md") {
		t.Error(text)
	}
}

// TestConformanceWhole: in a pipe, each line of the exchange stays one line.
func TestConformanceWhole(t *testing.T) {
	var out bytes.Buffer
	if err := Conformance(&out, brokenClient(), true, TerminalOptions{Width: 60}); err != nil {
		t.Fatal(err)
	}
	if want := "      0.000 ms w1 → " + `{"id":7,"op":"release","key":"k7","attempt":"w1-30","token":11}` + "\n"; !strings.Contains(out.String(), want) {
		t.Errorf("%q is missing:\n%s", want, &out)
	}
}

// TestConformanceConclusion: a client for which no rule, or not every rule, was tried does not conform.
func TestConformanceConclusion(t *testing.T) {
	all := brokenClient().Results
	for want, results := range map[string][]conformance.Result{
		"CONFORMS  ":  {all[0], all[3]},
		"UNDECIDED  ": {all[0], all[2]},
		"FAILS  ":     all,
	} {
		var out bytes.Buffer
		if err := Conformance(&out, conformance.Report{Results: results}, false, TerminalOptions{}); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(out.String(), want) {
			t.Errorf("want %q:\n%s", want, &out)
		}
	}
	if got := (conformance.Report{Results: all[3:]}).Conclude(); got != conformance.Undecided {
		t.Errorf("without a rule that passed: %s", got)
	}
}

func TestConformanceJSON(t *testing.T) {
	var out bytes.Buffer
	if err := ConformanceJSON(&out, brokenClient()); err != nil {
		t.Fatal(err)
	}
	var read struct {
		Conclusion string
		Results    []struct {
			Rule     string
			Exchange []struct{ Wrong bool }
		}
	}
	if err := json.Unmarshal(out.Bytes(), &read); err != nil || read.Conclusion != "fails" || !read.Results[1].Exchange[3].Wrong {
		t.Errorf("%v, %+v", err, read)
	}
}
