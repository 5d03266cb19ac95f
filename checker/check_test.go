package checker

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

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
	if len(r.Findings) != len(Properties()) || len(r.Holds) != 2 || r.Begin != ms(10) || r.End != ms(9001) {
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

func TestOverlap(t *testing.T) {
	overlapping := func() *script { // a is held from 11 to 50, b from 31 to 40
		return newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 30, 31).release("b", 40, 41).release("a", 50, 51)
	}
	outlived := func() *script { // the lease of a ends at 110
		return newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121).release("b", 140, 141).notHeld("a", 150, 151)
	}
	cut := func(f history.Fault) history.Fault {
		f.ID, f.Kind = cmp.Or(f.ID, "f1"), "partition"
		return f
	}
	for _, c := range []struct {
		name  string
		s     *script
		n     int
		class string
		what  string
		check func(OverlapSummary) bool
	}{
		{"one after the other", newScript().acquire("w1", "a", 10, 11).release("a", 20, 21).acquire("w2", "b", 20, 20.5).release("b", 30, 31), 0, "", "", nil},
		{"touching", newScript().acquire("w1", "a", 10, 11).release("a", 20, 21).acquire("w2", "b", 15, 20).release("b", 30, 31), 0, "", "", nil},
		{"one ns too much", newScript().acquire("w1", "a", 10, 11).release("a", 20.000001, 21).acquire("w2", "b", 15, 20).release("b", 30, 31), 1, BrokenPromise, "for 1 ns", nil},
		{"two keys", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 10, 11, "k1").release("b", 40, 41).release("a", 50, 51), 0, "", "", nil},
		{"broken promise", overlapping(), 1, BrokenPromise, "w1 and w2 both held k0 for 9 ms (w1 was healthy; the lock had promised it to both)",
			func(o OverlapSummary) bool {
				return o.BrokenPromises == 1 && o.EarlierHealthy == 1 && o.Longest == 9*time.Millisecond
			}},
		{"outlived lease", outlived(), 1, OutlivedLease, "w1 and w2 both held k0 for 19 ms (w1 was healthy; its lease had run out 11 ms before)",
			func(o OverlapSummary) bool { return o.OutlivedLeases == 1 }},
		{"noticed in time", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121).release("b", 140, 141).lost("a", 115, "deadline"), 0, "", "", nil},
		{"noticed too late", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121).release("b", 140, 141).lost("a", 125, "deadline"), 1, OutlivedLease, "for 4 ms", nil},
		{"failed release ends it", newScript().acquire("w1", "a", 10, 11).notHeld("a", 115, 116).acquire("w2", "b", 120, 121).release("b", 140, 141), 0, "", "", nil},
		{"renewed", newScript().acquire("w1", "a", 10, 11).renew("a", 60, 61).acquire("w2", "b", 120, 121).release("b", 140, 141).release("a", 150, 151), 1, BrokenPromise, "", nil},
		{"renewal unknown", newScript().acquire("w1", "a", 10, 11).do(history.Renew, "a", 60, 61, history.Event{Type: history.Info}).acquire("w2", "b", 120, 121).release("b", 140, 141).notHeld("a", 150, 151), 1, OutlivedLease, "", nil},
		{"paused", outlived().pause("f1", 20, 148, "w1"), 1, OutlivedLease, "w1 was paused", func(o OverlapSummary) bool { return o.EarlierPaused == 1 }},
		{"paused until after its lease", outlived().pause("f1", 20, 115, "w1"), 1, OutlivedLease, "w1 was paused", nil},
		{"another one paused", outlived().pause("f1", 20, 148, "w2"), 1, OutlivedLease, "w1 was healthy", nil},
		{"paused long before", outlived().pause("f1", 20, 30, "w1"), 1, OutlivedLease, "w1 was healthy", nil},
		{"cut off as target", outlived().fault(cut(history.Fault{Targets: []string{"w1"}, Peers: []string{"n1"}}), 20, 148), 1, OutlivedLease, "w1 was cut off", func(o OverlapSummary) bool { return o.EarlierCutOff == 1 }},
		{"cut off from a minority only", outlived().servers("n1", "n2", "n3", "n4", "n5").fault(cut(history.Fault{Targets: []string{"w1"}, Peers: []string{"n4", "n5"}}), 20, 148), 1, OutlivedLease, "w1 was healthy", func(o OverlapSummary) bool { return o.EarlierHealthy == 1 }},
		{"cut off by two partitions", outlived().servers("n1", "n2", "n3", "n4", "n5").fault(cut(history.Fault{ID: "a", Targets: []string{"w1"}, Peers: []string{"n4", "n5"}}), 20, 148).fault(cut(history.Fault{ID: "b", Targets: []string{"n3"}, Peers: []string{"w1"}}), 20, 148), 1, OutlivedLease, "w1 was cut off", func(o OverlapSummary) bool { return o.EarlierCutOff == 1 }},
		{"its only server dead", outlived().fault(history.Fault{ID: "f1", Kind: "kill", Targets: []string{"n1"}}, 20, 118), 1, OutlivedLease, "w1 was cut off", nil},
		{"its only server up again", overlapping().fault(history.Fault{ID: "f1", Kind: "kill", Targets: []string{"n1"}}, 15, 30.5), 1, BrokenPromise, "w1 was healthy", nil},
		{"two servers of three up again just then", overlapping().servers("n1", "n2", "n3").fault(history.Fault{ID: "f1", Kind: "pause", Targets: []string{"n1", "n2"}}, 15, 30.5), 1, BrokenPromise, "w1 was healthy", nil},
		{"tied to a server that it is cut off from", tied(outlived().servers("n1", "n2", "n3", "n4", "n5"), "n1").fault(cut(history.Fault{Targets: []string{"w1"}, Peers: []string{"n1"}}), 20, 148), 1, OutlivedLease, "w1 was cut off", nil},
		{"tied to another one", tied(outlived().servers("n1", "n2", "n3", "n4", "n5"), "n5").fault(cut(history.Fault{Targets: []string{"w1"}, Peers: []string{"n1", "n2", "n3"}}), 20, 148), 1, OutlivedLease, "w1 was healthy", nil},
		{"cut off as peer", outlived().fault(cut(history.Fault{Targets: []string{"n1"}, Peers: []string{"w1"}}), 20, 148), 1, OutlivedLease, "w1 was cut off", nil},
		{"cut elsewhere", outlived().fault(cut(history.Fault{Targets: []string{"n1"}, Peers: []string{"n2"}}), 20, 148), 1, OutlivedLease, "w1 was healthy", nil},
		{"dead on arrival", newScript().acquire("w1", "a", 10, 125).acquire("w2", "b", 120, 121).release("b", 140, 141).notHeld("a", 150, 151).pause("f1", 15, 124, "w1"), 1, OutlivedLease, "w1 and w2 both held k0 for 15 ms (w1 was paused; its lease had run out 15 ms before)", nil},
		{"never ended", newScript().acquire("w1", "a", 10, 11).read("a", 25, 0).acquire("w2", "b", 20, 21).release("b", 40, 41), 1, BrokenPromise, "for 4 ms", nil},
		{"never ended, but gone before", newScript().acquire("w1", "a", 10, 11).read("a", 15, 0).acquire("w2", "b", 20, 21).release("b", 40, 41), 0, "", "", nil},
		{"three at once", overlapping().acquire("w3", "c", 32, 33).release("c", 35, 36), 3, BrokenPromise, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.end().check(t)
			v := Valid
			if c.n > 0 {
				v = Violation
			}
			want(t, r, MutualExclusion, v, c.n)
			noBug(t, r)
			if c.n == 0 || t.Failed() {
				return
			}
			got := r.of(MutualExclusion).Violations[0]
			if got.Class != c.class || !strings.Contains(got.What, c.what) {
				t.Errorf("%s: %s", got.Class, got.What)
			}
			if c.check != nil && !c.check(r.Overlaps) {
				t.Errorf("%+v", r.Overlaps)
			}
		})
	}
}

