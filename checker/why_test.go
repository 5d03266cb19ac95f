package checker

import (
	"strings"
	"testing"
	"time"

	"lockcheck/history"
)

// TestWhy: each overlap is attributed to what the history shows, and to nothing else. For each cause there is
// a history that differs only in that cause.
func TestWhy(t *testing.T) {
	// w1 is granted the lock at 11, and its lease may have run out at 107. w2 is granted it at 121, or at 31
	// in the early histories.
	late := func() *script {
		return newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121).release("b", 140, 141).notHeld("a", 150, 151)
	}
	early := func() *script {
		return newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 30, 31).release("b", 40, 41).release("a", 50, 51)
	}
	session := func(s *script) *script {
		return s.with(func(h *history.Header) { h.Session = true })
	}
	held := func(w, g string, from, to float64) func(*script) *script {
		return func(s *script) *script {
			return s.try(w, g, from, from+1, history.Event{Type: history.OK}).release(g, to, to+1)
		}
	}
	of := func(kind string, targets ...string) history.Fault {
		return history.Fault{ID: "f1", Kind: kind, Targets: targets}
	}
	connected := func(s *script) *script {
		return s.with(func(h *history.Header) { h.Lease, h.Grace = 0, 50*time.Millisecond })
	}
	cut := history.Fault{ID: "f1", Kind: history.Partition, Targets: []string{"w1"}, Peers: []string{"n1"}}
	long := func() *script {
		return newScript().with(func(h *history.Header) { h.Lease = time.Second }).acquire("w1", "a", 10, 11).acquire("w2", "b", 330, 331).release("b", 340, 341).release("a", 350, 351)
	}
	removed := func(s *script, at float64, client string) *script {
		s.add(at, history.Event{Process: history.Service, Type: history.Info, F: history.Dropped, Key: "k0", Client: client, Note: "DEL"})
		return s
	}
	for _, c := range []struct {
		name, want, why string
		s               *script
	}{
		{"paused", CausePaused, "lease_end:107ms,stop:{from:20ms,resumed:148ms,to:149ms}", late().pause("f1", 20, 148, "w1")},
		{"another one paused", CauseOutlasted, "lease_end:107ms", late().pause("f1", 20, 148, "w2")},
		{"cut off", CauseCutOff, "cut:{from:20ms,", late().fault(cut, 20, 148)},
		{"paused just before its lease must have run out", CausePaused, "stop:{from:113ms,", late().pause("f1", 113, 148, "w1")},
		{"paused only after its lease had run out", CauseOutlasted, "lease_end:107ms", late().pause("f1", 118, 148, "w1")},
		{"cut off only after its lease had run out", CauseOutlasted, "lease_end:107ms", late().fault(cut, 118, 148)},
		{"paused only after its renewed lease had run out", CauseOutlasted, "lease_end:157ms", newScript().
			acquire("w1", "a", 10, 11).renew("a", 60, 61).then(held("w2", "b", 170, 175)).notHeld("a", 180, 181).pause("f1", 166, 179, "w1")},
		{"paused after its lease had run out, unless a renewal without an answer was heard late", CausePaused, "stop:{from:166ms,", newScript().
			acquire("w1", "a", 10, 11).do(history.Renew, "a", 60, 160, history.Event{Type: history.Info}).then(held("w2", "b", 170, 175)).notHeld("a", 180, 181).pause("f1", 166, 179, "w1")},
		{"a write held back", CauseInFlight, "held_back:f1", late().fault(of(history.DelayWrite, "w1"), 20, 148).deferred("a", 25, "f1")},
		{"expired on arrival", CauseExpiredGrant, "", newScript().acquire("w1", "a", 10, 11).
			try("w2", "b", 30, 31, history.Event{Type: history.OK, Expired: true}).release("b", 40, 41).release("a", 50, 51)},
		{"released by another", CauseReleasedByOther, "releaser:{worker:w3,grant:x,at:121ms}", newScript().try("w3", "x", 1, 2, history.Event{Type: history.OK}).
			lost("x", 105, "service").acquire("w1", "a", 109, 110).release("x", 121, 122).acquire("w2", "b", 130, 131).release("b", 140, 141).release("a", 150, 151)},
		{"key removed by another", CauseReleasedByOther, "releaser:{worker:w3,grant:,at:300ms,command:DEL}", removed(long(), 300, "w3")},
		{"key removed by another after its own hold", CauseReleasedByOther, "releaser:{worker:w3,grant:,at:300ms,command:DEL}", removed(long().then(held("w3", "x", 1, 5)), 300, "w3")},
		{"key removed by another whose own release was refused", CauseReleasedByOther, "command:DEL", removed(long().try("w3", "x", 1, 2, history.Event{Type: history.OK}).notHeld("x", 5, 6), 300, "w3")},
		{"key removed by itself", CauseTwice, "", removed(long(), 300, "w1")},
		{"key perhaps removed before it was granted", CauseTwice, "", removed(long(), 250, "w3")},
		{"key removed after another was granted it", CauseTwice, "", removed(long(), 332, "w3")},
		{"key removed by a release that was seen late", CauseTwice, "", removed(long().try("w3", "x", 1, 2, history.Event{Type: history.OK}).do(history.Release, "x", 9.5, 30, history.Event{Type: history.OK}), 270, "w3")},
		{"key removed when the lease was over", CauseOutlasted, "", removed(late(), 118, "w3")},
		{"validity counted from a late answer", CauseValidity, "lease_end:107ms,valid_until:160ms", newScript().
			try("w1", "a", 10, 60, history.Event{Type: history.OK, Until: ms(160)}).then(held("w2", "b", 120, 140)).release("a", 150, 151)},
		{"validity counted from the request", CauseOutlasted, "lease_end:107ms", newScript().
			try("w1", "a", 10, 60, history.Event{Type: history.OK, Until: ms(110)}).then(held("w2", "b", 120, 140)).release("a", 150, 151)},
		{"granted twice after it had waited", CauseTwice, "lease_end:247ms", newScript().acquire("w3", "x", 10, 11).renew("x", 60, 61).
			try("w1", "a", 20, 152, history.Event{Type: history.OK, Until: ms(250)}).release("x", 150, 151).then(held("w2", "b", 170, 180)).release("a", 190, 191)},
		{"granted twice after it had waited for longer than the one before", CauseTwice, "lease_end:247ms", newScript().
			try("w1", "a", 5, 152, history.Event{Type: history.OK}).then(held("w3", "x", 130, 150)).then(held("w2", "b", 170, 180)).release("a", 190, 191)},
		{"paused while it waited", CausePaused, "", newScript().
			try("w1", "a", 5, 152, history.Event{Type: history.OK}).then(held("w2", "b", 130, 160)).notHeld("a", 190, 191).pause("f1", 20, 151, "w1")},
		{"renewed after another one was granted it", CauseRenewedByOther, "renewal:{asked:130ms,answered:131ms,lease_end:107ms}", newScript().
			acquire("w1", "a", 10, 11).then(held("w2", "b", 120, 125)).renew("a", 130, 131).release("a", 150, 151)},
		{"renewed before and after another one was granted it", CauseRenewedByOther, "renewal:{asked:105ms,answered:131ms,lease_end:107ms}", newScript().
			acquire("w1", "a", 10, 11).then(held("w2", "b", 120, 125)).renew("a", 105, 131).release("a", 150, 151)},
		{"renewed after another one was granted it, unless it was kept by a renewal without an answer", CauseUnexplained, "", newScript().
			acquire("w1", "a", 10, 11).do(history.Renew, "a", 60, 100, history.Event{Type: history.Info}).then(held("w2", "b", 120, 125)).renew("a", 130, 131).release("a", 150, 151)},
		{"renewed, and the answer came when another one was granted it", CauseOutlasted, "lease_end:157ms", newScript().
			acquire("w1", "a", 10, 11).renew("a", 60, 185).then(held("w2", "b", 170, 175)).notHeld("a", 186, 187)},
		{"renewed before another one was granted it", CauseOutlasted, "lease_end:157ms", newScript().
			acquire("w1", "a", 10, 11).renew("a", 60, 61).then(held("w2", "b", 170, 175)).notHeld("a", 180, 181)},
		{"granted twice", CauseTwice, "lease_end:107ms", early()},
		{"the clock of the server", CauseClock, "in_force:[{id:f1,kind:clock,targets:[n1],", early().fault(of(history.Clock, "n1"), 20, 300)},
		{"the clock of a worker, set before", CauseClock, "in_force:[{id:f1,kind:clock,targets:[w2],", early().fault(of(history.Clock, "w2"), 2, 300)},
		{"the clock of a worker, until before", CauseTwice, "", early().fault(of(history.Clock, "w2"), 2, 5)},
		{"the server killed", CauseServerLost, "in_force:[{id:f1,kind:kill,targets:[n1],", early().fault(of(history.Kill, "n1"), 20, 25)},
		{"a worker killed", CauseTwice, "", early().fault(of(history.Kill, "w4"), 20, 25)},
		{"the server paused", CauseServerFault, "in_force:[{id:f1,kind:pause,targets:[n1],", early().fault(of(history.Pause, "n1"), 20, 25)},
		{"the server paused before", CauseTwice, "", early().fault(of(history.Pause, "n1"), 2, 5)},
		{"paused long before its lease ran out", CauseOutlasted, "", late().pause("f1", 20, 25, "w1")},
		{"paused, and a release that was accepted too late", CausePaused, "lease_end:107ms", newScript().acquire("w1", "a", 10, 11).
			acquire("w2", "b", 120, 121).release("a", 150, 151).notHeld("b", 160, 161).pause("f1", 20, 148, "w1")},
		{"paused before its answer came", CausePaused, "holder:{worker:w1,grant:a,at:151ms},next:{worker:w2,grant:b,at:121ms}", newScript().try("w1", "a", 10, 151, history.Event{Type: history.OK, Until: ms(110)}).
			notHeld("a", 160, 161).acquire("w2", "b", 120, 121).release("b", 180, 181).pause("f1", 15, 148, "w1")},
		{"released by two others, one after the other", CauseReleasedByOther, "releaser:{worker:w3", newScript().with(func(h *history.Header) { h.Workers = append(h.Workers, "w5") }).
			try("w3", "x", 1, 2, history.Event{Type: history.OK}).lost("x", 5, "service").try("w4", "y", 6, 7, history.Event{Type: history.OK}).lost("y", 8, "service").
			acquire("w1", "a", 9, 10).release("x", 50, 51).acquire("w2", "b", 60, 61).release("y", 70, 71).release("b", 80, 81).release("a", 85, 86)},
		{"a clock that was merely wrong", CauseTwice, "", newScript().acquire("w1", "a", 110, 111).acquire("w2", "b", 130, 131).release("b", 140, 141).release("a", 150, 151).
			fault(of(history.Clock, "n1"), 20, 300)},
		{"a clock that ran fast since before the grant", CauseClock, "in_force:[{id:f1,kind:clock-rate,targets:[n1],", early().fault(history.Fault{ID: "f1", Kind: history.ClockRate, Targets: []string{"n1"}, Speed: 1.1}, 1, 300)},
		{"a clock that ran slow since before the grant", CauseTwice, "", early().fault(history.Fault{ID: "f1", Kind: history.ClockRate, Targets: []string{"n1"}, Speed: 0.9}, 1, 300)},
		{"a clock that was moved back", CauseTwice, "", early().fault(history.Fault{ID: "f1", Kind: history.Clock, Targets: []string{"n1"}, Step: -1e9}, 20, 300)},
		{"a clock that was moved back before, and forward now", CauseClock, "", newScript().acquire("w1", "a", 110, 111).acquire("w2", "b", 130, 131).release("b", 140, 141).
			release("a", 150, 151).fault(history.Fault{ID: "f1", Kind: history.Clock, Targets: []string{"n1"}, Step: -1e9}, 20, 120)},
		{"a session of a paused holder", CausePaused, "", session(newScript()).then(held("w1", "a", 10, 150)).then(held("w2", "b", 120, 140)).pause("f1", 20, 148, "w1")},
		{"a session that ended by itself", CauseUnexplained, "", session(newScript()).
			try("w1", "a", 10, 11, history.Event{Type: history.OK}).then(held("w2", "b", 120, 140)).notHeld("a", 150, 151)},
		{"a session granted twice", CauseTwice, "", session(newScript()).then(held("w1", "a", 10, 150)).then(held("w2", "b", 120, 140))},
		{"a session whose renewals may not go on after a fault", CauseUnexplained, "", session(newScript()).
			servers("n1", "n2", "n3").fault(of(history.Pause, "n1"), 2, 8).then(held("w1", "a", 10, 150)).then(held("w2", "b", 120, 140))},
		{"a session under a fault of the server", CauseServerFault, "", session(newScript()).
			try("w1", "a", 10, 11, history.Event{Type: history.OK}).then(held("w2", "b", 120, 140)).notHeld("a", 150, 151).servers("n1", "n2", "n3").fault(of(history.Pause, "n1"), 20, 100)},
		{"a session that ended by itself soon after a fault", CauseUnexplained, "recovering:{fault:{id:f1,kind:pause,targets:[n1],from:2ms},ago_ns:4ms}", session(newScript()).
			with(func(h *history.Header) { h.Grace = 50 * time.Millisecond }).servers("n1", "n2", "n3").fault(of(history.Pause, "n1"), 2, 5).try("w1", "a", 10, 11, history.Event{Type: history.OK}).then(held("w2", "b", 120, 140)).notHeld("a", 150, 151)},
		{"one of two at once, of which a clock may have ended the other one", CauseUnexplained, "", newScript().
			try("w2", "b", 7, 82, history.Event{Type: history.OK}).release("b", 90, 91).acquire("w1", "a", 70, 78).release("a", 95, 96).fault(of(history.Clock, "n1"), 50, 60)},
		{"one of two at once, and no such clock", CauseTwice, "", newScript().
			try("w2", "b", 7, 82, history.Event{Type: history.OK}).release("b", 90, 91).acquire("w1", "a", 70, 78).release("a", 95, 96)},
		{"a server that ended its connections", CauseServerLost, "in_force:[{id:f1,kind:kill,targets:[n1],from:20ms}],connected:true", connected(newScript()).
			then(held("w1", "a", 10, 150)).then(held("w2", "b", 120, 140)).fault(of(history.Kill, "n1"), 20, 118)},
		{"two servers of three lost it", CauseServerLost, "in_force:[{id:f1,kind:kill,targets:[n1],from:12ms},{id:f2,kind:kill,targets:[n2],from:16ms}]", early().servers("n1", "n2", "n3").
			fault(of(history.Kill, "n1"), 12, 14).fault(history.Fault{ID: "f2", Kind: history.Kill, Targets: []string{"n2"}}, 16, 18)},
		{"a connection that was cut", CauseCutOff, "", connected(newScript()).then(held("w1", "a", 10, 150)).then(held("w2", "b", 120, 140)).fault(cut, 20, 148)},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.end().check(t)
			f := r.of(MutualExclusion)
			if f.Total != 1 || f.Causes[c.want] != 1 {
				t.Fatalf("causes %v, want %s\n%s", f.Causes, c.want, r.dump())
			}
			if v := f.Violations[0]; v.Cause != c.want || !strings.Contains(factsText(v.Explanation), c.why) {
				t.Errorf("%s: %s\nwant %q in it", v.Cause, factsText(v.Explanation), c.why)
			}
			noBug(t, r)
		})
	}
}

