package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lockcheck/clients/protocol"
)

func acquireFree(context.Context, *peer, hold) error { return nil }

func busy(ctx context.Context, _, second *peer, h hold) error {
	quick, err := second.acquire(ctx, second.key())
	if err != nil {
		return err
	}
	err = second.keptOut(ctx, h)
	var late *grantedLateError
	if !errors.As(err, &late) {
		return err
	}
	// A client that got a free lock quickly, but this lock only after the rest of a lease, has waited.
	took, waited := quick.received-quick.sent, late.answer.Received-late.answer.Sent
	if 2*waited < second.Definition.TTL.Nanoseconds() || 4*took > waited {
		return err
	}
	return &waitedError{err, &failureError{client: second.name, at: late.answer.Received, reason: fmt.Sprintf(
		"it waited %s for the lock, although wait_ms was 0: answer busy at once", time.Duration(waited).Round(time.Millisecond))}}
}

// until: a lock is held for as long as its client vouches for it. Each client takes a lock, as in workers. A
// client that counts the validity from a late answer is not late each time, so several locks make its mistake
// more likely to show.
func until(ctx context.Context, s *session) error {
	var peers []*peer
	var holds []hold
	for i, name := range workers {
		p, err := s.peer(ctx, name)
		if err != nil {
			return err
		}
		h, err := p.acquire(ctx, s.key())
		if err != nil {
			return err
		}
		if err := p.checkUntil(h); err != nil {
			return err
		}
		if s.Definition.Renew && i%2 == 1 {
			if h, err = p.renewedUntil(ctx, h); err != nil {
				return err
			}
		}
		peers, holds = append(peers, p), append(holds, h)
	}
	inTime := false
	for i, h := range holds {
		err := peers[i].heldUntil(ctx, h)
		if err != nil && !errors.Is(err, errSlow) {
			return err
		}
		inTime = inTime || err == nil
	}
	if !inTime {
		return errSlow
	}
	return nil
}

// renewedUntil renews a hold, and checks the new end of its validity against the lease.
func (p *peer) renewedUntil(ctx context.Context, h hold) (hold, error) {
	before := h.until
	if _, err := p.renew(ctx, &h); err != nil {
		return h, err
	}
	if h.until == 0 { // the answer may omit it
		h.until = before
		return h, nil
	}
	return h, p.checkUntil(h)
}

// heldUntil releases a lock shortly before its validity ends. The release must find the lock held.
func (p *peer) heldUntil(ctx context.Context, h hold) error {
	if err := rest(ctx, time.Duration(h.until-p.now())-p.Definition.TTL/20); err != nil {
		return err
	}
	answer, err := p.release(ctx, h)
	switch {
	case err != nil || answer.OK != nil:
		return err
	case answer.Received >= h.until:
		return errSlow
	}
	return p.wrong(answer, "the release was answered by %s, %s before the validity of the grant (until) was over", kind(answer), time.Duration(h.until-answer.Received))
}

// checkUntil checks the end of the validity against the lease. Only the client knows when it called the
// service, but that was before the answer arrived.
func (p *peer) checkUntil(h hold) error {
	ttl := p.Definition.TTL
	latest := h.received + ttl.Nanoseconds()
	switch {
	case h.until == 0:
		return &skippedError{"the client says no until; the lease counts from the request"}
	case h.until > latest:
		return &failureError{client: p.name, at: h.received, reason: fmt.Sprintf(
			"until is %s after the answer, and the lease is %s", time.Duration(h.until-h.received), ttl)}
	case h.until <= h.sent:
		return &failureError{client: p.name, at: h.received, reason: fmt.Sprintf("until is %s before the request", time.Duration(h.sent-h.until))}
	}
	return nil
}

func release(ctx context.Context, p *peer, h hold) error {
	return p.releaseHeld(ctx, h)
}

func released(ctx context.Context, first, second *peer, h hold) error {
	return first.releaseFor(ctx, h, second)
}

