package checker

import (
	"slices"
	"testing"

	"lockcheck/history"
)

// oneUpdate is a hold with one update: acquire, read, write, release.
func oneUpdate(s *script, worker, grant string, at float64, element, version int64) *script {
	return s.acquire(worker, grant, at, at+1).read(grant, at+2, version-1).
		write(grant, at+3, element, version-1, version).release(grant, at+4, at+5)
}

// smallestValid is the smallest valid run.
func smallestValid() *script {
	s := newScript()
	oneUpdate(s, "w1", "a", 10, 1, 1)
	oneUpdate(s, "w2", "b", 20, 2, 2)
	return s.final("k0", "[1,2]").end()
}

func want(t *testing.T, r Results, p Property, v Verdict, total int) {
	t.Helper()
	if f := r.of(p); f.Verdict != v || f.Total != total {
		t.Errorf("%s is %s with %d, want %s with %d\n%s", p, f.Verdict, f.Total, v, total, r.dump())
	}
}

func TestGood(t *testing.T) {
	r := smallestValid().check(t)
	if r.Verdict != Valid {
		t.Errorf("not valid\n%s", r.dump())
	}
	if r.Operations != (Operations{Acquired: 2, Released: 2, Acknowledged: 2}) {
		t.Errorf("%+v", r.Operations)
	}
	if absent := []Property{RepeatableRead, NoWrongRenewal, NoUntrueLoss, NoIdleLock, PromptFailover}; len(r.Findings) != len(Properties())-len(absent) || slices.ContainsFunc(absent, func(p Property) bool { return r.of(p).Verdict != "" }) {
		t.Errorf("no worker shares or renews the lock, and nothing was required: want no finding of %v\n%s", absent, r.dump())
	}
	if len(r.Holds) != 2 || r.Begin != ms(10) || r.End != ms(9001) {
		t.Error(r.dump())
	}
}

func TestEmpty(t *testing.T) {
	for name, h := range map[string]*history.History{"nil": nil, "empty": {}} {
		t.Run(name, func(t *testing.T) {
			if r := Check(h, Options{}); r.Verdict != Broken {
				t.Error(r.dump())
			}
		})
	}
	r := newScript().end().check(t)
	if r.Verdict != Undecided {
		t.Error(r.dump())
	}
}

// noBug checks that lockcheck found no disagreement between its checkers.
func noBug(t testing.TB, r Results) {
	t.Helper()
	if r.bug() {
		t.Errorf("the checkers disagree\n%s", r.dump())
	}
}

// overlapped is a run with one overlap of 9 ms that loses no update.
func overlapped() *script {
	return newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121).
		write("b", 122, 1, 0, 1).release("b", 130, 131).notHeld("a", 150, 151).final("k0", "[1]").end()
}

