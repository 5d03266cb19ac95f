package hunt

import (
	"cmp"
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
	"lockcheck/reports"
)

// Machine is what a hunt runs on.
type Machine struct {
	runs.Machine
	Parallel int // how many trials are made side by side; at least 1
	Progress runs.Progress
	// Budget is how long to go on, with all that finds need.
	Budget time.Duration
	// Trials is how many to make at most, in all parts of a hunt together; 0 for no bound.
	Trials int
	// Enough ends the hunt early: it is asked after each batch of trials and after each find that
	// was gone into. nil for never.
	Enough func(reports.Hunt) bool
	// TrialsOnly leaves finds as trials showed them: none is confirmed or made smaller.
	TrialsOnly bool

	test func(context.Context, runs.Options, <-chan struct{}, runs.Progress) (runs.Outcome, error) // makes a run; nil for runs.Test
}

// Shares of the budget.
const (
	// reserve is left for finds of the last trials.
	reserve = 0.15
	// perFind is what one find may take at most.
	perFind = 0.3
	// waiting is how long a find that shows seldom waits for another trial that shows it.
	waiting = 0.5
	// onFinds is how much of the time that has passed may be spent on finds while there are trials
	// to make: a lock with many finds would have few trials otherwise.
	onFinds = 0.5
)

// hunter is a hunt in progress.
type hunter struct {
	*Folder
	machine   Machine
	interrupt <-chan struct{}
	began     time.Time
	end       time.Time
	searchEnd time.Time     // of trials
	patient   time.Time     // until when
	pursued   time.Duration // how long finds were gone into
	gate      *suites.Gate  // how many runs there is time for side by side
	// interrupted from outside.
	interrupted bool
	// gaveUp are the finds for which there was no time.
	gaveUp map[string]bool
	// again: there is time for them once more, for no trials are left to make.
	again bool
	// standing is for the trials in progress, which read it while others are put down.
	standing atomic.Pointer[string]
}

// Run makes trials until the budget is spent, and goes into each find as it is made. When
// interrupt is closed what is in progress ends without being counted. Its error says why the
// hunt could not go on; that single trials failed is in the ledger.
func (f *Folder) Run(ctx context.Context, m Machine, interrupt <-chan struct{}) (interrupted bool, err error) {
	locked, err := f.ledger.Lock()
	if err != nil {
		return false, err
	}
	defer locked.Close()
	m.Pool = runs.NewPool()
	defer func() { err = errors.Join(err, m.Pool.Close(ctx)) }()
	h := newHunter(f, m, interrupt)
	for {
		if err := h.pursueAll(ctx); err != nil || h.interrupted || h.enough() {
			return h.interrupted, err
		}
		made, err := h.search(ctx)
		if err != nil || h.interrupted {
			return h.interrupted, err
		}
		if err := h.useless(); err != nil {
			return false, err
		}
		switch {
		case made > 0:
		case time.Now().Before(h.searchEnd):
			h.searchEnd = time.Now() // there are no more, so that no find has to wait
		case !h.again:
			clear(h.gaveUp)
			h.again = true
		case h.isPatient():
			h.patient = time.Time{} // no trial will show what was seen once more often
		default:
			return false, nil
		}
	}
}

func newHunter(f *Folder, m Machine, interrupt <-chan struct{}) *hunter {
	now := time.Now()
	after := func(share float64) time.Time { return now.Add(time.Duration(share * float64(m.Budget))) }
	h := &hunter{
		Folder: f, machine: m, interrupt: interrupt, gaveUp: make(map[string]bool),
		gate: suites.NewGate(int64(max(1, m.Parallel))), began: now, end: after(1), searchEnd: after(1 - reserve), patient: after(waiting),
	}
	if m.TrialsOnly {
		h.searchEnd = h.end
	}
	h.stand()
	return h
}

func (h *hunter) isPatient() bool { return time.Now().Before(h.patient) }

func (h *hunter) enough() bool { return h.machine.Enough != nil && h.machine.Enough(h.Hunt()) }

// mostUseless is how many trials in a row may fail.
const mostUseless = 16

// useless says why there is no point in going on: whatever is tried fails by now.
func (h *hunter) useless() error {
	last := h.tried[max(0, len(h.tried)-mostUseless):]
	if len(last) < mostUseless || slices.ContainsFunc(last, func(t tried) bool { return t.Failed == "" }) {
		return nil
	}
	return fmt.Errorf("the last %d trials failed, the last one so: %s", len(last), last[len(last)-1].Failed)
}

