// Package remedied repeats a run with each remedy that its lock supports.
package remedied

import (
	"cmp"
	"context"
	"errors"
	"io"
	"path/filepath"
	"time"

	"lockcheck/clients"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/remedies"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/reports"
	"lockcheck/workloads"
)

const runsFolder = "runs"

// Plan is a test, and the remedies to try against what it may find.
type Plan struct {
	Path     string // of the folder
	Plain    runs.Options
	tries    []try
	notTried []NotTried
}

type try struct {
	remedy remedies.Remedy
	flag   string
	job    suites.Job
}

// New plans the runs and makes their folder in the store of the options. Its error says why the test makes no
// sense.
func New(o runs.Options) (Plan, error) {
	plain, err := runs.OutlineOf(o)
	if err != nil {
		return Plan{}, err
	}
	lock, err := lockfile.Find(o.Lock)
	if err != nil {
		return Plan{}, &runs.UsageError{Err: err, About: "lock"}
	}
	p := Plan{Plain: o}
	for _, r := range remedies.All() {
		if r.Change == (remedies.Change{}) || !r.Concerns(lock.Info) {
			continue // it is another test
		}
		t := try{remedy: r, flag: r.Change.Flag(o.Lock, plain.Options.TTL)}
		why := whyNotTried(r, lock.Info, plain.Options)
		if why == "" {
			t.job, err = jobWith(r.Change, t.flag, lock, o, plain)
			if err != nil {
				why = err.Error()
			}
		}
		if why != "" {
			p.notTried = append(p.notTried, NotTried{Remedy: r.Name, Words: r.Words, Flag: t.flag, Why: why})
			continue
		}
		p.tries = append(p.tries, t)
	}
	if p.Path, err = runs.NewFolder(filepath.Join(o.Store, runs.RemediesFolder)); err != nil {
		return p, err
	}
	p.Plain.Store = filepath.Join(p.Path, runsFolder)
	return p, nil
}

// whyNotTried says why a remedy is not tried; "" if it is tried.
func whyNotTried(r remedies.Remedy, lock clients.Info, o runs.Options) string {
	w, _ := workloads.ByName(o.Workload)
	switch lacks := cmp.Or(r.Bars(w), r.Lacks(lock, o.TTL)); {
	case lacks != "":
		return "the lock " + lock.Name + " " + lacks
	case r.InForce(lock, workloads.Guard(o.Guard), o.Use):
		return "the run has it already"
	}
	return ""
}

// jobWith is the run with a change. It has the same faults as the plain run, for the same time, as far as the
// changed lock has them.
func jobWith(c remedies.Change, flag string, lock lockfile.Lock, o runs.Options, plain runs.Outline) (suites.Job, error) {
	schedule := plain.Schedule.Fixed(plain.Effective)
	o.Schedule, o.TimeLimit = &schedule, plain.Options.TimeLimit
	o.Lock = c.Lock(o.Lock)
	if c.Guard != "" {
		o.Guard = string(c.Guard)
	}
	o.Renew, o.CheckBeforeWrite = o.Renew || c.Renew, o.CheckBeforeWrite || c.CheckBeforeWrite
	if c.Leases > 0 {
		o.TTL = time.Duration(c.Leases) * plain.Options.TTL
		// A longer lease makes the recovery period longer by this.
		o.TimeLimit += lock.Info.Effective(o.TTL, 0) - lock.Info.Effective(plain.Options.TTL, 0)
	}
	outline, err := runs.OutlineOf(o)
	return suites.Job{Name: flag, Options: o, Outline: outline, Slots: suites.Alone}, err
}

// Run makes the runs with remedies one after another and writes them next to the plain run. The error says
// what could not be run or written. The completed runs are returned even then.
func (p Plan) Run(ctx context.Context, m runs.Machine, plain runs.Judgement, progress runs.Progress, interrupt <-chan struct{}) (tried Tried, interrupted bool, err error) {
	tried = Tried{Schema: Schema, NotTried: p.notTried}
	add := func(run Run, made runs.Judgement) error {
		folder, err := filepath.Rel(p.Path, made.Folder)
		tried.add(run, folder, made.History.Header, made.Results)
		return err
	}
	if err := add(Run{Words: "as asked for"}, plain); err != nil {
		return tried, false, err
	}
	m.Store = p.Plain.Store
	var jobs []suites.Job
	for _, t := range p.tries {
		jobs = append(jobs, t.job)
	}
	runner := suites.Runner{Machine: m, Slots: 1, Progress: progress, Each: progress}
	runner.Begin = func(i int, left string) {
		progress.Step("%d of %d: with %s; %s", i+1, len(jobs), jobs[i].Name, left)
	}
	runner.Done = func(i int, made suites.Made) error {
		t := p.tries[i]
		run := Run{Remedy: t.remedy.Name, Words: t.remedy.Words, Flag: t.flag}
		if made.Outcome.History == nil {
			tried.NotTried = append(tried.NotTried, NotTried{Remedy: run.Remedy, Words: run.Words, Flag: t.flag, Why: made.Err.Error()})
			return nil
		}
		return errors.Join(made.Err, add(run, made.Outcome.Judgement))
	}
	interrupted, err = runner.Run(ctx, jobs, interrupt)
	return tried, interrupted, errors.Join(err, p.write(tried))
}

func (p Plan) write(tried Tried) error {
	return suites.WriteFiles(p.Path, map[string]func(io.Writer) error{
		runs.RemediesFile:     tried.Page().WriteHTML,
		runs.RemediesDataFile: func(w io.Writer) error { return reports.WriteJSON(w, tried) },
	})
}