// noBug checks that lockcheck did not find itself wrong.
func noBug(t testing.TB, r Results) {
	t.Helper()
	if strings.Contains(r.of(Assumptions).Summary, "bug in lockcheck") {
		t.Errorf("the checkers disagree\n%s", r.dump())
	}
}

// TestCrowded: of the holders of a semaphore, the one whose promise ended first is the one
// who is too many.
func TestCrowded(t *testing.T) {
	crowd := func(end float64) *script { // w2 was granted first, and answered last
		return newScript().with(func(h *history.Header) { h.Permits = 2 }).
			acquire("w2", "b", 1, 50).acquire("w1", "a", 40, 45).acquire("w3", "h", 105, 106).
			notHeld("b", end, end+1).release("a", 125, 126).release("h", 127, 128).end()
	}
	r := crowd(120).check(t)
	want(t, r, MutualExclusion, Violation, 1)
	want(t, r, Linearizability, Valid, 0)
	noBug(t, r)
	if v := r.of(MutualExclusion).Violations[0]; v.Class != OutlivedLease || v.Workers[0] != "w2" {
		t.Errorf("%s of %v", v.Class, v.Workers)
	}
	want(t, crowd(105).check(t), MutualExclusion, Valid, 0)

	third := newScript().with(func(h *history.Header) { h.Permits = 2 }).
		acquire("w2", "b", 1, 50).acquire("w1", "a", 40, 45).acquire("w3", "h", 80, 81).
		release("h", 85, 86).release("a", 87, 88).release("b", 89, 90).end().check(t)
	want(t, third, MutualExclusion, Violation, 1)
	want(t, third, Linearizability, Violation, 1)
	noBug(t, third)
}

// TestOverlapKinds: what is asked of one overlap must not be met by two.
func TestOverlapKinds(t *testing.T) {
	// The promise to a is broken while w1 is paused; c outlives its lease, healthy.
	r := newScript().acquire("w1", "a", 10, 11).pause("f1", 15, 60, "w1").acquire("w2", "b", 30, 31).release("b", 40, 41).release("a", 61, 62).
		acquire("w3", "c", 210, 211).acquire("w4", "d", 320, 321).release("d", 340, 341).notHeld("c", 350, 351).end().check(t)
	for _, c := range []struct {
		class, earlier string
		want           int64
	}{
		{"", "", 2},
		{BrokenPromise, "", 1},
		{OutlivedLease, "", 1},
		{"", "healthy", 1},
		{"", "paused", 1},
		{"", "cut off", 0},
		{BrokenPromise, "paused", 1},
		{BrokenPromise, "healthy", 0},
		{OutlivedLease, "paused", 0},
		{OutlivedLease, "healthy", 1},
		{"", "asleep", 0},
		{"bad luck", "", 0},
	} {
		if got := r.Overlaps.Count(c.class, c.earlier); got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.class, c.earlier, got, c.want)
		}
	}
}

func TestHoldEnds(t *testing.T) {
	base := func() *script { return newScript().acquire("w1", "a", 10, 11) }
	for _, c := range []struct {
		name     string
		s        *script
		ended    HoldEnd
		end      float64
		deadline float64
		leaseEnd float64
	}{
		{"release", base().release("a", 20, 21), EndedByRelease, 20, 110, 110},
		{"release unknown", base().do(history.Release, "a", 20, 30, history.Event{Type: history.Info}), EndedByRelease, 20, 110, 110},
		{"release never answered", base().do(history.Release, "a", 20, -1, history.Event{}), EndedByRelease, 20, 110, 110},
		{"gone at release", base().notHeld("a", 20, 21), EndedAtRelease, 20, 110, 110},
		{"told", base().lost("a", 15, "service").notHeld("a", 20, 21), EndedByLost, 15, 110, 110},
		{"own deadline", base().lost("a", 15, "deadline").release("a", 20, 21), EndedByDeadline, 15, 110, 110},
		{"told after release", base().release("a", 20, 21).lost("a", 22, "service"), EndedByRelease, 20, 110, 110},
		{"nothing", base(), EndedWithoutTrace, 11, 110, 110},
		{"last sign at the resource", base().read("a", 17, 0), EndedWithoutTrace, 17, 110, 110},
		{"refused at the resource", base().access(history.Write, history.Fail, "a", 17, 1, 0, 0), EndedWithoutTrace, 11, 110, 110},
		{"last sign of the worker", base().do(history.Read, "a", 14, -1, history.Event{}), EndedWithoutTrace, 14, 110, 110},
		{"goes on elsewhere", base().acquire("w1", "b", 30, 31, "k1").release("b", 40, 41), EndedWithoutTrace, 11, 110, 110},
		{"renewed", base().renew("a", 50, 52).release("a", 60, 61), EndedByRelease, 60, 150, 150},
		{"renewed too late to promise", base().renew("a", 50, 62).release("a", 60, 61), EndedByRelease, 60, 110, 150},
		{"no deadline", newScript().try("w1", "a", 10, 11, history.Event{Type: history.OK}).release("a", 60, 61), EndedByRelease, 60, 60, 110},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := c.s.check(t).Holds[0]
			if h.Ended != c.ended || h.End != ms(c.end) || h.Deadline != ms(c.deadline) || h.LeaseEnd != ms(c.leaseEnd) {
				t.Errorf("%+v", h)
			}
		})
	}
	none := newScript().with(func(h *history.Header) { h.Lease = 0 }).acquire("w1", "a", 10, 11).check(t)
	if got := none.Holds[0].LeaseEnd; got != math.MaxInt64 {
		t.Errorf("a lock without lease ends at %d", got)
	}
}

