package checker

import (
	"cmp"
	"math"
	"strings"
	"testing"
	"time"

	"lockcheck/history"
)

// overlapping judges a script with n overlaps.
func (s *script) overlapping(t *testing.T, n int) Results {
	t.Helper()
	r, v := s.end().check(t), Valid
	if n > 0 {
		v = Violation
	}
	want(t, r, MutualExclusion, v, n)
	noBug(t, r)
	return r
}

func TestOverlap(t *testing.T) {
	overlapping := func() *script { // a is held from 11 to 50, b from 31 to 40
		return newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 30, 31).release("b", 40, 41).release("a", 50, 51)
	}
	useAfterExpiry := func() *script { // the lease of a ends at 110
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
		{"one ns too much", newScript().acquire("w1", "a", 10, 11).release("a", 20.000001, 21).acquire("w2", "b", 15, 20).release("b", 30, 31), 1, DoubleGrant, "from:20ms,to:20000001", nil},
		{"two keys", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 10, 11, "k1").release("b", 40, 41).release("a", 50, 51), 0, "", "", nil},
		{"double grant", overlapping(), 1, DoubleGrant, "{kind:overlap,figures:{holder:healthy},key:k0",
			func(o OverlapSummary) bool {
				return o.DoubleGrants == 1 && o.EarlierHealthy == 1 && o.Longest == 9*time.Millisecond
			}},
		{"use after expiry", useAfterExpiry(), 1, UseAfterExpiry, "holder:healthy,expired_ns:11ms",
			func(o OverlapSummary) bool { return o.UsesAfterExpiry == 1 }},
		{"noticed in time", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121).release("b", 140, 141).lost("a", 115, "deadline"), 0, "", "", nil},
		{"noticed too late", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121).release("b", 140, 141).lost("a", 125, "deadline"), 1, UseAfterExpiry, "from:121ms,to:125ms", nil},
		{"failed release ends it", newScript().acquire("w1", "a", 10, 11).notHeld("a", 115, 116).acquire("w2", "b", 120, 121).release("b", 140, 141), 0, "", "", nil},
		{"renewed", newScript().acquire("w1", "a", 10, 11).renew("a", 60, 61).acquire("w2", "b", 120, 121).release("b", 140, 141).release("a", 150, 151), 1, DoubleGrant, "", nil},
		{"renewal unknown", newScript().acquire("w1", "a", 10, 11).do(history.Renew, "a", 60, 61, history.Event{Type: history.Info}).acquire("w2", "b", 120, 121).release("b", 140, 141).notHeld("a", 150, 151), 1, UseAfterExpiry, "", nil},
		{"paused", useAfterExpiry().pause("f1", 20, 148, "w1"), 1, UseAfterExpiry, "holder:paused", func(o OverlapSummary) bool { return o.EarlierPaused == 1 }},
		{"paused until after its lease", useAfterExpiry().pause("f1", 20, 115, "w1"), 1, UseAfterExpiry, "holder:paused", nil},
		{"another one paused", useAfterExpiry().pause("f1", 20, 148, "w2"), 1, UseAfterExpiry, "holder:healthy", nil},
		{"paused long before", useAfterExpiry().pause("f1", 20, 30, "w1"), 1, UseAfterExpiry, "holder:healthy", nil},
		{"cut off as target", useAfterExpiry().fault(cut(history.Fault{Targets: []string{"w1"}, Peers: []string{"n1"}}), 20, 148), 1, UseAfterExpiry, "holder:cut off", func(o OverlapSummary) bool { return o.EarlierCutOff == 1 }},
		{"cut off from a minority only", useAfterExpiry().servers("n1", "n2", "n3", "n4", "n5").fault(cut(history.Fault{Targets: []string{"w1"}, Peers: []string{"n4", "n5"}}), 20, 148), 1, UseAfterExpiry, "holder:healthy", func(o OverlapSummary) bool { return o.EarlierHealthy == 1 }},
		{"cut off by two partitions", useAfterExpiry().servers("n1", "n2", "n3", "n4", "n5").fault(cut(history.Fault{ID: "a", Targets: []string{"w1"}, Peers: []string{"n4", "n5"}}), 20, 148).fault(cut(history.Fault{ID: "b", Targets: []string{"n3"}, Peers: []string{"w1"}}), 20, 148), 1, UseAfterExpiry, "holder:cut off", func(o OverlapSummary) bool { return o.EarlierCutOff == 1 }},
		{"its only server dead", useAfterExpiry().fault(history.Fault{ID: "f1", Kind: "kill", Targets: []string{"n1"}}, 20, 118), 1, UseAfterExpiry, "holder:cut off", nil},
		{"its only server up again", overlapping().fault(history.Fault{ID: "f1", Kind: "kill", Targets: []string{"n1"}}, 15, 30.5), 1, DoubleGrant, "holder:healthy", nil},
		{"two servers of three up again just then", overlapping().servers("n1", "n2", "n3").fault(history.Fault{ID: "f1", Kind: "pause", Targets: []string{"n1", "n2"}}, 15, 30.5), 1, DoubleGrant, "holder:healthy", nil},
		{"tied to a server that it is cut off from", tied(useAfterExpiry().servers("n1", "n2", "n3", "n4", "n5"), "n1").fault(cut(history.Fault{Targets: []string{"w1"}, Peers: []string{"n1"}}), 20, 148), 1, UseAfterExpiry, "holder:cut off", nil},
		{"tied to another one", tied(useAfterExpiry().servers("n1", "n2", "n3", "n4", "n5"), "n5").fault(cut(history.Fault{Targets: []string{"w1"}, Peers: []string{"n1", "n2", "n3"}}), 20, 148), 1, UseAfterExpiry, "holder:healthy", nil},
		{"cut off as peer", useAfterExpiry().fault(cut(history.Fault{Targets: []string{"n1"}, Peers: []string{"w1"}}), 20, 148), 1, UseAfterExpiry, "holder:cut off", nil},
		{"cut elsewhere", useAfterExpiry().fault(cut(history.Fault{Targets: []string{"n1"}, Peers: []string{"n2"}}), 20, 148), 1, UseAfterExpiry, "holder:healthy", nil},
		{"expired on arrival", newScript().acquire("w1", "a", 10, 125).acquire("w2", "b", 120, 121).release("b", 140, 141).notHeld("a", 150, 151).pause("f1", 15, 124, "w1"), 1, UseAfterExpiry, "holder:paused,expired_ns:15ms", nil},
		{"never ended", newScript().acquire("w1", "a", 10, 11).read("a", 25, 0).acquire("w2", "b", 20, 21).release("b", 40, 41), 1, DoubleGrant, "from:21ms,to:25ms", nil},
		{"a moment within", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 20, 21).release("b", 21, 22).release("a", 50, 51), 1, DoubleGrant, "from:21ms,to:21ms", nil},
		{"a moment within, after expiry", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121).release("b", 121, 122).notHeld("a", 150, 151), 1, UseAfterExpiry, "from:121ms,to:121ms", nil},
		{"a moment within, nothing more known", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 20, 21).release("a", 50, 51), 1, DoubleGrant, "from:21ms,to:21ms", nil},
		{"a moment within, given up before its answer", newScript().acquire("w1", "a", 10, 11).try("w2", "b", 20, 25, history.Event{Type: history.OK}).lost("b", 22, "service").release("a", 50, 51), 0, "", "", nil},
		{"a moment at the end", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 15, 20).release("b", 20, 22).release("a", 20, 21), 0, "", "", nil},
		{"a moment at the start", newScript().acquire("w1", "a", 10, 11).release("a", 11, 12).acquire("w2", "b", 10.5, 11).release("b", 20, 21), 0, "", "", nil},
		{"three at once", overlapping().acquire("w3", "c", 32, 33).release("c", 35, 36), 3, DoubleGrant, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.overlapping(t, c.n)
			if c.n == 0 || t.Failed() {
				return
			}
			got := r.of(MutualExclusion).Violations[0]
			if got.Class != c.class || !strings.Contains(factsText(got), c.what) {
				t.Errorf("%s: %s", got.Class, factsText(got))
			}
			if c.check != nil && !c.check(r.Overlaps) {
				t.Errorf("%+v", r.Overlaps)
			}
		})
	}
}

