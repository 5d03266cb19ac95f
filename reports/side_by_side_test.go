package reports

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/internal/stats"
)

func TestPairUp(t *testing.T) {
	for _, c := range []struct {
		a, b []fact
		want []Pair
	}{
		{nil, nil, nil},
		{[]fact{{"x", "1"}}, nil, []Pair{{"x", "1", missing}}},
		{nil, []fact{{"x", "1"}}, []Pair{{"x", missing, "1"}}},
		{[]fact{{"x", "1"}}, []fact{{"x", "1"}}, []Pair{{"x", "1", "1"}}},
		{[]fact{{"x", "1"}, {"y", "2"}}, []fact{{"z", "3"}, {"y", "4"}}, []Pair{{"x", "1", missing}, {"y", "2", "4"}, {"z", missing, "3"}}},
	} {
		if got := pairUp(c.a, c.b); !slices.Equal(got, c.want) {
			t.Errorf("%v and %v: %v, want %v", c.a, c.b, got, c.want)
		}
	}
	if (Pair{"x", "1", "1"}).Differ() || !(Pair{"x", "1", "2"}).Differ() {
		t.Error("what differs and what does not are mixed up")
	}
}

// TestSideBySide: two runs have the same texts side by side as alone, in the words of the terminal.
func TestSideBySide(t *testing.T) {
	bad := Document{
		Header: history.Header{Lock: "redis", Guard: "none", Parameters: map[string]string{"section": "20ms"}},
		Results: checker.Results{
			Verdict: checker.Violation, Sentence: "updates are gone",
			Operations: checker.Operations{Acquired: 100, Acknowledged: 100}, Updates: checker.UpdateSummary{Acknowledged: 100, Lost: 30, LossEvents: 30},
			Findings: []checker.Finding{
				{Property: checker.MutualExclusion, Verdict: checker.Violation, Tolerated: true, Summary: "overlaps"},
				{Property: checker.NoLostUpdate, Verdict: checker.Violation, Required: true, Summary: "30 lost"},
			},
		},
	}
	good := Document{
		Header: history.Header{Lock: "redis", Guard: "fence"},
		Results: checker.Results{
			Verdict: checker.Valid, Operations: bad.Results.Operations, Updates: checker.UpdateSummary{Acknowledged: 100},
			Findings: []checker.Finding{{Property: checker.NoLostUpdate, Verdict: checker.Valid, Required: true, Summary: "none lost"}},
		},
	}
	b := NewSideBySide(bad, good)
	for pair, differs := range map[Pair]bool{
		{"lock", "redis", "redis"}:    false,
		{"guard", "none", "fence"}:    true,
		{"section", "20ms", missing}:  true,
		{"lockcheck", "none", "none"}: false,
		{"workload", "none", "none"}:  false,
	} {
		if !slices.Contains(b.Facts, pair) || pair.Differ() != differs {
			t.Errorf("%v is not in %v, or differs wrongly", pair, b.Facts)
		}
	}
	wanted := []Opinions{
		{"no-lost-update", Opinion{"no-lost-update", "violation", "violation", "30 lost", true, ""}, Opinion{"no-lost-update", "valid", "valid", "none lost", true, ""}},
		{"mutual-exclusion", Opinion{"mutual-exclusion", "tolerated", "tolerated", "overlaps", false, ""}, Opinion{Word: missing, Class: "na"}},
	}
	if !slices.Equal(b.Properties, wanted) {
		t.Errorf("%v, want %v", b.Properties, wanted)
	}
	if want := (Pair{"lost updates", "30 of 100 (30 %)", "0 of 100 (0 %)"}); b.Differences[0] != want || !strings.Contains(b.Note, "takes 4 runs a side") {
		t.Errorf("%+v: %s", b.Differences, b.Note)
	}
}

