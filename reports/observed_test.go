package reports

import (
	"strings"
	"testing"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/internal/stats"
)

// TestDays: the days on which runs began.
func TestDays(t *testing.T) {
	on := func(times ...string) (o Observed) {
		for _, started := range times {
			o.Runs = append(o.Runs, ObservedRun{Document: Document{Header: history.Header{Started: started}}})
		}
		return o
	}
	for want, all := range map[string][]Observed{
		"":                             {on()},
		" of 2026-11-23":               {on("2026-11-23T01:02:03Z", "2026-11-23T04:05:06Z"), on()},
		" of 2026-11-09 to 2026-11-23": {on("2026-11-23T01:02:03Z"), on("2026-11-09T01:02:03Z")},
	} {
		if got := labelledDays(all); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestFindingsTable: a row for each lock and each reproduction, with what was
// not as expected in plain sight, and what was never run.
func TestFindingsTable(t *testing.T) {
	run := func(as bool, missed string, acknowledged, lost int64) ObservedRun {
		return ObservedRun{AsExpected: as, Missed: missed, Document: Document{
			Header: history.Header{Versions: map[string]string{"redis": "7.0.15", "github.com/redis/go-redis/v9": "v9.23.0"}},
			Results: checker.Results{
				End:     12e9,
				Updates: checker.UpdateSummary{Acknowledged: acknowledged, Lost: lost}, Overlaps: checker.OverlapSummary{EarlierPaused: 3},
			},
		}}
	}
	five := func(lost ...int64) []ObservedRun { // each of ten faults in as many windows
		var all []ObservedRun
		for range 5 {
			r := checker.Results{Updates: checker.UpdateSummary{LossInterval: checker.LossInterval{LostOver: checker.OverFaults}}}
			for i := range 10 {
				w := stats.Count{K: lost[i%len(lost)], N: 10}
				r.Losses = append(r.Losses, w)
				r.Updates.Lost += w.K
				r.Updates.Acknowledged += w.N
			}
			all = append(all, ObservedRun{AsExpected: true, Document: Document{Results: r}})
		}
		return all
	}
	var text strings.Builder
	err := FindingsTable(&text, "lockcheck findings table", []Observed{
		{Subject: "redis", Setting: "faultless", Lock: "redis", Expected: "valid", Runs: []ObservedRun{run(true, "", 300, 0), run(true, "", 500, 0), run(true, "", 400, 0)}},
		{Subject: "redis", Setting: "paused", Lock: "redis", Expected: "violation: mutual-exclusion violated", Runs: []ObservedRun{run(true, "", 100, 2), run(false, "the verdict is valid, not violation", 100, 0)}},
		{Subject: "file", Setting: "faultless", Lock: "file", Expected: "valid"},
		{Subject: "file", Setting: "paused", Lock: "file", Expected: "valid"},
		{Subject: "redlock-clock-jump", Setting: "finding", Lock: "redlock", Expected: "violation: mutual-exclusion violated", Runs: []ObservedRun{run(true, "", 9, 1)}},
		{Subject: "redlock-clock-jump", Setting: "control", Lock: "redlock", Expected: "valid"},
		{Subject: "etcd-lease-loss", Setting: "finding", Lock: "etcd", Expected: "x", Runs: five(0, 0, 2, 4, 3)},
		{Subject: "etcd-lease-loss", Setting: "control", Lock: "etcd", Expected: "x", Runs: five(0)},
		{Subject: "published", Setting: "finding", Lock: "etcd", Expected: "x", PublishedLoss: 0.18, Runs: five(0, 0, 2, 4, 3)},
		{Subject: "published", Setting: "control", Lock: "etcd", Expected: "x", PublishedLoss: 0.28, Runs: five(0, 0, 2, 4, 3)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := FindingsTable(&text, "lockcheck findings table x", []Observed{{
		Subject: "a`|*b*", Setting: "finding", Lock: "c`|", Expected: "<x>", Runs: []ObservedRun{run(false, "it said | [more](x) _twice_", 1, 0)},
	}}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "%!") || strings.Count(text.String(), "## Locks") != 1 {
		t.Errorf("the page is\n%s", text.String())
	}
	for _, want := range []string{
		"Made by \"lockcheck findings table x\" from stored runs;", "with the 95 % interval",
		"| `a'\\|*b*` | `c'\\|` (go-redis 9.23.0, redis 7.0.15) | &lt;x&gt; | 0 of 1 (it said \\| \\[more\\](x) \\_twice\\_) |  | not run | 0 of 1 |  | 12s |\n",
		"| `redis` | go-redis 9.23.0, redis 7.0.15 | valid, 3 of 3 | 400 (300–500) | violation, 1 of 2 (the verdict is valid, not violation) | 3 | 2 of 200: no interval (2 runs) |\n",
		"| `file` |  | valid, not run |  | valid, not run |  |  |\n",
		"| `redlock-clock-jump` | `redlock` (go-redis 9.23.0, redis 7.0.15) | violation: mutual-exclusion violated | 1 of 1 | valid | not run | 1 of 9: no interval (1 run) |  | 12s |\n",
		"| `etcd-lease-loss` | `etcd` | x | 5 of 5 | x | 5 of 5 | 90 of 500: 14–23 % (50 faults) | 0 of 500 | 0s |\n",
		"| `published` | `etcd` | x | 5 of 5 | x | 5 of 5 | 90 of 500: 14–23 % (50 faults); published: 18 %, within | 90 of 500: 14–23 % (50 faults); published: 28 %, not within | 0s |\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no line %q in\n%s", want, text.String())
		}
	}
}
