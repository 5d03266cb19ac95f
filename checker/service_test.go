package checker

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"lockcheck/history"
)

func TestFencing(t *testing.T) {
	tokens := func(s *script) *script { return s.with(func(h *history.Header) { h.Tokens = true }) }
	pair := func(a, b uint64) *script {
		return tokens(newScript().acquireToken("w1", "a", 10, 11, a).release("a", 20, 21).acquireToken("w2", "b", 30, 31, b).release("b", 40, 41))
	}
	// Three workers wait in a queue. Each is granted the lock when the previous one has released it.
	queue := func(a, b, c uint64) *script {
		return tokens(newScript().acquireToken("w1", "a", 1, 10, a).release("a", 20, 21).
			acquireToken("w2", "b", 1, 22, b).release("b", 30, 31).acquireToken("w3", "c", 2, 32, c).release("c", 40, 41))
	}
	again := func(first uint64, more func(*script)) *script {
		s := tokens(newScript().acquireToken("w1", "a", 10, 11, first).do(history.Release, "a", 20, 21, history.Event{Type: history.Info}).acquireToken("w1", "b", 30, 31, 1))
		if more != nil {
			more(s)
		}
		return s
	}
	reentrant := func(s *script) *script { return s.with(func(h *history.Header) { h.Reentrant = 2 }) }
	nested := func(inner, next uint64) *script {
		return reentrant(tokens(newScript().acquireToken("w1", "a", 10, 11, 5).acquireToken("w1", "b", 12, 13, inner).
			release("b", 14, 15).release("a", 20, 21).acquireToken("w2", "c", 30, 31, next).release("c", 40, 41)))
	}
	// The worker gets the token of a hold that it released. It also asks at another time, and gets no answer.
	stale := func(more float64) *script {
		return reentrant(tokens(newScript().acquireToken("w1", "a", 10, 11, 5).release("a", 14, 15).acquireToken("w1", "b", 20, 30, 5).
			try("w1", "c", more, more+4, history.Event{Type: history.Info}).release("c", 41, 42).release("b", 50, 51)))
	}
	semaphore := func(s *script) *script { return s.with(func(h *history.Header) { h.Permits = 2 }) }
	for _, c := range []struct {
		name string
		s    *script
		v    Verdict
		n    int
		lin  Verdict
	}{
		{"reentrant, increasing", nested(5, 6), Valid, 0, Valid},
		{"reentrant, decreasing", nested(5, 4), Violation, 1, Violation},
		{"reentrant, equal to another worker's", nested(5, 5), Violation, 1, Violation},
		{"reentrant, lower when nested", nested(4, 6), Violation, 1, Violation},
		{"reentrant, refused to release the inner hold, and the outer one unanswered", reentrant(tokens(newScript().acquireToken("w1", "a", 10, 11, 5).acquireToken("w1", "b", 12, 13, 5).
			notHeld("b", 20, 21).do(history.Release, "a", 22, 40, history.Event{Type: history.Info}))), Valid, 0, Violation},
		{"reentrant, refused to release the hold after an unanswered release", reentrant(tokens(newScript().acquireToken("w1", "a", 10, 11, 5).do(history.Release, "a", 12, 20, history.Event{Type: history.Info}).
			acquireToken("w1", "b", 21, 22, 5).notHeld("b", 30, 31))), Valid, 0, Valid},
		{"reentrant, equal after a release, and asked for once more at once", stale(30), Valid, 0, Violation},
		{"reentrant, perhaps equal to that of a hold without an answer", stale(15.5), Valid, 0, Valid},
		{"semaphore, decreasing", semaphore(pair(2, 1)), NotApplicable, 0, Valid},
		{"queue", queue(1, 2, 3), Valid, 0, Valid},
		// Either the tokens are wrong, or they are right and the lock was granted twice.
		{"queue, swapped", queue(1, 3, 2), Undecided, 0, Violation},
		{"queue, the first one last", queue(3, 1, 2), Undecided, 0, Violation},
		{"queue, swapped, end unknown", tokens(newScript().acquireToken("w1", "a", 1, 10, 2).release("a", 20, 21).acquireToken("w2", "b", 1, 22, 1)), Undecided, 0, Violation},
		{"queue, swapped, gone at its release", tokens(newScript().acquireToken("w1", "a", 1, 10, 2).release("a", 20, 21).acquireToken("w2", "b", 1, 22, 1).notHeld("b", 24, 25)), Valid, 0, Violation},
		{"queue, swapped, a clock was moved", tokens(newScript().acquireToken("w1", "a", 1, 10, 2).release("a", 20, 21).acquireToken("w2", "b", 1, 22, 1)).fault(history.Fault{ID: "f1", Kind: "clock", Targets: []string{"n1"}, Step: 9e7}, 5, 30), Valid, 0, Violation},
		{"queue, swapped, somebody's release after its lease", tokens(newScript().acquireToken("w3", "x", 1, 2, 1).acquireToken("w1", "a", 101, 110, 3).release("x", 112, 113).release("a", 120, 121).acquireToken("w2", "b", 101, 122, 2)), Valid, 0, Violation},
		{"increasing", pair(1, 2), Valid, 0, Valid},
		{"with a gap", pair(1, 20), Valid, 0, Valid},
		{"equal", pair(1, 1), Violation, 1, Violation},
		{"decreasing", pair(2, 1), Violation, 1, Violation},
		{"first unknown", pair(0, 1), Undecided, 0, Valid},
		{"second unknown", pair(1, 0), Undecided, 0, Valid},
		{"unknown, of a expired grant", tokens(newScript().acquireToken("w1", "a", 10, 11, 1).release("a", 20, 21).try("w2", "b", 30, 31, history.Event{Type: history.OK, Expired: true}).release("b", 40, 41)), Valid, 0, Valid},
		{"unknown, among decreasing ones", tokens(pair(2, 1).acquireToken("w3", "c", 50, 51, 0)), Violation, 1, Violation},
		{"none known", pair(0, 0), Undecided, 0, Valid},
		{"equal and concurrent", tokens(newScript().acquireToken("w1", "a", 10, 31, 1).release("a", 40, 41).acquireToken("w2", "b", 30, 32, 1).release("b", 32, 33)), Violation, 1, Violation},
		{"decreasing but concurrent", tokens(newScript().acquireToken("w1", "a", 10, 31, 2).release("a", 40, 41).acquireToken("w2", "b", 20, 22, 1).release("b", 25, 27)), Valid, 0, Valid},
		// A worker whose release was lost has its record still, and is given the same grant again.
		{"equal, given again", again(1, nil), Valid, 0, Valid},
		{"equal, given again twice", again(1, func(s *script) {
			s.do(history.Release, "b", 40, 41, history.Event{Type: history.Info}).acquireToken("w1", "c", 50, 51, 1)
		}), Valid, 0, Valid},
		{"equal after a release", tokens(newScript().acquireToken("w1", "a", 10, 11, 1).release("a", 20, 21).acquireToken("w1", "b", 30, 31, 1)), Violation, 1, Violation},
		{"equal after the grant was gone", tokens(newScript().acquireToken("w1", "a", 10, 11, 1).notHeld("a", 20, 21).acquireToken("w1", "b", 30, 31, 1)), Violation, 1, Violation},
		{"equal after a refused renewal", tokens(newScript().acquireToken("w1", "a", 10, 11, 1).do(history.Renew, "a", 14, 15, history.Event{Type: history.Fail}).
			do(history.Release, "a", 20, 21, history.Event{Type: history.Info}).acquireToken("w1", "b", 30, 31, 1)), Violation, 1, Violation},
		{"equal after the lock was busy", tokens(newScript().acquireToken("w1", "a", 10, 11, 1).do(history.Release, "a", 20, 21, history.Event{Type: history.Info}).
			try("w1", "x", 22, 23, history.Event{Type: history.Fail, Error: history.Busy}).acquireToken("w1", "b", 30, 31, 1)), Violation, 1, Violation},
		{"lower than before a lost release", again(2, nil), Violation, 1, Violation},
		{"equal, after another worker's", tokens(newScript().acquireToken("w1", "a", 10, 11, 1).do(history.Release, "a", 20, 21, history.Event{Type: history.Info}).
			acquireToken("w2", "x", 22, 23, 2).release("x", 24, 25).acquireToken("w1", "b", 30, 31, 1)), Violation, 1, Violation},
		{"no tokens", newScript().acquireToken("w1", "a", 10, 11, 0), NotApplicable, 0, Valid},
		{"two keys", tokens(newScript().acquireToken("w1", "a", 10, 11, 5).try("w2", "b", 20, 21, history.Event{Type: history.OK, Token: 5}, "k1")), Valid, 0, Valid},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.end().check(t)
			want(t, r, FencingOrder, c.v, c.n)
			noBug(t, r)
			if got := r.of(Linearizability).Verdict; got != c.lin {
				t.Errorf("linearizability %s\n%s", got, r.dump())
			}
		})
	}
}

