package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"lockcheck/clients"
	"lockcheck/clients/protocol"
)

// session is a check in progress.
type session struct {
	Config
	tape  *tape
	now   func() int64 // the clock of the clients and their answers, in ns
	peers map[string]*peer
	hello map[string]protocol.Answer // answers to hello, by the client's name
	name  string                     // as the client states it

	mu   sync.Mutex
	left []string // processes that ended clients have left behind

	keys, attempts int
	// broken has the rules of always that were broken, by name.
	broken map[string]breach
}

// breach is how a rule was broken.
type breach struct {
	reason   string
	exchange []Line
}

// peer is a running client.
type peer struct {
	*session
	name   string
	client *protocol.Client
	ended  sync.Once
	log    io.Closer // the client's log output
	open   []hold    // not released yet
}

// hold is a grant.
type hold struct {
	key, attempt   string
	token          uint64
	sent, received int64 // of the acquire or the last renewal, ns of CLOCK_MONOTONIC
	until          int64 // as the client states it; 0 if it states none
	ends           int64 // the lease cannot end earlier
}

// never is the end of a lease that does not end by itself.
const never = math.MaxInt64

func newSession(c Config) *session {
	return &session{
		Config: c, tape: new(tape), now: c.Definition.Program.Clock(),
		peers: make(map[string]*peer), hello: make(map[string]protocol.Answer), broken: make(map[string]breach),
	}
}

// breaks records that a client broke a rule which holds throughout the check. Only the first time counts,
// because it shows most.
func (s *session) breaks(rule string, err error, exchange []Line) {
	if _, already := s.broken[rule]; !already {
		s.broken[rule] = breach{reason: err.Error(), exchange: exchange}
	}
}

// releaseOpen releases what a rule has left held, as a worker does, and drops clients that have failed.
func (s *session) releaseOpen(ctx context.Context) {
	for _, name := range slices.Sorted(maps.Keys(s.peers)) {
		p := s.peers[name]
		for _, h := range p.open {
			if _, err := p.call(ctx, protocol.Request{Op: protocol.Release, Key: h.key, Attempt: h.attempt, Token: h.token}, 0); err != nil {
				break
			}
		}
		p.open = nil
		err := p.client.Failed()
		if err == nil {
			continue
		}
		err = &ofClientError{p.name, err}
		if rule := ruleBrokenBy(err); rule != "" {
			s.breaks(rule, err, s.tape.exchange(err))
		}
		p.drop()
	}
}

// drop ends a client that is no longer needed.
func (p *peer) drop() {
	_ = p.close()
	if p.peers[p.name] == p {
		delete(p.peers, p.name)
	}
}

// dropAll drops all clients concurrently, because each may take time to end.
func (s *session) dropAll() {
	var all sync.WaitGroup
	for _, p := range s.peers {
		all.Go(func() { _ = p.close() })
	}
	all.Wait()
	clear(s.peers)
}

// close ends a client and records the processes that it has left behind. The error is that of package protocol.
func (p *peer) close() error {
	err := p.client.Close()
	p.ended.Do(func() {
		_ = p.log.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.left = append(p.left, p.client.Left()...)
	})
	return err
}

// peer returns a running client that has answered hello with ok, and starts it if necessary.
func (s *session) peer(ctx context.Context, name string) (*peer, error) {
	if p, there := s.peers[name]; there && p.client.Failed() == nil {
		return p, nil
	}
	p, answer, err := s.start(ctx, name, false)
	switch {
	case err != nil:
		return nil, err
	case answer.OK == nil:
		return nil, p.wrong(answer, "hello was answered by %s", kind(answer))
	}
	return p, nil
}

func (s *session) two(ctx context.Context) (first, second *peer, err error) {
	if first, err = s.peer(ctx, "w1"); err == nil {
		second, err = s.peer(ctx, "w2")
	}
	return first, second, err
}

// holding tries a rule with a client that holds a lock.
func holding(do func(ctx context.Context, p *peer, h hold) error) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		p, err := s.peer(ctx, "w1")
		if err != nil {
			return err
		}
		h, err := p.acquire(ctx, s.key())
		if err != nil {
			return err
		}
		return do(ctx, p, h)
	}
}

// contended tries a rule with two clients, the first of which holds a lock.
func contended(do func(ctx context.Context, first, second *peer, h hold) error) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		first, second, h, err := s.contended(ctx)
		if err != nil {
			return err
		}
		return do(ctx, first, second, h)
	}
}

