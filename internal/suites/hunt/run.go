package hunt

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"lockcheck/checker"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/internal/suites/trials"
	"lockcheck/reports"
)

// Machine is what a hunt runs on.
type Machine struct {
	runs.Machine
	Parallel int // number of trials run in parallel; at least 1
	Progress runs.Progress
	Budget   time.Duration // of the whole hunt
	Trials   int           // upper limit for all parts of a hunt together; 0 for no limit
	// Enough ends the hunt early once it returns true. It is called after each batch of trials and after each
	// investigation; nil for never.
	Enough func(Result) bool
	// TrialsOnly: do not investigate findings.
	TrialsOnly bool

	test func(context.Context, runs.Options, <-chan struct{}, runs.Progress) (runs.Outcome, error) // runs a test; nil for runs.Test
}

// Shares of the budget.
const (
	reserve       = 0.15 // kept for the findings of the last trials
	findingShare  = 0.3  // at most, for one finding
	patience      = 0.5  // until then, a finding that shows seldom waits for another trial that shows it
	findingsShare = 0.5  // of the elapsed time, for findings while trials are left; otherwise a lock with many findings would get few trials
)

type search struct {
	folder    *Folder
	machine   Machine
	interrupt <-chan struct{}
	gate      *suites.Gate // limits parallel runs to what the machine manages in time

	began, end   time.Time
	searchEnd    time.Time // end of the time for trials
	patientUntil time.Time
	investigated time.Duration // time spent on findings
	// postponed has the keys of findings for which there was no time. They get a last turn once no trials are
	// left.
	postponed map[string]bool
	lastTurn  bool
	// status is read by the trials in progress while other trials are added.
	status atomic.Pointer[string]
}

// Run makes trials until the budget is spent, and investigates each finding soon after a trial shows it. When
// interrupt is closed, the trials in progress end without being counted. The error says why the hunt could
// not continue. Failures of single trials are in the ledger.
func (f *Folder) Run(ctx context.Context, m Machine, interrupt <-chan struct{}) (stopped bool, err error) {
	locked, err := f.ledger.Lock()
	if err != nil {
		return false, err
	}
	defer locked.Close()
	m.Pool = runs.NewPool()
	defer func() { err = errors.Join(err, m.Pool.Close(ctx)) }()
	s := newSearch(f, m, interrupt)
	for {
		stopped, err := s.investigateAll(ctx)
		if err != nil || stopped || s.hasEnough() {
			return stopped, err
		}
		made, stopped, err := s.makeTrials(ctx)
		if err != nil || stopped {
			return stopped, err
		}
		if err := s.allFail(); err != nil {
			return false, err
		}
		switch {
		case made > 0:
		case time.Now().Before(s.searchEnd):
			s.searchEnd = time.Now() // no trials are left, so findings need not wait for them
		case !s.lastTurn:
			clear(s.postponed)
			s.lastTurn = true
		case s.isPatient():
			s.patientUntil = time.Time{} // no further trial can show more often what was seen seldom
		default:
			return false, nil
		}
	}
}

func newSearch(f *Folder, m Machine, interrupt <-chan struct{}) *search {
	now := time.Now()
	after := func(share float64) time.Time { return now.Add(time.Duration(share * float64(m.Budget))) }
	s := &search{
		folder: f, machine: m, interrupt: interrupt, gate: suites.NewGate(int64(max(1, m.Parallel))), postponed: make(map[string]bool),
		began: now, end: after(1), searchEnd: after(1 - reserve), patientUntil: after(patience),
	}
	if m.TrialsOnly {
		s.searchEnd = s.end
	}
	s.updateStatus()
	return s
}

func (s *search) isPatient() bool { return time.Now().Before(s.patientUntil) }

func (s *search) hasEnough() bool {
	return s.machine.Enough != nil && s.machine.Enough(s.folder.Result())
}

// maxFailed is how many trials in a row may fail before the hunt gives up.
const maxFailed = 16

// allFail returns an error if the last trials all failed, so that another trial is unlikely to succeed.
func (s *search) allFail() error {
	all := s.folder.attempts
	last := all[max(0, len(all)-maxFailed):]
	if len(last) < maxFailed || slices.ContainsFunc(last, func(a attempt) bool { return a.Failed == "" }) {
		return nil
	}
	return fmt.Errorf("the last %d trials failed, the last one with: %s", len(last), last[len(last)-1].Failed)
}

// makeTrials makes the next batch of trials and returns its size.
func (s *search) makeTrials(ctx context.Context) (made int, stopped bool, err error) {
	attempts := s.next()
	var jobs []suites.Job
	for _, a := range attempts {
		o, err := s.folder.Plan.options(a.Trial)
		if err != nil {
			return 0, false, err
		}
		o = trials.Quick(o) // only investigations need whole runs, as "lockcheck repro" makes them
		job, err := s.job(a.Trial, o)
		if err != nil {
			return 0, false, err
		}
		jobs = append(jobs, job)
	}
	r := s.runner()
	r.Deadline = s.searchEnd
	r.Skipped = func(int) error { return nil }
	r.Done = func(i int, m suites.Made) error {
		made++
		return s.record(attempts[i], m)
	}
	stopped, err = r.Run(ctx, jobs, s.interrupt)
	return made, stopped, err
}

