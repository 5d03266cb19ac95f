package checker

import (
	"testing"

	"lockcheck/history"
)

// given is an acquire of a session, which has no validity.
func (s *script) given(worker, grant string, from, to float64, token uint64) *script {
	return s.try(worker, grant, from, to, history.Event{Type: history.OK, Token: token})
}

// TestUnrenewed: two workers hold k0 from 150 ms on. The lease is 100 ms.
func TestUnrenewed(t *testing.T) {
	opened := func() *script { return newScript().session().beat("w1", "", 1, 2, history.Opens) }
	overlap := func(s *script) *script {
		return s.given("w1", "a", 10, 11, 1).given("w2", "b", 140, 150, 2).release("b", 160, 161).release("a", 170, 171)
	}
	ofAttempt := func() *script {
		s := newScript().session().given("w1", "a", 10, 19, 1)
		return s.beat("w1", "a", 11, 12, history.Opens)
	}
	for _, c := range []struct {
		name  string
		s     *script
		class string
		cause string
	}{
		{"renewed all the time", overlap(opened().beat("w1", "", 60, 61, "").beat("w1", "", 120, 121, "")), DoubleGrant, CauseTwice},
		{"renewed once", overlap(opened().beat("w1", "", 40, 41, "").beat("w1", "", 80, -1, "")), UseAfterExpiry, CauseUnrenewed},
		{"never renewed again", overlap(opened().beat("w1", "", 40, 41, "")), UseAfterExpiry, CauseUnrenewed},
		{"late answer: the service may have counted from when it was sent", overlap(opened().beat("w1", "", 40, 145, "")), UseAfterExpiry, CauseUnrenewed},
		{"renewed again after a lease: the session had lived", overlap(opened().beat("w1", "", 149, 152, "")), DoubleGrant, CauseTwice},
		{"another session since", overlap(opened().beat("w1", "", 149, 152, history.Opens)), UseAfterExpiry, CauseUnrenewed},
		{"opened before the grant", overlap(opened().beat("w1", "", 9, 9.5, history.Opens).beat("w1", "", 60, 61, "")), DoubleGrant, CauseTwice},
		{"session of the attempt, renewed", ofAttempt().beat("w1", "a", 60, 61, "").
			given("w2", "b", 140, 150, 2).release("b", 160, 161).release("a", 170, 171), DoubleGrant, CauseTwice},
		{"session of the attempt, not renewed", ofAttempt().beat("w1", "a", 40, 41, "").beat("w1", "a", 70, -1, "").
			given("w2", "b", 145, 150, 2).release("b", 160, 161).release("a", 170, 171), UseAfterExpiry, CauseUnrenewed},
		{"another session, opened while the lock was asked for", opened().beat("w1", "", 141, 142, history.Opens).given("w1", "a", 140, 144, 1).
			given("w2", "b", 145, 150, 2).release("b", 160, 161).release("a", 170, 171), DoubleGrant, CauseTwice},
		{"session of the attempt, opened after a long wait", newScript().session().given("w1", "a", 10, 143, 1).beat("w1", "a", 141, 142, history.Opens).
			beat("w1", "a", 148, -1, "").given("w2", "b", 145, 150, 2).release("b", 160, 161).release("a", 170, 171), DoubleGrant, CauseTwice},
		{"without a record", overlap(newScript().session().with(func(h *history.Header) { h.Renewals = false })), DoubleGrant, CauseTwice},
	} {
		f := c.s.end().check(t).of(MutualExclusion)
		if f.Total != 1 || f.Violations[0].Class != c.class || f.Violations[0].Cause != c.cause {
			t.Errorf("%s: %s; want %s, %s", c.name, factsText(f), c.class, c.cause)
		}
	}
}

// TestRenewalProvesNothing: a client that renews its session after the release does not hold the lock.
func TestRenewalProvesNothing(t *testing.T) {
	r := newScript().session().beat("w1", "", 1, 2, history.Opens).given("w1", "a", 10, 11, 1).release("a", 20, 21).
		given("w2", "b", 30, 31, 2).beat("w1", "", 35, 36, "").release("b", 40, 41).end().check(t)
	if f := r.of(MutualExclusion); f.Total != 0 {
		t.Error(factsText(f))
	}
}

// TestLateRelease: the release of a is not answered, the service gives the same grant again as b, and then ends it.
func TestLateRelease(t *testing.T) {
	again := func(first func(*script) *script, token uint64) *script {
		s := newScript().session().beat("w1", "", 1, 2, history.Opens).given("w1", "a", 10, 11, 1).then(first)
		return s.given("w1", "b", 40, 41, token).beat("w1", "", 60, 61, "").given("w2", "c", 60, 70, 3).release("c", 80, 81).release("b", 90, 91)
	}
	unanswered := func(s *script) *script { return s.do(history.Release, "a", 20, 30, history.Event{Type: history.Info}) }
	answered := func(s *script) *script { return s.release("a", 20, 30) }
	for _, c := range []struct {
		name  string
		s     *script
		cause string
	}{
		{"unanswered", again(unanswered, 1), CauseLateRelease},
		{"a grant of its own", again(unanswered, 2), CauseTwice},
		{"answered", again(answered, 2), CauseTwice},
		{"a lease instead of a session", newScript().with(func(h *history.Header) { h.Tokens = true }).given("w1", "a", 10, 11, 1).then(unanswered).
			given("w1", "b", 40, 41, 1).given("w2", "c", 60, 70, 3).release("c", 80, 81).release("b", 90, 91), CauseLateRelease},
	} {
		f := c.s.end().check(t).of(MutualExclusion)
		if f.Total != 1 || f.Violations[0].Cause != c.cause {
			t.Errorf("%s: %s; want %s", c.name, factsText(f), c.cause)
		}
	}
}
