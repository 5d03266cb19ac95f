package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"lockcheck/clients/protocol"
)

// workers are the names of the clients in a check.
var workers = [...]string{"w1", "w2", "w3"}

// asker is the name of a client that makes no attempts, or that is used for a single rule.
const asker = "w4"

// hello: a program that cannot be started, or that ends at once, breaks this rule, too. A missing interpreter
// and a program that its interpreter does not find are the same mistake in a command.
func hello(ctx context.Context, s *session) error {
	for _, name := range workers {
		p, answer, err := s.start(ctx, name, false)
		var ended *protocol.EndedError
		switch {
		case p == nil:
			return &failureError{reason: err.Error(), unstarted: true}
		case errors.As(err, &ended):
			p.drop() // so that nothing more is reported about it
			return &failureError{reason: err.Error()}
		case err != nil:
			return err
		case answer.OK == nil:
			return p.wrong(answer, "hello was answered by %s", kind(answer))
		}
	}
	return nil
}

func version(_ context.Context, s *session) error {
	for _, name := range workers {
		if answer := s.hello[name]; answer.OK.Protocol != protocol.Version {
			return &failureError{client: name, at: answer.Received, reason: fmt.Sprintf("%s speaks version %d, not %d", name, answer.OK.Protocol, protocol.Version)}
		}
	}
	return nil
}

func clock(_ context.Context, s *session) error {
	for _, name := range workers {
		answer := s.hello[name]
		switch now := answer.OK.Now; {
		case now == 0:
			return &skippedError{"hello was answered without now; such a client never says until"}
		case now < answer.Sent || now > answer.Received:
			return &failureError{client: name, at: answer.Received, reason: fmt.Sprintf("now of %s was %d, and must be between %d and %d", name, now, answer.Sent, answer.Received)}
		}
	}
	return nil
}

func unknownFields(ctx context.Context, s *session) error {
	p, answer, err := s.start(ctx, asker, true)
	if err != nil {
		return err
	}
	defer p.drop()
	if answer.OK == nil {
		return p.wrong(answer, "hello with a field that is not known was answered by %s", kind(answer))
	}
	request := p.attempt(s.key(), 0)
	request.Unknown = true
	h, answer, err := p.ask(ctx, request)
	switch {
	case err != nil:
		return err
	case answer.OK == nil:
		return p.wrong(answer, "acquire with a field that is not known was answered by %s", kind(answer))
	}
	answer, err = p.call(ctx, protocol.Request{Op: protocol.Release, Key: h.key, Attempt: h.attempt, Token: h.token, Unknown: true}, 0)
	switch {
	case err != nil || answer.OK != nil:
		return err
	case answer.Received >= h.ends:
		return errSlow
	}
	return p.wrong(answer, "release with a field that is not known was answered by %s", kind(answer))
}

// laterOperation is an operation that no version has.
const laterOperation protocol.Op = "of_a_later_version"

func unknownOperation(ctx context.Context, s *session) error {
	p, err := s.peer(ctx, "w1")
	if err != nil {
		return err
	}
	answer, err := p.call(ctx, protocol.Request{Op: laterOperation, Key: s.key(), Attempt: "none"}, 0)
	switch {
	case err != nil:
		return err
	case answer.Error == nil:
		return p.wrong(answer, "it was answered by %s", kind(answer))
	case answer.Error.Effect != protocol.NoEffect:
		return p.wrong(answer, "the effect of the error is %q", answer.Error.Effect)
	}
	return nil
}

// workTime is how long the client should work. workLeast is how long it must have taken by our clock, because
// timers may fire a little early.
const (
	workTime  = 200 * time.Millisecond
	workLeast = workTime * 9 / 10
)

func work(ctx context.Context, p *peer, h hold) error {
	answer, err := p.call(ctx, protocol.Request{Op: protocol.Work, Key: h.key, Attempt: h.attempt, MS: workTime.Milliseconds()}, workTime)
	if err != nil {
		return err
	}
	if took := time.Duration(answer.Received - answer.Sent); took < workLeast {
		return p.wrong(answer, "it took %s instead of %s", took, workTime)
	}
	return nil
}

// end ends all clients. A client that had failed is started again first.
func end(ctx context.Context, s *session) error {
	for _, name := range workers {
		if _, err := s.peer(ctx, name); err != nil {
			return err
		}
	}
	var all sync.WaitGroup
	errs := make([]error, len(workers))
	for i, name := range workers {
		all.Go(func() { errs[i] = s.peers[name].close() })
	}
	all.Wait()
	var late []string
	for i, name := range workers {
		var violation *protocol.ViolationError
		if errors.As(errs[i], &violation) {
			late = append(late, name+": "+violation.Rule)
		}
		delete(s.peers, name)
	}
	if len(late) > 0 {
		return &failureError{reason: strings.Join(late, "; ")}
	}
	return nil
}

// nothingLeft checks that no client has left processes behind.
func nothingLeft(_ context.Context, s *session) error {
	s.dropAll()
	if len(s.left) == 0 {
		return nil
	}
	slices.Sort(s.left)
	return &failureError{reason: "ran on, and had to be killed: " + strings.Join(s.left, ", ")}
}
