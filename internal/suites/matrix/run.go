package matrix

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"lockcheck/checker"
	"lockcheck/internal/runs"
)

// Machine is what a comparison runs on.
type Machine struct {
	runs.Machine // Store is that of the comparison
	// Parallel is how many runs of the lightest kind are made side by side; 0 for as
	// many as processors and memory allow.
	Parallel int
	Progress runs.Progress
}

// planned is a run that is to be made.
type planned struct {
	Cell
	seed    uint64
	outline runs.Outline
}

// Run makes the runs that are not there yet. When interrupt is closed, those in progress
// end without being counted. Its error says why a comparison could not be made; that
// single runs failed is in the ledger.
func (f *Folder) Run(ctx context.Context, m Machine, interrupt <-chan struct{}) (interrupted bool, err error) {
	todo := f.todo()
	if len(todo) == 0 {
		return false, nil
	}
	var tests []runs.Outline
	for _, p := range todo {
		tests = append(tests, p.outline)
	}
	if err := f.mendLedger(); err != nil {
		return false, err
	}
	if err := runs.MakeImagesOf(ctx, interrupt, m.Binary, tests, m.Progress); err != nil {
		return closed(interrupt), err
	}
	w := &work{Folder: f, machine: m, interrupt: interrupt, began: time.Now(), total: len(todo)}
	w.seats = seatsOfMachine(m.Parallel)
	w.room = semaphore.NewWeighted(w.seats)
	for _, p := range todo {
		w.left.Add(int64(p.cost(w.seats)))
	}
	stopped := make(chan struct{})
	var reporting sync.WaitGroup
	reporting.Go(func() { w.report(stopped) })
	err = w.runAll(ctx, todo)
	close(stopped)
	reporting.Wait()
	return w.interrupted.Load(), err
}