// TestRepeatedRelease: a refused release may have freed the lock if the client is a user's and a fault can
// have lost the answer to its first request. Each row has a counterpart that differs in one detail.
func TestRepeatedRelease(t *testing.T) {
	cut := func(from, to float64, target, peer string) func(*script) *script {
		return func(s *script) *script {
			return s.fault(history.Fault{ID: "f", Kind: history.Partition, Targets: []string{target}, Peers: []string{peer}}, from, to)
		}
	}
	of := func(kind, target string) func(*script) *script {
		return func(s *script) *script {
			return s.fault(history.Fault{ID: "f", Kind: kind, Targets: []string{target}}, 15, 40)
		}
	}
	for _, c := range []struct {
		name    string
		fault   func(*script) *script
		granted float64 // when the other worker is granted the lock
		own     bool    // the client is lockcheck's
		want    Verdict
	}{
		{"cut off", cut(15, 40, "w1", "n1"), 30, false, Valid},
		{"cut off, with a client of lockcheck's", cut(15, 40, "w1", "n1"), 30, true, Violation},
		{"cut off, granted before the release", cut(15, 40, "w1", "n1"), 17, false, Violation},
		{"cut off before the release", cut(12, 17, "w1", "n1"), 30, false, Violation},
		{"cut off after the answer", cut(70, 80, "w1", "n1"), 30, false, Violation},
		{"cut off by its server", cut(15, 40, "n1", "w1"), 30, false, Valid},
		{"another worker cut off", cut(15, 40, "w3", "n1"), 30, false, Violation},
		{"another worker cut off by its server", cut(15, 40, "n1", "w3"), 30, false, Violation},
		{"servers cut off from each other", cut(15, 40, "n1", "n2"), 30, false, Valid},
		{"paused", of(history.Pause, "w1"), 30, false, Valid},
		{"another worker paused", of(history.Pause, "w3"), 30, false, Violation},
		{"a server paused", of(history.Pause, "n1"), 30, false, Valid},
		{"a server killed", of(history.Kill, "n1"), 30, false, Valid},
		{"packets lost", of(history.PacketLoss, "w1"), 30, false, Valid},
		{"a clock moved", of(history.Clock, "n1"), 30, false, Violation},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScript().servers("n1", "n2")
			if !c.own {
				s.add(1, history.Event{Process: "w1", Type: history.Info, F: history.Client, Note: "theirs 1.0"})
			}
			s = c.fault(s.acquire("w1", "a", 10, 11).acquire("w2", "b", c.granted, c.granted+1).notHeld("a", 20, 60))
			r := s.end().check(t)
			if f := r.of(Linearizability); f.Verdict != c.want {
				t.Errorf("%s, want %s\n%s", f.Verdict, c.want, r.dump())
			}
			noBug(t, r)
		})
	}
}

