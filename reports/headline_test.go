package reports

import (
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
)

// abandoned is a run whose first holder was killed. After that, no worker got k0 for 8 s. That is an incident
// only if stuck.
func abandoned(stuck bool) run {
	st := newStory("none")
	st.undisturbed(3, 40*ms)
	h := st.grant("w1", "k0", ms)
	st.end(h, st.now+10*ms, checker.EndedWithoutTrace)
	killed := st.now + 10*ms
	st.fault(checker.FaultCoverage{ID: "f1", Kind: history.Kill, Targets: []string{"w1"}, Applied: true, Proven: true, Exercised: true,
		Begin: killed, End: killed}, 0, map[history.Stage]string{history.Applied: ""})
	st.busy("w2", "k0", killed+ms, killed+8*s)
	st.now = killed + 8*s
	if !stuck {
		all, r := st.finish(checker.Valid, "No property was violated.")
		return run{"served", all, r}
	}
	st.add(checker.Liveness, checker.Incident{Key: "k0", From: killed, To: st.now, Class: "stuck",
		What: "after w1 was killed nobody could acquire k0 for 8 s"})
	all, r := st.finish(checker.Violation, "After w1 was killed nobody could acquire k0 for 8 s.")
	return run{"stuck", all, r}
}

// with returns the run with another verdict.
func (c run) with(v checker.Verdict) run {
	c.r.Verdict = v
	return c
}

// TestHeadline: the headline says what was violated, that the run failed, or that neither happened.
func TestHeadline(t *testing.T) {
	const nothing, stuck = "Nothing was violated.", "after w1 was killed nobody could acquire k0 for 8 s."
	undisturbed := runs()[2]
	unlisted := undisturbed.with(checker.Violation)
	unlisted.r.Findings = []checker.Finding{{Property: checker.Linearizability, Verdict: checker.Violation, Summary: "no order explains it", Required: true}}
	onServers := abandoned(false)
	onServers.r.Faults[0].Kind, onServers.r.Faults[0].Targets = history.Partition, []string{"n1"}
	for name, c := range map[string]struct {
		run              run
		title, said, not string
		drawn            int
	}{
		"nothing":               {undisturbed, "How the lock was used", nothing + " No fault mattered.", "The run failed", 0},
		"a fault":               {abandoned(false), "A closer look at a fault", nothing + " This is the first fault", "No fault mattered", 0},
		"a fault of servers":    {onServers, "A closer look at a fault", nothing + " This is the first fault", "No fault mattered", 0},
		"stuck":                 {abandoned(true), "The counterexample", stuck, nothing, 1},
		"failed":                {undisturbed.with(checker.Broken), "Before the run failed", "The run failed. These are the last holds", nothing, 0},
		"failed after a fault":  {abandoned(false).with(checker.Broken), "Before the run failed", "The run failed. These are the last holds", nothing, 0},
		"stuck, then failed":    {abandoned(true).with(checker.Broken), "The counterexample", "The run failed. This was found in what went before.", nothing, 1},
		"violated, none listed": {unlisted, "How the lock was used", "Violated: linearizability, no order explains it.", nothing, 0},
	} {
		c.run.name = "headline-" + strings.ReplaceAll(name, " ", "-")
		page := pageOf(t, c.run)
		_, section, _ := strings.Cut(page, "<section>")
		section, _, _ = strings.Cut(section, "</section>")
		if !strings.Contains(section, "<h2>"+c.title+"</h2>") || !strings.Contains(section, c.said) || strings.Contains(section, c.not) {
			t.Errorf("%s: want %q and %q, not %q, in\n%.400s", name, c.title, c.said, c.not, section)
		}
		if got := parseSVG(t, section)["violated"]; got != c.drawn {
			t.Errorf("%s: %d times of a violation drawn, want %d", name, got, c.drawn)
		}
	}
}

// TestStuckBeforeTolerated: an incident without holds comes before an incident that is not judged, and after
// an incident of the same rank.
func TestStuckBeforeTolerated(t *testing.T) {
	for guard, want := range map[string]checker.Property{"none": checker.NoLostUpdate, "fence": checker.Liveness} {
		h, r := realistic(guard)
		judge(&r, checker.Liveness, checker.Violation)
		for i := range r.Findings {
			if f := &r.Findings[i]; f.Property == checker.Liveness {
				f.Tolerated, f.Violations = false, []checker.Incident{{Key: "k0", From: epoch + s, To: epoch + 9*s}}
			}
		}
		if s, ok := newRecord(h, r).situation(r); !ok || s.Finding.Property != want {
			t.Errorf("guard %s: the situation is of %s, want %s", guard, s.Finding.Property, want)
		}
	}
}

// TestSituationOfTime: a time span without holds is shown with the holds around it.
func TestSituationOfTime(t *testing.T) {
	hold := func(key, grant string, from int64) checker.Hold {
		return checker.Hold{Key: key, Worker: "w1", Grant: grant, Start: from, End: from + 10}
	}
	holds := []checker.Hold{hold("k", "early", 0), hold("k", "before", 100), hold("other", "between", 300), hold("k", "after", 500), hold("k", "late", 600)}
	for name, c := range map[string]struct {
		holds []checker.Hold
		want  string
	}{
		"in the middle":  {holds, "before after"},
		"at the end":     {holds[:3], "before"},
		"from the start": {holds[3:], "after"},
		"no other":       {holds[2:3], ""},
	} {
		rec := &record{holds: c.holds, end: 1000}
		s := rec.situationOfTime(example{Incident: checker.Incident{Key: "k", From: 200, To: 500}})
		var got []string
		for _, h := range c.holds {
			if s.cast[h.Grant] {
				got = append(got, h.Grant)
			}
		}
		if strings.Join(got, " ") != c.want || s.from > 200 || s.to < 500 {
			t.Errorf("%s: %q from %d to %d, want %q", name, got, s.from, s.to, c.want)
		}
	}
}

// TestRecoveryNeedsAFault: a run without faults is not reported as not recovered.
func TestRecoveryNeedsAFault(t *testing.T) {
	const late = "not recovered 10s after the recovery period"
	for name, c := range map[string]struct {
		faults []checker.FaultCoverage
		want   bool
	}{
		"none":    {nil, false},
		"skipped": {[]checker.FaultCoverage{{ID: "f1"}}, false},
		"applied": {[]checker.FaultCoverage{{ID: "f1"}, {ID: "f2", Applied: true}}, true},
	} {
		recovered := history.Event{Time: time.Second.Nanoseconds(), F: history.Phase, Note: history.PhaseRecovered, Error: late}
		h := &history.History{Events: []history.Event{recovered}}
		got := warnings(h, newRecord(h, checker.Results{Faults: c.faults}))
		if said := strings.Join(got, "\n"); strings.Contains(said, "After the last fault: "+late) != c.want {
			t.Errorf("%s: %q; wanted: %v", name, said, c.want)
		}
	}
}
