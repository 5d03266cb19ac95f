package conformance

import (
	"context"
	"fmt"
	"time"

	"lockcheck/clients/protocol"
)

const (
	// longWait is the longest wait of an attempt that should get the lock, and cancelWait that of an attempt
	// that is cancelled.
	longWait   = 5 * time.Second
	cancelWait = 2 * time.Second
	// shortWait is how long an attempt waits in vain, if the lease does not limit it.
	shortWait = time.Second
	// beginWait is how long an attempt may take to start waiting.
	beginWait = 500 * time.Millisecond
)

// wait: attempts wait while the lock is held, and get it when it is released. If leases end by themselves, two
// attempts wait. The second waits for longer than a lease, so a validity that counts from its request is over
// before the grant.
func wait(ctx context.Context, holder, second *peer, h hold) error {
	if err := second.waitsInVain(ctx, h); err != nil {
		return err
	}
	h, err := holder.retake(ctx, h)
	if err != nil {
		return err
	}
	peers, limit, held := []*peer{second}, longWait, beginWait
	if ttl := second.Definition.TTL; leased(second.Definition) {
		third, err := second.peer(ctx, "w3")
		if err != nil {
			return err
		}
		peers, limit, held = append(peers, third), longWait+2*ttl, ttl*3/5
	}
	queue := newQueue(ctx, peers, h.key, limit)
	defer queue.drop()
	for range peers {
		if err := rest(ctx, held); err != nil {
			return err
		}
		given := second.now()
		if err := holder.releaseHeld(ctx, h); err != nil {
			return err
		}
		if holder, h, err = queue.next(ctx, h, given); err != nil {
			return err
		}
	}
	return nil
}

// queue has attempts that wait for a lock.
type queue struct {
	waiting map[*peer]bool
	limit   time.Duration
	answers chan waiter
}

type waiter struct {
	*peer
	request protocol.Request
	answer  protocol.Answer
	err     error
}

// newQueue makes one attempt with each peer.
func newQueue(ctx context.Context, peers []*peer, key string, limit time.Duration) *queue {
	q := &queue{waiting: make(map[*peer]bool), limit: limit, answers: make(chan waiter, len(peers))}
	for _, p := range peers {
		q.waiting[p] = true
		w := waiter{peer: p, request: p.attempt(key, limit)}
		await, err := p.client.Post(w.request)
		if err != nil {
			w.err = &ofClientError{p.name, err}
			q.answers <- w
			continue
		}
		limited, cancel := context.WithTimeout(ctx, patience+limit)
		go func() { // it ends at the latest when the client does
			defer cancel()
			w.answer, w.err = await(limited)
			q.answers <- w
		}()
	}
	return q
}

// next returns the attempt that gets the released lock.
func (q *queue) next(ctx context.Context, before hold, given int64) (*peer, hold, error) {
	w := <-q.answers
	delete(q.waiting, w.peer)
	if err := w.explain(ctx, w.err, w.answer, string(protocol.Acquire), patience+q.limit); err != nil {
		return nil, hold{}, err
	}
	if w.answer.OK == nil {
		return nil, hold{}, w.wrong(w.answer, "the lock was released while it waited, and the answer is %s", kind(w.answer))
	}
	h := w.granted(w.request, w.answer)
	switch {
	case h.received < min(given, before.ends):
		return nil, hold{}, w.wrong(w.answer, "%s was granted while %s has the lock", toWhom(w.peer, h.key), before.attempt)
	case h.received < given:
		return nil, hold{}, errSlow
	}
	return w.peer, h, w.checkValidity(h, given)
}

// checkValidity fails a validity that was over before the grant could have begun.
func (p *peer) checkValidity(h hold, given int64) error {
	until, says := h.until, "until"
	if until == 0 {
		until, says = h.sent+p.Definition.TTL.Nanoseconds(), "the client says no until, and the lease from its request"
	}
	if !leased(p.Definition) || until > given {
		return nil
	}
	return &failureError{client: p.name, at: h.received, reason: fmt.Sprintf(
		"%s is over %s before the lock was free: it is to count from the try that is granted", says, time.Duration(given-until))}
}

// drop ends clients that still wait: while they wait they need not answer other requests.
func (q *queue) drop() {
	for p := range q.waiting {
		p.drop()
	}
}

// waitsInVain: while the lock is held the answer is busy, but not at once. The wait may be shorter than
// requested, because libraries that poll stop before a try that would come too late.
func (p *peer) waitsInVain(ctx context.Context, by hold) error {
	limit := p.withinLease(shortWait)
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

// withinLease shortens a wait so that it is over before the holder's lease ends.
func (p *peer) withinLease(limit time.Duration) time.Duration {
	if leased(p.Definition) {
		return min(limit, p.Definition.TTL/3)
	}
	return limit
}

// retake releases a lock and takes it again, for a full lease. An attempt that was abandoned in between must
// not get it.
func (p *peer) retake(ctx context.Context, h hold) (hold, error) {
	if err := p.releaseHeld(ctx, h); err != nil {
		return hold{}, err
	}
	return p.unclaimed(ctx, h.key, p.Definition.Grace)
}

// unclaimed takes a lock that no other attempt should want. It first leaves the lock alone for a moment. An
// abandoned attempt that still waits would take it then.
func (p *peer) unclaimed(ctx context.Context, key string, within time.Duration) (hold, error) {
	deadline := p.now() + within.Nanoseconds()
	if p.Definition.Queues {
		if err := rest(ctx, beginWait); err != nil {
			return hold{}, err
		}
	}
	return p.poll(ctx, hold{key: key}, deadline)
}

// cancelled: a cancelled acquire is answered, the client continues, and the attempt does not block others.
func cancelled(ctx context.Context, first, second *peer, h hold) error {
	limit, within := time.Duration(0), second.Definition.Grace
	if second.Definition.Queues {
		limit = second.withinLease(cancelWait)
	}
	request := second.attempt(h.key, limit)
	answer, err := second.cancel(ctx, request, limit)
	switch {
	case err != nil:
		return err
	case answer.OK != nil && second.granted(request, answer).received < h.ends:
		return second.wrong(answer, "%s was granted while %s has the lock", toWhom(second, h.key), h.attempt)
	case answer.OK != nil:
		return errSlow
	case answer.Error != nil && answer.Error.Effect != protocol.NoEffect: // the attempt must be released, as a worker would
		if _, err := second.release(ctx, hold{key: h.key, attempt: request.Attempt}); err != nil {
			return err
		}
		within += second.Definition.TTL
	}
	if _, err := second.acquire(ctx, second.key()); err != nil {
		return err
	}
	if err := first.releaseHeld(ctx, h); err != nil {
		return err
	}
	third, err := second.peer(ctx, "w3")
	if err != nil {
		return err
	}
	_, err = third.unclaimed(ctx, h.key, within)
	return err
}

// cancel requests a lock and cancels the request at once.
func (p *peer) cancel(ctx context.Context, request protocol.Request, limit time.Duration) (protocol.Answer, error) {
	gone, cancel := context.WithCancel(ctx)
	cancel()
	type outcome struct {
		answer protocol.Answer
		err    error
	}
	done := make(chan outcome, 1)
	go func() { // it ends at the latest when the client does
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

// pipelining: two attempts and their releases are sent at once. A client may handle them concurrently, so any
// valid answers will do.
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
