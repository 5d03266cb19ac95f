package reports

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/internal/remedies"
)

// pausedRun is a run of the lock memory whose holders were paused.
func pausedRun() (history.Header, checker.Results) {
	h := history.Header{Lock: "memory", Workload: "set", Guard: "none", Lease: time.Second, Faults: []string{history.Pause}, Seed: 7}
	causes := map[string]int64{checker.CausePaused: 3, checker.CauseTwice: 1}
	return h, checker.Results{
		Verdict: checker.Violation, Sentence: "updates are gone", Incidents: 3,
		Updates:  checker.UpdateSummary{Acknowledged: 100, Lost: 30, LossInterval: checker.LossInterval{LostHigh: 1}},
		Findings: []checker.Finding{{Property: checker.NoLostUpdate, Verdict: checker.Violation, Required: true, Summary: "30 lost", Causes: causes}},
	}
}

// TestRemedies: each report has remedies for violations, and none for what was tolerated or kept.
func TestRemedies(t *testing.T) {
	h, r := pausedRun()
	for _, width := range []int{60, 80} {
		var b bytes.Buffer
		if err := Terminal(&b, r, TerminalOptions{Width: width, Header: h}); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(b.String()), " ")
		for _, want := range []string{
			"what would help (cause: lease ran out while its holder was paused)", "makes it harmless: --guard fence, --guard cas, or --guard ask",
			"makes it rarer: a longer lease (--ttl 5s --pause 2s)", "prevents most losses only: --check-before-write", "shown by: lockcheck repro holder-pause-fenced-memory", "what would help (cause: granted twice)",
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

// TestFenceWithWrongTokens: a fence compares tokens, so it is no remedy where they did not increase.
func TestFenceWithWrongTokens(t *testing.T) {
	fence := func(tokens checker.Verdict) RemedyAdvice {
		h, r := pausedRun()
		r.Findings = append(r.Findings, checker.Finding{Property: checker.FencingOrder, Verdict: tokens})
		all := adviceFor(h, r)
		return all[slices.IndexFunc(all, func(a RemedyAdvice) bool { return a.Remedy == remedies.Fence })]
	}
	if right, wrong := fence(checker.Valid), fence(checker.Violation); !right.helps || right.Lacks != "" || wrong.helps || wrong.Lacks == "" {
		t.Errorf("with right tokens %+v, with wrong ones %+v", right, wrong)
	}
}

// TestFlagOfALongerLease: the flag also sets a pause that the longer lease outlasts, because random pauses
// grow with the lease. There is no flag if none keeps the length of the fault.
func TestFlagOfALongerLease(t *testing.T) {
	longer := remedies.ByName(remedies.LongerLease).Change
	given := func(name, value string) map[string]string { return map[string]string{name: value} }
	for _, c := range []struct {
		name, cause, lock, fault string
		parameters               map[string]string
		want                     string
	}{
		{"random pauses", checker.CausePaused, "memory", history.Pause, nil, "--ttl 5s --pause 2s"},
		{"freezes", checker.CausePaused, "redis", history.Freeze, nil, "--ttl 5s --pause 2s"},
		{"pauses of a length", checker.CausePaused, "memory", history.Pause, given("pause", "1.5s"), "--ttl 5s --pause 1.5s"},
		{"pauses beyond five leases", checker.CausePaused, "memory", history.Pause, given("pause", "8s"), "--ttl 10s --pause 8s"},
		{"a run of a length", checker.CausePaused, "memory", history.Pause, given("time-limit", "6s"), "--ttl 5s --pause 2s --time-limit 15s"},
		{"beyond what the lock allows", checker.CausePaused, "zookeeper", history.Pause, given("pause", "2m"), ""},
		{"pauses of a schedule", checker.CausePaused, "memory", history.Pause, given("schedule", "s.yaml"), ""},
		{"cuts", checker.CauseCutOff, "redis", history.Partition, nil, ""},
		{"long sections", checker.CauseOutlasted, "memory", "", nil, "--ttl 5s"},
	} {
		h := history.Header{Lock: c.lock, Lease: time.Second, Faults: []string{c.fault}, Parameters: c.parameters}
		if got := flagFor(h, c.cause, longer); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	guard := remedies.ByName(remedies.Fence).Change
	if got := flagFor(history.Header{Lock: "memory", Lease: time.Second, Faults: []string{history.Pause}}, checker.CausePaused, guard); got != "--guard fence" {
		t.Error(got)
	}
}

// TestRemediesOfAnIgnoredAcquire: the report names what removes the violation. It does not name a version
// check, which lets the first write without the lock pass.
func TestRemediesOfAnIgnoredAcquire(t *testing.T) {
	h, r := pausedRun()
	r.Findings[0].Causes = map[string]int64{checker.CauseUnlocked: 2}
	var b bytes.Buffer
	if err := Terminal(&b, r, TerminalOptions{Header: h}); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{"prevents it: workers that check the result of acquire (omit --ignore-failed-acquire)", "prevents most losses only: --guard cas or --guard fence"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	if strings.Contains(text, "makes it harmless") {
		t.Error(b.String())
	}
}