// TestRefusedForAnotherKey: a service that names the holder of another lock is wrong,
// and all checkers see it.
func TestRefusedForAnotherKey(t *testing.T) {
	r := newScript().acquire("w1", "a", 10, 11, "k1").busy("w2", "b", 20, 21, "a").release("a", 30, 31).
		acquire("w3", "c", 20, 22).release("c", 30, 31).end().check(t)
	want(t, r, Linearizability, Violation, 1)
	noBug(t, r)
	control := newScript().acquire("w1", "a", 10, 11).busy("w2", "b", 20, 21, "a").release("a", 30, 31).end().check(t)
	want(t, control, Linearizability, Valid, 0)
}

func TestWrongRelease(t *testing.T) {
	for _, c := range []struct {
		name string
		s    *script
		n    int
	}{
		{"in turn", newScript().acquire("w1", "a", 10, 11).release("a", 20, 21).acquire("w2", "b", 20, 21).release("b", 30, 31), 0},
		{"of somebody else's", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121).release("a", 130, 131).release("b", 150, 151), 1},
		{"refused", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121).notHeld("a", 130, 131).release("b", 150, 151), 0},
		{"while the other one began", newScript().acquire("w1", "a", 10, 11).release("a", 130, 140).acquire("w2", "b", 131, 132).release("b", 150, 151), 0},
		{"while the other one ended", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121).release("a", 130, 141).release("b", 140, 142), 0},
		{"of the later one", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121).release("b", 130, 131).notHeld("a", 150, 151), 0},
		{"another key", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 20, 21, "k1").release("a", 30, 31).release("b", 50, 51), 0},
		{"other one dead on arrival", newScript().acquire("w2", "b", 10, 130).acquire("w1", "a", 120, 121).release("a", 140, 141).notHeld("b", 150, 151), 0},
		{"other one late, but held for certain", newScript().acquire("w2", "b", 10, 130).acquire("w1", "a", 120, 121).release("a", 140, 141).release("b", 150, 151), 1},
		{"of the later one of two", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 20, 21).release("b", 30, 31).release("a", 40, 41), 0},
		{"clean-up of an unknown acquire", newScript().try("w1", "a", 10, 60, history.Event{Type: history.Info}).acquire("w2", "b", 20, 21).release("a", 61, 62).release("b", 90, 91), 1},
		{"clean-up after the other lease", newScript().acquire("w2", "b", 5, 6).try("w1", "a", 10, 120, history.Event{Type: history.Info}).release("a", 121, 122).notHeld("b", 150, 151), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.end().check(t)
			v := Valid
			if c.n > 0 {
				v = Violation
			}
			want(t, r, NoWrongRelease, v, c.n)
			noBug(t, r)
			if c.n > 0 && r.of(Linearizability).Verdict != Violation {
				t.Errorf("porcupine agrees with a wrong release\n%s", r.dump())
			}
		})
	}
	want(t, newScript().acquire("w1", "a", 10, 11).check(t), NoWrongRelease, Undecided, 0)
	two := newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 20, 21).release("a", 30, 31).release("b", 40, 41)
	want(t, two.check(t), NoWrongRelease, Violation, 1)
	want(t, two.with(func(h *history.Header) { h.Permits = 2 }).check(t), NoWrongRelease, NotApplicable, 0)
}

func TestStaleWrite(t *testing.T) {
	two := func() *script {
		return newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121)
	}
	cas := func(s *script) *script { return s.with(func(h *history.Header) { h.Guard = "cas" }) }
	// The worker is stopped while it asks, and learns of its grant when the next is there.
	late := func(first, second uint64) *script {
		return newScript().with(func(h *history.Header) { h.Guard, h.Tokens = "fence", first > 0 }).
			acquireToken("w1", "a", 10, 125, first).acquireToken("w2", "b", 111, 112, second).read("a", 126, 0).read("b", 130, 0)
	}
	// Its request was on its way for so long that another one came and went meanwhile; or else
	// the answer was, after its lease had run out. Only a release that finds it tells.
	onItsWay := func(first, second uint64) *script {
		return newScript().with(func(h *history.Header) { h.Tokens = first > 0 }).
			acquireToken("w1", "a", 23, 174, first).acquireToken("w2", "b", 135, 141, second).write("b", 143, 1, 0, 1).release("b", 147, 153).write("a", 187, 2, 1, 2)
	}
	nested := func(second string) *script {
		return newScript().with(func(h *history.Header) { h.Reentrant = 2 }).acquire("w1", "a", 10, 11).acquire(second, "b", 20, 21).
			write("b", 22, 1, 0, 1).release("b", 23, 24).write("a", 25, 2, 1, 2)
	}
	waited := func(first, second uint64) *script { // b has no deadline
		s := tokenScript().acquireToken("w1", "a", 30, 31, first)
		return s.try("w2", "b", 10, 40, history.Event{Type: history.OK, Token: second}).read("a", 41, 0).read("b", 42, 0)
	}
	for _, c := range []struct {
		name string
		s    *script
		v    Verdict
		n    int
	}{
		{"answered late, write of the next", late(5, 6).access(history.Write, history.Fail, "a", 132, 1, 0, 0).write("b", 135, 2, 0, 1), Valid, 0},
		{"answered late, own write", late(5, 6).write("a", 132, 1, 0, 1).write("b", 135, 2, 1, 2), Violation, 1},
		{"answered late, without tokens, write of the next", late(0, 0).write("b", 135, 2, 0, 1), Valid, 0},
		{"answered late, without tokens, own write", late(0, 0).write("a", 132, 1, 0, 1), Violation, 1},
		{"answered late, a lower token", waited(6, 5).write("a", 43, 1, 0, 1), Valid, 0},
		{"answered late, a higher token", waited(5, 6).write("a", 43, 1, 0, 1), Violation, 1},
		{"asked for early, released", onItsWay(0, 0).release("a", 207, 216), Valid, 0},
		{"asked for early, gone at its release", onItsWay(0, 0).notHeld("a", 207, 216), Valid, 0},
		{"asked for early, gone, a higher token", onItsWay(6, 5).notHeld("a", 207, 216), Valid, 0},
		{"asked for early, gone, a lower token", onItsWay(5, 6).notHeld("a", 207, 216), Violation, 1},
		{"a lower token, though asked for later", tokenScript().acquireToken("w1", "a", 10, 11, 5).read("a", 12, 0).release("a", 13, 14).acquireToken("w2", "b", 15, 16, 4).read("b", 17, 0).write("b", 18, 1, 0, 1), Valid, 0},
		{"in order", two().write("a", 122, 1, 0, 1).write("b", 123, 2, 1, 2), Valid, 0},
		{"after a write", two().write("b", 122, 1, 0, 1).write("a", 123, 2, 1, 2), Violation, 1},
		{"asked for before, granted after", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 5, 12).read("b", 13, 0).write("a", 14, 2, 0, 1), Violation, 1},
		{"after a read", two().read("b", 122, 0).write("a", 123, 2, 0, 1), Violation, 1},
		{"late read only", two().write("b", 122, 1, 0, 1).read("a", 123, 1), Valid, 0},
		{"refused", two().write("b", 122, 1, 0, 1).access(history.Write, history.Fail, "a", 123, 2, 0, 0), Valid, 0},
		{"after a refused one", two().access(history.Read, history.Fail, "b", 122, 0, 0, 0).write("a", 123, 2, 0, 1), Valid, 0},
		{"before the later one came", two().write("a", 121.5, 2, 0, 1), Valid, 0},
		{"of an unknown grant", two().try("w3", "c", 10, -1, history.Event{}).write("b", 122, 1, 0, 1).write("c", 123, 2, 1, 2), Valid, 0},
		{"twice", two().read("b", 122, 0).write("a", 123, 1, 0, 1).write("a", 124, 2, 1, 2), Violation, 2},
		{"with a version check, on what the later one wrote", cas(two().write("b", 122, 1, 0, 1).read("a", 123, 1).write("a", 124, 2, 1, 2)), Valid, 0},
		{"with a version check, on an older version", cas(two().write("b", 122, 1, 0, 1).write("a", 124, 2, 0, 2)), Violation, 1},
		{"with a version check, after a read only", cas(two().read("b", 122, 0).write("a", 124, 2, 0, 1)), Valid, 0},
		{"without one, on what the later one wrote", two().write("b", 122, 1, 0, 1).read("a", 123, 1).write("a", 124, 2, 1, 2), Violation, 1},
		{"of one of two whom a semaphore permits", two().with(func(h *history.Header) { h.Permits = 2 }).read("b", 122, 0).write("a", 123, 2, 0, 1), NotApplicable, 0},
		{"of a reentrant lock, after a nested one", nested("w1"), Valid, 0},
		{"of a reentrant lock, after somebody else", nested("w2"), Violation, 1},
		{"no writes", two().read("b", 122, 0), Undecided, 0},
		{"mutex", two().with(func(h *history.Header) { h.Workload = "mutex" }), NotApplicable, 0},
	} {
		t.Run(c.name, func(t *testing.T) { want(t, c.s.end().check(t), NoStaleWrite, c.v, c.n) })
	}
}