// TestAfter: the explanation names a fault from which the servers may not have recovered, and no other.
func TestAfter(t *testing.T) {
	fault := func(kind string, from, to float64, targets ...string) func(*script) *script {
		return func(s *script) *script {
			return s.fault(history.Fault{ID: "f1", Kind: kind, Targets: targets}, from, to)
		}
	}
	skipped := func(s *script) *script {
		return s.stage(5, history.Fault{ID: "f1", Kind: history.Pause, Stage: history.Skipped, Targets: []string{"n1"}})
	}
	for _, c := range []struct {
		name string
		s    func(*script) *script
		want bool
	}{
		{"no fault", func(s *script) *script { return s }, false},
		{"a server, just before", fault(history.Pause, 60, 80, "n1"), true},
		{"a server, long before", fault(history.Pause, 10, 30, "n1"), false},
		{"a worker", fault(history.Pause, 60, 80, "w3"), false},
		{"skipped", skipped, false},
	} {
		s := c.s(newScript().with(func(h *history.Header) { h.Grace = 50 * time.Millisecond }))
		r := s.acquire("w1", "a", 110, 111).acquire("w2", "b", 130, 131).release("b", 140, 141).release("a", 150, 151).end().check(t)
		v := r.of(MutualExclusion).Violations
		if len(v) != 1 || v[0].Cause != CauseTwice || (v[0].Explanation.Recovering != nil) != c.want {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
}

// TestObserved: the explanation has what the service had on record, but only if it is known.
func TestObserved(t *testing.T) {
	twice := func() *script {
		return newScript().acquireToken("w1", "a", 10, 11, 5).acquireToken("w2", "b", 30, 31, 6).release("b", 40, 41).release("a", 50, 51)
	}
	service := func(s *script, at float64, f history.Function, token uint64) *script {
		s.add(at, history.Event{Process: history.Service, Type: history.Info, F: f, Key: "k0", Token: token})
		return s
	}
	claimed := func() *script { return service(twice(), 12, history.Claimed, 5) }
	gaveUp := claimed()
	gaveUp.add(20, history.Event{Process: history.Service, Type: history.Info, F: history.Unobserved})
	for _, c := range []struct {
		name, want string
		s          *script
	}{
		{"dropped before", "{dropped:20ms}", service(claimed(), 20, history.Dropped, 5)},
		{"dropped after", "{dropped:45ms,late:true}", service(claimed(), 45, history.Dropped, 5)},
		{"never dropped", "{}", claimed()},
		{"not observed", "null", twice()},
		{"another claim", "null", service(twice(), 12, history.Claimed, 6)},
		{"the observer gave up", "null", gaveUp},
	} {
		if got := factsText(c.s.end().check(t).of(MutualExclusion).Violations[0].Explanation.Record); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestWhyLost: a lost update is attributed to how its two holders came together, or to a write in flight. A
// loss that no accepted write explains stays unexplained.
func TestWhyLost(t *testing.T) {
	overlapping := func() *script {
		return newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121).
			read("a", 12, 0).read("b", 122, 0).pause("f1", 20, 125, "w1")
	}
	for _, c := range []struct {
		name, want string
		s          *script
	}{
		{"the later one overwrites", CausePaused, overlapping().write("a", 126, 1, 0, 1).write("b", 130, 2, 0, 2).release("b", 140, 141).notHeld("a", 150, 151).final("k0", "[2]")},
		{"the earlier one overwrites", CausePaused, overlapping().write("b", 126, 1, 0, 1).write("a", 130, 2, 0, 2).release("b", 140, 141).notHeld("a", 150, 151).final("k0", "[2]")},
		{"on its way", CauseInFlight, newScript().acquire("w1", "a", 10, 11).release("a", 20, 21).acquire("w2", "b", 30, 31).
			read("b", 32, 0).write("a", 33, 1, 0, 1).write("b", 34, 2, 0, 2).release("b", 40, 41).final("k0", "[2]")},
		{"nobody overwrote it", CauseUnexplained, newScript().acquire("w1", "a", 10, 11).write("a", 12, 1, 0, 1).release("a", 20, 21).final("k0", "[]")},
		{"under grants that nobody was given", CauseUnexplained, newScript().try("w1", "a", 10, -1, history.Event{}).try("w2", "b", 10, -1, history.Event{}).
			write("a", 12, 1, 0, 1).write("b", 13, 2, 0, 2).final("k0", "[2]")},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.end().check(t)
			f := r.of(NoLostUpdate)
			if f.Total != 1 || f.Causes[c.want] != 1 || f.Violations[0].Cause != c.want {
				t.Fatalf("causes %v, want %s\n%s", f.Causes, c.want, r.dump())
			}
			if e := f.Violations[0].Explanation; (e == nil) != (c.want == CauseUnexplained) {
				t.Errorf("explained as %s", factsText(e))
			}
		})
	}
}