// contended returns two clients, the first of which holds a lock.
func (s *session) contended(ctx context.Context) (first, second *peer, h hold, err error) {
	if first, second, err = s.two(ctx); err == nil {
		h, err = first.acquire(ctx, s.key())
	}
	return first, second, h, err
}

// start starts a client and sends hello.
func (s *session) start(ctx context.Context, name string, unknown bool) (*peer, protocol.Answer, error) {
	if old, there := s.peers[name]; there {
		old.drop()
	}
	command := s.Definition.Program
	logged, log := io.Pipe()
	go s.tape.follow(name, logged, s.now)
	command.Trace, command.Log = s.tape.trace(name), log
	client, err := protocol.Launch(command)
	if err != nil {
		return nil, protocol.Answer{}, errors.Join(err, log.Close())
	}
	p := &peer{session: s, name: name, client: client, log: log}
	s.peers[name] = p
	limited, cancel := context.WithTimeout(ctx, protocol.HelloTime)
	defer cancel()
	answer, err := client.Hello(limited, protocol.Request{
		Worker: name, Servers: clients.Servers(s.Nodes), Folder: s.Folder,
		TTLMS: s.Definition.TTL.Milliseconds(), TimeoutMS: timeout.Milliseconds(), Unknown: unknown,
	})
	if err != nil {
		return p, answer, p.explain(ctx, err, answer, "hello", protocol.HelloTime)
	}
	s.hello[name] = answer
	if answer.OK != nil {
		s.name = answer.OK.Client
	}
	return p, answer, nil
}

// explain turns the error of a call into an error of the check. No answer in time is a failure. Then the client
// is dropped, because its answer could still arrive at any time.
func (p *peer) explain(ctx context.Context, err error, answer protocol.Answer, op string, limit time.Duration) error {
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case errors.Is(err, context.DeadlineExceeded):
		p.drop()
		return &failureError{reason: fmt.Sprintf("%s was not answered within %s", op, limit), client: p.name, at: answer.Sent}
	default:
		return &ofClientError{p.name, err}
	}
}

// call makes a call. The answer may take patience and wait together.
func (p *peer) call(ctx context.Context, request protocol.Request, wait time.Duration) (protocol.Answer, error) {
	await, err := p.client.Post(request)
	if err != nil {
		return protocol.Answer{}, &ofClientError{p.name, err}
	}
	return p.await(ctx, await, request.Op, wait)
}

func (p *peer) await(ctx context.Context, await func(context.Context) (protocol.Answer, error), op protocol.Op, wait time.Duration) (protocol.Answer, error) {
	limit := patience + wait
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answer, err := await(limited)
	return answer, p.explain(ctx, err, answer, string(op), limit)
}

// wrong returns a failure that an answer shows.
func (p *peer) wrong(answer protocol.Answer, format string, args ...any) error {
	reason := fmt.Sprintf(format, args...)
	if answer.Error != nil && answer.Error.Text != "" {
		reason += " (" + answer.Error.Text + ")"
	}
	return &failureError{reason: reason, client: p.name, at: answer.Received}
}

// kind returns the name of an answer's kind.
func kind(a protocol.Answer) string {
	switch {
	case a.OK != nil:
		return "ok"
	case a.Busy != nil:
		return "busy"
	case a.NotHeld != nil:
		return "not_held"
	default:
		return "error"
	}
}

// key returns a lock name that was not used before.
func (s *session) key() string {
	s.keys++
	return "k" + strconv.Itoa(s.keys)
}

// attempt returns a request for a lock, with a new attempt name.
func (p *peer) attempt(key string, wait time.Duration) protocol.Request {
	p.attempts++
	return protocol.Request{
		Op: protocol.Acquire, Key: key, Attempt: p.name + "-" + strconv.Itoa(p.attempts),
		TTLMS: p.Definition.TTL.Milliseconds(), WaitMS: wait.Milliseconds(),
	}
}

// ask requests a lock. The hold is the zero value if the lock was not granted.
func (p *peer) ask(ctx context.Context, request protocol.Request) (hold, protocol.Answer, error) {
	answer, err := p.call(ctx, request, time.Duration(request.WaitMS)*time.Millisecond)
	if err != nil || answer.OK == nil {
		return hold{}, answer, err
	}
	return p.granted(request, answer), answer, nil
}

// granted returns the hold for a granted acquire.
func (p *peer) granted(request protocol.Request, answer protocol.Answer) hold {
	h := hold{key: request.Key, attempt: request.Attempt, token: answer.OK.Token}
	h.extend(p.Definition, answer)
	p.open = append(p.open, h)
	return h
}