func TestLinearizable(t *testing.T) {
	info := history.Event{Type: history.Info}
	noLease := func(s *script) *script { return s.with(func(h *history.Header) { h.Lease = 0 }) }
	for _, c := range []struct {
		name string
		s    *script
		v    Verdict
	}{
		{"in turn", newScript().acquire("w1", "a", 10, 11).release("a", 20, 21).acquire("w2", "b", 30, 31), Valid},
		{"granted twice", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 30, 31).release("a", 40, 41).release("b", 50, 51), Violation},
		{"granted twice, never released", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 30, 31), Violation},
		{"after the lease", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121), Valid},
		{"a little early: clocks", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 100, 109), Valid},
		{"after the lease, but released", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121).release("a", 130, 131), Violation},
		{"after a renewed lease began", newScript().acquire("w1", "a", 10, 11).renew("a", 100, 101).acquire("w2", "b", 120, 121), Violation},
		{"after a lost release", newScript().acquire("w1", "a", 10, 11).do(history.Release, "a", 20, 50, info).acquire("w2", "b", 30, 31), Valid},
		{"before a lost release", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 15, 16).do(history.Release, "a", 20, 50, info), Violation},
		{"busy, holder right", newScript().acquire("w1", "a", 10, 11).busy("w2", "b", 20, 21, "a").release("a", 30, 31), Valid},
		{"busy, holder gone", newScript().acquire("w1", "a", 10, 11).release("a", 15, 16).busy("w2", "b", 20, 21, "a"), Violation},
		{"busy, holder not yet there", newScript().busy("w2", "b", 5, 6, "a").acquire("w1", "a", 10, 11), Violation},
		{"busy, holder unknown", newScript().busy("w2", "b", 5, 6, ""), Undecided},
		{"busy, holder a stranger", newScript().acquire("w1", "a", 10, 11).busy("w2", "b", 20, 21, "zzz"), Valid},
		{"busy because of itself", newScript().acquire("w1", "a", 10, 11).busy("w2", "b", 20, 21, "b"), Valid},
		{"zombie seen", newScript().try("w1", "a", 10, 60, info).busy("w2", "b", 20, 21, "a").acquire("w2", "c", 70, 71), Valid},
		{"zombie seen twice with a holder between", newScript().try("w1", "a", 10, 15, info).busy("w2", "b", 20, 21, "a").acquire("w2", "c", 22, 23).release("c", 24, 25).busy("w2", "d", 30, 31, "a"), Violation},
		{"zombie unseen", newScript().try("w1", "a", 10, -1, info).acquire("w2", "b", 20, 21), Valid},
		{"zombie cleaned up", newScript().try("w1", "a", 10, 15, info).release("a", 16, 17).acquire("w2", "b", 20, 21), Valid},
		{"zombie cleaned up under a holder", newScript().acquire("w2", "b", 8, 9).try("w1", "a", 10, 15, info).release("a", 16, 17).release("b", 20, 21), Violation},
		{"no quorum, seen by others", newScript().acquire("w2", "b", 8, 9).try("w1", "a", 10, 15, history.Event{Type: history.Fail, Error: "no quorum"}).busy("w3", "c", 12, 13, "a").release("b", 20, 21), Valid},
		{"not held after the lease", newScript().acquire("w1", "a", 10, 11).notHeld("a", 120, 121), Valid},
		{"not held before the lease", newScript().acquire("w1", "a", 10, 11).notHeld("a", 50, 51), Violation},
		{"not held, notified before", newScript().acquire("w1", "a", 10, 11).lost("a", 40, "service").notHeld("a", 50, 51), Valid},
		{"not held, own deadline", newScript().acquire("w1", "a", 10, 11).lost("a", 40, "deadline").notHeld("a", 50, 51), Violation},
		{"not held twice released", newScript().acquire("w1", "a", 10, 11).do(history.Release, "a", 20, 30, info).notHeld("a", 31, 32), Valid},
		{"seen after not held", newScript().acquire("w1", "a", 10, 11).notHeld("a", 120, 121).busy("w2", "b", 130, 131, "a"), Violation},
		{"tokens against three grants", newScript().with(func(h *history.Header) { h.Tokens = true }).acquireToken("w1", "h", 1, 500, 2).acquireToken("w2", "g", 300, 900, 1).try("w3", "u", 50, 60, info).busy("w4", "x", 190, 200, "u").busy("w4", "y", 600, 610, "u"), Violation},
		{"released after not held", newScript().acquire("w1", "a", 10, 11).notHeld("a", 120, 121).release("a", 131, 132), Violation},
		{"stopped by itself, granted early", newScript().acquire("w1", "a", 10, 11).lost("a", 20, "deadline").acquire("w2", "b", 30, 31), Violation},
		{"no lease, never ends", noLease(newScript()).acquire("w1", "a", 10, 11).acquire("w2", "b", 8000, 8001), Violation},
		{"no lease, not held", noLease(newScript()).acquire("w1", "a", 10, 11).notHeld("a", 8000, 8001), Violation},
		{"no lease, notified", noLease(newScript()).acquire("w1", "a", 10, 11).lost("a", 15, "service").acquire("w2", "b", 20, 21), Valid},
		{"no lease, lost release", noLease(newScript()).acquire("w1", "a", 10, 11).do(history.Release, "a", 20, -1, info).acquire("w2", "b", 30, 31), Valid},
		{"illegal on one key only", newScript().acquire("w3", "x", 10, 11, "k1").release("x", 20, 21).acquire("w1", "a", 10, 11).acquire("w2", "b", 30, 31), Violation},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.end().check(t)
			f := r.of(Linearizability)
			if f.Verdict != c.v {
				t.Errorf("%s, want %s\n%s", f.Verdict, c.v, r.dump())
			}
			if f.Verdict == Violation && (len(f.Violations) == 0 || f.Violations[0].Kind == "") {
				t.Errorf("no explanation\n%s", r.dump())
			}
			noBug(t, r)
		})
	}
}