func TestUpdates(t *testing.T) {
	two := func(base int64) *script {
		return newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121).write("a", 122, 1, 0, 1).write("b", 123, 2, base, 2)
	}
	counter := func(s *script) *script {
		return s.with(func(h *history.Header) { h.Workload = "counter" })
	}
	for _, c := range []struct {
		name string
		s    *script
		v    Verdict
		sum  UpdateSummary
		what string
	}{
		{"all there", two(1).final("k0", "[1,2]"), Valid, UpdateSummary{Acknowledged: 2}, ""},
		{"one lost", two(0).final("k0", "[2]"), Violation, UpdateSummary{Acknowledged: 2, Lost: 1, LossEvents: 1}, "update 1 of w1 to k0 (version 1) was overwritten 1 ms later by w2, whose version 2 was computed from version 0"},
		{"lost without a reason", two(1).final("k0", "[2]"), Violation, UpdateSummary{Acknowledged: 2, Lost: 1, LossEvents: 1}, "no accepted write explains it"},
		{"all lost", two(1).final("k0", "null"), Violation, UpdateSummary{Acknowledged: 2, Lost: 2, LossEvents: 2}, ""},
		{"twice", two(1).final("k0", "[1,2,1]"), Violation, UpdateSummary{Acknowledged: 2, Duplicated: 1}, "element 1 is in the final state of k0 twice"},
		{"from nowhere", two(1).final("k0", "[1,2,77]"), Violation, UpdateSummary{Acknowledged: 2, Phantom: 1}, "element 77 "},
		{"attempted only", two(1).do(history.Write, "b", 124, 125, history.Event{Type: history.Info}).access(history.Write, history.Fail, "b", 124, 3, 2, 0).final("k0", "[1,2,3]"), Valid, UpdateSummary{Acknowledged: 2}, ""},
		{"release failed afterwards", two(1).notHeld("a", 130, 131).final("k0", "[2]"), Violation, UpdateSummary{Acknowledged: 2, Lost: 1, LossEvents: 1}, ""},
		{"no final", two(1), Undecided, UpdateSummary{}, ""},
		{"no final of one key", two(1).acquire("w3", "c", 10, 11, "k1").write("c", 124, 5, 0, 1).final("k1", "[5]"), Undecided, UpdateSummary{Acknowledged: 1}, ""},
		{"unreadable final", two(1).final("k0", `"x"`), Undecided, UpdateSummary{}, ""},
		{"nothing", newScript().final("k0", "[]"), Undecided, UpdateSummary{}, ""},
		{"counter", counter(two(1)).final("k0", "2"), Valid, UpdateSummary{Acknowledged: 2}, ""},
		{"counter lost", counter(two(0)).final("k0", "1"), Violation, UpdateSummary{Acknowledged: 2, Lost: 1, LossEvents: 1}, "update 1 of w1 to k0 (version 1) was overwritten"},
		{"counter empty", counter(two(1)).final("k0", "null"), Violation, UpdateSummary{Acknowledged: 2, Lost: 2}, "no write explains the loss of 2"},
		{"counter too high", counter(two(1)).final("k0", "4"), Violation, UpdateSummary{Acknowledged: 2, Phantom: 2}, "2 more than anybody"},
		{"mutex", newScript().with(func(h *history.Header) { h.Workload = "mutex" }), NotApplicable, UpdateSummary{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.end().check(t)
			c.sum.LostLow, c.sum.LostHigh = r.Updates.LostLow, r.Updates.LostHigh
			if r.Updates != c.sum {
				t.Errorf("%+v, want %+v", r.Updates, c.sum)
			}
			want(t, r, NoLostUpdate, c.v, int(c.sum.Lost+c.sum.Duplicated+c.sum.Phantom))
			if c.what != "" && !strings.Contains(r.of(NoLostUpdate).Violations[0].What, c.what) {
				t.Error(r.dump())
			}
		})
	}
}

