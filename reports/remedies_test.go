package reports

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"lockcheck/checker"
	"lockcheck/history"
)

// paused is a run of the lock memory whose holders were stopped.
func pausedRun() (history.Header, checker.Results) {
	h := history.Header{Lock: "memory", Workload: "set", Guard: "none", Lease: time.Second, Seed: 7}
	causes := map[string]int64{checker.CausePaused: 3, checker.CauseTwice: 1}
	return h, checker.Results{
		Verdict: checker.Violation, Sentence: "updates are gone", Incidents: 3,
		Updates:  checker.UpdateSummary{Acknowledged: 100, Lost: 30, LossInterval: checker.LossInterval{LostHigh: 1}},
		Findings: []checker.Finding{{Property: checker.NoLostUpdate, Verdict: checker.Violation, Required: true, Summary: "30 lost", Causes: causes}},
	}
}

// TestRemedies: what was violated has its remedies in each report; what was tolerated, or
// kept, has none.
func TestRemedies(t *testing.T) {
	h, r := pausedRun()
	for _, width := range []int{60, 80} {
		var b bytes.Buffer
		if err := Terminal(&b, r, TerminalOptions{Width: width, Header: h}); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(b.String()), " ")
		for _, want := range []string{
			"what would help: lease ran out while its holder was paused", "makes it harmless: --guard fence, --guard cas, --guard ask",
			"makes it rarer: --ttl 5s, --check-before-write", "shown by: lockcheck repro holder-pause-fenced-memory", "what would help: granted twice",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%d columns: %q is not in\n%s", width, want, b.String())
			}
		}
		if strings.Contains(text, "--guard database") {
			t.Errorf("memory has no database:\n%s", b.String())
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d columns, and %d are used: %s", width, n, line)
			}
		}
	}
	var page, text bytes.Buffer
	if err := HTML(&page, &history.History{Header: h}, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"What would help", "<code>lockcheck repro holder-pause-fenced-memory</code>", "Not supported: the data in the lock", "does not help"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("%q is not on the page", want)
		}
	}
	if err := JSON(&text, h, r); err != nil {
		t.Fatal(err)
	}
	d, err := ReadDocument(&text)
	if err != nil || len(d.Remedies) < 10 || d.Remedies[0].Remedy != "fence" || d.Remedies[0].Shown[0].Command != "lockcheck repro holder-pause-fenced-memory" {
		t.Errorf("%+v, %v", d.Remedies, err)
	}
	for name, change := range map[string]func(*checker.Finding){
		"valid":     func(f *checker.Finding) { f.Verdict = checker.Valid },
		"tolerated": func(f *checker.Finding) { f.Tolerated = true },
	} {
		_, other := pausedRun()
		change(&other.Findings[0])
		if all := adviceFor(h, other); len(all) > 0 {
			t.Errorf("%s: %+v", name, all)
		}
	}
}