func TestVerdict(t *testing.T) {
	guard := func(s *script, require ...string) *script {
		return s.with(func(h *history.Header) { h.Guard, h.Require = "fence", require })
	}
	asking := func(s *script) *script { return s.with(func(h *history.Header) { h.Guard = "ask" }) }
	optimistic := func(s *script) *script {
		return s.with(func(h *history.Header) { h.Lock, h.Guard = "none", "cas" })
	}
	unanswered := func(s *script) *script {
		s = s.access(history.Write, history.Fail, "a", 126, 2, 0, 0)
		s.events[len(s.events)-1].Note = "nobody answers"
		return s
	}
	failing := func(s *script) *script {
		s.add(9500, history.Event{Process: "w1", Type: history.Info, F: history.Client, Error: "the client broke the protocol"})
		return s
	}
	named := func(s *script) *script {
		s.add(9500, history.Event{Process: "w1", Type: history.Info, F: history.Client, Note: "redis-py 6.1.0"})
		return s
	}
	for _, c := range []struct {
		name  string
		s     *script
		v     Verdict
		fence FenceSummary
	}{
		{"violation", overlapped(), Violation, FenceSummary{}},
		{"tolerated", guard(overlapped()), Valid, FenceSummary{}},
		{"required", guard(overlapped(), "mutual-exclusion"), Violation, FenceSummary{}},
		{"refused", guard(overlapped().access(history.Write, history.Fail, "a", 125, 2, 0, 0)), Valid, FenceSummary{RefusedWrites: 1}},
		{"asked", asking(overlapped().access(history.Write, history.Fail, "a", 125, 2, 0, 0)), Valid, FenceSummary{RefusedWrites: 1}},
		{"asked in vain", asking(unanswered(overlapped())), Valid, FenceSummary{RefusedWrites: 1, Unanswered: 1}},
		{"asked, and in vain", asking(unanswered(overlapped().access(history.Read, history.Fail, "a", 125, 0, 0, 0))), Valid, FenceSummary{RefusedReads: 1, RefusedWrites: 1, Unanswered: 1}},
		{"no lock, versions compared", optimistic(overlapped().access(history.Write, history.Fail, "a", 125, 2, 0, 0)), Valid, FenceSummary{RefusedWrites: 1}},
		{"no lock", optimistic(overlapped()).with(func(h *history.Header) { h.Guard = "none" }), Violation, FenceSummary{}},
		{"violation before broken", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 30, 31).release("b", 40, 41).release("a", 50, 51), Violation, FenceSummary{}},
		{"a client before violation", failing(overlapped()), Broken, FenceSummary{}},
		{"a client that began", named(smallestValid()), Valid, FenceSummary{}},
		{"broken before undecided", smallestValid().with(func(h *history.Header) { h.MinOps, h.Require = 5, []string{"x"} }), Broken, FenceSummary{}},
		{"undecided", smallestValid().with(func(h *history.Header) { h.Faults = []string{"pause"} }), Undecided, FenceSummary{}},
		{"tokens required, none there", smallestValid().with(func(h *history.Header) { h.Require = []string{"fencing-order"} }), Undecided, FenceSummary{}},
		{"linearizability required", newScript().acquire("w1", "a", 10, 11).write("a", 12, 1, 0, 1).notHeld("a", 50, 51).acquire("w1", "c", 160, 161).release("c", 170, 171).final("k0", "[1]").end().with(func(h *history.Header) { h.Require = []string{"linearizability"} }), Violation, FenceSummary{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.check(t)
			tolerated := c.v == Valid && r.Overlaps.Total() > 0
			if r.Verdict != c.v || r.Fence != c.fence || r.of(MutualExclusion).Tolerated != tolerated {
				t.Errorf("%+v\n%s", r.Fence, r.dump())
			}
		})
	}
}

func TestRequired(t *testing.T) {
	base := []Property{NoStaleWrite, NoLostUpdate, Liveness, FaultEvidence, Assumptions}
	for _, c := range []struct {
		name string
		h    history.Header
		want []Property
	}{
		{"none", history.Header{Guard: "none"}, append([]Property{MutualExclusion, NoExpiredGrant, NoWrongRelease}, base...)},
		{"fence", history.Header{Guard: "fence"}, base},
		{"fence on writes", history.Header{Guard: "fence-writes"}, base},
		{"tokens", history.Header{Guard: "cas", Tokens: true}, []Property{NoStaleWrite, NoLostUpdate, FencingOrder, Liveness, FaultEvidence, Assumptions}},
		{"asked for", history.Header{Guard: "cas", Require: []string{"no-wrong-release"}}, append([]Property{NoWrongRelease}, base...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Required(c.h); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

func TestListedAtMost(t *testing.T) {
	s := newScript().acquire("w1", "a", 10, 11)
	for i := range int64(MaxListed + 5) {
		s.write("a", 12, i+1, i, i+1)
	}
	f := s.final("k0", "[]").check(t).of(NoLostUpdate)
	if f.Total != MaxListed+5 || len(f.Violations) != MaxListed {
		t.Errorf("%d of %d listed", len(f.Violations), f.Total)
	}
}