// TestForgottenCommit: where the lock's database keeps the data, what it answered for
// and then lost is in none of its records; the workers know.
func TestForgottenCommit(t *testing.T) {
	inDatabase := func(h *history.Header) { h.Guard = history.GuardDatabase }
	counts := func(h *history.Header) { inDatabase(h); h.Workload = "counter" }
	done, unsure := history.Event{Type: history.OK, Element: 1, Version: 1}, history.Event{Type: history.Info, Element: 1}
	// a writes element 1 and b element 2, of which the record has at least the second.
	first := func(wrote history.Event) *script {
		return newScript().acquire("w1", "a", 10, 11).do(history.Write, "a", 12, 13, wrote)
	}
	second := func(s *script, base, version int64) *script {
		return s.acquire("w2", "b", 20, 21).do(history.Write, "b", 22, 23, history.Event{Type: history.OK, Element: 2, Version: version}).
			write("b", 22, 2, base, version).release("b", 24, 25)
	}
	recorded := func() *script { return second(first(done).write("a", 12, 1, 0, 1).release("a", 14, 15), 1, 2) }
	forgotten := func() *script { return second(first(done).release("a", 14, 15), 0, 1) }
	for _, c := range []struct {
		name         string
		s            *script
		acknowledged int64
		lost         int64
		want         Verdict
	}{
		{"recorded", recorded().with(inDatabase).final("k0", "[1,2]"), 2, 0, Valid},
		{"forgotten", forgotten().with(inDatabase).final("k0", "[2]"), 2, 1, Violation},
		{"the same at a resource of its own, which is the one that accepts", forgotten().final("k0", "[2]"), 1, 0, Valid},
		{"forgotten, but there", forgotten().with(inDatabase).final("k0", "[1,2]"), 2, 0, Valid},
		{"all that there was", first(done).release("a", 14, 15).with(inDatabase).final("k0", "null"), 1, 1, Violation},
		{"the release was not answered", second(first(done).do(history.Release, "a", 14, 15, history.Event{Type: history.Info}), 0, 1).with(inDatabase).final("k0", "[2]"), 1, 0, Valid},
		{"rolled back at the release", second(first(done).notHeld("a", 14, 15), 0, 1).with(inDatabase).final("k0", "[2]"), 1, 0, Valid},
		{"the write was not answered", second(first(unsure).release("a", 14, 15), 0, 1).with(inDatabase).final("k0", "[2]"), 1, 0, Valid},
		{"never read", forgotten().with(inDatabase), 0, 0, Undecided},
		{"counted", recorded().with(counts).final("k0", "2"), 2, 0, Valid},
		{"not counted", forgotten().with(counts).final("k0", "1"), 2, 1, Violation},
		{"nothing counted", first(done).release("a", 14, 15).with(counts).final("k0", "null"), 1, 1, Violation},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.end().check(t)
			want(t, r, NoLostUpdate, c.want, int(c.lost))
			if r.Updates.Acknowledged != c.acknowledged || r.Updates.Lost != c.lost || r.Updates.LossEvents != c.lost {
				t.Errorf("%+v", r.Updates)
			}
			if c.lost == 0 {
				return
			}
			if v := r.of(NoLostUpdate).Violations[0]; r.Verdict != Violation || v.Element != 1 || !strings.Contains(v.What, "update 1 of w1 to k0 (version 1) was committed") {
				t.Error(r.dump())
			}
		})
	}
}

