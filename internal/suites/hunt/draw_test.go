package hunt

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clusters/clustertest"
	"lockcheck/history"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites/trials"
	"lockcheck/nemesis"
)

func TestMain(m *testing.M) { os.Exit(clustertest.Main(m)) }

func ready(t *testing.T, lock string) Plan {
	t.Helper()
	p, err := Plan{Lock: lock, Blind: DefaultBlind, Seed: 1}.Ready()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestReady(t *testing.T) {
	for _, c := range []struct {
		name string
		plan Plan
		ok   bool
	}{
		{"embedded", Plan{Lock: "memory"}, true},
		{"no lease", Plan{Lock: "file"}, true},
		{"servers", Plan{Lock: "redlock", Blind: 1}, true},
		{"misspelt", Plan{Lock: "memroy"}, false},
		{"no share", Plan{Lock: "memory", Blind: 1.1}, false},
		{"no version", Plan{Lock: "redis", Version: "0.1"}, false},
		{"fewer servers", Plan{Lock: "redlock", Nodes: 3}, true},
		{"no such number of servers", Plan{Lock: "redlock", Nodes: 4}, false},
		{"a lease", Plan{Lock: "memory", TTL: 2 * time.Second}, true},
		{"a lease of a lock without one", Plan{Lock: "file", TTL: 2 * time.Second}, false},
		{"no lease at all", Plan{Lock: "memory", TTL: -1}, false},
	} {
		if _, err := c.plan.Ready(); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestFixed: every trial has the number of servers that the hunt was given. Every trial has the hunt's lease,
// except those with the long lease.
func TestFixed(t *testing.T) {
	const lease = 700 * time.Millisecond
	p, err := Plan{Lock: "redlock", Nodes: 3, TTL: lease}.Ready()
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		trial := p.space.draw(rng)
		o, err := p.options(trial)
		if err != nil || o.Nodes != 3 || !trial.Long && o.TTL != lease {
			t.Fatalf("%s: %d servers, lease %s, %v; want 3 and %s", trial, o.Nodes, o.TTL, err, lease)
		}
	}
}

// TestDraw: drawn trials and changes of them are supported, and both vary in everything that can vary.
func TestDraw(t *testing.T) {
	for _, lock := range []string{"memory", "none", "redlock", "etcd-v3lock"} {
		p := ready(t, lock)
		rng := rand.New(rand.NewPCG(1, 2))
		steps := make(map[int]bool)
		draws := 200
		if testing.Short() {
			draws = 30
		}
		for range draws {
			trial := p.space.draw(rng)
			steps[len(trial.Steps)] = true
			changed := p.space.change(rng, trial)
			for _, each := range []Trial{trial, changed} {
				if _, err := p.outline(each); err != nil {
					t.Fatalf("%s: %s: %v", lock, each, err)
				}
			}
			if changed.key() == trial.key() {
				t.Fatalf("%s: nothing is changed of %s", lock, trial)
			}
		}
		if len(steps) < maxSteps || steps[maxSteps+1] {
			t.Errorf("%s: trials have %v steps", lock, steps)
		}
	}
}

// TestClockSteps: clocks move far enough to prove the step, even with the shortest lease.
func TestClockSteps(t *testing.T) {
	for _, fault := range []string{history.Clock, history.ClockStrobe} {
		for _, leases := range clocksOf(fault) {
			trial := Trial{Steps: []Step{{Fault: fault, Target: "one", Clock: leases, Length: 1}}}
			step := trial.schedule(time.Second).Steps[0].Step.Of(300 * time.Millisecond)
			if step.Abs() < nemesis.SmallestClockStep || (step < 0) != (leases < 0) {
				t.Errorf("%s by %v leases moves it by %s", fault, leases, step)
			}
		}
	}
}

// TestSameSeed: the same seed draws the same trial.
func TestSameSeed(t *testing.T) {
	p := ready(t, "memory")
	draw := func(seed uint64) string { return p.space.draw(rand.New(rand.NewPCG(seed, 0))).key() }
	if first, again := draw(1), draw(1); first != again || first == draw(2) {
		t.Error("draws do not follow from their seed")
	}
}

// TestUnsupported: a fault that a lock does not support is left out, with the reason.
func TestUnsupported(t *testing.T) {
	p := ready(t, "memory")
	if len(p.space.aims["pause"]) == 0 || len(p.space.aims["partition"]) > 0 || len(p.space.unsupported) == 0 {
		t.Errorf("aims %v, not supported %v", p.space.aims, p.space.unsupported)
	}
}

// TestSinglesBeyond: a lock that is renewed, by its user or its client, is also held for longer than a lease.
func TestSinglesBeyond(t *testing.T) {
	for lock, want := range map[string]bool{"memory": true, "etcd-v3lock": true, "consul": true, "redis-noexpiry": false} {
		p := ready(t, lock)
		longer := slices.ContainsFunc(newGuide(p).first, func(t Trial) bool { return t.Section > 1 && !t.Long })
		if longer != want {
			t.Errorf("%s is held for longer than a lease: %v", lock, longer)
		}
	}
}

// TestLockDelay: hunting a lock with a lock delay after the loss of its holder does not take minutes per
// trial.
func TestLockDelay(t *testing.T) {
	for _, c := range []struct {
		lock string
		long bool
		want time.Duration // until the lock of a silent holder is free
	}{
		{"consul", false, 3 * time.Second}, {"consul", true, 11 * time.Second}, {"etcd", true, 10 * time.Second}, {"etcd", false, 2 * time.Second},
	} {
		p := ready(t, c.lock)
		trial := Trial{Use: trials.Use{Workers: 2, Section: 1, Long: c.long}}
		outline, err := p.outline(trial)
		if err != nil || outline.Effective != c.want || p.sketch(trial).Section.Max != c.want {
			t.Errorf("%s, long %v: free after %s with sections of %s, want %s: %v", c.lock, c.long, outline.Effective, p.sketch(trial).Section, c.want, err)
		}
	}
}

// TestSingles: each fault is tried alone on each role, and all kinds of faults are tried early. Within a
// kind, users of the lock and the leader come first.
func TestSingles(t *testing.T) {
	for lock, want := range map[string]map[aim]int{
		"redlock":   {{fault: "pause", target: "holder"}: 2, {fault: "pause", target: "one"}: 3, {fault: "clock", target: "one"}: 2},
		"zookeeper": {{fault: "pause", target: "holder"}: 3, {fault: "pause", target: "leader"}: 4, {"partition", "leader", "servers"}: 4},
	} {
		p := ready(t, lock)
		kinds, aims, turns := make(map[string]bool), make(map[aim]int), make(map[string]int)
		for i, trial := range p.space.singles(rand.New(rand.NewPCG(1, 1))) {
			if _, err := p.outline(trial); err != nil || len(trial.Steps) != 1 {
				t.Fatalf("%s: %s: %v", lock, trial, err)
			}
			step := trial.Steps[0]
			aims[step.aim()]++
			if i < len(p.space.kinds) {
				kinds[step.Fault] = true
			}
			if p.space.priority(step.aim()) < turns[step.Fault] {
				t.Errorf("%s: %s comes late", lock, trial)
			}
			turns[step.Fault] = p.space.priority(step.aim())
		}
		if len(kinds) != len(p.space.kinds) {
			t.Errorf("%s: the first %d trials have the kinds %v", lock, len(p.space.kinds), kinds)
		}
		for a, n := range want {
			if aims[a] != n {
				t.Errorf("%s: %v is tried %d times, want %d", lock, a, aims[a], n)
			}
		}
		for _, kind := range p.space.kinds {
			for _, a := range p.space.aims[kind] {
				if (aims[a] == 0) != (a.target == actor) {
					t.Errorf("%s: %v is tried %d times", lock, a, aims[a])
				}
			}
		}
	}
}

// TestInOrder: late answers, and grants of a leader that is cut off, are tried early and can run if a lease
// is long enough for them.
func TestInOrder(t *testing.T) {
	for lock, want := range map[string]int{"memory": 4, "redis": 4, "redis-failover": 5, "etcd-v3lock": 5, "none": 0} {
		p := ready(t, lock)
		ordered := 0
		for _, trial := range newGuide(p).first[:min(len(p.space.kinds)+7, len(newGuide(p).first))] {
			if len(trial.Steps) == 0 || len(trial.Steps) == 1 && trial.Steps[0].When != nemesis.WhenReleasing {
				continue
			}
			ordered++
			if _, err := p.outline(trial); err != nil {
				t.Errorf("%s: %s: %v", lock, trial, err)
			}
		}
		if ordered != want {
			t.Errorf("%s: %d trials that depend on an order, want %d", lock, ordered, want)
		}
	}
}

// TestTurn: the processes that the lock depends on come before others. Cutting one off from everybody comes
// before cutting it off from some.
func TestTurn(t *testing.T) {
	for _, c := range []struct {
		lock string
		aim  aim
		want int
	}{
		{"zookeeper", aim{target: "holder"}, 0}, {"zookeeper", aim{target: "leader"}, 0}, {"zookeeper", aim{target: "leader", from: "servers"}, 1},
		{"zookeeper", aim{target: "minority"}, 2}, {"zookeeper", aim{target: "one", from: "servers"}, 2},
		{"redlock", aim{target: "minority"}, 0}, {"redlock", aim{target: "one"}, 2},
		{"redis", aim{target: "one"}, 0}, {"redis", aim{target: "waiter"}, 0},
	} {
		if got := ready(t, c.lock).space.priority(c.aim); got != c.want {
			t.Errorf("%s, %v: %d, want %d", c.lock, c.aim, got, c.want)
		}
	}
}

// TestSinglesRenewed: faults of servers are tried with long leases, both renewed and not renewed.
func TestSinglesRenewed(t *testing.T) {
	renewed := make(map[bool]int)
	for _, trial := range newGuide(ready(t, "redlock")).first {
		if trial.Long && trial.Section > shortest {
			renewed[trial.Renew]++
		}
	}
	if renewed[true] < 5 || renewed[false] < 5 {
		t.Errorf("%d are renewed, %d are not", renewed[true], renewed[false])
	}
}

// TestSinglesInTurn: the same seed gives the same order, and a trial is not made twice.
func TestSinglesInTurn(t *testing.T) {
	p := ready(t, "redlock")
	singles := newGuide(p).first
	g := newGuide(p)
	g.learn(singles[0], nil, 0, true)
	if next := g.next(rand.New(rand.NewPCG(1, 2))); next.key() != singles[1].key() {
		t.Errorf("next is %s, want %s", next, singles[1])
	}
}

// TestCovering: the first trials cover all pairs of values that a step can have.
func TestCovering(t *testing.T) {
	p := ready(t, "redlock")
	g := newGuide(p)
	rng := rand.New(rand.NewPCG(1, 2))
	blind := make(map[string]bool)
	trials := 0
	for ; g.stale < enoughPairs; trials++ {
		g.cover(rng)
		for _, pair := range p.space.draw(rng).pairs() {
			blind[pair] = true
		}
	}
	t.Logf("%d pairs in %d trials; drawn blindly: %d", len(g.pairs), trials, len(blind))
	if len(g.pairs) <= len(blind) {
		t.Errorf("%d pairs are covered, and %d by chance alone", len(g.pairs), len(blind))
	}
}

// TestRungs: the better half of each rung goes on to the next.
func TestRungs(t *testing.T) {
	p := ready(t, "memory")
	g := newGuide(p)
	g.first, g.stale = nil, enoughPairs
	rng := rand.New(rand.NewPCG(1, 2))
	for _, want := range []int{8, 4, 2, 1, 0, 8} {
		for i := range generation {
			g.learn(g.next(rng), nil, float64(i)/generation, true)
		}
		if len(g.pool) != want {
			t.Fatalf("%d go on, want %d", len(g.pool), want)
		}
		for _, s := range g.pool {
			if s.score < 0.5 {
				t.Errorf("one of the worse half goes on: %v", s.score)
			}
		}
	}
}

// TestFirstRung: the first trials to be changed are the best of all trials made before.
func TestFirstRung(t *testing.T) {
	g := newGuide(ready(t, "redlock"))
	rng := rand.New(rand.NewPCG(1, 2))
	first := len(g.first) + generation
	for made := 0; len(g.pool) == 0; made++ {
		if made > first+enoughPairs+2*generation {
			t.Fatal("nothing is ever changed")
		}
		near := 0.0
		if made < generation/2 {
			near = 1
		}
		g.learn(g.next(rng), nil, near, true)
		if len(g.pool) > 0 && made < first {
			t.Fatalf("trials are changed after %d", made)
		}
	}
	for _, s := range g.pool {
		if s.score < 1 {
			t.Errorf("not one of the best: %v", s.score)
		}
	}
}

// TestBlindShare: the share of blind trials is as requested at any time.
func TestBlindShare(t *testing.T) {
	for _, share := range []float64{0, 0.25, 1} {
		p := ready(t, "memory")
		p.Blind = share
		s := &search{folder: newFolder("", p, nil), machine: Machine{Parallel: 20, Progress: runs.Silent{}}}
		blind := 0
		for _, next := range s.next() {
			if next.Blind {
				blind++
			}
		}
		if blind != int(40*share) {
			t.Errorf("%d of 40 are blind, want a share of %v", blind, share)
		}
	}
}

// TestMadeAgain: a first trial that failed, or whose fault was not exercised, is made once more.
func TestMadeAgain(t *testing.T) {
	for _, c := range []struct {
		name    string
		attempt attempt
		unmade  int // by how much the number of first trials still to be made has fallen
	}{
		{"it told something", attempt{Proven: true}, 1},
		{"its fault met nobody", attempt{}, 0},
		{"it failed", attempt{Failed: "no servers"}, 0},
		{"it was made again", attempt{Number: 1}, 1},
	} {
		f := newFolder("", ready(t, "memory"), nil)
		singles := len(f.guide.first)
		c.attempt.Trial = f.guide.first[len(withoutFaults())]
		for range c.attempt.Number {
			f.apply(entry{Tried: &c.attempt})
		}
		f.apply(entry{Tried: &c.attempt})
		if got := singles - len(f.guide.first); got != c.unmade {
			t.Errorf("%s: %d first trials fewer, want %d", c.name, got, c.unmade)
		}
	}
}

// TestGuideGoesOn: a resumed hunt chooses trials as if it had not been interrupted. It also repeats a first
// trial that showed nothing.
func TestGuideGoesOn(t *testing.T) {
	p := ready(t, "memory")
	one, again := newGuide(p), newGuide(p)
	rng := rand.New(rand.NewPCG(1, 2))
	singles := len(one.first)
	for i := range singles + 2*generation + 7 {
		trial := one.next(rng)
		if i == 0 {
			one.retry(trial)
			again.retry(trial)
			continue
		}
		near := float64(i%5) / 5
		one.learn(trial, nil, near, true)
		again.learn(trial, nil, near, true)
	}
	if len(one.first) > 0 || one.made != 2*generation+6 {
		t.Errorf("%d first trials are left, and %d others were made", len(one.first), one.made)
	}
	if again.made != one.made || again.stale != one.stale || again.asked != one.asked || len(again.pool) != len(one.pool) || len(again.pairs) != len(one.pairs) {
		t.Errorf("made %d and %d, covering %d and %d, asked %d and %d, pool of %d and %d, pairs %d and %d", again.made, one.made,
			again.stale, one.stale, again.asked, one.asked, len(again.pool), len(one.pool), len(again.pairs), len(one.pairs))
	}
}

// TestWait: an attempt that a fault hits continues after the fault, unless attempts are to be brief.
func TestWait(t *testing.T) {
	paused := Trial{Use: trials.Use{Workers: 3, Section: 1.6}, Steps: []Step{{Fault: history.Pause, Target: "waiter", When: nemesis.WhenHolding, Length: 2.5}}}
	brief, long := paused, paused
	brief.Brief, long.Long = true, true
	for _, c := range []struct {
		name, lock string
		trial      Trial
		fits       func(wait, lease time.Duration) bool
	}{
		{"beyond the fault", "etcd-v3lock", paused, func(wait, lease time.Duration) bool { return wait > 4*lease }},
		{"beyond the fault of a long lease", "etcd-v3lock", long, func(wait, lease time.Duration) bool { return wait > 4*lease }},
		{"brief", "etcd-v3lock", brief, func(wait, lease time.Duration) bool { return 0 < wait && wait < lease }},
		{"refused at once", "redis", paused, func(wait, _ time.Duration) bool { return wait == 0 }},
		{"that nothing ends", "zookeeper-lib", paused, func(wait, _ time.Duration) bool { return wait == 0 }},
	} {
		o, err := ready(t, c.lock).options(c.trial)
		if err != nil {
			t.Fatal(err)
		}
		if !c.fits(o.Wait, o.TTL) {
			t.Errorf("%s: lock %s with a lease of %s waits for %s", c.name, c.lock, o.TTL, o.Wait)
		}
	}
}

// TestAsFarAs keeps the steps of a trial that began and may have been exercised.
func TestAsFarAs(t *testing.T) {
	trial := Trial{Use: trials.Use{Workers: 3, Section: 0.6}, Steps: []Step{
		{Fault: history.Kill, Target: "one", When: nemesis.WhenHolding, Length: 1.3},
		{Fault: history.Pause, Target: "waiter", When: nemesis.WhenHolding, Length: 1.3},
	}}.normal()
	steps := trial.schedule(0).Steps
	fault := func(i int, applied, proven, exercised bool) checker.FaultCoverage {
		return checker.FaultCoverage{ID: steps[i].ID, Applied: applied, Proven: proven, Exercised: exercised}
	}
	for _, c := range []struct {
		name   string
		faults []checker.FaultCoverage
		want   []string // the faults of the steps that are left
	}{
		{"none began", nil, nil},
		{"both met", []checker.FaultCoverage{fault(0, true, true, true), fault(1, true, true, true)}, []string{history.Kill, history.Pause}},
		{"one had not begun", []checker.FaultCoverage{fault(0, true, true, true), fault(1, false, false, false)}, []string{history.Kill}},
		{"one met nobody", []checker.FaultCoverage{fault(0, true, true, true), fault(1, true, true, false)}, []string{history.Kill}},
		{"one may have met", []checker.FaultCoverage{fault(0, true, true, true), fault(1, true, false, false)}, []string{history.Kill, history.Pause}},
		{"neither met", []checker.FaultCoverage{fault(0, true, true, false), fault(1, true, true, false)}, []string{history.Kill, history.Pause}},
	} {
		var got []string
		for _, step := range trial.asFarAs(c.faults).Steps {
			got = append(got, step.Fault)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