// releaseFor releases a lock, which another client must then get.
func (p *peer) releaseFor(ctx context.Context, h hold, to *peer) error {
	if err := p.releaseHeld(ctx, h); err != nil {
		return err
	}
	next, err := to.acquire(ctx, h.key)
	if err != nil {
		return err
	}
	return p.keptOut(ctx, next)
}

// releaseRenewed: one release frees the lock, however often it was renewed.
func releaseRenewed(ctx context.Context, first, second *peer, h hold) error {
	for range 2 {
		if _, err := first.renew(ctx, &h); err != nil {
			return err
		}
	}
	return first.releaseFor(ctx, h, second)
}

// olderAttempt: a client that takes a lock again holds it only by the new attempt. A release of the old attempt
// must not free it.
func olderAttempt(ctx context.Context, first, second *peer, old hold) error {
	if err := first.releaseHeld(ctx, old); err != nil {
		return err
	}
	h, err := first.acquire(ctx, old.key)
	if err != nil {
		return err
	}
	// The rule release-twice judges the answer.
	if _, err := first.release(ctx, old); err != nil {
		return err
	}
	return second.keptOut(ctx, h)
}

func releaseTwice(ctx context.Context, p *peer, h hold) error {
	if err := p.releaseHeld(ctx, h); err != nil {
		return err
	}
	answer, err := p.release(ctx, h)
	if err == nil && answer.OK != nil {
		err = p.wrong(answer, "it had released the lock before, and the second release was answered by ok")
	}
	return err
}

func releaseUnknown(ctx context.Context, _, second *peer, h hold) error {
	never := second.attempt(h.key, 0)
	answer, err := second.release(ctx, hold{key: never.Key, attempt: never.Attempt})
	switch {
	case err != nil:
		return err
	case answer.OK != nil:
		return second.wrong(answer, "%s was never asked for, and its release was answered by ok", never.Attempt)
	}
	return second.keptOut(ctx, h)
}

// expiry: the lease of an idle holder ends. With a session, the lease of a killed client ends.
func expiry(ctx context.Context, first, second *peer, h hold) error {
	if !second.Definition.Session {
		_, err := second.takeOver(ctx, h)
		return err
	}
	if err := first.client.Kill(); err != nil {
		return err
	}
	first.drop()
	h.ends = 0
	_, err := second.poll(ctx, h, second.now()+(second.Definition.TTL+second.Definition.Grace).Nanoseconds())
	return err
}

// expired waits until the lease of one client ends and another client gets the lock.
func (s *session) expired(ctx context.Context) (first, second *peer, old, current hold, err error) {
	if first, second, old, err = s.contended(ctx); err == nil {
		current, err = second.takeOver(ctx, old)
	}
	return first, second, old, current, err
}

func releaseExpired(ctx context.Context, s *session) error {
	first, _, old, current, err := s.expired(ctx)
	if err != nil {
		return err
	}
	answer, err := first.release(ctx, old)
	switch {
	case err != nil:
		return err
	case answer.OK != nil:
		return first.wrong(answer, "its lease was over and %s had the lock, and the release was answered by ok", current.attempt)
	}
	return s.stillHeld(ctx, current)
}

// stillHeld checks with a third client that the lock is held.
func (s *session) stillHeld(ctx context.Context, current hold) error {
	third, err := s.peer(ctx, "w3")
	if err != nil {
		return err
	}
	return third.keptOut(ctx, current)
}

// renew: with renewals a lease lasts longer than without.
func renew(ctx context.Context, first, second *peer, h hold) error {
	over := h.received + (first.Definition.TTL + first.Definition.Grace).Nanoseconds()
	for h.sent <= over {
		if err := rest(ctx, first.Definition.TTL/3); err != nil {
			return err
		}
		if _, err := first.renew(ctx, &h); err != nil {
			return err
		}
	}
	return second.keptOut(ctx, h)
}

