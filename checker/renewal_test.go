package checker

import (
	"testing"

	"lockcheck/history"
)

func TestWrongRenewal(t *testing.T) {
	renewed := func() *script { return newScript().with(func(h *history.Header) { h.Renewed = true }) }
	tokens := func() *script { return tokenScript().with(func(h *history.Header) { h.Renewed = true }) }
	both := func() *script { return renewed().acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121) }
	for _, c := range []struct {
		name string
		s    *script
		n    int
	}{
		{"before anybody else was granted it", renewed().acquire("w1", "a", 10, 11).renew("a", 60, 61).release("a", 150, 151).acquire("w2", "b", 160, 161).release("b", 170, 171), 0},
		{"after it had expired, and nobody else was granted it", renewed().acquire("w1", "a", 10, 11).renew("a", 130, 131).release("a", 150, 151), 0},
		{"while another one holds it", both().renew("a", 130, 131).release("a", 140, 141).notHeld("b", 150, 151), 1},
		{"after another one had held it", both().release("b", 125, 126).renew("a", 130, 131).release("a", 140, 141), 1},
		{"twice", both().renew("a", 130, 131).renew("a", 135, 136).release("a", 140, 141).notHeld("b", 150, 151), 1},
		{"refused", both().do(history.Renew, "a", 130, 131, history.Event{Type: history.Fail, Error: "not held"}).release("b", 150, 151), 0},
		{"in flight, and too late to keep the other one out", renewed().acquire("w1", "a", 10, 11).renew("a", 15, 131).acquire("w2", "b", 120, 121).release("b", 150, 151), 0},
		{"in flight, and would have kept the other one out", renewed().acquire("w1", "a", 10, 11).renew("a", 60, 131).acquire("w2", "b", 120, 121).release("b", 150, 151), 1},
		{"in flight, and released before the other one asked", renewed().acquire("w1", "a", 10, 11).renew("a", 60, 131).release("a", 62, 63).acquire("w2", "b", 120, 121).release("b", 150, 151), 0},
		{"of the later one", both().renew("b", 130, 131).release("b", 150, 151), 0},
		{"of another key", renewed().acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121, "k1").renew("a", 130, 131).release("a", 140, 141).release("b", 150, 151), 0},
		{"the other one expired on arrival", renewed().acquire("w1", "a", 10, 11).try("w2", "b", 120, 121, history.Event{Type: history.OK, Expired: true}).renew("a", 130, 131).release("a", 140, 141).notHeld("b", 150, 151), 0},
		{"both asked at once, the other token is lower", tokens().acquireToken("w1", "a", 10, 121, 2).acquireToken("w2", "b", 9, 11, 1).release("b", 20, 21).renew("a", 130, 131).release("a", 140, 141), 0},
		{"a clock was moved since", both().renew("a", 130, 131).release("a", 140, 141).notHeld("b", 150, 151).fault(history.Fault{ID: "f1", Kind: history.Clock, Targets: []string{"n1"}, Step: 9e7}, 125, 160), 0},
		{"while it asked anew", both().release("b", 122, 123).try("w1", "c", 124, 135, history.Event{Type: history.OK}).renew("a", 125, 131).release("c", 140, 141), 0},
		{"its holder was paused", both().renew("a", 130, 131).release("a", 140, 141).notHeld("b", 150, 151).pause("f1", 20, 128, "w1"), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := Valid
			switch {
			case c.n > 0:
				v = Violation
			case c.name == "refused":
				v = NotApplicable
			}
			r := c.s.end().check(t)
			want(t, r, NoWrongRenewal, v, c.n)
			noBug(t, r)
		})
	}
	lost := func() *script { return both().renew("a", 130, 131).release("a", 140, 141).notHeld("b", 150, 151) }
	want(t, lost().with(func(h *history.Header) { h.Permits = 2 }).check(t), NoWrongRenewal, NotApplicable, 0)
	session := renewed().with(func(h *history.Header) { h.Session = true }).try("w1", "a", 10, 11, history.Event{Type: history.OK}).
		try("w2", "b", 120, 121, history.Event{Type: history.OK}).renew("a", 130, 131).release("a", 140, 141).notHeld("b", 150, 151)
	want(t, session.check(t), NoWrongRenewal, NotApplicable, 0)
	if r := lost().with(func(h *history.Header) { h.Renewed = false }).check(t); r.of(NoWrongRenewal).Verdict != "" {
		t.Errorf("judged although no worker was to renew: %+v", r.of(NoWrongRenewal))
	}
}
