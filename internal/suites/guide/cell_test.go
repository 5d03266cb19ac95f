package guide

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
)

const clock = "clock:one server"

// heldRun is a run of redis in which the faults were proven and nothing was violated.
func heldRun(id string, faults ...string) Run {
	r := Run{ID: id, Lock: "redis", Guard: "none", Verdict: checker.Valid}
	for _, f := range faults {
		r.Faults = append(r.Faults, Fault{Name: f, Asked: 1, Met: 1})
	}
	return r
}

// brokenRun is a run in which the service granted the lock twice.
func brokenRun(id string, faults ...string) Run {
	r := heldRun(id, faults...)
	r.Verdict, r.Violated, r.DoubleGrants = checker.Violation, []checker.Property{checker.MutualExclusion}, 1
	r.Causes = map[string]int64{checker.CauseTwice: 1}
	return r
}

// expiredRun is a run in which a holder continued after its lease.
func expiredRun(id string, faults ...string) Run {
	r := heldRun(id, faults...)
	r.Verdict, r.Violated, r.UsesAfterExpiry = checker.Violation, []checker.Property{checker.MutualExclusion}, 1
	r.Causes = map[string]int64{checker.CausePaused: 1}
	return r
}

func changed(r Run, change func(*Run)) Run {
	change(&r)
	return r
}

func of(experiment string, r Run) Run { r.Experiment = experiment; return r }

