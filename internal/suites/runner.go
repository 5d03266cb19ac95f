package suites

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"lockcheck/internal/runs"
	"lockcheck/reports"
)

// Job is one of many runs.
type Job struct {
	Name    string
	Options runs.Options // without the machine, for which the runner's machine is used
	// Application is a test of an application, in place of Options; nil for a test of a lock.
	Application *runs.ApplicationOptions
	Outline     runs.Outline // of Options
	// Command is the command line that makes only this run, for the record; nil for the runner's command
	// line.
	Command []string
	// Slots is how many of the runner's slots the job takes, at least 1. It gets no more than the runner has.
	Slots int
	// MaxDelay is how late this process may be woken up during the run. After a longer delay the job is
	// Delayed, and fewer jobs run in parallel for a while. 0 for no limit.
	MaxDelay time.Duration
}

// tester makes a run of a lock.
type tester func(context.Context, runs.Options, <-chan struct{}, runs.Progress) (runs.Outcome, error)

// test makes the run of the job on a machine; ofLock runs a test of a lock.
func (j Job) test(ctx context.Context, m runs.Machine, interrupt <-chan struct{}, progress runs.Progress, ofLock tester) (runs.Outcome, error) {
	if j.Application != nil {
		o := *j.Application
		o.Machine = m
		return runs.TestApplication(ctx, o, interrupt, progress)
	}
	o := j.Options
	o.Machine = m
	return ofLock(ctx, o, interrupt, progress)
}

// Alone is the number of slots of a job that must run without any other job.
const Alone = math.MaxInt

// Made is a finished job.
type Made struct {
	Began   time.Time
	Took    time.Duration // start and end of the servers included
	Outcome runs.Outcome
	// Delayed: the machine was so busy that the fault may have missed its moment. A violation counts
	// nevertheless.
	Delayed bool
	// Err says why there is no outcome, or what could not be written or removed afterwards.
	Err error
}

// Runner makes many runs. As many run in parallel as it has slots for.
type Runner struct {
	Machine runs.Machine
	Slots   int // at least 1
	// KeepClusters keeps clusters on Docker from one run for the next. If the machine has no pool, the runner
	// makes one, which ends with Run.
	KeepClusters bool
	// Gate remembers from one Run to the next how many jobs the machine can run in parallel. It has as many
	// places as there are slots. If it is nil, each Run starts with all slots.
	Gate     *Gate
	Progress runs.Progress
	// Each receives the progress of each single run; nil for none.
	Each runs.Progress
	// Begin is called before each job, with the time that the remaining jobs will take. It may be nil.
	Begin func(i int, left string)
	// Done is called after each job, one call at a time. After an error no more jobs begin.
	Done func(i int, m Made) error
	// Deadline: a job that would end later, by its length, does not begin; zero for no deadline. Skipped is
	// called for each such job, in the way Done is.
	Deadline time.Time
	Skipped  func(i int) error
	// Test makes the run of a lock; runs.Test if nil.
	Test tester
}

// Length is how long jobs take, by their time limits and containers, if each begins in its order once enough
// slots are free. The sum divided by the slots would be too little, because the last jobs leave slots idle.
func (r Runner) Length(jobs []Job) time.Duration {
	w := r.work(jobs)
	free := make([]time.Duration, w.slots) // when each slot is, in order
	for _, j := range jobs {
		taken := free[:w.slotsOf(j)]
		end := taken[len(taken)-1] + j.Length() + time.Duration(j.containers())*eachContainer
		for i := range taken {
			taken[i] = end
		}
		slices.Sort(free)
	}
	return free[len(free)-1]
}

// work is the state before any job has begun.
func (r Runner) work(jobs []Job) *work {
	w := &work{Runner: r, slots: int64(max(r.Slots, 1)), jobs: jobs}
	for _, j := range jobs {
		w.left += w.cost(j)
		w.longest = max(w.longest, j.Length())
	}
	return w
}

// Run does jobs in their order. When interrupt is closed, jobs in progress end early, without a call of Done.
// The error says why some jobs were not done, or what an interrupted run could not remove.
func (r Runner) Run(ctx context.Context, jobs []Job, interrupt <-chan struct{}) (interrupted bool, err error) {
	if err := r.makeImages(ctx, jobs, interrupt); err != nil {
		return runs.Closed(interrupt), err
	}
	if r.KeepClusters && r.Machine.Pool == nil {
		pool := runs.NewPool()
		r.Machine.Pool = pool
		defer func() { err = errors.Join(err, pool.Close(ctx)) }()
	}
	if r.Test == nil {
		r.Test = runs.Test
	}
	w := r.work(jobs)
	w.began = time.Now()
	stopped := make(chan struct{})
	var reporting, all sync.WaitGroup
	if r.Each == nil {
		reporting.Go(func() { w.report(stopped) })
	}
	free := r.Gate
	if free == nil {
		free = NewGate(w.slots)
	}
	for i, j := range jobs {
		taken := w.slotsOf(j)
		if free.enter(ctx, taken) != nil || runs.Closed(interrupt) {
			w.interrupt()
			break
		}
		if w.hasFailed() {
			break
		}
		if !r.Deadline.IsZero() && time.Now().Add(j.Length()).After(r.Deadline) {
			free.leave(taken)
			w.skip(i)
			continue
		}
		if r.Begin != nil {
			r.Begin(i, w.remaining())
		}
		all.Go(func() {
			defer free.leave(taken)
			w.do(ctx, i, free, interrupt)
		})
	}
	all.Wait()
	close(stopped)
	reporting.Wait()
	return w.interrupted, errors.Join(w.failed, ctx.Err())
}

