package suites

import (
	"context"
	"fmt"
	"slices"
	"time"

	"lockcheck/internal/runs"
)

// Series is a set of experiments to run on a machine.
type Series struct {
	Experiments []Experiment
	// Alone has the names of experiments whose figures are measured: nothing else runs at the same time.
	Alone    map[string]bool
	Machine  runs.Machine
	Parallel int // how many experiments run in parallel; at least 1
	Progress runs.Progress
	// Done is called after each experiment, one call at a time.
	Done func(Ran)
}

// Ran is a finished experiment.
type Ran struct {
	Name    string
	Took    time.Duration
	Outcome runs.Outcome
	Missed  string // why the run is not as expected; "" if it is
	// Err says why there is no outcome, or what could not be written or removed afterwards.
	Err error
}

// Unexpected says whether the run failed or is not as expected.
func (r Ran) Unexpected() bool { return r.Missed != "" || r.Err != nil }

// Without leaves out the experiments that already have stored runs.
func (s Series) Without(stored map[string][]StoredRun) Series {
	s.Experiments = slices.DeleteFunc(slices.Clone(s.Experiments), func(e Experiment) bool { return len(stored[e.Name]) > 0 })
	return s
}

// Run makes the runs. When interrupt is closed, runs in progress end early, without a call of Done. The error
// says why some runs were not made, or what interrupted runs could not remove.
func (s Series) Run(ctx context.Context, interrupt <-chan struct{}) (interrupted bool, err error) {
	var jobs []Job
	for _, e := range s.Experiments {
		var err error
		job := e.job()
		if job.Outline, err = e.Outline(); err != nil {
			return runs.Closed(interrupt), fmt.Errorf("%s: %w", e.Name, err)
		}
		if s.Alone[e.Name] {
			job.Slots = Alone
		}
		jobs = append(jobs, job)
	}
	r := Runner{Machine: s.Machine, Slots: s.Parallel, Progress: s.Progress}
	if s.Parallel <= 1 { // the output of several runs would be mixed up
		r.Each = s.Progress
	}
	r.Begin = func(i int, left string) {
		s.Progress.Step("%d of %d: %s; %s", i+1, len(jobs), jobs[i].Name, left)
	}
	r.Done = func(i int, m Made) error {
		ran := Ran{Name: jobs[i].Name, Took: m.Took, Outcome: m.Outcome, Err: m.Err}
		if m.Outcome.History != nil {
			ran.Missed = s.Experiments[i].Missed(m.Outcome.Results)
		}
		s.Done(ran)
		return nil
	}
	return r.Run(ctx, jobs, interrupt)
}
