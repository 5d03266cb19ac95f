package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// Series is a number of experiments to run on a machine.
type Series struct {
	Experiments []Experiment
	// Alone are the names of those whose figures are measured: nothing runs beside them.
	Alone    map[string]bool
	Machine  Machine
	Parallel int // how many are run at a time; at least 1
	Progress Progress
	// Tell is called with each that is over, one at a time.
	Tell func(Ran)
}

// Ran is an experiment that was run.
type Ran struct {
	Name    string
	Took    time.Duration
	Outcome Outcome
	Missed  string // why the run is not as expected; "" if it is
	// Err says why there is no outcome, or what could not be written or removed after it.
	Err error
}

// Unexpected says whether something else came of it than was expected.
func (r Ran) Unexpected() bool { return r.Missed != "" || r.Err != nil }

// Without leaves out the experiments that some runs are there of.
func (s Series) Without(runs map[string][]StoredRun) Series {
	s.Experiments = slices.DeleteFunc(slices.Clone(s.Experiments), func(e Experiment) bool { return len(runs[e.Name]) > 0 })
	return s
}

// Run makes the runs. When interrupt is closed those in progress end early and are not
// told of. The error says why the series could not be gone through, or what interrupted
// runs could not remove.
func (s Series) Run(ctx context.Context, interrupt <-chan struct{}) (interrupted bool, err error) {
	if err := s.makeImages(ctx, interrupt); err != nil {
		return closed(interrupt), err
	}
	w := &seriesWork{Series: s, interrupt: interrupt}
	seats := int64(max(s.Parallel, 1))
	room := semaphore.NewWeighted(seats)
	var all sync.WaitGroup
	for i, e := range s.Experiments {
		taken := int64(1)
		if s.Alone[e.Name] {
			taken = seats
		}
		if err = room.Acquire(ctx, taken); err != nil || closed(interrupt) {
			break
		}
		s.Progress.Status("%d of %d: %s", i+1, len(s.Experiments), e.Name)
		all.Go(func() {
			defer room.Release(taken)
			w.run(ctx, e)
		})
	}
	all.Wait()
	return closed(interrupt) || ctx.Err() != nil, errors.Join(err, w.left)
}

// makeImages makes those of all experiments.
func (s Series) makeImages(ctx context.Context, interrupt <-chan struct{}) error {
	var tests []Outline
	for _, e := range s.Experiments {
		outline, err := OutlineOf(e.Options)
		if err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		tests = append(tests, outline)
	}
	return MakeImagesOf(ctx, interrupt, s.Machine.Binary, tests, s.Progress)
}

// seriesWork is a series in progress.
type seriesWork struct {
	Series
	interrupt <-chan struct{}

	mu   sync.Mutex
	left error // what interrupted runs could not remove
}

func (w *seriesWork) run(ctx context.Context, e Experiment) {
	progress := w.Progress
	if w.Parallel > 1 { // the lines of several could not be told apart
		progress = Silent{}
	}
	began := time.Now()
	ran := Ran{Name: e.Name}
	ran.Outcome, ran.Missed, ran.Err = e.Run(ctx, w.Machine, w.interrupt, progress)
	ran.Took = time.Since(began)
	w.mu.Lock()
	defer w.mu.Unlock()
	if ran.Outcome.Interrupted || ctx.Err() != nil {
		w.left = errors.Join(w.left, ran.Err)
		return
	}
	w.Tell(ran)
}
