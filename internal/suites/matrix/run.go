package matrix

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"slices"
	"time"

	"lockcheck/checker"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/internal/suites/trials"
	"lockcheck/reports"
)

// Machine is what a comparison runs on.
type Machine struct {
	runs.Machine // Store is the folder of the comparison
	// Parallel is how many runs of the lightest kind may run at once; 0 for as many as processors and memory
	// allow.
	Parallel int
	Progress runs.Progress
	// WithoutDocker leaves out the runs that need Docker.
	WithoutDocker bool
	// Budget is the time after which no run may end; 0 for no limit.
	Budget time.Duration
	// test makes a run; nil for runs.Test.
	test func(context.Context, runs.Options, <-chan struct{}, runs.Progress) (runs.Outcome, error)
}

// planned is a run to be made.
type planned struct {
	Place
	seed    uint64
	turn    int // number of runs that the cell gets before this one
	outline runs.Outline
}

// Run makes the missing runs, and then the runs that confirm cells that are not valid. When interrupt is
// closed, the runs in progress end without being counted. The error says why the comparison could not be
// made. Failures of single runs are in the ledger.
func (f *Folder) Run(ctx context.Context, m Machine, interrupt <-chan struct{}) (interrupted bool, err error) {
	locked, err := f.ledger.Lock()
	if err != nil {
		return false, err
	}
	defer locked.Close()
	var deadline time.Time
	if m.Budget > 0 {
		deadline = time.Now().Add(m.Budget)
	}
	todo, err := f.todo()
	if err != nil {
		return false, err
	}
	inOrder(todo, m.Budget > 0)
	f.reportOutdated(m.Progress)
	if interrupted, err = f.makeRuns(ctx, m, todo, deadline, interrupt); interrupted || err != nil {
		return interrupted, err
	}
	confirmations, err := f.confirmations()
	if err != nil {
		return false, err
	}
	inOrder(confirmations, m.Budget > 0)
	if len(confirmations) > 0 {
		m.Progress.Step("what was not valid is repeated with other seeds")
	}
	return f.makeRuns(ctx, m, confirmations, deadline, interrupt)
}

// reportOutdated reports the trials that are repeated because their attack was edited.
func (f *Folder) reportOutdated(progress runs.Progress) {
	for _, p := range f.Suite.places() {
		if n := f.outdated(p); n > 0 {
			progress.Step("%s: %s", p, outdatedText(n))
		}
	}
}

func (f *Folder) makeRuns(ctx context.Context, m Machine, todo []planned, deadline time.Time, interrupt <-chan struct{}) (interrupted bool, err error) {
	if m.WithoutDocker {
		todo = slices.DeleteFunc(todo, planned.needsDocker)
	}
	if len(todo) == 0 {
		return false, nil
	}
	var jobs []suites.Job
	for _, p := range todo {
		jobs = append(jobs, p.job(f.Suite))
	}
	r := suites.Runner{Machine: m.Machine, Slots: slotsOfMachine(m.Parallel), Progress: m.Progress, Deadline: deadline, KeepClusters: true, Test: m.test}
	r.Machine.Store = f.file(runsFolder)
	done := 0
	r.Done = func(i int, made suites.Made) error {
		e, err := f.record(todo[i], made)
		done++
		if !e.isAttack() || e.Whole || e.Failed != "" { // of thousands of trials, report only those that say something new
			text := cmp.Or(e.Failed, reports.Summary(made.Outcome.Results))
			m.Progress.Step("%d of %d  %s: %s", done, len(jobs), jobs[i].Name, text)
		}
		return err
	}
	r.Skipped = func(i int) error {
		p := todo[i]
		done++
		m.Progress.Step("%d of %d  %s: not made for lack of time", done, len(jobs), jobs[i].Name)
		return f.ledger.Add(entry{Place: p.Place, Seed: p.seed, OutOfTime: true, Attack: f.attacks[p.Place]})
	}
	m.Progress.Step("%s", estimate(len(jobs), r.Length(jobs), deadline))
	return r.Run(ctx, jobs, interrupt)
}

// estimate says how much time the runs take at most.
func estimate(n int, length time.Duration, deadline time.Time) string {
	noun := "runs"
	if n == 1 {
		noun = "run"
	}
	text := fmt.Sprintf("%d %s: at most %s if the machine keeps up; making images comes on top", n, noun, length.Round(time.Second))
	if left := time.Until(deadline).Round(time.Second); !deadline.IsZero() && length > left {
		const room = 3 // halves: the machine may be busy
		enough := (length*room/2 + time.Minute - 1).Truncate(time.Minute)
		text += fmt.Sprintf("; only %s of the budget are left, so some runs may be left out; --budget %s has room for all", max(left, 0), enough)
	}
	return text
}

// job prepares the run for the runner. A cluster of several servers needs more of the machine, and longer to
// start, than a single server.
func (p planned) job(s Suite) suites.Job {
	o := p.outline.Options
	name := p.runName(p.seed)
	o.Parameters = map[string]string{CellParameter: name}
	j := suites.Job{Name: name, Options: o, Outline: p.outline, Command: p.command(s, p.outline, p.seed)}
	if p.isAttack() {
		j.MaxDelay = trials.MaxDelay(o)
	}
	if p.outline.Servers > 1 {
		j.Slots = 2
	}
	return j
}

// todo lists the missing runs of the shard.
func (f *Folder) todo() ([]planned, error) {
	var all []planned
	first := 0 // number of the cell's first run
	for at, p := range f.Suite.places() {
		missing, err := f.missing(p, 0, func(turn int) bool { return f.Shard.Has(f.shardNumber(at, first+turn)) })
		if err != nil {
			return nil, err
		}
		all = append(all, missing...)
		first += len(f.Suite.seedsOf(p, 0))
	}
	return all, nil
}