// extend starts the lease again.
func (h *hold) extend(d clients.Definition, answer protocol.Answer) {
	h.sent, h.received, h.until, h.ends = answer.Sent, answer.Received, answer.OK.Until, never
	if leased(d) {
		h.ends = h.sent + d.TTL.Nanoseconds()
	}
	if h.until != 0 && !d.Session {
		h.ends = min(h.ends, h.until)
	}
}

// leased reports whether a hold ends even if its client does nothing.
func leased(d clients.Definition) bool { return d.TTL > 0 && !d.Session }

// acquire takes a lock that must be free.
func (p *peer) acquire(ctx context.Context, key string) (hold, error) {
	h, answer, err := p.ask(ctx, p.attempt(key, 0))
	if err == nil && answer.OK == nil {
		err = p.wrong(answer, "a free lock was asked for, and the answer is %s", kind(answer))
	}
	return h, err
}

// keptOut requests a lock that another client holds, and must be refused.
func (p *peer) keptOut(ctx context.Context, by hold) error {
	_, answer, err := p.ask(ctx, p.attempt(by.key, 0))
	switch {
	case err != nil:
		return err
	case answer.OK != nil && answer.Received >= by.ends:
		return &grantedLateError{answer}
	case answer.OK != nil:
		return p.wrong(answer, "%s was granted while %s has the lock", toWhom(p, by.key), by.attempt)
	case answer.Busy == nil:
		return p.wrong(answer, "%s has the lock, and the answer is %s", by.attempt, kind(answer))
	}
	return nil
}

func toWhom(p *peer, key string) string { return "to " + p.name + " the lock " + key }

// release releases a lock.
func (p *peer) release(ctx context.Context, h hold) (protocol.Answer, error) {
	p.open = slices.DeleteFunc(p.open, func(o hold) bool { return o.attempt == h.attempt })
	return p.call(ctx, protocol.Request{Op: protocol.Release, Key: h.key, Attempt: h.attempt, Token: h.token}, 0)
}

// releaseHeld releases a lock that must be held.
func (p *peer) releaseHeld(ctx context.Context, h hold) error {
	answer, err := p.release(ctx, h)
	switch {
	case err != nil || answer.OK != nil:
		return err
	case answer.Received >= h.ends:
		return errSlow
	}
	return p.wrong(answer, "it had the lock, and the release was answered by %s", kind(answer))
}

// renew extends the lease of a hold that must be in force.
func (p *peer) renew(ctx context.Context, h *hold) (protocol.Answer, error) {
	answer, err := p.callRenew(ctx, *h)
	switch {
	case err != nil:
		return answer, err
	case answer.OK != nil:
		h.extend(p.Definition, answer)
		return answer, nil
	case answer.Received >= h.ends:
		return answer, errSlow
	}
	return answer, p.wrong(answer, "it had the lock, and the renewal was answered by %s", kind(answer))
}

func (p *peer) callRenew(ctx context.Context, h hold) (protocol.Answer, error) {
	return p.call(ctx, protocol.Request{
		Op: protocol.Renew, Key: h.key, Attempt: h.attempt, Token: h.token, TTLMS: p.Definition.TTL.Milliseconds(),
	}, 0)
}

// takeOver requests a lock until its lease is over: not earlier, and at most a grace period later.
func (p *peer) takeOver(ctx context.Context, from hold) (hold, error) {
	return p.poll(ctx, from, from.received+(p.Definition.TTL+p.Definition.Grace).Nanoseconds())
}

// poll requests a lock until it is granted. A request that is sent after the deadline must be granted.
func (p *peer) poll(ctx context.Context, from hold, deadline int64) (hold, error) {
	for {
		h, answer, err := p.ask(ctx, p.attempt(from.key, 0))
		switch {
		case err != nil:
			return hold{}, err
		case answer.OK != nil && answer.Received < from.ends:
			return hold{}, p.wrong(answer, "%s was granted %s before the lease of %s can be over", toWhom(p, from.key), time.Duration(from.ends-answer.Received), from.attempt)
		case answer.OK != nil:
			return h, nil
		case answer.Error != nil:
			return hold{}, p.wrong(answer, "the answer is error")
		case answer.Sent > deadline:
			return hold{}, p.wrong(answer, "the lock is not free, %s after it had to be", time.Duration(answer.Sent-deadline))
		}
		if err := rest(ctx, max(20*time.Millisecond, p.Definition.TTL/20)); err != nil {
			return hold{}, err
		}
	}
}

func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