func TestFencing(t *testing.T) {
	tokens := func(s *script) *script { return s.with(func(h *history.Header) { h.Tokens = true }) }
	pair := func(a, b uint64) *script {
		return tokens(newScript().acquireToken("w1", "a", 10, 11, a).release("a", 20, 21).acquireToken("w2", "b", 30, 31, b).release("b", 40, 41))
	}
	// Three wait in a queue: each is granted when the one before it has released.
	queue := func(a, b, c uint64) *script {
		return tokens(newScript().acquireToken("w1", "a", 1, 10, a).release("a", 20, 21).
			acquireToken("w2", "b", 1, 22, b).release("b", 30, 31).acquireToken("w3", "c", 2, 32, c).release("c", 40, 41))
	}
	reentrant := func(s *script) *script { return s.with(func(h *history.Header) { h.Reentrant = 2 }) }
	nested := func(inner, next uint64) *script {
		return reentrant(tokens(newScript().acquireToken("w1", "a", 10, 11, 5).acquireToken("w1", "b", 12, 13, inner).
			release("b", 14, 15).release("a", 20, 21).acquireToken("w2", "c", 30, 31, next).release("c", 40, 41)))
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
		{"semaphore, decreasing", semaphore(pair(2, 1)), NotApplicable, 0, Valid},
		{"queue", queue(1, 2, 3), Valid, 0, Valid},
		{"queue, swapped", queue(1, 3, 2), Violation, 1, Violation},
		{"queue, swapped, release unknown", tokens(newScript().acquireToken("w1", "a", 1, 10, 2).do(history.Release, "a", 20, 21, history.Event{Type: history.Info}).acquireToken("w2", "b", 1, 22, 1)), Violation, 1, Violation},
		{"increasing", pair(1, 2), Valid, 0, Valid},
		{"with a gap", pair(1, 20), Valid, 0, Valid},
		{"equal", pair(1, 1), Violation, 1, Violation},
		{"decreasing", pair(2, 1), Violation, 1, Violation},
		{"first unknown", pair(0, 1), Undecided, 0, Valid},
		{"second unknown", pair(1, 0), Undecided, 0, Valid},
		{"unknown, of a dead grant", tokens(newScript().acquireToken("w1", "a", 10, 11, 1).release("a", 20, 21).try("w2", "b", 30, 31, history.Event{Type: history.OK, Expired: true}).release("b", 40, 41)), Valid, 0, Valid},
		{"unknown, among decreasing ones", tokens(pair(2, 1).acquireToken("w3", "c", 50, 51, 0)), Violation, 1, Violation},
		{"none known", pair(0, 0), Undecided, 0, Valid},
		{"equal and concurrent", tokens(newScript().acquireToken("w1", "a", 10, 31, 1).release("a", 40, 41).acquireToken("w2", "b", 30, 32, 1).release("b", 32, 33)), Violation, 1, Violation},
		{"decreasing but concurrent", tokens(newScript().acquireToken("w1", "a", 10, 31, 2).release("a", 40, 41).acquireToken("w2", "b", 20, 22, 1).release("b", 25, 27)), Valid, 0, Valid},
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
		{"not held, told before", newScript().acquire("w1", "a", 10, 11).lost("a", 40, "service").notHeld("a", 50, 51), Valid},
		{"not held, own deadline", newScript().acquire("w1", "a", 10, 11).lost("a", 40, "deadline").notHeld("a", 50, 51), Violation},
		{"not held twice released", newScript().acquire("w1", "a", 10, 11).do(history.Release, "a", 20, 30, info).notHeld("a", 31, 32), Valid},
		{"seen after not held", newScript().acquire("w1", "a", 10, 11).notHeld("a", 120, 121).busy("w2", "b", 130, 131, "a"), Violation},
		{"tokens against three grants", newScript().with(func(h *history.Header) { h.Tokens = true }).acquireToken("w1", "h", 1, 500, 2).acquireToken("w2", "g", 300, 900, 1).try("w3", "u", 50, 60, info).busy("w4", "x", 190, 200, "u").busy("w4", "y", 600, 610, "u"), Violation},
		{"released after not held", newScript().acquire("w1", "a", 10, 11).notHeld("a", 120, 121).release("a", 131, 132), Violation},
		{"stopped by itself, granted early", newScript().acquire("w1", "a", 10, 11).lost("a", 20, "deadline").acquire("w2", "b", 30, 31), Violation},
		{"no lease, never ends", noLease(newScript()).acquire("w1", "a", 10, 11).acquire("w2", "b", 8000, 8001), Violation},
		{"no lease, not held", noLease(newScript()).acquire("w1", "a", 10, 11).notHeld("a", 8000, 8001), Violation},
		{"no lease, told", noLease(newScript()).acquire("w1", "a", 10, 11).lost("a", 15, "service").acquire("w2", "b", 20, 21), Valid},
		{"no lease, lost release", noLease(newScript()).acquire("w1", "a", 10, 11).do(history.Release, "a", 20, -1, info).acquire("w2", "b", 30, 31), Valid},
		{"illegal on one key only", newScript().acquire("w3", "x", 10, 11, "k1").release("x", 20, 21).acquire("w1", "a", 10, 11).acquire("w2", "b", 30, 31), Violation},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.end().check(t)
			f := r.of(Linearizability)
			if f.Verdict != c.v {
				t.Errorf("%s, want %s\n%s", f.Verdict, c.v, r.dump())
			}
			if f.Verdict == Violation && (len(f.Violations) == 0 || f.Violations[0].What == "") {
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
	// Allowed: lease 100 ms, slack 50 ms, grace 1000 ms.
	with := func() *script {
		return newScript().with(func(h *history.Header) { h.Grace = 50 * time.Millisecond })
	}
	base := func() *script {
		return with().acquire("w1", "a", 10, 11).release("a", 20, 21).pause("f1", 30, 99, "w1") // gone by 100
	}
	killed := func(target string) *script {
		return with().acquire("w1", "a", 10, 11).fault(history.Fault{ID: "f1", Kind: "kill", Targets: []string{target}}, 30, 2000)
	}
	// A worker asks again and again, 20 ms between two attempts.
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
	// Workers hold the lock from 200 to 3200, in turn, each for 99 ms.
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
		{"no fault", newScript().acquire("w1", "a", 10, 11), Valid, "no fault to recover from"},
		{"no fault, none succeeds", ready(newScript()).busy("w1", "a", 10, 2000, "").phase(3000, history.PhaseFinal), Violation, "nobody could acquire k0 for 1.99 s, though nobody alive held it; 1.1 s were allowed"},
		{"no fault, none succeeds, too short", ready(newScript()).busy("w1", "a", 10, 200, "").phase(300, history.PhaseFinal), Undecided, "nor tried for longer"},
		{"no fault, leaked after a while", final(answers(ready(with()).acquire("w1", "a", 10, 11).release("a", 20, 21), "w2", "b", 30, 2000, busy)), Violation, "nobody could acquire k0 for 1.98 s, though"},
		{"no fault, leaked, found after a while", final(answers(ready(with()).acquire("w1", "a", 10, 11).release("a", 20, 21), "w2", "b", 30, 1100, busy).acquire("w2", "c", 1120, 1170)), Valid, ""},
		{"no fault, long held", final(answers(ready(with()).acquire("w1", "a", 10, 11), "w2", "b", 30, 2000, busy).release("a", 2100, 2101)), Valid, ""},
		{"no fault, still held at the end", final(answers(ready(with()).acquire("w1", "a", 10, 11), "w2", "b", 30, 2000, busy)), Valid, ""},
		{"no fault, forgotten and gone on", final(answers(ready(with()).acquire("w1", "a", 10, 11).acquire("w1", "c", 15, 16, "k1").release("c", 4000, 4001), "w2", "b", 30, 2000, busy)), Violation, "nobody could acquire k0"},
		{"no fault, seldom asked for", ready(with()).acquire("w1", "a", 10, 11).release("a", 20, 21).busy("w2", "b", 30, 40, "").busy("w2", "c", 1500, 1510, "").busy("w3", "d", 2500, 2510, "").acquire("w1", "e", 4000, 4001), Valid, ""},
		{"nobody tries", newScript(), Undecided, "nobody tried"},
		{"in time", final(base().acquire("w1", "b", 200, 1340)), Valid, ""},
		{"too late", final(base().acquire("w1", "b", 200, 1360)), Violation, "after the last fault was healed nobody could acquire k0 for 1.16 s"},
		{"too late, asked for before", final(base().acquire("w2", "b", 50, 1260)), Violation, "1.16 s"},
		{"late, but asked for late", final(base().acquire("w1", "b", 1255, 1260)), Valid, ""},
		{"late, but asked for late, all the time before idle", final(base().busy("w1", "b", 101, 120, "").acquire("w1", "c", 3000, 3001)), Valid, ""},
		{"never", final(base().busy("w1", "b", 200, 4000, "")), Violation, ""},
		{"never on one key", final(by(base(), "w2").try("w4", "z", 200, 2000, busy, "k1")), Violation, "nobody could acquire k1 for 1.8 s"},
		{"once, and then never", final(answers(base().acquire("w2", "b", 200, 201).release("b", 210, 211), "w3", "c", 220, 2000, busy)), Violation, "nobody could acquire k0 for 1.78 s"},
		{"gave up early", final(base().busy("w1", "b", 200, 400, "")), Undecided, ""},
		{"stopped early", base().busy("w1", "b", 200, 4000, "").phase(500, history.PhaseFinal), Undecided, ""},
		{"nobody asks", final(base()), Undecided, "nobody tried to acquire the lock after the last fault was healed"},
		{"a live holder", final(base().acquire("w2", "c", 90, 91).renew("c", 150, 151).release("c", 3000, 3001).acquire("w1", "b", 200, 3002)), Valid, ""},
		{"a worker gets only errors", final(others(answers(base(), "w1", "e", 200, 1600, failed))), Violation, "after the last fault was healed w1 got nothing but errors for 1.3 s when it asked for the lock"},
		{"a worker gets no answer", final(others(answers(base(), "w1", "e", 200, 1600, unknown))), Violation, "w1 got nothing but errors"},
		{"two workers get only errors", final(others(answers(answers(base(), "w1", "e", 200, 1600, failed), "w3", "f", 200, 1600, failed))), Violation, "(and 1 more like it)"},
		{"only one worker gets no errors", final(by(answers(base(), "w1", "e", 200, 1600, failed), "w2")), Valid, ""},
		{"those who are served get errors too", final(others(answers(base(), "w1", "e", 200, 1600, failed)).do(history.Renew, "o3", 520, 530, unknown)), Valid, ""},
		{"a worker gets only errors, not for long", final(others(answers(base(), "w1", "e", 200, 1300, failed))), Valid, ""},
		{"a worker gets only errors, as long as the fault lasts", final(others(answers(with().acquire("w3", "a", 1, 2).release("a", 3, 4).pause("f1", 5, 1900, "n1"), "w1", "e", 10, 2000, failed))), Valid, ""},
		{"a worker is refused all the time", final(others(answers(base(), "w1", "e", 200, 3000, busy))), Valid, ""},
		{"a worker is refused once among errors", final(others(answers(answers(base(), "w1", "e", 200, 1000, failed).try("w1", "x", 1000, 1080, busy), "w1", "f", 1100, 2200, failed))), Valid, ""},
		{"a worker waits in its queue", final(others(base().try("w1", "e", 200, 3300, busy))), Valid, ""},
		{"a worker waits until the end of the run", others(base().try("w1", "e", 200, 3310, unknown)).phase(3300, history.PhaseFinal), Valid, ""},
		// A kill of w1 at 30 is over by 31, whenever it was said to be healed.
		{"holder killed, in time", final(killed("w1").acquire("w2", "b", 30, 1180).release("b", 1181, 1182)), Valid, "w1 was killed"},
		{"holder killed, too late", final(killed("w1").acquire("w2", "b", 30, 1190).release("b", 1191, 1192)), Violation, "w1 was killed"},
		{"holder killed, never", final(killed("w1").busy("w2", "b", 40, 4000, "")), Violation, ""},
		{"waiter killed", final(others(killed("w1").notHeld("a", 25, 26).try("w1", "b", 27, -1, history.Event{}))), Valid, ""},
		{"server killed, counted from its heal", final(killed("n1").notHeld("a", 1000, 1001).acquire("w2", "b", 1100, 3100).release("b", 3101, 3102)), Valid, ""},
		{"never healed", newScript().acquire("w1", "a", 10, 11).stage(20, history.Fault{ID: "f1", Kind: "pause", Stage: history.Applied}), Undecided, ""},
		{"skipped", newScript().acquire("w1", "a", 10, 11).stage(20, history.Fault{ID: "f1", Kind: "pause", Stage: history.Skipped}), Valid, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.end().check(t)
			if got := r.of(Liveness); got.Verdict != c.v || !strings.Contains(got.Summary, c.what) {
				t.Errorf("%s, want %s %q\n%s", got.Verdict, c.v, c.what, r.dump())
			}
		})
	}
}

