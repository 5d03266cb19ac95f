package checker

import (
	"testing"
	"time"

	"lockcheck/history"
)

// TestNoticed checks that what is judged only where it is required is counted, and near misses are not.
func TestNoticed(t *testing.T) {
	idle := func() *script { return newScript().acquire("w1", "a", 10, 11).release("a", 20, 21) }
	within := func(bound time.Duration, granted float64) *script {
		return idle().try("w2", "b", 15, granted, history.Event{Type: history.OK}).with(func(h *history.Header) { h.Handover = bound })
	}
	cutBetween := func(s *script, id, target string, from, to float64) *script {
		peer := map[string]string{"w2": "n1", "n1": "w2", "w1": "n1"}[target]
		return s.fault(history.Fault{ID: id, Kind: history.Partition, Targets: []string{target}, Peers: []string{peer}}, from, to)
	}
	waited := func(granted float64) *script {
		return idle().try("w2", "b", 15, granted, history.Event{Type: history.OK})
	}
	// The cut lasts for 7 ms, so it excuses the lock until 1.007 s after its end.
	cut := func(granted float64, target string) *script {
		return cutBetween(waited(granted), "f1", target, 19, 25)
	}
	for _, c := range []struct {
		name string
		s    *script
		want Noticed
	}{
		{"lost, and there", newScript().acquire("w1", "a", 10, 11).lost("a", 20, history.ByService).release("a", 30, 31), Noticed{UntrueLosses: 1, UntrueIdle: 11 * time.Millisecond}},
		{"lost when its lease may have run out", newScript().acquire("w1", "a", 10, 11).lost("a", 120, history.ByService).release("a", 130, 131), Noticed{}},
		{"lost, and the server was killed", newScript().acquire("w1", "a", 10, 11).lost("a", 20, history.ByService).release("a", 30, 31).fault(history.Fault{ID: "f1", Kind: history.Kill, Targets: []string{"n1"}}, 15, 18), Noticed{}},
		{"lost, and gone", newScript().acquire("w1", "a", 10, 11).lost("a", 20, history.ByService).notHeld("a", 30, 31), Noticed{}},
		{"lost, and another one's", newScript().acquire("w1", "a", 10, 11).lost("a", 20, history.ByService).acquire("w2", "b", 25, 26).release("a", 30, 31), Noticed{}},
		{"given up at its own deadline", newScript().acquire("w1", "a", 10, 11).lost("a", 20, history.ByDeadline).release("a", 30, 31), Noticed{}},
		{"released, and not free", idle().try("w2", "b", 15, 821, history.Event{Type: history.OK}), Noticed{IdleReleases: 1, Idle: 800 * time.Millisecond}},
		{"released, and not free within the bound", within(90*time.Millisecond, 121), Noticed{IdleReleases: 1, Idle: 100 * time.Millisecond}},
		{"released, and free within the bound", within(110*time.Millisecond, 121), Noticed{}},
		{"released, and wanted later", idle().try("w2", "b", 810, 821, history.Event{Type: history.OK}), Noticed{}},
		{"released once of twice", newScript().with(func(h *history.Header) { h.Reentrant = 2 }).acquire("w1", "a", 10, 11).acquire("w1", "b", 12, 13).
			release("b", 20, 21).release("a", 810, 811).try("w2", "c", 15, 821, history.Event{Type: history.OK}), Noticed{}},
		{"released while its waiter was cut off, and not free long after", cut(1700, "w2"), Noticed{IdleReleases: 1, Idle: 667 * time.Millisecond}},
		{"released while its waiter was cut off, and free when it could hear of that", cut(1500, "w2"), Noticed{}},
		{"released while its waiter was cut off, and free soon after", cut(300, "w2"), Noticed{}},
		{"released while its waiter was cut off for longer than a lease", cutBetween(waited(1200), "f1", "w2", 19, 150), Noticed{}},
		{"released after a second cut of its waiter", cutBetween(cutBetween(waited(2200), "f1", "w2", 12, 15), "f2", "w2", 980, 990), Noticed{}},
		{"released between cuts, and not free long after", cutBetween(cutBetween(waited(3700), "f1", "w2", 12, 15), "f2", "w2", 980, 990), Noticed{IdleReleases: 1, Idle: 730 * time.Millisecond}},
		{"released while the waiter of a user's client was cut off", cut(1700, "w2").then(func(s *script) *script {
			s.add(1, history.Event{Process: "w2", Type: history.Info, F: history.Client, Note: "theirs 1.0"})
			return s
		}), Noticed{}},
		{"released while the server was cut off", cut(1700, "n1"), Noticed{}},
		{"released while its waiter was cut off, and another waiter gave up", cut(1700, "w2").try("w3", "c", 16, 40, history.Event{Type: history.Fail}), Noticed{}},
		{"released, and the server stopped", idle().try("w2", "b", 15, 821, history.Event{Type: history.OK}).pause("f1", 16, 800, "n1"), Noticed{}},
	} {
		r := c.s.end().check(t)
		if r.Noticed != c.want {
			t.Errorf("%s: %+v, want %+v\n%s", c.name, r.Noticed, c.want, r.dump())
		}
		required := c.s.with(func(h *history.Header) { h.Require = []string{string(NoUntrueLoss), string(NoIdleLock)} }).check(t)
		for p, n := range map[Property]int64{NoUntrueLoss: c.want.UntrueLosses, NoIdleLock: c.want.IdleReleases} {
			if f := required.of(p); int64(f.Total) != n || (f.Verdict == Violation) != (n > 0) || r.of(p).Verdict != "" {
				t.Errorf("%s: %s is %s with %d, want %d, and nothing if it is not required\n%s", c.name, p, f.Verdict, f.Total, n, required.dump())
			}
		}
	}
}

