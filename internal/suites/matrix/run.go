package matrix

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"lockcheck/checker"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/reports"
)

// Machine is what a comparison runs on.
type Machine struct {
	runs.Machine // Store is that of the comparison
	// Parallel is how many runs of the lightest kind are made side by side; 0 for as
	// many as processors and memory allow.
	Parallel int
	Progress runs.Progress
	// WithoutDocker leaves out the runs that need it.
	WithoutDocker bool
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
	if m.WithoutDocker {
		todo = slices.DeleteFunc(todo, planned.needsDocker)
	}
	if len(todo) == 0 {
		return false, nil
	}
	if err := f.mendLedger(); err != nil {
		return false, err
	}
	var jobs []suites.Job
	for _, p := range todo {
		jobs = append(jobs, p.job())
	}
	r := suites.Runner{Machine: m.Machine, Slots: slotsOfMachine(m.Parallel), Progress: m.Progress}
	r.Machine.Store = f.file(runsFolder)
	done := 0
	r.Done = func(i int, made suites.Made) error {
		e, err := f.putDown(todo[i], made)
		done++
		text := e.Failed
		if text == "" {
			text = reports.Summary(made.Outcome.Results)
		}
		m.Progress.Step("%d of %d  %s: %s", done, len(jobs), jobs[i].Name, text)
		return err
	}
	return r.Run(ctx, jobs, interrupt)
}

// job is the run for the runner. Servers that agree with each other work more, and start
// for longer, than one alone.
func (p planned) job() suites.Job {
	o := p.outline.Options
	o.Seed = p.seed
	name := fmt.Sprintf("%s, seed %d", p.Cell, p.seed)
	o.Parameters = map[string]string{"comparison": name}
	j := suites.Job{Name: name, Options: o, Outline: p.outline}
	if p.outline.Servers > 1 {
		j.Slots = 2
	}
	return j
}

// todo lists the runs of the shard that are not there yet, long ones first, so that none
// of them is what everything waits for at the end.
func (f *Folder) todo() []planned {
	var all []planned
	n := 0
	for _, c := range f.Suite.cells() {
		outline, err := c.outline(f.Suite)
		for _, seed := range f.Suite.Seeds {
			n++ // whatever is supported here: all machines must agree on who makes which run
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

func (p planned) needsDocker() bool { return p.outline.Recipe != "" }

// NeedDocker lists the locks whose runs are not there yet and need Docker, and says whether
// there are runs to make that do not.
func (f *Folder) NeedDocker() (locks []string, others bool) {
	for _, p := range f.todo() {
		switch {
		case !p.needsDocker():
			others = true
		case !slices.Contains(locks, p.Lock):
			locks = append(locks, p.Lock)
		}
	}
	slices.Sort(locks)
	return locks, others
}

// putDown puts a run into the ledger. Its error is what went wrong after the run was
// judged, such as that not all could be removed.
func (f *Folder) putDown(p planned, made suites.Made) (e entry, err error) {
	e = entry{Lock: p.Lock, Fault: p.Fault, Guard: p.Guard, Seed: p.seed, Began: made.Began, Took: made.Took}
	if made.Outcome.History == nil {
		e.Failed = made.Err.Error()
		return e, f.add(e)
	}
	err = made.Err
	run, relErr := filepath.Rel(f.Path, made.Outcome.Folder)
	if relErr != nil {
		return e, errors.Join(err, relErr, f.add(e))
	}
	e.Run = run
	if _, readErr := runs.ReadResults(made.Outcome.Folder); readErr != nil {
		if err != nil {
			readErr = err // why there are none
		}
		e.Run = ""
		e.Failed, _, _ = strings.Cut(readErr.Error(), "\n")
	} else if made.Outcome.Results.Verdict == checker.Broken {
		e.Failed = made.Outcome.Results.Sentence
	}
	return e, errors.Join(err, f.add(e))
}

// memoryPerSlot is what the servers, workers and agents of a run take at most for each
// of its slots, in bytes.
const memoryPerSlot = 700 << 20

// slotsPerProcessor: most of a run is waiting.
const slotsPerProcessor = 2

// slotsOfMachine is how many runs of the lightest kind a machine can carry.
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
