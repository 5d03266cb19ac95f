package conformance

import (
	"context"
	"time"

	"lockcheck/clients/protocol"
)

const (
	// longWait is how long an attempt may wait that is to get the lock, and cancelWait one
	// that is taken back.
	longWait   = 5 * time.Second
	cancelWait = 2 * time.Second
	// shortWait is how long one waits in vain where the lease does not limit it.
	shortWait = time.Second
	// beginWait is how long an attempt has to begin to wait.
	beginWait = 500 * time.Millisecond
)

// wait: an attempt waits while the lock is held, and gets it when it is released.
func wait(ctx context.Context, s *session) error {
	first, second, h, err := s.contended(ctx)
	if err != nil {
		return err
	}
	if err := second.waitsInVain(ctx, h); err != nil {
		return err
	}
	if h, err = s.fresh(ctx, first, h); err != nil {
		return err
	}
	request := second.attempt(h.key, longWait)
	await, err := second.client.Post(request)
	if err != nil {
		return &ofClientError{second.name, err}
	}
	if err := rest(ctx, min(beginWait, time.Duration(h.ends-h.sent)/5)); err != nil {
		return err
	}
	if err := first.give(ctx, h); err != nil {
		return err
	}
	answer, err := second.await(ctx, await, protocol.Acquire, longWait)
	switch {
	case err != nil:
		return err
	case answer.OK == nil:
		return second.wrong(answer, "the lock was released while it waited, and the answer is %s", kind(answer))
	}
	second.granted(request, answer)
	return nil
}

// waitsInVain: while the lock is held the answer is busy, and not at once. Libraries that
// try again and again give up before a try that would be too late.
func (p *peer) waitsInVain(ctx context.Context, by hold) error {
	limit := shortWait
	if leased(p.Definition) {
		limit = min(limit, p.Definition.TTL/3)
	}
	_, answer, err := p.ask(ctx, p.attempt(by.key, limit))
	switch {
	case err != nil:
		return err
	case answer.OK != nil && answer.Received < by.ends:
		return p.wrong(answer, "%s was granted while %s has the lock", toWhom(p, by.key), by.attempt)
	case answer.Received >= by.ends:
		return errSlow
	case answer.Busy == nil:
		return p.wrong(answer, "%s has the lock, and the answer is %s", by.attempt, kind(answer))
	}
	if waited := time.Duration(answer.Received - answer.Sent); waited < limit/4 {
		return p.wrong(answer, "it waited %s of %s", waited, limit)
	}
	return nil
}

// fresh gives a lock back and takes it again, for a lease that is whole.
func (s *session) fresh(ctx context.Context, p *peer, h hold) (hold, error) {
	if err := p.give(ctx, h); err != nil {
		return hold{}, err
	}
	return p.acquire(ctx, s.key())
}

// cancelled: an acquire that nobody waits for any more is answered, and the client goes on.
func cancelled(ctx context.Context, s *session) error {
	_, second, h, err := s.contended(ctx)
	if err != nil {
		return err
	}
	limit := time.Duration(0)
	if s.Definition.Queues {
		limit = cancelWait
	}
	request := second.attempt(h.key, limit)
	answer, err := second.cancel(ctx, request, limit)
	if err != nil {
		return err
	}
	if answer.OK != nil {
		second.granted(request, answer)
	}
	_, err = second.acquire(ctx, s.key())
	return err
}

// cancel asks for a lock and takes the request back at once.
func (p *peer) cancel(ctx context.Context, request protocol.Request, limit time.Duration) (protocol.Answer, error) {
	gone, cancel := context.WithCancel(ctx)
	cancel()
	type outcome struct {
		answer protocol.Answer
		err    error
	}
	done := make(chan outcome, 1)
	go func() { // it ends when the client does
		answer, err := p.client.Acquire(gone, request)
		done <- outcome{answer, err}
	}()
	return p.await(ctx, func(ctx context.Context) (protocol.Answer, error) {
		select {
		case o := <-done:
			return o.answer, o.err
		case <-ctx.Done():
			return protocol.Answer{Sent: p.tape.lastSent(p.name, protocol.Acquire)}, ctx.Err()
		}
	}, "acquire after its cancel", limit)
}

// pipelining: two attempts with their releases come at once. A client may do them side by
// side, so any answer that there is for them will do.
func pipelining(ctx context.Context, s *session) error {
	p, err := s.peer(ctx, "w1")
	if err != nil {
		return err
	}
	type posted struct {
		request protocol.Request
		await   func(context.Context) (protocol.Answer, error)
	}
	var all []posted
	key := s.key()
	for range 2 {
		acquire := p.attempt(key, 0)
		release := protocol.Request{Op: protocol.Release, Key: key, Attempt: acquire.Attempt}
		for _, request := range []protocol.Request{acquire, release} {
			await, err := p.client.Post(request)
			if err != nil {
				return &ofClientError{p.name, err}
			}
			all = append(all, posted{request, await})
		}
	}
	for _, one := range all {
		answer, err := p.await(ctx, one.await, one.request.Op, 0)
		if err != nil {
			return err
		}
		if one.request.Op == protocol.Acquire && answer.OK != nil {
			p.granted(one.request, answer)
		}
	}
	return nil
}
