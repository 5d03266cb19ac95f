package checker

import (
	"strings"
	"testing"

	"lockcheck/history"
)

// granted is an acquire of a session: it has no deadline.
func (s *script) granted(worker, grant string, from, to float64) *script {
	return s.try(worker, grant, from, to, history.Event{Type: history.OK})
}

// tied makes one server the only one that w1 reaches.
func tied(s *script, server string) *script {
	return s.with(func(h *history.Header) { h.Reaches = map[string][]string{"w1": {server}} })
}

func session(h *history.Header) { h.Session = true }

// TestSessionValidity: a session vouches for its holder for as long as the holder can renew it, and half a
// lease longer.
func TestSessionValidity(t *testing.T) {
	// a is held from 11 to 250, b from 221 to 240, with a lease of 100 ms.
	both := func() *script {
		return newScript().servers("n1", "n2", "n3").with(session).
			granted("w1", "a", 10, 11).granted("w2", "b", 220, 221).release("b", 240, 241).notHeld("a", 250, 251)
	}
	cut := func(peers ...string) history.Fault {
		return history.Fault{ID: "f1", Kind: "partition", Targets: []string{"w1"}, Peers: peers}
	}
	stopped := func(id, kind, server string) history.Fault {
		return history.Fault{ID: id, Kind: kind, Targets: []string{server}}
	}
	for _, c := range []struct {
		name  string
		s     *script
		class string
		what  string
	}{
		{"healthy", both(), DoubleGrant, "holder:healthy"},
		{"without sessions", both().with(func(h *history.Header) { h.Session = false }).pause("f1", 20, 230, "w1"), DoubleGrant, "holder:paused"},
		{"paused", both().pause("f1", 20, 230, "w1"), UseAfterExpiry, "holder:paused,expired_ns:151ms"},
		{"paused just before the other's grant", both().pause("f1", 200, 245, "w1"), DoubleGrant, "holder:paused"},
		{"paused too shortly to miss a renewal", both().pause("f1", 20, 60, "w1"), DoubleGrant, "holder:healthy"},
		{"the other one paused", both().pause("f1", 20, 200, "w2"), DoubleGrant, "holder:healthy"},
		{"cut off", both().fault(cut("n1", "n2"), 20, 230), UseAfterExpiry, "holder:cut off"},
		{"its only server stopped", both().servers("n1").fault(stopped("f1", "pause", "n1"), 20, 215), UseAfterExpiry, "holder:cut off,expired_ns:150ms"},
		{"its only server dead", both().servers("n1").fault(stopped("f1", "kill", "n1"), 20, 215), UseAfterExpiry, "holder:cut off"},
		{"its only server stopped too shortly", both().servers("n1").fault(stopped("f1", "pause", "n1"), 20, 60), DoubleGrant, "holder:healthy"},
		{"the leader of three stopped", both().fault(stopped("f1", "pause", "n1"), 20, 215), DoubleGrant, "holder:healthy"},
		{"two of three stopped", both().fault(stopped("f1", "pause", "n1"), 20, 215).fault(stopped("f2", "kill", "n2"), 30, 215), UseAfterExpiry, "holder:cut off"},
		{"two of three stopped, in turn", both().fault(stopped("f1", "pause", "n1"), 20, 115).fault(stopped("f2", "pause", "n2"), 120, 215), DoubleGrant, "holder:healthy"},
		{"cut off from one, another one stopped", both().fault(cut("n1"), 20, 215).fault(stopped("f2", "pause", "n2"), 20, 215), UseAfterExpiry, "holder:cut off"},
		{"paused, then cut off, each too shortly", both().pause("f0", 20, 60, "w1").fault(cut("n1", "n2"), 55, 100), UseAfterExpiry, "expired_ns:151ms"},
		{"tied to one of three, cut off from it", tied(both(), "n1").fault(cut("n1"), 20, 230), UseAfterExpiry, "holder:cut off"},
		{"tied to one of three, cut off from another", tied(both(), "n3").fault(cut("n1", "n2"), 20, 230), DoubleGrant, "holder:healthy"},
		{"cut off from a minority", both().fault(cut("n1"), 20, 230), DoubleGrant, "holder:healthy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.final("k0", "[]").end().check(t)
			found := r.of(MutualExclusion)
			if found.Total != 1 || found.Violations[0].Class != c.class || !strings.Contains(factsText(found.Violations[0]), c.what) {
				t.Errorf("%s", r.dump())
			}
			if r.Verdict == Broken {
				t.Errorf("%s", r.dump())
			}
		})
	}
}

// TestExpiredGrant: a grant that the service had forgotten is a violation, whether or not another worker held
// the lock. With a guard it is tolerated.
func TestExpiredGrant(t *testing.T) {
	expired := history.Event{Type: history.OK, Expired: true}
	for _, c := range []struct {
		name  string
		grant history.Event
		guard string
		want  Verdict
		total int
	}{
		{"alive", history.Event{Type: history.OK}, "none", Valid, 0},
		{"dead", expired, "none", Violation, 1},
		{"dead, with a guard", expired, "fence", Violation, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScript().with(func(h *history.Header) { h.Guard, h.Session = c.guard, true })
			r := s.try("w1", "a", 10, 11, c.grant).release("a", 20, 21).final("k0", "[]").end().check(t)
			found := r.of(NoExpiredGrant)
			if found.Verdict != c.want || found.Total != c.total || found.Tolerated != (c.guard != "none") && c.total > 0 {
				t.Errorf("%s", r.dump())
			}
		})
	}
	if r := newScript().end().check(t); r.of(NoExpiredGrant).Verdict != Undecided {
		t.Errorf("without any grant: %s", r.dump())
	}
}