// TestShut: if only one worker ever gets a lock, the run does not show whether it keeps others out.
func TestShut(t *testing.T) {
	one := func() *script {
		return newScript().acquire("w1", "a", 10, 11).busy("w2", "b", 15, 16, "").release("a", 20, 21).acquire("w1", "c", 30, 31).release("c", 40, 41)
	}
	for _, c := range []struct {
		name string
		s    *script
		want Verdict
	}{
		{"refused while it was held", one(), Valid},
		{"refused while it was free", one().busy("w2", "d", 24, 25, ""), Undecided},
		{"refused when it was taken again", one().busy("w2", "d", 24, 30.5, ""), Valid},
		{"refused while somebody may have held it", one().try("w3", "x", 22, 29, history.Event{Type: history.Info}).busy("w2", "d", 24, 25, ""), Valid},
		{"granted in the end", one().busy("w2", "d", 24, 25, "").acquire("w2", "e", 50, 51), Valid},
		{"in an election", one().busy("w2", "d", 24, 25, "").with(func(h *history.Header) { h.Workload = history.WorkloadElection }), Valid},
	} {
		if f := c.s.end().check(t).of(MutualExclusion); f.Verdict != c.want {
			t.Errorf("%s: %s, %s, want %s", c.name, f.Verdict, factsText(f.Facts), c.want)
		}
	}
}

// TestIgnoredNothing has workers that were told to go on after a failed acquire, and never had one.
func TestIgnoredNothing(t *testing.T) {
	s := func() *script {
		s := newScript().with(func(h *history.Header) { h.Parameters = map[string]string{IgnoreFailedAcquire: "true"} })
		return s.acquire("w1", "a", 10, 11).read("a", 12, 0).write("a", 13, 1, 0, 1).release("a", 20, 21).final("k0", "[1]")
	}
	failed := s().try("w2", "b", 30, 31, history.Event{Type: history.Fail, Error: "no quorum"}).write("b", 32, 2, 1, 2).final("k0", "[1,2]")
	for _, c := range []struct {
		s    *script
		want Verdict
	}{{s(), Undecided}, {failed, Valid}} {
		if f := c.s.end().check(t).of(Assumptions); f.Verdict != c.want {
			t.Errorf("%s: %s, want %s", f.Verdict, factsText(f.Facts), c.want)
		}
	}
}
