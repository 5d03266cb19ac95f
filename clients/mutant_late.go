//go:build mutants

package clients

import (
	"context"
	"errors"
	"time"

	"lockcheck/history"
)

// Mutants whose clients handle late answers wrongly. A worker that is stopped during a call reads its answer
// when the lock may have changed hands.
const (
	MutantRetriesRelease = MutantPrefix + "retries-release"
	MutantInsists        = MutantPrefix + "insists"
	MutantRemembers      = MutantPrefix + "remembers"
)

// lateAnswer is the time after which these clients regard an answer as lost.
const lateAnswer = 250 * time.Millisecond

// MutantTakes begins the ID in a renewal by MutantInsists. The mutant's server then gives it the lock, whoever
// holds it.
const MutantTakes = "!"

// withLateAnswers returns the client of the named mutant.
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

// retriesRelease repeats a release whose answer was late, with only the lock's name. By then another client may
// hold the lock.
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

// insists ignores the refusal of a renewal if an earlier answer during the same hold was late but within the
// lease. It takes the lock back.
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

// remembers assumes, at the next attempt, that an attempt with a late answer was granted.
type remembers struct {
	*mutant
	until map[string]int64 // the end of that attempt's validity, by key
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