func TestFaultEvidence(t *testing.T) {
	asked := func(kinds ...string) *script {
		return newScript().with(func(h *history.Header) { h.Faults = kinds })
	}
	held := func(kinds ...string) *script { // promised until 110, held until 150
		return asked(kinds...).acquire("w1", "a", 10, 11).notHeld("a", 150, 151)
	}
	dropped := func(n int64) history.Fault {
		return history.Fault{ID: "f1", Kind: "partition", Targets: []string{"w1"}, Peers: []string{"n1"}, Dropped: &n}
	}
	kill := func(target string) history.Fault {
		return history.Fault{ID: "f1", Kind: "kill", Targets: []string{target}}
	}
	clock := history.Fault{ID: "f1", Kind: "clock", Targets: []string{"n1"}, Step: 1}
	waiter := history.Fault{ID: "f1", Kind: "pause", Role: "waiter", Targets: []string{"w1"}}
	stage := func(st history.Stage, from, to float64) history.Fault {
		return history.Fault{ID: "f1", Kind: "pause", Targets: []string{"w1"}, Stage: st, From: ms(from), To: ms(to)}
	}
	for _, c := range []struct {
		name      string
		s         *script
		v         Verdict
		summary   string
		exercised bool
		outlasted bool
	}{
		{"none asked for", newScript(), NotApplicable, "no faults were asked for", false, false},
		{"never applied", held("pause"), Undecided, "no pause was ever applied", false, false},
		{"holder paused beyond its promise", held("pause").pause("f1", 20, 140, "w1"), Valid, "1 of 1 pause hit a holder, 1 outlasted its promise", true, true},
		{"holder paused shortly", held("pause").pause("f1", 20, 30, "w1"), Valid, "0 outlasted", true, false},
		{"somebody else paused", held("pause").pause("f1", 20, 140, "w2"), Undecided, "no pause hit a holder inside its section", false, false},
		{"paused outside of a section", held("pause").pause("f1", 200, 240, "w1"), Undecided, "no pause hit a holder inside its section", false, false},
		{"waiter paused in its acquire", asked("pause").acquire("w1", "a", 10, 145).fault(waiter, 20, 140), Valid, "1 of 1 waiter pause fault proven and exercised", true, false},
		{"waiter paused, its acquire over before", asked("pause").acquire("w1", "a", 10, 15).release("a", 16, 17).fault(waiter, 20, 140), Undecided, "no pause hit a holder", false, false},
		{"paused in its acquire, but not for that", asked("pause").acquire("w1", "a", 10, 145).pause("f1", 20, 140, "w1"), Undecided, "no pause hit a holder", false, false},
		{"gone before it was certain", held("pause").fault(history.Fault{ID: "f1", Kind: "pause", Targets: []string{"w1"}}, 149.5, 170), Undecided, "no pause hit a holder", false, false},
		{"not proven", held("pause").stage(20, stage(history.Applied, 19, 20)).stage(25, stage(history.Unproven, 0, 0)).stage(30, stage(history.Healed, 29, 30)).stage(31, stage(history.ProvenHealed, 31, 31)), Undecided, "no pause could be proven", false, false},
		{"not healed", held("pause").stage(20, stage(history.Applied, 19, 20)).stage(25, stage(history.Proven, 0, 0)).stage(30, stage(history.Unhealed, 29, 30)), Broken, "fault f1 could not be proven healed", false, false},
		{"server paused under an operation", asked("pause").acquire("w1", "a", 10, 50).pause("f1", 20, 40, "n1"), Valid, "1 of 1 server pause fault proven and exercised", true, false},
		{"server paused while nobody asked", asked("pause").acquire("w1", "a", 10, 15).pause("f1", 20, 40, "n1"), Undecided, "no pause of a server met an operation", false, false},
		{"server paused, never answered", asked("pause").try("w1", "a", 10, -1, history.Event{}).pause("f1", 20, 40, "n1"), Valid, "", true, false},
		{"holder killed", asked("kill").acquire("w1", "a", 10, 11).fault(kill("w1"), 20, 40), Valid, "1 of 1 kill hit a worker that held the lock or was about to", true, false},
		{"killed while it asked", asked("kill").try("w1", "a", 10, -1, history.Event{}).fault(kill("w1"), 20, 40), Valid, "", true, false},
		{"killed while it released", asked("kill").acquire("w1", "a", 10, 11).do(history.Release, "a", 19, -1, history.Event{}).fault(kill("w1"), 20, 40), Valid, "", true, false},
		{"killed while idle", asked("kill").acquire("w1", "a", 10, 11).release("a", 12, 13).acquire("w2", "b", 14, 200).fault(kill("w1"), 20, 40), Undecided, "no kill hit a worker that held the lock or was about to", false, false},
		{"server killed under an operation", asked("kill").acquire("w1", "a", 10, 50).fault(kill("n1"), 20, 40), Valid, "1 of 1 server kill fault proven and exercised", true, false},
		{"server killed while nobody asked", asked("kill").acquire("w1", "a", 10, 15).fault(kill("n1"), 20, 40), Undecided, "no kill of a server met an operation", false, false},
		{"server paused under an operation of a worker tied to it", tied(asked("pause").servers("n1", "n2"), "n1").acquire("w1", "a", 10, 50).pause("f1", 20, 40, "n1"), Valid, "", true, false},
		{"server paused under an operation of a worker tied to another", tied(asked("pause").servers("n1", "n2"), "n2").acquire("w1", "a", 10, 50).pause("f1", 20, 40, "n1"), Undecided, "no pause of a server met an operation", false, false},
		{"clock under an operation", asked("clock").acquire("w1", "a", 10, 25).fault(clock, 20, 40), Valid, "1 of 1 clock fault proven and exercised", true, false},
		{"clock under a holder", asked("clock").acquire("w1", "a", 10, 11).release("a", 50, 51).fault(clock, 20, 40), Valid, "", true, false},
		{"clock while nobody asked", asked("clock").acquire("w1", "a", 10, 11).release("a", 12, 13).fault(clock, 20, 40), Undecided, "no clock was moved while anybody held the lock or asked for it", false, false},
		{"of an unknown kind", asked("packet").acquire("w1", "a", 10, 50).fault(history.Fault{ID: "f1", Kind: "packet", Targets: []string{"n1"}}, 20, 40), Undecided, "no packet is known to have mattered", false, false},
		{"cut", asked("partition").fault(dropped(3), 20, 40), Valid, "", true, false},
		{"cut that dropped nothing", asked("partition").fault(dropped(0), 20, 40), Undecided, "no partition met a packet", false, false},
		{"one kind of two", held("pause", "clock").pause("f1", 20, 140, "w1"), Undecided, "no clock was ever applied", true, true},
		{"skipped", held("pause").stage(20, history.Fault{ID: "f1", Kind: "pause", Stage: history.Skipped, Evidence: "no target"}), Undecided, "no pause was ever applied", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.end().check(t)
			if f := r.of(FaultEvidence); f.Verdict != c.v || !strings.Contains(f.Summary, c.summary) {
				t.Errorf("%s %q", f.Verdict, f.Summary)
			}
			if len(r.Faults) == 0 {
				return
			}
			f := r.Faults[0]
			if f.Exercised != c.exercised || f.Outlasted != c.outlasted {
				t.Errorf("%+v", f)
			}
			if !f.Exercised && f.Reason == "" && f.Healed {
				t.Errorf("no reason: %+v", f)
			}
		})
	}
}