// shardNumber decides which shard makes a run. It does not depend on what this machine supports, because all
// machines must agree. With confirmation, one shard makes all runs of a cell, because that shard judges the
// cell.
func (f *Folder) shardNumber(cell, run int) int {
	if f.Suite.Confirm > 0 {
		return cell
	}
	return run
}

// confirmations lists the missing runs that confirm cells of the shard.
func (f *Folder) confirmations() ([]planned, error) {
	var all []planned
	for at, p := range f.Suite.places() {
		if f.Suite.Confirm == 0 || !f.Shard.Has(at) {
			continue
		}
		cell, _, err := f.round(p, 0)
		if err != nil {
			return nil, err
		}
		for n := 1; n <= f.Suite.Confirm && f.needsConfirmation(cell); n++ {
			missing, err := f.missing(p, n, func(int) bool { return true })
			if err != nil {
				return nil, err
			}
			all = append(all, missing...)
		}
	}
	return all, nil
}

// missing lists the missing runs of a cell's round; none if the cell must stay empty.
func (f *Folder) missing(p Place, round int, ours func(turn int) bool) (all []planned, err error) {
	outline, err := p.outline(f.Suite)
	if unsupported(err) != "" {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p, err)
	}
	seeds := f.Suite.seedsOf(p, round)
	for turn, seed := range seeds {
		if e, ran := f.latestRun(p, seed); !ours(turn) || ran && !e.isOpen() {
			continue
		}
		seeded, err := p.withSeed(outline, seed)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		all = append(all, planned{p, seed, round*len(seeds) + turn, seeded})
	}
	return all, nil
}

// inOrder sorts the runs so that a comparison that runs out of time is balanced. Every cell gets its first
// run before any gets its second. Among these, long runs come first, so that the end does not wait for one of
// them.
//
// Trials are so short that their servers must be reused, so they go lock by lock. With a budget they do so in
// rounds, each with twice as many trials of a lock as the one before: when time runs out, each lock has at
// least about half as many trials as any other lock. The price is that the servers of a lock start five times
// for twenty trials a cell.
func inOrder(all []planned, budget bool) {
	locks := make(map[string]int)
	for _, p := range all {
		if _, known := locks[p.Lock]; !known {
			locks[p.Lock] = len(locks)
		}
	}
	lock := func(p planned) int {
		if p.isAttack() {
			return locks[p.Lock]
		}
		return len(locks)
	}
	round := func(p planned) int {
		if p.isAttack() && !budget {
			return 0
		}
		return bits.Len(uint(p.turn + 1))
	}
	slices.SortStableFunc(all, func(a, b planned) int {
		return cmp.Or(cmp.Compare(round(a), round(b)), cmp.Compare(lock(a), lock(b)), cmp.Compare(a.turn, b.turn),
			cmp.Compare(b.outline.Options.TimeLimit, a.outline.Options.TimeLimit))
	})
}

func (p planned) needsDocker() bool { return p.outline.Recipe != "" }

// NeedDocker lists the locks with missing runs that need Docker, and says whether other runs are missing too.
func (f *Folder) NeedDocker() (locks []string, others bool, err error) {
	todo, err := f.todo()
	for _, p := range todo {
		switch {
		case !p.needsDocker():
			others = true
		case !slices.Contains(locks, p.Lock):
			locks = append(locks, p.Lock)
		}
	}
	slices.Sort(locks)
	return locks, others, err
}

// record adds a run to the ledger. Its error is what went wrong after the run was judged.
func (f *Folder) record(p planned, made suites.Made) (entry, error) {
	recorded, err := suites.Record(f.Path, made)
	if recorded.Run != "" && made.Outcome.Results.Verdict == checker.Broken {
		recorded.Failed = made.Outcome.Results.Sentence
	}
	e := entry{Place: p.Place, Seed: p.seed, Recorded: recorded, Late: made.Delayed, Attack: f.attacks[p.Place]}
	if p.isAttack() && recorded.Failed == "" {
		o := made.Outcome
		e.Whole = o.Results.Verdict == checker.Violation && !byMachine(o.Results, e.Late) && !f.hasWhole(p.Place)
		err = errors.Join(err, keepTrial(made.Outcome, e.Whole))
	}
	return e, errors.Join(err, f.ledger.Add(e))
}

// hasWhole says whether a trial of the cell has kept its history and page.
func (f *Folder) hasWhole(p Place) bool {
	return slices.ContainsFunc(f.entries(), func(e entry) bool { return e.Place == p && e.Whole })
}

// keepTrial writes the page of a trial or removes its history. With thousands of trials, most keep only their
// results.
func keepTrial(o runs.Outcome, whole bool) error {
	if whole {
		return o.WriteReports()
	}
	return o.Judgement.RemoveHistory()
}

// memoryPerSlot is the most memory, in bytes, that a run's servers, workers and agents take for each of its
// slots.
const memoryPerSlot = 700 << 20

// slotsPerProcessor is more than one because a run spends most of its time waiting.
const slotsPerProcessor = 2

// slotsOfMachine is how many runs of the lightest kind the machine can run at once.
func slotsOfMachine(asked int) int {
	if asked > 0 {
		return asked
	}
	n := slotsPerProcessor * runtime.NumCPU()
	if available := availableMemory(); available > 0 {
		n = min(n, int(available/memoryPerSlot))
	}
	return max(n, 1)
}