// TestWorstKnown: a single break determines the state of its cell, and a run says nothing about other cells.
func TestWorstKnown(t *testing.T) {
	unproven := func(r Run) Run { return changed(r, func(r *Run) { r.Faults[0].Met = 0 }) }
	judged := func(v checker.Verdict, r Run) Run { return changed(r, func(r *Run) { r.Verdict = v }) }
	const jump = "repro/redlock-clock-jump"
	for _, c := range []struct {
		name   string
		runs   Evidence
		fault  string
		guard  string
		state  State
		by     string // experiment of the worst group
		class  Class
		broke  int64
		n      int64 // runs of the worst group
		held   int64
		silent int
	}{
		{name: "nothing", fault: clock, state: NotTried},
		{name: "held once", runs: Evidence{heldRun("1", clock)}, fault: clock, state: Held, held: 1},
		{name: "broken once", runs: Evidence{brokenRun("1", clock)}, fault: clock, state: Broken, class: ByLock, broke: 1, n: 1},
		{
			name: "broken once, and held ever since", fault: clock, state: Broken, class: ByLock, broke: 1, n: 4, held: 3,
			runs: Evidence{brokenRun("1", clock), heldRun("2", clock), heldRun("3", clock), heldRun("4", clock)},
		},
		{
			name: "missed by chance, hit by a reproduction", fault: clock, state: Broken, by: jump, class: ByLock, broke: 2, n: 2, held: 1,
			runs: Evidence{heldRun("1", clock), of(jump, brokenRun("2", clock)), of(jump, brokenRun("3", clock))},
		},
		{
			name: "by the lock comes before after expiry", fault: clock, state: Broken, by: jump, class: ByLock, broke: 1, n: 1,
			runs: Evidence{expiredRun("1", clock), expiredRun("2", clock), of(jump, brokenRun("3", clock))},
		},
		{name: "a name comes before none", runs: Evidence{brokenRun("1", clock), of(jump, brokenRun("2", clock))}, fault: clock, state: Broken, by: jump, class: ByLock, broke: 1, n: 1},
		{name: "a control comes after what it is of", runs: Evidence{of("claim/x/control", brokenRun("1", clock)), of(jump, brokenRun("2", clock))}, fault: clock, state: Broken, by: jump, class: ByLock, broke: 1, n: 1},
		{
			name: "what is made for it comes before chance with the usual settings", fault: clock, state: Broken, by: jump, class: ByLock, broke: 1, n: 1,
			runs: Evidence{brokenRun("1", clock), brokenRun("2", clock), of(jump, changed(brokenRun("3", clock), func(r *Run) { r.Lease = time.Minute }))},
		},
		{
			name: "and before a control with them", fault: clock, state: Broken, by: jump, class: ByLock, broke: 1, n: 1,
			runs: Evidence{of("claim/x/control", brokenRun("1", clock)), of(jump, changed(brokenRun("2", clock), func(r *Run) { r.Lease = time.Minute }))},
		},
		{
			name: "but not before worse by chance", fault: clock, state: Broken, class: ByLock, broke: 1, n: 1,
			runs: Evidence{brokenRun("1", clock), of(jump, expiredRun("2", clock))},
		},
		{name: "after expiry", runs: Evidence{expiredRun("1", "pause:holder")}, fault: "pause:holder", state: Broken, class: ByExpiry, broke: 1, n: 1},
		{name: "another fault", runs: Evidence{brokenRun("1", clock)}, fault: "pause:holder", state: NotTried},
		{name: "no fault", runs: Evidence{heldRun("1")}, fault: None, state: Held, held: 1},
		{name: "a fault is not no fault", runs: Evidence{brokenRun("1", clock)}, fault: None, state: NotTried},

		{name: "never proven", runs: Evidence{unproven(heldRun("1", clock))}, fault: clock, state: NotTried, silent: 1},
		{name: "broken although never proven", runs: Evidence{unproven(brokenRun("1", clock))}, fault: clock, state: Broken, class: ByLock, broke: 1, n: 1},
		{name: "undecided", runs: Evidence{judged(checker.Undecided, heldRun("1", clock))}, fault: clock, state: NotTried, silent: 1},
		{name: "the run itself broken", runs: Evidence{judged(checker.Broken, heldRun("1", clock))}, fault: clock, state: NotTried, silent: 1},
		{name: "undecided without faults", runs: Evidence{judged(checker.Undecided, heldRun("1"))}, fault: None, state: NotTried, silent: 1},

		{
			name: "a control is evidence of what is left of its faults", fault: "partition:one worker", state: Held, held: 1,
			runs: Evidence{of(jump, clockRun("1", clock, "partition:one worker")), of(jump+"/control", heldRun("2", "partition:one worker"))},
		},
		{
			name: "but not against its reproduction", fault: clock, state: Broken, by: jump, class: ByLock, broke: 1, n: 1,
			runs: Evidence{of(jump, clockRun("1", clock, "partition:one worker")), of(jump+"/control", heldRun("2", "partition:one worker"))},
		},
		{
			name: "a control with another lock", fault: clock, state: NotTried,
			runs: Evidence{of("repro/x/control", changed(heldRun("1", clock), func(r *Run) { r.Lock = "redis-aof" }))},
		},
		{
			name: "a control whose pause is within the lease", fault: "pause:holder", state: NotTried,
			runs: Evidence{of("repro/x/control", heldRun("1", "pause:holder briefly"))},
		},
		{
			name: "broken within the lease already", fault: "pause:holder", state: Broken, class: ByLock, broke: 1, n: 1,
			runs: Evidence{brokenRun("1", "pause:holder briefly")},
		},
		{name: "the leader is one server", runs: Evidence{brokenRun("1", "pause:leader")}, fault: "pause:one server", state: Broken, class: ByLock, broke: 1, n: 1},
		{
			name: "one that held counts against one that did not", fault: "pause:one server", state: Broken, class: ByLock, broke: 1, n: 2,
			runs: Evidence{brokenRun("1", "pause:leader"), heldRun("2", "pause:leader")},
		},
		{
			name: "but apart from any server", fault: "pause:one server", state: Broken, class: ByLock, broke: 1, n: 1, held: 1,
			runs: Evidence{brokenRun("1", "pause:leader"), of("claim/x", heldRun("2", "pause:one server"))},
		},
		{name: "but one that held is not any", runs: Evidence{heldRun("1", "pause:leader")}, fault: "pause:one server", state: NotTried},
		{
			name: "a clock that went back says nothing of one that goes forward", runs: Evidence{heldRun("1", clock+" back")}, fault: clock, state: NotTried,
		},

		{
			name: "late by its clock", fault: clock + backwards, state: Broken, by: "claim/x", class: Late, broke: 1, n: 1,
			runs: Evidence{of("claim/x", passedOn(time.Minute, heldRun("1", "kill:holder", clock+backwards)))},
		},
		{
			name: "which the end of its holder is no reason for", fault: "kill:holder", state: NotTried,
			runs: Evidence{passedOn(time.Minute, heldRun("1", "kill:holder", clock+backwards))},
		},
		{
			name: "late is no worse than stuck", fault: clock, state: Broken, by: "claim/x", class: Stuck, broke: 1, n: 1,
			runs: Evidence{
				passedOn(time.Minute, heldRun("1", clock)),
				of("claim/x", changed(brokenRun("2", clock), func(r *Run) { r.Violated, r.DoubleGrants, r.Causes = []checker.Property{checker.Liveness}, 0, nil })),
			},
		},
		{
			name: "the usual settings before others", fault: clock, state: Broken, by: "claim/usual", class: ByLock, broke: 1, n: 2,
			runs: Evidence{
				of("claim/usual", brokenRun("1", clock)), of("claim/usual", heldRun("2", clock)),
				of("claim/long-lease", changed(brokenRun("3", clock), func(r *Run) { r.Lease = time.Minute })),
			}, held: 1,
		},
		{
			name: "but worse before the usual settings", fault: clock, state: Broken, by: "claim/long-lease", class: ByLock, broke: 1, n: 1,
			runs: Evidence{
				of("claim/usual", expiredRun("1", clock)),
				of("claim/long-lease", changed(brokenRun("3", clock), func(r *Run) { r.Lease = time.Minute })),
			},
		},
		{name: "work that outlasts its lease at each turn", runs: Evidence{longWork()}, fault: "partition:holder", state: NotTried},
		{name: "is a fault of its own", runs: Evidence{longWork()}, fault: LongWork, state: Broken, class: ByExpiry, broke: 1, n: 1},
		{name: "cut off in short sections", runs: Evidence{cutOff("1", 20*time.Millisecond)}, fault: "partition:holder", state: TooShort},
		{name: "broken in short sections", runs: Evidence{expiredRun("1", "partition:holder")}, fault: "partition:holder", state: Broken, class: ByExpiry, broke: 1, n: 1},
		{name: "and in long ones", runs: Evidence{cutOff("1", 20*time.Millisecond), cutOff("2", 4*time.Second)}, fault: "partition:holder", state: Held, held: 1},
		{name: "behind a guard", runs: Evidence{withGuard("fence", heldRun("1", clock))}, fault: clock, guard: "fence", state: NotSupported},
		{name: "a guard is not none", runs: Evidence{withGuard("ask", heldRun("1", clock))}, fault: clock, state: NotTried},
		{name: "none is no guard", runs: Evidence{heldRun("1", clock)}, fault: clock, guard: "ask", state: NotTried},
		{
			name: "what the program around it does is no evidence of the lock", fault: clock, state: NotTried,
			runs: Evidence{
				changed(heldRun("1", clock), func(r *Run) { r.Lock += otherUse([]string{"renewed", "deadline checked before each write"}) }),
				changed(brokenRun("2", clock), func(r *Run) { r.Lock += otherUse([]string{"failed acquires ignored"}) }),
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			guard := "none"
			if c.guard != "" {
				guard = c.guard
			}
			if c.state == NotSupported { // redis has no tokens, so no run is needed
				c.runs = nil
			}
			cell := c.runs.Cell("redis", c.fault, guard)
			worst, _ := cell.Worst()
			if cell.State != c.state || worst.Experiment != c.by || worst.Class != c.class || worst.Broke != c.broke || worst.N != c.n || cell.Held != c.held || len(cell.Silent) != c.silent {
				t.Errorf("%s by %q, %s, %d of %d; %d held, %d silent", cell.State, worst.Experiment, worst.Class, worst.Broke, worst.N, cell.Held, len(cell.Silent))
			}
		})
	}
}