// TestRoles: a fault that was never begun goes by its role.
func TestRoles(t *testing.T) {
	for role, workers := range map[string]bool{
		"holder": true, "waiter": true, "workers": true, "one worker": true, "majority workers": true, "w2": true, "n1, w2": true,
		"": false, "leader": false, "follower": false, "one": false, "servers": false, "one server": false, "n3": false, "halves": false,
	} {
		f := FaultCoverage{Kind: "pause", Role: role}
		if got := f.meansWorkers(newScript().header); got != workers {
			t.Errorf("%q means workers: %v", role, got)
		}
	}
}

func TestAssumptions(t *testing.T) {
	for _, c := range []struct {
		name    string
		s       *script
		v       Verdict
		summary string
	}{
		{"complete", good(), Valid, ""},
		{"too few", good().with(func(h *history.Header) { h.MinOps = 3 }), Undecided, "only 2 updates were acknowledged, 3 are needed"},
		{"no end", turn(newScript(), "w1", "a", 10, 1, 1).final("k0", "[1]"), Broken, "the history ends before the run did"},
		{"nothing done", newScript().end(), Undecided, "only 0 updates were acknowledged, 1 are needed"},
		{"unknown requirement", good().with(func(h *history.Header) { h.Require = []string{"speed"} }), Broken, `no property "speed"`},
		{"mutex", newScript().with(func(h *history.Header) { h.Workload = "mutex" }).acquire("w1", "a", 10, 11).release("a", 20, 21).end(), Valid, ""},
		{"mutex without releases", newScript().with(func(h *history.Header) { h.Workload = "mutex" }).acquire("w1", "a", 10, 11).end(), Undecided, "only 0 holds were released"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.check(t)
			if f := r.of(Assumptions); f.Verdict != c.v || !strings.Contains(f.Summary, c.summary) {
				t.Errorf("%s %q", f.Verdict, f.Summary)
			}
		})
	}
	broken := good()
	broken.add(9002, history.Event{Process: history.Harness, Type: history.Info, F: history.Phase, Note: history.PhaseBroken, Error: "docker is gone"})
	if r := broken.check(t); r.Verdict != Broken || r.Sentence != "Broken: the run failed: docker is gone." {
		t.Error(r.dump())
	}
	h := good().history(t)
	h.Truncated = 17
	if f := Check(h, Options{}).of(Assumptions); !strings.Contains(f.Summary, "line 17") {
		t.Error(f.Summary)
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
	for _, c := range []struct {
		name     string
		s        *script
		v        Verdict
		sentence string
	}{
		{"violation", overlapped(), Violation, "Two workers once held the lock at the same time."},
		{"tolerated", guard(overlapped()), Valid, "No violation: 1 overlap; 1 update under the lock, none lost."},
		{"required", guard(overlapped(), "mutual-exclusion"), Violation, "Two workers once held the lock at the same time."},
		{"refused", guard(overlapped().access(history.Write, history.Fail, "a", 125, 2, 0, 0)), Valid, "No violation: 1 overlap; the fence refused 1 stale access; 1 update under the lock, none lost."},
		{"asked", asking(overlapped().access(history.Write, history.Fail, "a", 125, 2, 0, 0)), Valid, "No violation: 1 overlap; the check with the service refused 1 stale access; 1 update under the lock, none lost."},
		{"asked in vain", asking(unanswered(overlapped())), Valid, "No violation: 1 overlap; the check with the service refused 1 access for want of an answer; 1 update under the lock, none lost."},
		{"asked, and in vain", asking(unanswered(overlapped().access(history.Read, history.Fail, "a", 125, 0, 0, 0))), Valid, "No violation: 1 overlap; the check with the service refused 1 stale access and 1 access for want of an answer; 1 update under the lock, none lost."},
		{"no lock, versions compared", optimistic(overlapped().access(history.Write, history.Fail, "a", 125, 2, 0, 0)), Valid, "No violation: the version check refused 1 stale access; 1 update without a lock, none lost."},
		{"no lock", optimistic(overlapped()).with(func(h *history.Header) { h.Guard = "none" }), Violation, "Two workers once held the lock at the same time."},
		{"violation before broken", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 30, 31).release("b", 40, 41).release("a", 50, 51), Violation, ""},
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

func TestVisualize(t *testing.T) {
	for name, s := range map[string]*script{
		"illegal": newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 30, 31).pause("f1", 12, 20, "w1"),
		"fine":    good(),
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