// renewedExpiry: one renewal extends the lease by one lease, and no more.
func renewedExpiry(ctx context.Context, first, second *peer, h hold) error {
	if _, err := first.renew(ctx, &h); err != nil {
		return err
	}
	_, err := second.takeOver(ctx, h)
	return err
}

// renewExpired: an expired lease cannot be renewed, neither while another client holds the lock nor after that
// client has released it. A renewal by an upsert would take the lock again.
func renewExpired(ctx context.Context, s *session) error {
	first, second, old, current, err := s.expired(ctx)
	if err != nil {
		return err
	}
	if err := first.refusesRenewal(ctx, old, current.attempt+" had the lock"); err != nil {
		return err
	}
	if err := s.stillHeld(ctx, current); err != nil {
		return err
	}
	if err := second.releaseHeld(ctx, current); err != nil {
		return err
	}
	return first.refusesRenewal(ctx, old, current.attempt+" had held the lock since")
}

// refusesRenewal checks that an expired lease is not renewed.
func (p *peer) refusesRenewal(ctx context.Context, old hold, since string) error {
	answer, err := p.callRenew(ctx, old)
	if err == nil && answer.OK != nil {
		err = p.wrong(answer, "the renewal was answered by ok, although its lease was over and %s", since)
	}
	return err
}

// tokens: the tokens of successive grants grow, also if a lease ends by itself in between.
func tokens(ctx context.Context, s *session) error {
	first, second, err := s.two(ctx)
	if err != nil {
		return err
	}
	key, last := s.key(), uint64(0)
	take := func(p *peer) (hold, error) {
		h, err := p.acquire(ctx, key)
		if err == nil {
			err = p.checkTokenGrows(h, &last)
		}
		return h, err
	}
	h, err := take(first)
	if err != nil {
		return err
	}
	if err := first.releaseHeld(ctx, h); err != nil {
		return err
	}
	if h, err = take(second); err != nil {
		return err
	}
	if leased(s.Definition) {
		if h, err = first.takeOver(ctx, h); err != nil {
			return err
		}
		return first.checkTokenGrows(h, &last)
	}
	if err := second.releaseHeld(ctx, h); err != nil {
		return err
	}
	_, err = take(first)
	return err
}

// checkTokenGrows checks that a token is higher than the previous one.
func (p *peer) checkTokenGrows(h hold, last *uint64) error {
	switch {
	case h.token == 0:
		return &failureError{client: p.name, at: h.received, reason: "the grant has no token"}
	case h.token <= *last:
		return &failureError{client: p.name, at: h.received, reason: fmt.Sprintf("token %d follows %d", h.token, *last)}
	}
	*last = h.token
	return nil
}

func holds(ctx context.Context, s *session) error {
	p, err := s.peer(ctx, "w1")
	if err != nil {
		return err
	}
	other, err := s.peer(ctx, asker)
	if err != nil {
		return err
	}
	defer other.drop()
	h, err := p.acquire(ctx, s.key())
	if err != nil {
		return err
	}
	if err := other.checkHolds(ctx, h, true); err != nil {
		return err
	}
	if err := other.checkHolds(ctx, hold{key: h.key, attempt: "none", ends: never}, false); err != nil {
		return err
	}
	if err := p.releaseHeld(ctx, h); err != nil {
		return err
	}
	h.ends = never
	return other.checkHolds(ctx, h, false)
}

// checkHolds checks the client's answer to whether an attempt holds the lock.
func (p *peer) checkHolds(ctx context.Context, h hold, want bool) error {
	answer, err := p.call(ctx, protocol.Request{Op: protocol.Holds, Key: h.key, Attempt: h.attempt, Token: h.token}, 0)
	switch {
	case err != nil:
		return err
	case answer.OK == nil:
		return p.wrong(answer, "it was answered by %s", kind(answer))
	case *answer.OK.Holds == want:
		return nil
	case answer.Received >= h.ends:
		return errSlow
	}
	return p.wrong(answer, "holds is %t of %s, and it is %t", *answer.OK.Holds, h.attempt, want)
}