// search makes the next trials. It returns how many it made.
func (h *hunter) search(ctx context.Context) (int, error) {
	trials := h.next()
	var jobs []suites.Job
	for _, t := range trials {
		o, err := h.Plan.options(t.Trial)
		if err != nil {
			return 0, err
		}
		// What goes into a find makes whole runs, as "lockcheck repro" does.
		o.EndRecovered, o.UntilViolation = true, true
		job, err := h.job(t.Trial, o)
		if err != nil {
			return 0, err
		}
		jobs = append(jobs, job)
	}
	made := 0
	r := h.runner()
	r.Deadline = h.searchEnd
	r.Skipped = func(int) error { return nil }
	r.Done = func(i int, m suites.Made) error {
		made++
		return h.putDown(trials[i], m)
	}
	interrupted, err := r.Run(ctx, jobs, h.interrupt)
	h.interrupted = interrupted
	return made, err
}

// job is a run without the pages that hardly anybody will look at.
func (h *hunter) job(t Trial, o runs.Options) (suites.Job, error) {
	o.ResultsOnly = true
	o.Parameters = map[string]string{"hunt": t.String()}
	outline, err := runs.OutlineOf(o)
	return suites.Job{Name: t.String(), Options: o, Outline: outline, MaxDelay: o.TTL / 4}, err
}

func (h *hunter) runner() suites.Runner {
	r := suites.Runner{
		Machine: h.machine.Machine, Slots: h.machine.Parallel, Gate: h.gate,
		Progress: h.machine.Progress, Each: status{h}, Test: h.machine.test,
	}
	r.Machine.Store = filepath.Join(h.Path, runsFolder)
	return r
}

// next are the trials to make now: the share of blind ones is kept at any time.
func (h *hunter) next() []tried {
	var all []tried
	for n := 0; len(all) < 2*h.machine.Parallel && (h.machine.Trials == 0 || n < h.machine.Trials); n++ {
		if !h.Plan.Shard.Has(n) || h.numbers[n] {
			continue
		}
		rng := rand.New(rand.NewPCG(h.Plan.Seed, uint64(n)))
		t := tried{Number: n, Blind: h.Plan.isBlind(len(h.tried) + len(all))}
		if t.Blind {
			t.Trial = h.Plan.space.draw(rng)
		} else {
			t.Trial = h.guide.next(rng)
		}
		all = append(all, t)
	}
	return all
}

// putDown looks at what a trial showed, and puts it into the ledger. The run is kept only if
// it showed something.
func (h *hunter) putDown(t tried, m suites.Made) error {
	t.Began, t.Took = m.Began, m.Took
	err := m.Err
	if m.Outcome.History == nil {
		t.Failed, err = m.Err.Error(), nil
	} else {
		h.look(&t, m)
	}
	switch {
	case t.Run != "":
		err = errors.Join(err, m.Outcome.WriteReports())
	case t.Failed == "":
		err = errors.Join(err, os.RemoveAll(m.Outcome.Folder))
	}
	return h.add(entry{Tried: &t}, err)
}

func (h *hunter) add(e entry, err error) error {
	if addErr := h.Folder.add(e); addErr != nil {
		return errors.Join(addErr, err)
	}
	h.stand()
	return err
}

// stand writes down how far the hunt is.
func (h *hunter) stand() {
	s := fmt.Sprintf("%d trials, %d cells met, %d finds", len(h.tried), len(h.guide.cells), len(h.finds)+len(h.left()))
	h.standing.Store(&s)
}

// look fills in what an outcome tells.
func (h *hunter) look(t *tried, m suites.Made) {
	outcome := m.Outcome
	header, results := outcome.History.Header, outcome.Results
	if failed(results) {
		t.Failed = results.Sentence
		return
	}
	s := look(header, results)
	for _, c := range cover(outcome.History) {
		if !h.guide.cells[c] {
			t.Fresh = append(t.Fresh, c)
		}
	}
	t.Near, t.Inherent = near(header, results, s), s.inherent
	t.Proven = slices.ContainsFunc(results.Faults, checker.FaultCoverage.Counts)
	for _, f := range s.finds {
		t.Finds = append(t.Finds, sighted{f.Signature, f.what, t.Trial.asFarAs(results.Faults)})
	}
	if len(t.Finds) > 0 {
		t.Run, _ = filepath.Rel(h.Path, outcome.Folder)
	}
	for _, f := range t.Finds {
		if !h.isKnown(f.Signature) {
			h.machine.Progress.Step("trial %d: %s (%s)", len(h.tried)+1, f.Signature, t.Trial)
		}
	}
}

