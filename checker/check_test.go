package checker

import (
	"slices"
	"strings"
	"testing"

	"lockcheck/history"
)

// turn is a hold with one update: acquire, read, write, release.
func turn(s *script, worker, grant string, at float64, element, version int64) *script {
	return s.acquire(worker, grant, at, at+1).read(grant, at+2, version-1).
		write(grant, at+3, element, version-1, version).release(grant, at+4, at+5)
}

// good is the smallest run that is valid.
func good() *script {
	s := newScript()
	turn(s, "w1", "a", 10, 1, 1)
	turn(s, "w2", "b", 20, 2, 2)
	return s.final("k0", "[1,2]").end()
}

func want(t *testing.T, r Results, p Property, v Verdict, total int) {
	t.Helper()
	if f := r.of(p); f.Verdict != v || f.Total != total {
		t.Errorf("%s is %s with %d, want %s with %d\n%s", p, f.Verdict, f.Total, v, total, r.dump())
	}
}

func TestGood(t *testing.T) {
	r := good().check(t)
	if r.Verdict != Valid {
		t.Errorf("not valid\n%s", r.dump())
	}
	if want := "No violation: 2 updates under the lock, none lost."; r.Sentence != want {
		t.Errorf("sentence %q, want %q", r.Sentence, want)
	}
	if r.Operations != (Operations{Acquired: 2, Released: 2, Acknowledged: 2}) {
		t.Errorf("%+v", r.Operations)
	}
	// Nobody shares the lock, so that nothing is said of repeatable reads.
	if len(r.Findings) != len(Properties())-1 || len(r.Holds) != 2 || r.Begin != ms(10) || r.End != ms(9001) {
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

// noBug checks that lockcheck did not find itself wrong.
func noBug(t testing.TB, r Results) {
	t.Helper()
	if strings.Contains(r.of(Assumptions).Summary, "bug in lockcheck") {
		t.Errorf("the checkers disagree\n%s", r.dump())
	}
}

// overlapped is a run with one overlap of 9 ms that loses nothing.
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
		name     string
		s        *script
		v        Verdict
		sentence string
	}{
		{"violation", overlapped(), Violation, "1 incident: two workers once held the lock at the same time."},
		{"tolerated", guard(overlapped()), Valid, "No violation: 1 overlap; 1 update under the lock, none lost."},
		{"required", guard(overlapped(), "mutual-exclusion"), Violation, "1 incident: two workers once held the lock at the same time."},
		{"refused", guard(overlapped().access(history.Write, history.Fail, "a", 125, 2, 0, 0)), Valid, "No violation: 1 overlap; the fence refused 1 stale access; 1 update under the lock, none lost."},
		{"asked", asking(overlapped().access(history.Write, history.Fail, "a", 125, 2, 0, 0)), Valid, "No violation: 1 overlap; the check with the service refused 1 stale access; 1 update under the lock, none lost."},
		{"asked in vain", asking(unanswered(overlapped())), Valid, "No violation: 1 overlap; the check with the service refused 1 access for want of an answer; 1 update under the lock, none lost."},
		{"asked, and in vain", asking(unanswered(overlapped().access(history.Read, history.Fail, "a", 125, 0, 0, 0))), Valid, "No violation: 1 overlap; the check with the service refused 1 stale access and 1 access for want of an answer; 1 update under the lock, none lost."},
		{"no lock, versions compared", optimistic(overlapped().access(history.Write, history.Fail, "a", 125, 2, 0, 0)), Valid, "No violation: the version check refused 1 stale access; 1 update without a lock, none lost."},
		{"no lock", optimistic(overlapped()).with(func(h *history.Header) { h.Guard = "none" }), Violation, "1 incident: two workers once held the lock at the same time."},
		{"violation before broken", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 30, 31).release("b", 40, 41).release("a", 50, 51), Violation, ""},
		{"a client before violation", failing(overlapped()), Broken, "Broken: w1: the client broke the protocol."},
		{"a client that began", named(good()), Valid, ""},
		{"broken before undecided", good().with(func(h *history.Header) { h.MinOps, h.Require = 5, []string{"x"} }), Broken, ""},
		{"undecided", good().with(func(h *history.Header) { h.Faults = []string{"pause"} }), Undecided, "Undecided: no pause was ever applied."},
		{"tokens required, none there", good().with(func(h *history.Header) { h.Require = []string{"fencing-order"} }), Undecided, "Undecided: fencing-order was required, but this lock has no tokens."},
		{"linearizability required", newScript().acquire("w1", "a", 10, 11).write("a", 12, 1, 0, 1).notHeld("a", 50, 51).acquire("w1", "c", 160, 161).release("c", 170, 171).final("k0", "[1]").end().with(func(h *history.Header) { h.Require = []string{"linearizability"} }), Violation, "No mutex can have given these answers for k0."},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.check(t)
			if r.Verdict != c.v || c.sentence != "" && r.Sentence != c.sentence {
				t.Errorf("%s", r.dump())
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

func TestText(t *testing.T) {
	for ns, want := range map[int64]string{
		1: "1 ns", 1500: "1.5 µs", 2_000_000: "2 ms", 1_204_000_000: "1.204 s", 90e9: "90 s", 900_000_000: "900 ms", 0: "0 ns",
	} {
		if got := dur(ns); got != want {
			t.Errorf("%d: %q, want %q", ns, got, want)
		}
	}
	if got := sentence("one", "two"); got != "One; two." {
		t.Error(got)
	}
}