// clockRun is a run in which a clock step broke the lock, whatever other faults were in force.
func clockRun(id string, faults ...string) Run {
	return changed(brokenRun(id, faults...), func(r *Run) { r.Causes = map[string]int64{checker.CauseClock: 1} })
}

func withGuard(guard string, r Run) Run { r.Guard = guard; return r }

// cutOff is a run in which holders were cut off, with sections of at most the given length and a lease of 3
// s.
func cutOff(id string, section time.Duration) Run {
	return changed(heldRun(id, "partition:holder"), func(r *Run) { r.Lease, r.Section = 3*time.Second, section })
}

// longWork is a run in which holders were cut off, but would have lost their locks without that.
func longWork() Run {
	return changed(expiredRun("1", "partition:holder", LongWork), func(r *Run) {
		r.Causes = map[string]int64{checker.CauseCutOff: 27, checker.CauseOutlasted: 28}
	})
}

// passedOn is a run with a lease of 3 s in which the lock passed on after the given time.
func passedOn(after time.Duration, r Run) Run {
	r.Lease, r.Failover = 3*time.Second, &Failover{Holders: 1, Longest: after}
	return r
}

// TestBlamed: a violation counts against the faults that explain it. Other faults in force are named with it.
func TestBlamed(t *testing.T) {
	e := Evidence{clockRun("1", clock, "partition:one worker")}
	if cell := e.Cell("redis", "partition:one worker", "none"); cell.State == Broken {
		t.Errorf("the cut is blamed for the clock: %+v", cell)
	}
	narrow := Evidence{clockRun("1", clock, "partition:one worker"+partly)}
	if cell := narrow.Cell("redis", "partition:one worker", "none"); cell.State == Broken {
		t.Errorf("the cut from a part is blamed for the clock: %+v", cell)
	}
	worst, broken := e.Cell("redis", clock, "none").Worst()
	if !broken || !slices.Equal(worst.With, []string{"partition:one worker"}) {
		t.Errorf("%+v, %v", worst, broken)
	}
}

