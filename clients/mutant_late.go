//go:build mutants

package clients

import (
	"context"
	"errors"
	"time"

	"lockcheck/history"
)

// Mutants whose clients go wrong after answers that come late: a worker that is stopped with
// a call in flight reads its answer when much has changed.
const (
	MutantRetriesRelease = MutantPrefix + "retries-release"
	MutantInsists        = MutantPrefix + "insists"
	MutantRemembers      = MutantPrefix + "remembers"
)

// lateAnswer is after what time they regard an answer as lost.
const lateAnswer = 250 * time.Millisecond

// MutantTakes begins the identity in a renewal of MutantInsists that takes the lock, whoever
// has it.
const MutantTakes = "!"

// withLateAnswers returns the client of the mutant of a name.
func withLateAnswers(name string, m *mutant) Lock {
	switch name {
	case MutantRetriesRelease:
		return retriesRelease{m}
	case MutantInsists:
		return &insists{mutant: m}
	case MutantRemembers:
		return &remembers{mutant: m, until: make(map[string]int64)}
	}
	return m
}

// retriesRelease releases again by the name of the lock alone if the answer is late: another
// one may have it by then.
type retriesRelease struct{ *mutant }

func (m retriesRelease) Release(ctx context.Context, g Grant) error {
	asked := time.Now()
	err := m.mutant.Release(ctx, g)
	if time.Since(asked) < lateAnswer {
		return err
	}
	_, err = m.call(ctx, "release", MemoryRequest{Key: g.Key})
	return err
}

// insists believes no refusal of a renewal once the answer to an earlier one of the same hold
// was late, though in time for its lease: it takes the lock back.
type insists struct {
	*mutant
	slow handles[struct{}]
}

func (m *insists) Renew(ctx context.Context, g Grant, ttl time.Duration) (int64, error) {
	asked := history.Now()
	until, err := m.mutant.Renew(ctx, g, ttl)
	took := time.Duration(history.Now() - asked)
	_, slow := m.slow.get(g.ID)
	switch {
	case err == nil && lateAnswer <= took && took < ttl:
		m.slow.put(g.ID, struct{}{})
	case errors.Is(err, ErrNotHeld) && slow:
		asked = history.Now()
		_, err = m.call(ctx, "renew", MemoryRequest{Key: g.Key, ID: MutantTakes + g.ID, TTL: ttl})
		until = asked + ttl.Nanoseconds()
	}
	return until, err
}

// remembers takes an attempt whose answer was late for granted when it asks again.
type remembers struct {
	*mutant
	until map[string]int64 // the end of the validity of such an attempt, by key
}

var errLateAnswer = errors.New("the answer was late")

func (m *remembers) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	asked := history.Now()
	if until := m.until[a.Key]; asked < until {
		delete(m.until, a.Key)
		return Grant{Key: a.Key, ID: a.ID, Until: until}, nil
	}
	grant, err := m.mutant.Acquire(ctx, a)
	if history.Now()-asked < lateAnswer.Nanoseconds() {
		return grant, err
	}
	m.until[a.Key] = asked + a.TTL.Nanoseconds()
	return Grant{}, errLateAnswer
}
