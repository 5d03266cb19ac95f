package remedied

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/reports"
)

// TestPage: the page has all runs side by side, and the remedies that were not tried with the reason.
func TestPage(t *testing.T) {
	h := history.Header{Lock: "memory", Workload: "set", Guard: "none", Lease: time.Second, Seed: 7}
	r := checker.Results{
		Verdict: checker.Violation, Sentence: "updates are gone", Incidents: 3,
		Updates:  checker.UpdateSummary{Acknowledged: 100, Lost: 30, LossInterval: checker.LossInterval{LostHigh: 1}},
		Findings: []checker.Finding{{Property: checker.NoLostUpdate, Verdict: checker.Violation, Required: true, Summary: "30 lost"}},
	}
	tried := Tried{Schema: Schema, NotTried: []NotTried{{"database", "words", "--guard database", "the lock memory has no database"}}}
	tried.add(Run{Words: "as asked for"}, "runs/a", h, r)
	r.Verdict, r.Updates.Lost, r.Findings = checker.Valid, 0, []checker.Finding{{Property: checker.NoLostUpdate, Verdict: checker.Violation, Tolerated: true, Summary: "none"}}
	h.Guard = "fence"
	tried.add(Run{Remedy: "fence", Words: "a <token>", Flag: "--guard fence"}, "runs/b", h, r)

	var terminal, page, text bytes.Buffer
	for _, err := range []error{
		tried.Terminal().WriteTerminal(&terminal, reports.TerminalOptions{Width: 100}), tried.Page().WriteHTML(&page), reports.WriteJSON(&text, tried),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"as asked for", "violation", "30 of 100", "0 of 100", "--guard database: the lock memory has no database (words)", "held in 1 run"} {
		if !strings.Contains(strings.Join(strings.Fields(terminal.String()), " "), want) {
			t.Errorf("%q is not in\n%s", want, terminal.String())
		}
	}
	for _, want := range []string{
		`href="runs/b/report.html"`, `href="#run-1"`, `id="run-1"`, "a &lt;token&gt;", "Not tried", "held in 1 run", "updates are gone",
		`<span class="word violation">violation<small>30 lost</small></span>`, "<td>tolerated<small>none</small></td>",
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("%q is not on the page", want)
		}
	}
	var read Tried
	if err := json.Unmarshal(text.Bytes(), &read); err != nil || len(read.Runs) != 2 || read.Runs[0].Lost != 30 || read.Runs[1].Verdict != checker.Valid {
		t.Errorf("%+v, %v", read, err)
	}
}