func (h *hunter) isKnown(s Signature) bool {
	for _, t := range h.tried {
		for _, f := range t.Finds {
			if f.key() == s.key() {
				return true
			}
		}
	}
	return false
}

// status shows how the hunt goes, whatever single runs say.
type status struct{ *hunter }

// Step implements runs.Progress.
func (status) Step(string, ...any) {}

// Status implements runs.Progress.
func (s status) Status(string, ...any) {
	s.machine.Progress.Status("%s; %s", *s.standing.Load(), reports.Left(time.Until(s.end)))
}

// left says why a find is not gone into further. The hunt goes on.
type left struct {
	why string
	// failing: its runs cannot be made, so that nothing else need be tried.
	failing bool
}

func (l *left) Error() string { return l.why }

// isLeft says whether an error is one of those.
func isLeft(err error) bool {
	_, is := err.(*left)
	return is
}

// mayGoOn says whether it is one after which other runs of the find can be made, if they are shorter.
func mayGoOn(err error) bool {
	l, is := err.(*left)
	return is && !l.failing
}

// errInterrupted says that somebody ended the hunt.
var errInterrupted = errors.New("interrupted")

// pursueAll goes into all finds that are open, and again into those that were not seen again and
// that another trial showed, too.
func (h *hunter) pursueAll(ctx context.Context) error {
	for {
		worth := func(f found) bool { return !h.gaveUp[f.key()] }
		open := h.open(h.isPatient())
		i := slices.IndexFunc(open, worth)
		if i < 0 || time.Until(h.end) <= 0 || h.enough() || h.trialsFirst() {
			return nil
		}
		f := open[i]
		before := f.Runs
		f.Name = h.nameOf(f.Signature)
		err := h.pursue(ctx, &f)
		stopped := err != nil
		if stopped {
			f.Unfinished = cmp.Or(f.Unfinished, "it was not gone into to the end")
		}
		replaces := f.replaces(h.last(f.Signature))
		h.gaveUp[f.key()] = f.Unfinished != "" || !replaces || f.Runs == before
		if errors.Is(err, errInterrupted) {
			h.interrupted, err = true, nil
		}
		if replaces && (!stopped || f.OriginalRuns.Made > 0) {
			err = h.add(entry{Found: &f}, err)
		}
		if err != nil || h.interrupted {
			return err
		}
		if !replaces {
			continue
		}
		h.machine.Progress.Step("%s: %s", f.Name, f.conclusion())
	}
}

// trialsFirst says whether finds have to wait for trials.
func (h *hunter) trialsFirst() bool {
	now := time.Now()
	return h.machine.TrialsOnly || now.Before(h.searchEnd) && float64(h.pursued) > onFinds*float64(now.Sub(h.began))
}

// conclusion is what became of a find, in words.
func (f found) conclusion() string {
	switch {
	case f.Waits:
		return fmt.Sprintf("shows in %d of %d; waiting for another trial that shows it", f.OriginalRuns.Shown, f.OriginalRuns.Made)
	case f.ShrunkRuns.Made > 0:
		return fmt.Sprintf("shows in %d of %d runs of: %s", f.ShrunkRuns.Shown, f.ShrunkRuns.Made, f.Shrunk)
	case f.OriginalRuns.Shown > 0:
		return fmt.Sprintf("shows in %d of %d runs of: %s", f.OriginalRuns.Shown, f.OriginalRuns.Made, f.Original)
	case f.Unfinished != "":
		return f.Unfinished
	}
	return fmt.Sprintf("not seen again in %d runs", f.OriginalRuns.Made)
}

// Reruns of a find.
const (
	toConfirm = 6
	atLeast   = 5 // of a control
)

// pursue confirms a find, makes it smaller, looks for its control, and writes it down, as far
// as there is time.
func (h *hunter) pursue(ctx context.Context, f *found) error {
	began := time.Now()
	p := &pursuit{hunter: h, found: f, kept: make(map[string]runs.Outcome), end: earlier(h.end, began.Add(time.Duration(perFind*float64(h.machine.Budget))))}
	err := p.run(ctx)
	if isLeft(err) {
		f.Unfinished, err = cmp.Or(f.Unfinished, "it was not gone into to the end: "+err.Error()), nil
	}
	err = errors.Join(err, p.keepOne())
	took := time.Since(began)
	f.Took += took
	h.pursued += took
	return err
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
