package nemesis

import (
	"context"
	"fmt"
	"sync"
	"time"

	"lockcheck/clusters/agent"
	"lockcheck/history"
)

// strobePeriod is how long a strobing clock keeps an offset. It is shorter than any lease and longer than a
// server takes to report its time.
const strobePeriod = 200 * time.Millisecond

// strobe moves the wall clock of servers back and forth until it is healed, as two time sources that disagree
// do.
type strobe struct {
	clock
	stop chan struct{}
	done sync.WaitGroup
	once sync.Once
	// failed is the last failed move's error; read it after done.
	failed error
}

func strobeKind() Kind {
	kind := clockKind()
	kind.Name, kind.Summary = history.ClockStrobe, "move the wall clock of the target to and fro, five times a second"
	kind.New = func(env Environment, order Order) (Fault, error) {
		steady, err := newClock(env, order)
		if err != nil {
			return nil, err
		}
		return &strobe{clock: *steady.(*clock), stop: make(chan struct{})}, nil
	}
	return kind
}

func (s *strobe) Apply(ctx context.Context) (agent.Moment, error) {
	moment, err := s.clock.Apply(ctx)
	if err != nil {
		return moment, err
	}
	s.done.Go(func() { s.failed = s.swing(context.WithoutCancel(ctx)) })
	return moment, nil
}

// swing moves the clocks back and forth until stop is closed.
func (s *strobe) swing(ctx context.Context) error {
	ticker := time.NewTicker(strobePeriod)
	defer ticker.Stop()
	var failed error
	for away := false; ; away = !away {
		select {
		case <-s.stop:
			return failed
		case <-ticker.C:
		}
		offset := time.Duration(0)
		if away {
			offset = s.step
		}
		ctx, cancel := context.WithTimeout(ctx, healTimeout)
		_, err := s.set(ctx, offset)
		cancel()
		if err != nil {
			failed = err // the next move may succeed
		}
	}
}

// Prove waits until the servers have reported both times.
func (s *strobe) Prove(ctx context.Context) (string, error) {
	away, err := s.read(ctx, s.step)
	if err != nil {
		return "", err
	}
	back, err := s.read(ctx, 0)
	return fmt.Sprintf("%s; then %s", away, back), err
}

func (s *strobe) Heal(ctx context.Context) (Healing, error) {
	s.once.Do(func() { close(s.stop) })
	s.done.Wait()
	return s.clock.Heal(ctx)
}

// ProveHealed also reports if some moves failed.
func (s *strobe) ProveHealed(ctx context.Context) (string, error) {
	evidence, err := s.clock.ProveHealed(ctx)
	if err == nil && s.failed != nil {
		evidence += fmt.Sprintf("; it did not move each time: %v", s.failed)
	}
	return evidence, err
}
