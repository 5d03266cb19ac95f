package claims

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"lockcheck/harness"
)

// Plan is a set of experiments to run.
type Plan struct {
	Experiments []harness.Experiment
	// alone are those whose figures are measured: nothing else runs beside them.
	alone map[string]bool
}

// PlanOf lists the experiments that claims rest on, each once, and of them those whose
// names match.
func PlanOf(all []Claim, only *regexp.Regexp) (Plan, error) {
	known, err := experiments()
	if err != nil {
		return Plan{}, err
	}
	p := Plan{alone: make(map[string]bool)}
	add := func(r reference) {
		named := func(e harness.Experiment) bool { return e.Name == r.Name }
		if r.Name != "" && only.MatchString(r.Name) && !slices.ContainsFunc(p.Experiments, named) {
			p.Experiments = append(p.Experiments, known[r.Name])
		}
	}
	for _, c := range all {
		for _, e := range slices.Concat(c.For, c.Against) {
			add(e.Run)
		}
		for _, m := range c.Measured {
			add(m.Run)
			add(m.Than)
			p.alone[m.Run.Name], p.alone[m.Than.Name] = true, true
		}
	}
	// What runs side by side comes first, so that it need not wait for what runs alone.
	slices.SortStableFunc(p.Experiments, func(a, b harness.Experiment) int {
		return cmp.Compare(p.seats(a, 2), p.seats(b, 2))
	})
	return p, nil
}

// Without leaves out the experiments that some runs are there of.
func (p Plan) Without(runs map[string][]harness.StoredRun) Plan {
	p.Experiments = slices.DeleteFunc(slices.Clone(p.Experiments), func(e harness.Experiment) bool { return len(runs[e.Name]) > 0 })
	return p
}

func (p Plan) seats(e harness.Experiment, of int64) int64 {
	if p.alone[e.Name] {
		return of
	}
	return 1
}

// Machine is what the experiments run on.
type Machine struct {
	Options  harness.Options // Binary, Version, Command and Store
	Parallel int             // how many are run at a time; at least 1
	Progress harness.Progress
}

// Ran is an experiment that was run.
type Ran struct {
	Name    string
	Took    time.Duration
	Outcome harness.Outcome
	Missed  string // why the run is not as expected; "" if it is
	// Err says why there is no outcome, or what could not be written or removed after it.
	Err error
}

// Run makes the runs, some of them side by side, and tells of each when it is over. When
// interrupt is closed those in progress end early and are not told of.
func (p Plan) Run(ctx context.Context, m Machine, interrupt <-chan struct{}, tell func(Ran)) (interrupted bool, err error) {
	if err := p.makeImages(ctx, m); err != nil {
		return false, err
	}
	seats := int64(max(m.Parallel, 1))
	room := semaphore.NewWeighted(seats)
	var all sync.WaitGroup
	var telling sync.Mutex
	var stopped atomic.Bool
	for i, e := range p.Experiments {
		taken := p.seats(e, seats)
		if err = room.Acquire(ctx, taken); err != nil {
			break
		}
		if closed(interrupt) {
			stopped.Store(true)
			break
		}
		m.Progress.Status("%d of %d: %s", i+1, len(p.Experiments), e.Name)
		all.Go(func() {
			defer room.Release(taken)
			began := time.Now()
			ran := Ran{Name: e.Name}
			ran.Outcome, ran.Missed, ran.Err = e.Run(ctx, m.Options, interrupt, harness.Silent{})
			ran.Took = time.Since(began)
			if ran.Outcome.Interrupted || ctx.Err() != nil {
				stopped.Store(true)
				return
			}
			telling.Lock()
			defer telling.Unlock()
			tell(ran)
		})
	}
	all.Wait()
	return stopped.Load(), err
}

// makeImages makes those of all experiments.
func (p Plan) makeImages(ctx context.Context, m Machine) error {
	var tests []harness.Outline
	for _, e := range p.Experiments {
		outline, err := harness.OutlineOf(e.Options)
		if err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		tests = append(tests, outline)
	}
	return harness.MakeImagesOf(ctx, m.Options.Binary, tests, m.Progress)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