// todo lists the runs of the shard that are not there yet, long ones first, so that none
// of them is what everything waits for at the end.
func (f *Folder) todo() []planned {
	var all []planned
	n := 0
	for _, c := range f.Suite.cells() {
		outline, err := c.outline(f.Suite)
		for _, seed := range f.Suite.Seeds {
			n++ // whatever can be had here: all machines must agree on who makes which run
			if e, ran := f.ran(c, seed); err == nil && f.Shard.has(n-1) && (!ran || e.Failed != "") {
				all = append(all, planned{c, seed, outline})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b planned) int {
		return cmp.Compare(b.outline.Options.TimeLimit, a.outline.Options.TimeLimit)
	})
	return all
}

// work is a comparison in progress.
type work struct {
	*Folder
	machine     Machine
	interrupt   <-chan struct{}
	interrupted atomic.Bool
	room        *semaphore.Weighted
	seats       int64
	began       time.Time
	total       int
	done        atomic.Int64
	// spent, running and left are what the runs take that were made, that are being
	// made, and that are not done: their lengths times their seats, ns.
	spent, running, left atomic.Int64
}

// runAll makes the runs side by side, as far as there are seats. After an error no more are
// begun.
func (w *work) runAll(ctx context.Context, todo []planned) error {
	group, going := errgroup.WithContext(ctx)
	for _, p := range todo {
		seats := p.seats(w.seats)
		if err := w.room.Acquire(going, seats); err != nil || w.stopped() {
			break
		}
		group.Go(func() error {
			defer w.room.Release(seats)
			return w.run(ctx, p)
		})
	}
	return errors.Join(group.Wait(), ctx.Err())
}

func (w *work) stopped() bool {
	stopped := closed(w.interrupt)
	if stopped {
		w.interrupted.Store(true)
	}
	return stopped
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// run makes a run and puts it down.
func (w *work) run(ctx context.Context, p planned) error {
	o := p.outline.Options
	o.Seed, o.Machine = p.seed, w.machine.Machine
	o.Store = w.file(runsFolder)
	o.Parameters = map[string]string{"comparison": p.name()}
	e := entry{Lock: p.Lock, Fault: p.Fault, Guard: p.Guard, Seed: p.seed, Began: time.Now()}
	cost := int64(p.cost(w.seats))
	w.running.Add(cost)
	outcome, err := runs.Test(ctx, o, w.interrupt, runs.Silent{})
	e.Took = time.Since(e.Began)
	w.running.Add(-cost)
	if outcome.Interrupted || ctx.Err() != nil {
		w.interrupted.Store(true)
		return err // that not all could be removed
	}
	w.spent.Add(cost)
	w.left.Add(-cost)
	err = errors.Join(w.putDown(&e, outcome, err), w.add(e))
	w.say(w.done.Add(1), p, outcome, e)
	return err
}

// putDown completes the entry of a run. Its error is what went wrong after the run was
// judged, such as that not all could be removed.
func (w *work) putDown(e *entry, outcome runs.Outcome, err error) error {
	if outcome.History == nil {
		e.Failed = err.Error()
		return nil
	}
	var relErr error
	if e.Run, relErr = filepath.Rel(w.Path, outcome.Folder); relErr != nil {
		return errors.Join(err, relErr)
	}
	if _, readErr := runs.ReadResults(outcome.Folder); readErr != nil {
		e.Run, e.Failed = "", readErr.Error()
	} else if outcome.Results.Verdict == checker.Broken {
		e.Failed = outcome.Results.Sentence
	}
	return err
}

func (w *work) say(n int64, p planned, outcome runs.Outcome, e entry) {
	text := e.Failed
	if text == "" {
		text = string(outcome.Results.Verdict) + ": " + outcome.Results.Sentence
	}
	w.machine.Progress.Step("%d of %d  %s: %s", n, w.total, p.name(), text)
}

func (p planned) name() string { return fmt.Sprintf("%s, seed %d", p.Cell, p.seed) }

// startAndEnd is what servers take to start and end, around the time limit of a run.
const startAndEnd = 5 * time.Second

// cost is what a run takes of the seats of a machine.
func (p planned) cost(seats int64) time.Duration {
	return time.Duration(p.seats(seats)) * (p.outline.Options.TimeLimit + startAndEnd)
}

// seats is how many seats a run takes: servers that agree with each other work more, and
// start for longer, than one alone.
func (p planned) seats(of int64) int64 {
	if p.outline.Servers > 1 {
		return min(2, of)
	}
	return 1
}

// report says now and then how far the comparison is.
func (w *work) report(stopped <-chan struct{}) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-stopped:
			return
		case <-ticker.C:
			w.machine.Progress.Status("%d of %d runs; %s", w.done.Load(), w.total, w.remaining())
		}
	}
}

// remaining is how long it will still take, from how long it took so far; until a run is
// done, from the lengths of the runs. Those in progress count as half done.
func (w *work) remaining() string {
	half := float64(w.running.Load()) / 2
	left, rate := float64(w.left.Load())-half, float64(w.seats)
	if spent := float64(w.spent.Load()); spent > 0 {
		rate = (spent + half) / float64(time.Since(w.began))
	}
	about := time.Duration(left / rate)
	if about < 2*time.Minute {
		return fmt.Sprintf("about %s left", max(about.Round(10*time.Second), 10*time.Second))
	}
	return fmt.Sprintf("about %d min left", int((about+30*time.Second)/time.Minute))
}

// memoryPerSeat is what the servers, workers and agents of a run take at most for each
// of its seats, in bytes.
const memoryPerSeat = 700 << 20

// seatsPerProcessor: most of a run is waiting.
const seatsPerProcessor = 2

// seatsOfMachine is how many runs of the lightest kind a machine can carry.
func seatsOfMachine(asked int) int64 {
	if asked > 0 {
		return int64(asked)
	}
	n := seatsPerProcessor * runtime.NumCPU()
	if available := availableMemory(); available > 0 {
		n = min(n, int(available/memoryPerSeat))
	}
	return int64(max(n, 1))
}
