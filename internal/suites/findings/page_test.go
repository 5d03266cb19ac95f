package findings

import (
	"bytes"
	"strings"
	"testing"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/internal/appfile"
	"lockcheck/internal/runs"
	"lockcheck/internal/stats"
	"lockcheck/internal/suites"
	"lockcheck/reports"
)

func stored(started string, r checker.Results) suites.StoredRun {
	r.Findings = append(r.Findings, checker.Finding{Property: checker.FaultEvidence, Verdict: checker.NotApplicable}, checker.Finding{Property: checker.Assumptions, Verdict: checker.Valid})
	versions := map[string]string{"redis": "7.0.15", "github.com/redis/go-redis/v9": "v9.23.0"}
	return suites.StoredRun{Document: reports.Document{Header: history.Header{Started: started, Versions: versions}, Results: r}}
}

// TestDays: the page names the days on which runs began.
func TestDays(t *testing.T) {
	on := func(times ...string) (o Observed) {
		for _, started := range times {
			o.Runs = append(o.Runs, stored(started, checker.Results{}))
		}
		return o
	}
	for want, all := range map[string][]Observed{
		"":                             {on()},
		" of 2026-11-23":               {on("2026-11-23T01:02:03Z", "2026-11-23T04:05:06Z"), on()},
		" of 2026-11-09 to 2026-11-23": {on("2026-11-23T01:02:03Z"), on("2026-11-09T01:02:03Z")},
	} {
		if got := days(all); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestPage: each lock and each reproduction has a row. Runs that were not as expected and experiments that
// were never run are visible. Text from outside is escaped.
func TestPage(t *testing.T) {
	run := func(v checker.Verdict, acknowledged, lost int64) suites.StoredRun {
		return stored("", checker.Results{
			Verdict: v, End: 12e9, Updates: checker.UpdateSummary{Acknowledged: acknowledged, Lost: lost}, Overlaps: checker.OverlapSummary{EarlierPaused: 3},
			Findings: []checker.Finding{{Property: checker.MutualExclusion, Verdict: v}},
		})
	}
	five := func(lost ...int64) []suites.StoredRun { // ten faults each, in as many windows
		var all []suites.StoredRun
		for range 5 {
			r := checker.Results{Verdict: checker.Valid, Updates: checker.UpdateSummary{LossInterval: checker.LossInterval{LostOver: checker.OverFaults}}}
			for i := range 10 {
				w := stats.Count{K: lost[i%len(lost)], N: 10}
				r.Losses = append(r.Losses, w)
				r.Updates.Lost += w.K
				r.Updates.Acknowledged += w.N
			}
			all = append(all, stored("", r))
		}
		return all
	}
	observed := func(subject, lock string, setting suites.Setting, e suites.Expectation, made ...suites.StoredRun) Observed {
		return Observed{suites.Experiment{Subject: subject, Setting: setting, Options: runs.Options{Lock: lock}, Expect: e}, made}
	}
	valid := suites.Expectation{Verdict: checker.Valid}
	violated := suites.Expectation{Verdict: checker.Violation, Violated: []checker.Property{checker.MutualExclusion}}
	published := func(share float64) suites.Expectation {
		return suites.Expectation{Verdict: checker.Valid, PublishedLoss: share}
	}
	failed := run(checker.Violation, 1, 0)
	failed.Results.Findings[2] = checker.Finding{Property: checker.Assumptions, Verdict: checker.Broken, Summary: "| [more](x) _twice_"}
	var text bytes.Buffer
	err := Page("lockcheck repro table x", []Observed{
		observed("redis", "redis", suites.SettingFaultless, valid, run(checker.Valid, 300, 0), run(checker.Valid, 500, 0), run(checker.Valid, 400, 0)),
		observed("redis", "redis", suites.SettingPaused, violated, run(checker.Violation, 100, 2), run(checker.Valid, 100, 0)),
		observed("file", "file", suites.SettingFaultless, valid), observed("file", "file", suites.SettingPaused, valid),
		observed("redlock-clock-jump", "redlock", suites.SettingFinding, violated, run(checker.Violation, 9, 1)),
		observed("redlock-clock-jump", "redlock", suites.SettingControl, valid),
		observed("etcd-lease-loss", "etcd", suites.SettingFinding, valid, five(0, 0, 2, 4, 3)...),
		observed("etcd-lease-loss", "etcd", suites.SettingControl, valid, five(0)...),
		observed("published", "etcd", suites.SettingFinding, published(0.18), five(0, 0, 2, 4, 3)...),
		observed("published", "etcd", suites.SettingControl, published(0.28), five(0, 0, 2, 4, 3)...),
		{suites.Experiment{Subject: "billed-twice", Setting: suites.SettingFinding, Application: &runs.ApplicationOptions{App: appfile.App{Name: "billing"}}, Expect: suites.Expectation{Verdict: checker.Violation, Invariants: []string{"billed-once"}}}, nil},
		observed("a`|*b*", "c`|", suites.SettingFinding, suites.Expectation{Violated: violated.Violated, Cause: "<x>"}, failed),
	}).WriteMarkdown(&text)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "%!") || strings.Count(text.String(), "## Locks") != 1 {
		t.Errorf("the page is\n%s", text.String())
	}
	for _, want := range []string{
		"Made by \"lockcheck repro table x\" from stored runs;", "with the 95 % interval",
		"| `a'\\|*b*` | `c'\\|` (go-redis 9.23.0, redis 7.0.15) | mutual-exclusion violated, cause: &lt;x&gt; | 0 of 1 (assumptions is broken: \\| \\[more\\](x) \\_twice\\_) |  | not run | 0 of 1 |  | 12s |\n",
		"| `billed-twice` | `billing` | violation: invariant billed-once violated | not run |  | not run |  |  |  |\n",
		"| `redis` | go-redis 9.23.0, redis 7.0.15 | valid, 3 of 3 | 400 (300–500) | violation, 1 of 2 (the verdict is valid, not violation) | 3 | 2 of 200: no interval (2 runs) |\n",
		"| `file` |  | valid, not run |  | valid, not run |  |  |\n",
		"| `redlock-clock-jump` | `redlock` (go-redis 9.23.0, redis 7.0.15) | violation: mutual-exclusion violated | 1 of 1 | valid | not run | 1 of 9: no interval (1 run) |  | 12s |\n",
		"| `etcd-lease-loss` | `etcd` (go-redis 9.23.0, redis 7.0.15) | valid | 5 of 5 | valid | 5 of 5 | 90 of 500: 14–23 % (50 faults) | 0 of 500 | 0s |\n",
		"| `published` | `etcd` (go-redis 9.23.0, redis 7.0.15) | valid | 5 of 5 | valid | 5 of 5 | 90 of 500: 14–23 % (50 faults); published: 18 %, within | 90 of 500: 14–23 % (50 faults); published: 28 %, not within | 0s |\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no line %q in\n%s", want, text.String())
		}
	}
}
