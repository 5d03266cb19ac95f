package hunt

import (
	"slices"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/internal/runs"
)

// TestLook: what is inherent in leases is set aside, and a near miss that is not inherent is found.
func TestLook(t *testing.T) {
	lease, session := history.Header{Lease: time.Second}, history.Header{Lease: time.Second, Session: true}
	overlap := func(class, cause string) checker.Finding {
		return checker.Finding{Property: checker.MutualExclusion, Verdict: checker.Violation, Violations: []checker.Incident{{Class: class, Cause: cause, Grants: []string{"g1", "g2"}}}}
	}
	of := func(p checker.Property, cause string) checker.Finding {
		return checker.Finding{Property: p, Verdict: checker.Violation, Violations: []checker.Incident{{Cause: cause}}}
	}
	released := []checker.Hold{{Grant: "g1", Ended: checker.EndedByRelease}}
	lost := []checker.Hold{{Grant: "g1", Ended: checker.EndedByLost}}
	for _, c := range []struct {
		name     string
		header   history.Header
		holds    []checker.Hold
		findings []checker.Finding
		want     []string // the keys of the signatures
		inherent int
	}{
		{"nothing", lease, nil, nil, nil, 0},
		{"stopped beyond its lease", lease, released, []checker.Finding{overlap(checker.UseAfterExpiry, checker.CausePaused)}, nil, 1},
		{"stopped beyond its session", session, released, []checker.Finding{overlap(checker.UseAfterExpiry, checker.CausePaused)}, nil, 1},
		{"section outlasts the lease", lease, released, []checker.Finding{overlap(checker.UseAfterExpiry, checker.CauseOutlasted)}, nil, 1},
		{"cut off, with a deadline", lease, released, []checker.Finding{overlap(checker.UseAfterExpiry, checker.CauseCutOff)}, nil, 1},
		{"cut off, and not notified", session, released, []checker.Finding{overlap(checker.UseAfterExpiry, checker.CauseCutOff)}, []string{checker.CauseCutOff}, 0},
		{"cut off, and notified late", session, lost, []checker.Finding{overlap(checker.UseAfterExpiry, checker.CauseCutOff)}, nil, 1},
		{
			"cut off, notified late, and its stale write", session, lost,
			[]checker.Finding{overlap(checker.UseAfterExpiry, checker.CauseCutOff), of(checker.NoStaleWrite, checker.CauseCutOff)}, nil, 1,
		},
		{
			"cut off, not notified, and its stale write", session, released,
			[]checker.Finding{overlap(checker.UseAfterExpiry, checker.CauseCutOff), of(checker.NoStaleWrite, checker.CauseCutOff)}, []string{checker.CauseCutOff}, 0,
		},
		{"a double grant", lease, released, []checker.Finding{overlap(checker.DoubleGrant, checker.CauseTwice)}, []string{checker.CauseTwice}, 0},
		{"a renewal that revives", lease, released, []checker.Finding{overlap(checker.DoubleGrant, checker.CausePaused)}, []string{checker.CausePaused}, 0},
		{
			"lost after a double grant", lease, released,
			[]checker.Finding{overlap(checker.DoubleGrant, checker.CauseClock), of(checker.NoLostUpdate, checker.CauseClock)}, []string{checker.CauseClock}, 0,
		},
		{"lost by a stopped holder", lease, nil, []checker.Finding{of(checker.NoLostUpdate, checker.CausePaused)}, nil, 1},
		{"lost by one that was cut off, with a deadline", lease, nil, []checker.Finding{of(checker.NoLostUpdate, checker.CauseCutOff)}, nil, 1},
		{"lost without a reason", lease, nil, []checker.Finding{of(checker.NoLostUpdate, checker.CauseUnexplained)}, []string{checker.CauseUnexplained}, 0},
		{
			"a wrong release and what follows", lease, released,
			[]checker.Finding{of(checker.NoWrongRelease, ""), overlap(checker.DoubleGrant, checker.CauseReleasedByOther)}, []string{string(checker.NoWrongRelease)}, 0,
		},
		{"stuck", lease, nil, []checker.Finding{of(checker.Liveness, "")}, []string{string(checker.Liveness)}, 0},
		{"the second opinion alone", lease, nil, []checker.Finding{of(checker.Linearizability, "")}, []string{string(checker.Linearizability)}, 0},
		{
			"the second opinion and another", lease, nil,
			[]checker.Finding{of(checker.Linearizability, ""), of(checker.FencingOrder, "")}, []string{string(checker.FencingOrder)}, 0,
		},
	} {
		s := findingsIn(c.header, checker.Results{Verdict: checker.Violation, Findings: c.findings, Holds: c.holds})
		var keys []string
		for _, f := range s.findings {
			keys = append(keys, f.key())
		}
		if !slices.Equal(keys, c.want) || len(s.inherent) != c.inherent {
			t.Errorf("%s: finds %v, inherent %v", c.name, keys, s.inherent)
		}
	}
	broken := checker.Results{Verdict: checker.Broken, Findings: []checker.Finding{overlap(checker.DoubleGrant, checker.CauseTwice)}}
	if s := findingsIn(lease, broken); len(s.findings) > 0 {
		t.Errorf("a broken run shows %v", s.findings)
	}
}