// TestGrantedMeanwhile: a lock that is granted while another worker certainly has it is not called exclusive,
// even if nothing more is known of that worker.
func TestGrantedMeanwhile(t *testing.T) {
	silent := func() *script { return newScript().acquire("w1", "a", 10, 11).read("a", 15, 0) }
	next := func(s *script) *script { return s.acquire("w2", "b", 20, 21).release("b", 40, 41) }
	for _, c := range []struct {
		name string
		s    *script
		want Verdict
	}{
		{"granted meanwhile", next(silent()), Undecided},
		{"never at work", next(newScript().acquire("w1", "a", 10, 11)), Undecided},
		{"after its lease", silent().acquire("w2", "b", 107, 108), Valid},
		{"its holder was killed", next(silent().fault(history.Fault{ID: "f1", Kind: "kill", Targets: []string{"w1"}}, 16, 17)), Valid},
		{"its holder went on", next(silent()).busy("w1", "c", 17, 18, ""), Valid},
		{"its release was not answered", next(silent().do(history.Release, "a", 16, -1, history.Event{})), Valid},
		{"the next one was first", newScript().acquire("w1", "a", 10, 30).acquire("w2", "b", 11, 12).release("b", 13, 14), Valid},
		{"expired on arrival", next(newScript().try("w1", "a", 10, 11, history.Event{Type: history.OK, Expired: true})), Valid},
		{"a clock was moved", next(silent().fault(history.Fault{ID: "f1", Kind: "clock", Targets: []string{"n1"}, Step: 9e7}, 16, 50)), Valid},
		{"released by somebody else, perhaps", next(silent().try("w3", "x", 8, 12, history.Event{Type: history.Info}).do(history.Release, "x", 16, 17, history.Event{Type: history.OK})), Valid},
		{"a semaphore", next(silent().with(func(h *history.Header) { h.Permits = 2 })), Valid},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.end().check(t)
			want(t, r, MutualExclusion, c.want, 0)
			noBug(t, r)
		})
	}
}