// makeImages makes the images of all jobs before the first job is measured.
func (r Runner) makeImages(ctx context.Context, jobs []Job, interrupt <-chan struct{}) error {
	var outlines []runs.Outline
	for _, j := range jobs {
		outlines = append(outlines, j.Outline)
	}
	return runs.MakeImagesOf(ctx, interrupt, r.Machine.Binary, outlines, r.Progress)
}

type work struct {
	Runner
	slots   int64
	jobs    []Job
	longest time.Duration // what the longest job takes
	began   time.Time

	mu          sync.Mutex
	done        int
	interrupted bool
	failed      error
	// spent, running and left are the costs of jobs: of the finished ones, of those in progress, and of all
	// that are not finished.
	spent, running, left time.Duration
}

func (w *work) interrupt() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.interrupted = true
}

func (w *work) hasFailed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed != nil
}

func (w *work) do(ctx context.Context, i int, free *Gate, interrupt <-chan struct{}) {
	job := w.jobs[i]
	machine, cost := w.Machine, w.cost(job)
	if job.Command != nil {
		machine.Command = job.Command
	}
	progress := w.Each
	if progress == nil {
		progress = runs.Silent{}
	}
	w.mu.Lock()
	w.running += cost
	w.mu.Unlock()
	m := Made{Began: time.Now()}
	m.Outcome, m.Err = job.test(ctx, machine, interrupt, progress, w.Test)
	m.Took = time.Since(m.Began)
	m.Delayed = job.MaxDelay > 0 && m.Outcome.Delay > job.MaxDelay
	free.adapt(m.Delayed)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running -= cost
	if m.Outcome.Interrupted || ctx.Err() != nil {
		w.interrupted, w.failed = true, errors.Join(w.failed, m.Err)
		return
	}
	w.spent += cost
	w.left -= cost
	w.done++
	w.failed = errors.Join(w.failed, w.Done(i, m))
}

// skip leaves out a job for which there is no time.
func (w *work) skip(i int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left -= w.cost(w.jobs[i])
	w.done++
	w.failed = errors.Join(w.failed, w.Skipped(i))
}

// startAndEnd is how long processes take to start and end, in addition to the time limit of a run.
// eachContainer is what each container adds: 15 containers took 7.5 s to start and 3 s to remove, and kept
// both processors of a machine busy.
const (
	startAndEnd   = 5 * time.Second
	eachContainer = 700 * time.Millisecond
)

// Length is how long a job takes at most if its servers are up. The run waits for critical sections that have
// begun at its time limit.
func (j Job) Length() time.Duration {
	return j.Outline.Options.TimeLimit + j.Outline.Options.LongestSection() + startAndEnd
}

// containers is how many containers the run of a job has: servers, an agent for each, and workers.
func (j Job) containers() int {
	if j.Outline.Recipe == "" {
		return 0
	}
	return 2*j.Outline.Servers + j.Outline.Options.Concurrency
}

// cost is the greatest length of a job, times its slots.
func (w *work) cost(j Job) time.Duration { return time.Duration(w.slotsOf(j)) * j.Length() }

// atMost is how long jobs of a total cost take, but no less than the longest job, because slots are idle near
// the end.
func (w *work) atMost(cost time.Duration) time.Duration {
	return max(cost/time.Duration(w.slots), w.longest)
}

func (w *work) slotsOf(j Job) int64 { return min(int64(max(j.Slots, 1)), w.slots) }

// report shows the progress of all jobs once a second.
func (w *work) report(stopped <-chan struct{}) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-stopped:
			return
		case <-ticker.C:
			left := w.remaining()
			w.mu.Lock()
			done := w.done
			w.mu.Unlock()
			w.Progress.Status("%d of %d runs; %s", done, len(w.jobs), left)
		}
	}
}

// remaining estimates the time left from the time that finished jobs took. Until a job is finished, it is an
// upper limit from the jobs' lengths. Jobs in progress count as half done.
func (w *work) remaining() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	half := float64(w.running) / 2
	left := float64(w.left) - half
	if w.spent == 0 {
		return "at most " + reports.Left(w.atMost(time.Duration(left)))
	}
	rate := (float64(w.spent) + half) / float64(time.Since(w.began))
	return reports.Left(time.Duration(left / rate))
}