// job is a run that writes only its results.
func (s *search) job(t Trial, o runs.Options) (suites.Job, error) {
	o.ResultsOnly = true
	o.Parameters = map[string]string{"hunt": t.String()}
	outline, err := runs.OutlineOf(o)
	return suites.Job{Name: t.String(), Options: o, Outline: outline, MaxDelay: trials.MaxDelay(o)}, err
}

func (s *search) runner() suites.Runner {
	r := suites.Runner{
		Machine: s.machine.Machine, Slots: s.machine.Parallel, Gate: s.gate,
		Progress: s.machine.Progress, Each: huntStatus{s}, Test: s.machine.test,
	}
	r.Machine.Store = filepath.Join(s.folder.Path, runsFolder)
	return r
}

// next lists the trials to make now. It keeps the plan's share of blind trials at any time.
func (s *search) next() []attempt {
	f := s.folder
	var all []attempt
	for n := 0; len(all) < 2*s.machine.Parallel && (s.machine.Trials == 0 || n < s.machine.Trials); n++ {
		if !f.Plan.Shard.Has(n) || f.drawn[n] {
			continue
		}
		rng := rand.New(rand.NewPCG(f.Plan.Seed, uint64(n)))
		a := attempt{Number: n, Blind: f.Plan.isBlind(len(f.attempts) + len(all))}
		if a.Blind {
			a.Trial = f.Plan.space.draw(rng)
		} else {
			a.Trial = f.guide.next(rng)
		}
		all = append(all, a)
	}
	return all
}

// record adds a trial to the ledger. It keeps the trial's run only if the run showed a finding or failed.
func (s *search) record(a attempt, m suites.Made) error {
	a.Began, a.Took = m.Began, m.Took
	err := m.Err
	if m.Outcome.History == nil {
		a.Failed, err = m.Err.Error(), nil
	} else {
		s.recordOutcome(&a, m.Outcome)
	}
	switch {
	case a.Run != "":
		err = errors.Join(err, m.Outcome.WriteReports())
	case a.Failed == "":
		err = errors.Join(err, os.RemoveAll(m.Outcome.Folder))
	}
	return s.add(entry{Tried: &a}, err)
}

func (s *search) add(e entry, err error) error {
	if failed := s.folder.add(e); failed != nil {
		return errors.Join(failed, err)
	}
	s.updateStatus()
	return err
}

func (s *search) updateStatus() {
	text := fmt.Sprintf("%s, %s, coverage %d", reports.Many(len(s.folder.attempts), "trial"), reports.Many(len(s.folder.findings()), "finding"), len(s.folder.guide.cells))
	s.status.Store(&text)
}

func (s *search) recordOutcome(a *attempt, outcome runs.Outcome) {
	header, results := outcome.History.Header, outcome.Results
	if results.Verdict == checker.Broken {
		a.Failed = results.Sentence
		return
	}
	shown := findingsIn(header, results)
	for _, c := range cover(outcome.History) {
		if !s.folder.guide.cells[c] {
			a.Fresh = append(a.Fresh, c)
		}
	}
	a.Near, a.Inherent = nearness(header, results, shown), shown.inherent
	a.Proven = slices.ContainsFunc(results.Faults, checker.FaultCoverage.Counts)
	for _, f := range shown.findings {
		f.Trial = a.Trial.asFarAs(results.Faults)
		a.Finds = append(a.Finds, f)
		known := slices.ContainsFunc(s.folder.attempts, func(other attempt) bool { return other.shows(f.Signature) })
		if !known {
			s.machine.Progress.Step("trial %d: %s (%s)", len(s.folder.attempts)+1, f.Signature, a.Trial)
		}
	}
	if len(a.Finds) > 0 {
		a.Run, _ = filepath.Rel(s.folder.Path, outcome.Folder)
	}
}

// huntStatus shows the progress of the hunt instead of the progress of its single runs.
type huntStatus struct{ search *search }

// Step implements runs.Progress.
func (huntStatus) Step(string, ...any) {}

// Status implements runs.Progress.
func (h huntStatus) Status(string, ...any) {
	h.search.machine.Progress.Status("%s; %s", *h.search.status.Load(), reports.Left(time.Until(h.search.end)))
}

// investigateAll investigates the open findings, as long as there is time for findings.
func (s *search) investigateAll(ctx context.Context) (stopped bool, err error) {
	for {
		open := s.folder.open(s.isPatient())
		i := slices.IndexFunc(open, func(r record) bool { return !s.postponed[r.key()] })
		if i < 0 || time.Until(s.end) <= 0 || s.hasEnough() || s.trialsFirst() {
			return false, nil
		}
		r := open[i]
		before := r.Runs
		r.Name = s.folder.nameOf(r.Signature)
		err := s.investigate(ctx, &r)
		replaces := r.replaces(s.folder.recordOf(r.Signature))
		s.postponed[r.key()] = r.Stopped != nil || !replaces || r.Runs == before
		if replaces {
			err = s.add(entry{Found: &r}, err)
			s.machine.Progress.Step("%s: %s", r.Name, r.progress())
		}
		if stopped := r.Stopped != nil && r.Stopped.Kind == interrupted; err != nil || stopped {
			return stopped, err
		}
	}
}

// trialsFirst says whether findings have to wait for trials.
func (s *search) trialsFirst() bool {
	now := time.Now()
	return s.machine.TrialsOnly || now.Before(s.searchEnd) && float64(s.investigated) > findingsShare*float64(now.Sub(s.began))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