// TestNeeded: a fault that was in force in every breaking run may be needed. A fault that was not is not
// needed.
func TestNeeded(t *testing.T) {
	for _, c := range []struct {
		name string
		runs Evidence
		want []string
	}{
		{"nothing else", Evidence{clockRun("1", clock)}, nil},
		{"another fault", Evidence{clockRun("1", clock, "kill:holder")}, []string{"kill:holder"}},
		{"not each time", Evidence{clockRun("1", clock, "kill:holder"), clockRun("2", clock)}, nil},
		{"not by another experiment", Evidence{of("claim/x", clockRun("1", clock, "kill:holder")), clockRun("2", clock)}, nil},
		{"which is not as bad", Evidence{of("claim/x", clockRun("1", clock, "kill:holder")), expiredRun("2", clock)}, []string{"kill:holder"}},
		{"not where it held", Evidence{clockRun("1", clock, "kill:holder"), heldRun("2", clock)}, []string{"kill:holder"}},
		{"special cases of one", Evidence{clockRun("1", clock, "partition:one worker"+partly, "partition:one worker"+partly+briefly)}, []string{"partition:one worker" + partly}},
		{"the same clock", Evidence{clockRun("1", clock, clock+backwards)}, nil},
		{"never proven", Evidence{changed(clockRun("1", clock, "kill:holder"), func(r *Run) { r.Faults[1].Met = 0 })}, nil},
	} {
		worst, _ := c.runs.Cell("redis", clock, "none").Worst()
		if !slices.Equal(worst.Needed, c.want) {
			t.Errorf("%s: %q, want %q", c.name, worst.Needed, c.want)
		}
	}
}

// TestLessBadly: a cell counts only the runs that broke in the way that it reports.
func TestLessBadly(t *testing.T) {
	token := changed(brokenRun("1", clock), func(r *Run) {
		r.Violated, r.DoubleGrants, r.Causes = []checker.Property{checker.FencingOrder}, 0, nil
	})
	twice := changed(brokenRun("2", clock), func(r *Run) { r.Setup = []string{"renewed"} })
	cell := Evidence{token, twice, heldRun("3", clock)}.Cell("redis", clock, "none")
	worst, _ := cell.Worst()
	if worst.Class != ByLock || worst.Broke != 1 || worst.Less != 1 || worst.N != 3 || cell.Held != 1 {
		t.Errorf("%s in %d of %d, %d less badly; %d held", worst.Class, worst.Broke, worst.N, worst.Less, cell.Held)
	}
	if !slices.Equal(worst.Setup, twice.Setup) {
		t.Errorf("setup %q, want %q", worst.Setup, twice.Setup)
	}
}