// TestDataLost: a lock that is stuck because its queue was wiped does not hide a lock that is stuck for
// another reason.
func TestDataLost(t *testing.T) {
	for _, c := range []struct {
		kind     string
		from, to int64 // the time during which the lock is stuck; the fault lasts from 10 to 20
		dataLost bool
	}{
		{history.Pause, 15, 30, false},
		{history.Crash, 15, 30, false},
		{history.Wipe, 15, 30, true},
		{history.Wipe, 5, 30, true},
		{history.Wipe, 5, 9, false},
	} {
		s := findingsIn(history.Header{Servers: []string{"n1"}}, checker.Results{
			Verdict:  checker.Violation,
			Findings: []checker.Finding{{Property: checker.Liveness, Verdict: checker.Violation, Violations: []checker.Incident{{From: c.from, To: c.to}}}},
			Faults:   []checker.FaultCoverage{{Kind: c.kind, Targets: []string{"n1"}, Applied: true, Begin: 10, End: 20}},
		})
		if s.findings[0].DataLost != c.dataLost {
			t.Errorf("%s, stuck from %d to %d: %+v", c.kind, c.from, c.to, s.findings[0].Signature)
		}
	}
}

// TestIsIn: a run with another cause, or in which the holder was notified, does not show the finding.
func TestIsIn(t *testing.T) {
	run := func(class, cause string) runs.Outcome {
		return runs.Outcome{Judgement: runs.Judgement{History: &history.History{Header: history.Header{Lease: time.Second, Session: true}}, Results: checker.Results{
			Verdict: checker.Violation, Findings: []checker.Finding{{
				Property: checker.MutualExclusion, Verdict: checker.Violation, Violations: []checker.Incident{{Class: class, Cause: cause, Grants: []string{"a"}}},
			}},
			Holds: []checker.Hold{{Grant: "a", Ended: checker.EndedByRelease}},
		}}}
	}
	notified := run(checker.UseAfterExpiry, checker.CauseCutOff)
	notified.Results.Holds[0].Ended = checker.EndedByLost
	granted := Signature{Property: checker.MutualExclusion, Cause: checker.CauseClock}
	silent := Signature{Property: checker.MutualExclusion, Cause: checker.CauseCutOff, NotNotified: true}
	for _, c := range []struct {
		name string
		find Signature
		run  runs.Outcome
		want bool
	}{
		{"the same", granted, run(checker.DoubleGrant, checker.CauseClock), true},
		{"another cause", granted, run(checker.DoubleGrant, checker.CauseTwice), false},
		{"inherent", granted, run(checker.UseAfterExpiry, checker.CausePaused), false},
		{"not notified", silent, run(checker.UseAfterExpiry, checker.CauseCutOff), true},
		{"notified", silent, notified, false},
		{"without a loss of data", Signature{Property: checker.Liveness, DataLost: true}, run(checker.DoubleGrant, checker.CauseClock), false},
	} {
		if got := c.find.isIn(c.run); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestNear: a run that comes nearer to a violation scores higher.
func TestNear(t *testing.T) {
	h := history.Header{Lease: time.Second}
	hold := func(worker string, start, end, leaseEnd time.Duration, ended checker.HoldEnd) checker.Hold {
		return checker.Hold{Key: "k", Worker: worker, Start: int64(start), End: int64(end), LeaseEnd: int64(leaseEnd), Ended: ended}
	}
	after := func(gap time.Duration, ended checker.HoldEnd) checker.Results {
		return checker.Results{Holds: []checker.Hold{
			hold("w1", 0, time.Second, 900*time.Millisecond, ended), hold("w2", time.Second+gap, 2*time.Second+gap, 2*time.Second+gap, checker.EndedByRelease),
		}}
	}
	far, close := nearness(h, after(time.Second, checker.EndedByLost), seen{}), nearness(h, after(10*time.Millisecond, checker.EndedByLost), seen{})
	found := nearness(h, checker.Results{}, seen{findings: []sighting{{}}})
	if !(far < close && close < found) || found != 1 {
		t.Errorf("far %v, close %v, found %v", far, close, found)
	}
}