// TestCrowded: among the holders of a semaphore, the one whose validity ended first is the one too many.
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
	if v := r.of(MutualExclusion).Violations[0]; v.Class != UseAfterExpiry || v.Workers[0] != "w2" {
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

// TestOverlapKinds: two overlaps must not together satisfy a condition on one overlap.
func TestOverlapKinds(t *testing.T) {
	// The lock of a is granted again while w1 is paused; c is used after its expiry by a healthy worker.
	r := newScript().acquire("w1", "a", 10, 11).pause("f1", 15, 60, "w1").acquire("w2", "b", 30, 31).release("b", 40, 41).release("a", 61, 62).
		acquire("w3", "c", 210, 211).acquire("w4", "d", 320, 321).release("d", 340, 341).notHeld("c", 350, 351).end().check(t)
	for _, c := range []struct {
		class, earlier string
		want           int64
	}{
		{"", "", 2},
		{DoubleGrant, "", 1},
		{UseAfterExpiry, "", 1},
		{"", "healthy", 1},
		{"", "paused", 1},
		{"", "cut off", 0},
		{DoubleGrant, "paused", 1},
		{DoubleGrant, "healthy", 0},
		{UseAfterExpiry, "paused", 0},
		{UseAfterExpiry, "healthy", 1},
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
		{"notified", base().lost("a", 15, "service").notHeld("a", 20, 21), EndedByLost, 15, 110, 110},
		{"own deadline", base().lost("a", 15, "deadline").release("a", 20, 21), EndedByDeadline, 15, 110, 110},
		{"notified after release", base().release("a", 20, 21).lost("a", 22, "service"), EndedByRelease, 20, 110, 110},
		{"nothing", base(), EndedWithoutTrace, 11, 110, 110},
		{"last seen at the resource", base().read("a", 17, 0), EndedWithoutTrace, 17, 110, 110},
		{"refused at the resource", base().access(history.Write, history.Fail, "a", 17, 1, 0, 0), EndedWithoutTrace, 11, 110, 110},
		{"last event of the worker", base().do(history.Read, "a", 14, -1, history.Event{}), EndedWithoutTrace, 14, 110, 110},
		{"goes on elsewhere", base().acquire("w1", "b", 30, 31, "k1").release("b", 40, 41), EndedWithoutTrace, 11, 110, 110},
		{"renewed", base().renew("a", 50, 52).release("a", 60, 61), EndedByRelease, 60, 150, 150},
		{"renewed too late to count", base().renew("a", 50, 62).release("a", 60, 61), EndedByRelease, 60, 110, 150},
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

// TestRefusedForAnotherKey: a service that names the holder of another lock is wrong, and all checkers see
// it.
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
		{"other one expired on arrival", newScript().acquire("w2", "b", 10, 130).acquire("w1", "a", 120, 121).release("a", 140, 141).notHeld("b", 150, 151), 0},
		{"other one late, both granted at once", newScript().acquire("w2", "b", 10, 130).acquire("w1", "a", 120, 121).release("a", 140, 141).release("b", 150, 151), 0},
		{"of two that lost it", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 12, 13).acquire("w3", "c", 14, 15).release("a", 20, 21).notHeld("b", 30, 31).notHeld("c", 40, 41), 1},
		{"of one that lost it, by one of two releases", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 12, 13).acquire("w3", "c", 14, 15).release("a", 20, 21).release("b", 30, 31).notHeld("c", 40, 41), 1},
		{"each of its own, all granted at once", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 12, 13).acquire("w3", "c", 14, 15).release("a", 20, 21).release("b", 30, 31).release("c", 40, 41), 0},
		{"other one granted later, expired on arrival", newScript().acquire("w1", "a", 10, 11).try("w2", "b", 20, 21, history.Event{Type: history.OK, Expired: true}).release("a", 30, 31).notHeld("b", 40, 41), 0},
		{"other one granted later, expired", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121).release("a", 300, 301).notHeld("b", 400, 401), 0},
		{"other one granted later, a clock was moved", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121).release("a", 130, 131).release("b", 150, 151).fault(history.Fault{ID: "f1", Kind: "clock", Targets: []string{"n1"}, Step: 9e7}, 125, 160), 0},
		{"other one granted later, the only server was stopped", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121).release("a", 130, 131).release("b", 150, 151).pause("f1", 125, 128, "n1"), 1},
		{"other one granted later, one of three servers was stopped", newScript().servers("n1", "n2", "n3").acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121).release("a", 130, 131).release("b", 150, 151).pause("f1", 125, 128, "n1"), 0},
		{"other one granted later, renewed", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121).renew("b", 210, 211).release("a", 300, 301).notHeld("b", 400, 401), 1},
		{"other one has an older token", tokenScript().acquireToken("w3", "b", 11, 14, 10).acquireToken("w1", "a", 10, 15, 9).release("b", 24, 25).notHeld("a", 30, 31), 0},
		{"other one has a newer token", tokenScript().acquireToken("w3", "b", 11, 14, 9).acquireToken("w1", "a", 10, 15, 10).release("b", 24, 25).notHeld("a", 30, 31), 1},
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
	two := newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 20, 21).release("a", 30, 31).notHeld("b", 40, 41)
	want(t, two.check(t), NoWrongRelease, Violation, 1)
	want(t, two.with(func(h *history.Header) { h.Permits = 2 }).check(t), NoWrongRelease, NotApplicable, 0)
}