// TestBounds: a few runs rule out little.
func TestBounds(t *testing.T) {
	var e Evidence
	for n, want := range map[int]float64{1: 0.975, 3: 0.708} {
		e = nil
		for i := range n {
			e = append(e, heldRun(string(rune('a'+i)), clock))
		}
		if got := e.Cell("redis", clock, "none").Bound; math.Abs(got-want) > 0.001 {
			t.Errorf("0 of %d: broken in up to %.3f, want %.3f", n, got, want)
		}
	}
}

// TestNotSupported: an unsupported cell says why no run is possible.
func TestNotSupported(t *testing.T) {
	for _, c := range []struct{ lock, fault, guard, want string }{
		{"redis", None, "fence", "has no fencing token"},
		{"redis", "pause:leader", "none", "none of these servers leads the others"},
		{"memory", clock, "none", "does not use the wall clock"},
		{"redis", clock, "none", ""},
		{"no-such-lock", clock, "none", ""},
	} {
		cell := Evidence(nil).Cell(c.lock, c.fault, c.guard)
		if (cell.State == NotSupported) != (c.want != "") || !strings.Contains(cell.Why, c.want) {
			t.Errorf("%s under %s behind %s: %s, %q", c.lock, c.fault, c.guard, cell.State, cell.Why)
		}
	}
}

// TestClass: what is inherent in a lease is not blamed on the lock, and nothing else is called inherent.
func TestClass(t *testing.T) {
	for _, c := range []struct {
		name string
		run  Run
		want Class
	}{
		{"granted twice", brokenRun("1"), ByLock},
		{"paused", expiredRun("1"), ByExpiry},
		{"both", changed(expiredRun("1"), func(r *Run) { r.Causes[checker.CauseClock] = 1 }), ByLock},
		{"no cause", changed(expiredRun("1"), func(r *Run) { r.Causes = nil }), ByLock},
		{"only stuck", Run{Verdict: checker.Violation, Violated: []checker.Property{checker.Liveness}}, Stuck},
		{"stuck as well", changed(expiredRun("1"), func(r *Run) { r.Violated = append(r.Violated, checker.Liveness) }), ByExpiry},
		{"wrong release", changed(expiredRun("1"), func(r *Run) { r.Violated = append(r.Violated, checker.NoWrongRelease) }), ByLock},
	} {
		if got := c.run.Class(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestClassOfTokens: a token that did not increase is not a double grant.
func TestClassOfTokens(t *testing.T) {
	for _, c := range []struct {
		name string
		run  Run
		want Class
	}{
		{"a token alone", Run{Violated: []checker.Property{checker.FencingOrder}}, ByToken},
		{"and stuck", Run{Violated: []checker.Property{checker.Liveness, checker.FencingOrder}}, ByToken},
		{"and a double grant", Run{Violated: []checker.Property{checker.FencingOrder, checker.MutualExclusion}, DoubleGrants: 1}, ByLock},
		{"stuck alone", Run{Violated: []checker.Property{checker.Liveness}}, Stuck},
	} {
		if got := c.run.Class(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestUnsupportedOfGuards: whether a lock supports a fault does not depend on the guard.
func TestUnsupportedOfGuards(t *testing.T) {
	for _, guard := range []string{"none", "cas", "match", "idempotency-key"} {
		if why := unsupported("none", "pause:one server", guard); why == "" {
			t.Errorf("guard %s: a lock without servers can have one that is paused", guard)
		}
		if why := unsupported("redis", "pause:one server", guard); why != "" {
			t.Errorf("guard %s: %s", guard, why)
		}
	}
}