func TestLinearizableOddInput(t *testing.T) {
	h := newScript().acquire("w1", "a", 10, 11).release("a", 20, 21).end().history(t)
	h.Events[1].Time, h.Events[2].Time = ms(5), ms(1) // answered before asked
	r := Check(h, Options{})
	if v := r.of(Linearizability).Verdict; v != Undecided {
		t.Errorf("%s\n%s", v, r.dump())
	}
	for cut := range h.Events {
		Check(&history.History{Header: h.Header, Events: h.Events[cut:]}, Options{})
	}
}

func TestLiveness(t *testing.T) {
	// The limit is lease 100 ms + grace period 50 ms + LivenessGrace 1000 ms.
	with := func() *script {
		return newScript().with(func(h *history.Header) { h.Grace = 50 * time.Millisecond })
	}
	base := func() *script {
		return with().acquire("w1", "a", 10, 11).release("a", 20, 21).pause("f1", 30, 99, "w1") // gone by 100
	}
	killed := func(target string) *script {
		return with().acquire("w1", "a", 10, 11).fault(history.Fault{ID: "f1", Kind: "kill", Targets: []string{target}}, 30, 2000)
	}
	// A worker asks repeatedly, with 20 ms between two attempts.
	answers := func(s *script, worker, grant string, from, to float64, with history.Event) *script {
		for i := 0; from < to; i++ {
			s.try(worker, fmt.Sprintf("%s%d", grant, i), from, from+80, with)
			from += 100
		}
		return s
	}
	busy := history.Event{Type: history.Fail, Error: "busy"}
	failed := history.Event{Type: history.Fail, Error: "connection refused"}
	unknown := history.Event{Type: history.Info, Error: "timeout"}
	// Workers hold the lock in turn from 200 to 3200, each for 99 ms.
	by := func(s *script, workers ...string) *script {
		for i := range 30 {
			g, from := fmt.Sprintf("o%d", i), 200+100*float64(i)
			s.acquire(workers[i%len(workers)], g, from, from+1).release(g, from+99, from+99.5)
		}
		return s
	}
	others := func(s *script) *script { return by(s, "w2", "w4") }
	ready := func(s *script) *script { return s.phase(1, history.PhaseReady) }
	final := func(s *script) *script { return s.phase(5000, history.PhaseFinal) }
	for _, c := range []struct {
		name string
		s    *script
		v    Verdict
		what string
	}{
		{"no fault", newScript().acquire("w1", "a", 10, 11), Valid, "kind:acquired,n:1"},
		{"no fault, none succeeds", ready(newScript()).busy("w1", "a", 10, 2000, "").phase(3000, history.PhaseFinal), Violation, "{kind:stuck,n:1,limit_ns:1100ms}"},
		{"no fault, none succeeds, too short", ready(newScript()).busy("w1", "a", 10, 200, "").phase(300, history.PhaseFinal), Undecided, "kind:nobody-tried-long,limit_ns:1100ms"},
		{"no fault, leaked after a while", final(answers(ready(with()).acquire("w1", "a", 10, 11).release("a", 20, 21), "w2", "b", 30, 2000, busy)), Violation, "kind:stuck-key,figures:{since:{event:start}},key:k0,from:30ms,to:2010ms"},
		{"no fault, leaked, found after a while", final(answers(ready(with()).acquire("w1", "a", 10, 11).release("a", 20, 21), "w2", "b", 30, 1100, busy).acquire("w2", "c", 1120, 1170)), Valid, ""},
		{"no fault, long held", final(answers(ready(with()).acquire("w1", "a", 10, 11), "w2", "b", 30, 2000, busy).release("a", 2100, 2101)), Valid, ""},
		{"no fault, still held at the end", final(answers(ready(with()).acquire("w1", "a", 10, 11), "w2", "b", 30, 2000, busy)), Valid, ""},
		{"no fault, forgotten and gone on", final(answers(ready(with()).acquire("w1", "a", 10, 11).acquire("w1", "c", 15, 16, "k1").release("c", 4000, 4001), "w2", "b", 30, 2000, busy)), Violation, "kind:stuck-key,figures:{since:{event:start}},key:k0,from:30ms,to:2010ms"},
		{"no fault, seldom asked for", ready(with()).acquire("w1", "a", 10, 11).release("a", 20, 21).busy("w2", "b", 30, 40, "").busy("w2", "c", 1500, 1510, "").busy("w3", "d", 2500, 2510, "").acquire("w1", "e", 4000, 4001), Valid, ""},
		{"nobody tries", newScript(), Undecided, "kind:nobody-tried,since:{event:start}"},
		{"in time", final(base().acquire("w1", "b", 200, 1340)), Valid, ""},
		{"too late", final(base().acquire("w1", "b", 200, 1360)), Violation, "kind:stuck-key,figures:{since:{event:healed}},key:k0,from:200ms,to:1360ms"},
		{"too late, asked for before", final(base().acquire("w2", "b", 50, 1260)), Violation, "from:100ms,to:1260ms"},
		{"too late by a stall", final(base().acquire("w1", "b", 200, 1360)).stalled(900, 950), Undecided, "kind:stalled,length_ns:50ms,limit_ns:1150ms,incident:{kind:stuck-key,figures:{since:{event:healed}},key:k0,from:200ms,to:1360ms"},
		{"too late, whatever stalled", final(base().acquire("w1", "b", 200, 2360)).stalled(900, 950).stalled(940, 960), Violation, "from:200ms,to:2360ms"},
		{"too late, and a stall before", final(base().acquire("w1", "b", 250, 1410)).stalled(150, 200), Violation, ""},
		{"only errors, by a stall", final(others(answers(base(), "w1", "e", 200, 1600, failed))).stalled(500, 800), Undecided, "kind:stalled,length_ns:300ms,limit_ns:1150ms,incident:{kind:nothing-but-errors,figures:{since:{event:healed}},from:280ms,to:1580ms"},
		{"in time, in spite of a stall", final(base().acquire("w1", "b", 200, 1340)).stalled(500, 800), Valid, ""},
		{"late, but asked for late", final(base().acquire("w1", "b", 1255, 1260)), Valid, ""},
		{"late, but asked for late, all the time before idle", final(base().busy("w1", "b", 101, 120, "").acquire("w1", "c", 3000, 3001)), Valid, ""},
		{"never", final(base().busy("w1", "b", 200, 4000, "")), Violation, ""},
		{"never on one key", final(by(base(), "w2").try("w4", "z", 200, 2000, busy, "k1")), Violation, "key:k1,from:200ms,to:2000ms"},
		{"once, and then never", final(answers(base().acquire("w2", "b", 200, 201).release("b", 210, 211), "w3", "c", 220, 2000, busy)), Violation, "key:k0,from:220ms,to:2000ms"},
		{"gave up early", final(base().busy("w1", "b", 200, 400, "")), Undecided, ""},
		{"stopped early", base().busy("w1", "b", 200, 4000, "").phase(500, history.PhaseFinal), Undecided, ""},
		{"nobody asks", final(base()), Undecided, "kind:nobody-tried,since:{event:healed}"},
		{"a live holder", final(base().acquire("w2", "c", 90, 91).renew("c", 150, 151).release("c", 3000, 3001).acquire("w1", "b", 200, 3002)), Valid, ""},
		{"a worker gets only errors", final(others(answers(base(), "w1", "e", 200, 1600, failed))), Violation, "kind:nothing-but-errors,figures:{since:{event:healed}},from:280ms,to:1580ms,class:stuck,workers:[w1]"},
		{"a worker gets no answer", final(others(answers(base(), "w1", "e", 200, 1600, unknown))), Violation, "kind:nothing-but-errors"},
		{"two workers get only errors", final(others(answers(answers(base(), "w1", "e", 200, 1600, failed), "w3", "f", 200, 1600, failed))), Violation, "kind:stuck,n:2"},
		{"only one worker gets no errors", final(by(answers(base(), "w1", "e", 200, 1600, failed), "w2")), Valid, ""},
		{"those who are served get errors too", final(others(answers(base(), "w1", "e", 200, 1600, failed)).do(history.Renew, "o3", 520, 530, unknown)), Valid, ""},
		{"a worker gets only errors, not for long", final(others(answers(base(), "w1", "e", 200, 1300, failed))), Valid, ""},
		{"a worker gets only errors, as long as the fault lasts", final(others(answers(with().acquire("w3", "a", 1, 2).release("a", 3, 4).pause("f1", 5, 1900, "n1"), "w1", "e", 10, 2000, failed))), Valid, ""},
		{"a worker is refused all the time", final(others(answers(base(), "w1", "e", 200, 3000, busy))), Valid, ""},
		{"a worker is refused once among errors", final(others(answers(answers(base(), "w1", "e", 200, 1000, failed).try("w1", "x", 1000, 1080, busy), "w1", "f", 1100, 2200, failed))), Valid, ""},
		{"a worker waits in its queue", final(others(base().try("w1", "e", 200, 3300, busy))), Valid, ""},
		{"a worker waits until the end of the run", others(base().try("w1", "e", 200, 3310, unknown)).phase(3300, history.PhaseFinal), Valid, ""},
		// A kill of w1 at 30 is over by 31, whenever it was reported as healed.
		{"holder killed, in time", final(killed("w1").acquire("w2", "b", 30, 1180).release("b", 1181, 1182)), Valid, "since:{event:kill,killed:[w1]}"},
		{"holder killed, too late", final(killed("w1").acquire("w2", "b", 30, 1190).release("b", 1191, 1192)), Violation, "since:{event:kill,killed:[w1]}"},
		{"holder killed, never", final(killed("w1").busy("w2", "b", 40, 4000, "")), Violation, ""},
		{"waiter killed", final(others(killed("w1").notHeld("a", 25, 26).try("w1", "b", 27, -1, history.Event{}))), Valid, ""},
		{"server killed, counted from its heal", final(killed("n1").notHeld("a", 1000, 1001).acquire("w2", "b", 1100, 3100).release("b", 3101, 3102)), Valid, ""},
		{"never healed", newScript().acquire("w1", "a", 10, 11).stage(20, history.Fault{ID: "f1", Kind: "pause", Stage: history.Applied}), Undecided, ""},
		{"skipped", newScript().acquire("w1", "a", 10, 11).stage(20, history.Fault{ID: "f1", Kind: "pause", Stage: history.Skipped}), Valid, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.end().check(t)
			if got := r.of(Liveness); got.Verdict != c.v || !strings.Contains(factsText(got), c.what) {
				t.Errorf("%s, want %s %q\n%s", got.Verdict, c.v, c.what, r.dump())
			}
		})
	}
}

func TestVisualize(t *testing.T) {
	for name, s := range map[string]*script{
		"illegal": newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 30, 31).pause("f1", 12, 20, "w1"),
		"fine":    smallestValid(),
		"empty":   newScript(),
	} {
		t.Run(name, func(t *testing.T) {
			var page bytes.Buffer
			if err := Visualize(s.history(t), &page, time.Second); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(page.String(), "<html") {
				t.Error("no page")
			}
			if name == "illegal" && (!strings.Contains(page.String(), "pause w1") || !strings.Contains(page.String(), "acquire b")) {
				t.Error("no annotation or no operation")
			}
		})
	}
}