// TestDifferences: with enough runs, the text says which are worse, with figures. With fewer, it says how
// many runs are needed.
func TestDifferences(t *testing.T) {
	losing := func(lost ...int64) []checker.Results {
		var all []checker.Results
		for _, n := range lost {
			all = append(all, checker.Results{Updates: checker.UpdateSummary{Acknowledged: 100, Lost: n}})
		}
		return all
	}
	few, many := losing(1, 2, 3, 4), losing(20, 30, 25, 22)
	for _, c := range []struct {
		first, second []checker.Results
		want          string
	}{
		{few, many, "lost updates: 10 of 400 (2.5 %) against 97 of 400 (24 %): the second is worse (p = 0.029)"},
		{many, few, "the second is better (p = 0.029)"},
		{many, many, "no difference shown (p = 1)"},
		{few[:3], many[:3], "25 %): not compared With 1 figure to compare, that takes 4 runs a side at least (--test-count 4); here are 3 and 3."},
		{losing(0), losing(0), "nothing to compare stale writes"},
		{losing(0), losing(0), "Nothing happened that could be compared."},
	} {
		var terminal bytes.Buffer
		if err := Differences(&terminal, checker.Differences(c.first, c.second), len(c.first), len(c.second), "They differ.", TerminalOptions{Width: 10000}); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(terminal.String()), " ")
		if !strings.HasPrefix(text, "They differ. ") {
			t.Errorf("what makes them incomparable does not come first: %s", text)
		}
		for _, part := range strings.Split(c.want, " With ") {
			if !strings.Contains(text, part) {
				t.Errorf("%q is not in %s", part, text)
			}
		}
	}
}

func TestLine(t *testing.T) {
	d := Document{Header: history.Header{Lock: "re\x1bdis", Started: "2026-01-01T00:00:00Z", Faults: []string{"pa\u202euse"}}}
	line := UnjudgedLine(d.Header)
	if line.Lock != "redis" || line.Guard != "none" || line.Verdict != "" || line.Faults[0] != "pause" || line.Started.Year() != 2026 {
		t.Errorf("%+v", line)
	}
	d.Results = checker.Results{Verdict: "splendid", Sentence: "all\nis well", Updates: checker.UpdateSummary{Acknowledged: 12345, Lost: 1}}
	if line = NewLine(d); line.Verdict != "broken" || line.Sentence != "all is well" || line.Lost != "1 of 12,345" || line.Lock != "redis" {
		t.Errorf("%+v", line)
	}
	if line = NewLine(Document{}); line.Lost != "" || !line.Started.IsZero() {
		t.Errorf("%+v", line)
	}
}

// TestStyle: the shared style sheet is that of the page, and contains no template.
func TestStyle(t *testing.T) {
	style := Style()
	for _, part := range []string{":root {", "prefers-color-scheme: dark", ".badge.violation", "table {"} {
		if !strings.Contains(style, part) {
			t.Errorf("%q is not in it", part)
		}
	}
	if strings.Contains(style, "{{") || strings.Contains(style, "<") {
		t.Error("there is more than style in it")
	}
	var page bytes.Buffer
	if err := HTML(&page, &history.History{}, checker.Results{}); err != nil || !strings.Contains(page.String(), strings.TrimSpace(style)) {
		t.Errorf("the page does not have it: %v", err)
	}
}

// TestIncomparable: runs of one test on two locks are compared. For runs of two tests, the text says why they
// cannot be compared.
func TestIncomparable(t *testing.T) {
	of := func(lock, guard string, faults ...string) history.Header {
		return history.Header{Lock: lock, Workload: "set", Guard: guard, Faults: faults}
	}
	only := func(headers ...history.Header) []history.Header { return headers }
	for _, c := range []struct {
		a, b []history.Header
		want string
	}{
		{only(of("redis", "none", "pause")), only(of("etcd", "none", "pause")), ""},
		{only(of("redis", "none", "pause")), only(of("redis", "fence", "pause")), "The two runs differ in guard (none; fence), so a difference below may come from that alone."},
		{only(of("redis", "none", "pause")), only(of("redis", "none", "clock", "kill")), "faults (pause; clock, kill)"},
		{only(of("redis", "none", "pause"), of("redis", "none", "pause")), only(of("etcd", "none", "pause")), ""},
		{only(of("redis", "none", "pause"), of("redis", "fence", "pause")), only(of("redis", "fence", "pause")), "sets of runs differ in guard (fence or none; fence), so a difference"},
	} {
		got := Incomparable(c.a, c.b)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%q, want %q in it", got, c.want)
		}
	}
}

// TestConclusion: a difference that would count alone, but does not among several figures, is reported with
// the p that it would need.
func TestConclusion(t *testing.T) {
	d := checker.Difference{First: stats.Count{K: 1, N: 100}, Second: stats.Count{N: 100}, Chance: 0.024, Compared: true}
	for figures, want := range map[int64]string{1: "no difference shown (p = 0.024)", 3: "no difference shown (p = 0.024; with 3 figures the smallest p must be at most 0.017)"} {
		if got := conclusion(d, figures); got != want {
			t.Errorf("%d figures: %s", figures, got)
		}
	}
	d.Shown = true
	if got := conclusion(d, 3); got != "the second is better (p = 0.024)" {
		t.Error(got)
	}
}
