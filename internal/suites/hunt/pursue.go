package hunt

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lockcheck/checker"
	"lockcheck/internal/runs"
	"lockcheck/internal/stats"
	"lockcheck/internal/suites"
	"lockcheck/internal/suites/repros"
)

// failed says of a run that nothing can be learned from it.
func failed(r checker.Results) bool { return r.Verdict == checker.Broken }

// pursuit goes into one find.
type pursuit struct {
	*hunter
	found *found
	end   time.Time
	// before is the find as it was known when a hunt went on with it, and written whether another form of it
	// was written down since.
	before  found
	written bool
	// measured are the forms that runs on servers of their own were made of, by their keys.
	measured map[string]bool
	// kept are runs of its own that show it, the last one of each trial by its key.
	kept map[string]runs.Outcome
}

// errBusy ends a series of which too few runs count.
var errBusy = &left{why: "its runs failed, or the machine was too busy for them"}

// batchesLeft is by what the time that is left is divided for a repeated form: its own runs and those of
// a control are made side by side in about four batches, and starting takes some.
const batchesLeft = 5

// shrinking is the share of the time of a find for making it smaller. The rest is for what comes
// after, and more where runs are so long that it would not do.
const shrinking = 0.6

// run goes into the find as far as there is time. What it reaches is kept, and gone on with later.
func (p *pursuit) run(ctx context.Context) error {
	f := p.found
	if f.OriginalRuns.Shown == 0 || f.Waits {
		if err := p.confirm(ctx); err != nil || f.OriginalRuns.Shown == 0 || f.Waits {
			return err
		}
	}
	p.before = *f
	defer p.restore()
	f.Control, f.ControlRuns = "", 0 // perhaps of another form
	var unfinished error
	for _, step := range []func(context.Context) error{p.shrink, p.confirmShrunk, p.control} {
		err := step(ctx)
		if err != nil && !mayGoOn(err) {
			return err
		}
		unfinished = cmp.Or(unfinished, err)
	}
	return unfinished
}

// restore goes back to the form that is written down, if no other one was.
func (p *pursuit) restore() {
	if p.before.File == "" || p.written {
		return
	}
	runs, why := p.found.Runs, p.found.Unfinished
	*p.found = p.before
	p.found.Runs, p.found.Unfinished = runs, why
}

// isWorse says that less is known of what was reached than of the form that is written down.
func (p *pursuit) isWorse() bool {
	f, b := p.found, p.before
	return b.File != "" && (b.Control != "" && f.Control == "" || b.ShrunkRuns.Made > 0 && f.ShrunkRuns.Made == 0)
}

// confirm sees which of the trials that showed it shows it again, and goes on with the best of
// them. One that does so in all runs but one is good enough.
func (p *pursuit) confirm(ctx context.Context) error {
	best, err := *p.found, error(nil)
	for _, s := range p.sightings(*p.found) {
		p.machine.Progress.Step("%s: seen in trial %d; making %d runs of that", p.found.Name, s.First, toConfirm)
		p.found.Signature, p.found.First, p.found.What, p.found.Original, p.found.Run = s.Signature, s.First, s.What, s.Original, s.Run
		p.found.OriginalRuns.Shown, p.found.OriginalRuns.Made, err = p.shows(ctx, s.Original, toConfirm, 0)
		if isLeft(err) && !mayGoOn(err) && best.First > 0 { // another one can be made
			p.found.GoneInto, err = append(p.found.GoneInto, s.First), nil
			continue
		}
		if err != nil {
			break
		}
		p.found.GoneInto = append(p.found.GoneInto, s.First)
		if best.First == 0 || p.found.OriginalRuns.Shown > best.OriginalRuns.Shown {
			best = *p.found
		}
		if best.OriginalRuns.reliable() {
			break
		}
	}
	if best.First > 0 {
		best.GoneInto, best.Runs = p.found.GoneInto, p.found.Runs
		*p.found = best
	}
	patient := (err == nil || err == errBusy) && p.isPatient()
	switch {
	case err == errBusy && best.First == 0:
		p.found.OriginalRuns = confirmed{} // to be confirmed anew
	case err == errBusy && patient: // another trial may show it more often, and is made later
		p.found.Waits, p.found.Shrunk = true, p.found.Original
		return err
	case mayGoOn(err) && p.found.OriginalRuns.Shown > 0:
		err = nil // it is known to show; what comes next, without waiting, says why it ends
	case err != nil && !mayGoOn(err) && best.First == 0:
		p.found.OriginalRuns = confirmed{} // to be confirmed anew
	}
	if err != nil || p.found.OriginalRuns.Shown == 0 {
		return err
	}
	p.found.Waits = !p.found.OriginalRuns.reliable() && len(p.found.GoneInto) < mostTries && patient
	p.found.Shrunk = p.found.Original
	return nil
}

// shrink makes it smaller, from where it was when a hunt that goes on had to stop.
func (p *pursuit) shrink(ctx context.Context) error {
	f := p.found
	p.machine.Progress.Step("%s: shows in %d of %d; making it smaller", f.Name, f.OriginalRuns.Shown, f.OriginalRuns.Made)
	end := p.end
	p.end = earlier(end.Add(-p.afterShrinking()), time.Now().Add(time.Duration(shrinking*float64(time.Until(end)))))
	if f.Shrunk.Times > 1 {
		f.Shrunk.Times, f.ShrunkRuns = 0, confirmed{}
	}
	kept, err := shrink(ctx, p.Plan.space, f.Shrunk, f.OriginalRuns, p.shows)
	p.end = end
	p.leaveAt(kept, err)
	if err != nil && !isLeft(err) {
		return err
	}
	if err != nil { // perhaps a form that cannot start, where others can
		f.Unfinished = "it was not made smaller to the end: " + err.Error()
	}
	before := f.ShrunkRuns
	if f.Shrunk.key() == f.Original.key() {
		before = f.OriginalRuns
	}
	if f.Shrunk, f.ShrunkRuns, err = settle(ctx, kept, f.OriginalRuns, p.shows); f.Shrunk.key() == kept[0].key() {
		f.ShrunkRuns = before
	}
	p.leaveAt(kept, err)
	return err
}

// leaveAt keeps the simplest form for a hunt that goes on, if this one was interrupted. How often it shows the find is
// not known.
func (p *pursuit) leaveAt(kept []Trial, err error) {
	if errors.Is(err, errInterrupted) && len(kept) > 1 {
		p.found.Shrunk, p.found.ShrunkRuns = kept[len(kept)-1], confirmed{}
	}
}

// afterShrinking is how long those runs take that confirm what is left, and those of one control, if
// what is left shows as often as what was found, and five runs of the control are enough.
func (p *pursuit) afterShrinking() time.Duration {
	t, err := p.repeatedFor(p.found.Shrunk, p.found.OriginalRuns)
	if err != nil {
		return 0 // no run of it can be made
	}
	outline, err := p.Plan.outline(t)
	if err != nil {
		return 0
	}
	batches, side := 0, p.gate.Limit()
	for _, n := range []int{toConfirm, atLeast} {
		batches += (n + side - 1) / side
	}
	return time.Duration(batches) * suites.Job{Outline: outline}.Length()
}

// repeatedFor is the trial with its step as often as it takes to show the find, if some of its runs did not.
func (p *pursuit) repeatedFor(t Trial, runs confirmed) (Trial, error) {
	if runs.Shown == runs.Made {
		return t, nil
	}
	outline, err := p.Plan.outline(t)
	return t.repeated(runs.likely(), outline.Effective, min(longest, time.Until(p.end)/batchesLeft)), err
}

// confirmShrunk tells how often what is left shows it, by runs on servers of their own, as "lockcheck
// repro" makes them. If that is not always, its step is repeated, unless it shows less often so. What
// is no longer seen, or not as reliably as what was found, gives way to that.
func (p *pursuit) confirmShrunk(ctx context.Context) error {
	pool := p.machine.Pool
	p.machine.Pool = nil
	defer func() { p.machine.Pool = pool }()
	f := p.found
	before := cmp.Or(f.ShrunkRuns, f.OriginalRuns)
	single := f.Shrunk
	repeated, err := p.repeatedFor(single, before)
	if err != nil {
		return err
	}
	p.measured = make(map[string]bool)
	if err := p.measure(ctx, repeated); err != nil {
		return err
	}
	if f.ShrunkRuns.share() < before.share() {
		other := single
		if repeated.key() == single.key() {
			if other, err = p.repeatedFor(single, f.ShrunkRuns); err != nil {
				return err
			}
		}
		if err := p.orRather(ctx, other); err != nil {
			return err
		}
	}
	if f.ShrunkRuns.Shown == 0 || f.OriginalRuns.reliable() && !f.ShrunkRuns.reliable() {
		return p.orRather(ctx, f.Original)
	}
	return nil
}

// measure takes a form of the find, and how often it shows it. What was known stays if there is no time
// to see that.
func (p *pursuit) measure(ctx context.Context, t Trial) error {
	shown, made, err := p.shows(ctx, t, toConfirm, 0)
	if made == toConfirm {
		p.found.Shrunk, p.found.ShrunkRuns = t, confirmed{shown, made}
		p.measured[t.key()] = true
	}
	return err
}

// orRather takes another form if that shows it more often.
func (p *pursuit) orRather(ctx context.Context, t Trial) error {
	before, runs := p.found.Shrunk, p.found.ShrunkRuns
	if p.measured[t.key()] {
		return nil // and shows it less often
	}
	err := p.measure(ctx, t)
	if p.found.ShrunkRuns.share() <= runs.share() {
		p.found.Shrunk, p.found.ShrunkRuns = before, runs
	}
	return err
}

// control looks for a change that makes the difference, and writes the file.
func (p *pursuit) control(ctx context.Context) error {
	f := p.found
	if f.ShrunkRuns.Made == 0 && f.Shrunk.key() != f.Original.key() {
		return errBusy // how often it shows this form is not known
	}
	r, err := p.Plan.reproduction(f.Name, f.Shrunk, f.Signature, f.What)
	if err != nil {
		return err
	}
	shows := cmp.Or(f.ShrunkRuns, f.OriginalRuns)
	low, _ := stats.Wilson(int64(shows.Shown), int64(shows.Made))
	n := max(atLeast, reruns(low))
	var controls []repros.Control
	if shows.Shown > 0 { // or none could differ
		controls = p.Plan.controls(f.Shrunk, r)
	}
	var unfinished error
	for _, c := range controls {
		expect, is, err := p.makesDifference(ctx, r, c, n)
		if err == errBusy {
			unfinished = err
			continue
		}
		if isLeft(err) {
			unfinished = err
			break
		}
		if err != nil {
			return err
		}
		if is {
			c.Expect = expect
			r.Control, f.Control, f.ControlRuns, unfinished = &c, c.Summary, n, nil
			break
		}
	}
	if p.isWorse() {
		return unfinished
	}
	folder := filepath.Join(p.Path, findsFolder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	path, err := write(folder, r)
	if err != nil {
		return err
	}
	p.written = true
	if f.File, err = filepath.Rel(p.Path, path); err != nil {
		return err
	}
	return unfinished
}

// makesDifference says whether none of some runs of a control shows the find, and what they
// all gave.
func (p *pursuit) makesDifference(ctx context.Context, r repros.Reproduction, c repros.Control, n int) (suites.Expectation, bool, error) {
	fitting := p.found.expectations()
	r.Control = &c
	e, err := experiment(r, true)
	if err != nil {
		return suites.Expectation{}, false, err
	}
	shown, made, err := p.make(ctx, series{trial: p.found.Shrunk, experiment: e, runs: n, need: 1, is: func(o runs.Outcome) bool {
		fitting = slices.DeleteFunc(fitting, func(x suites.Expectation) bool {
			e.Expect = x
			return e.Missed(o.Results) != ""
		})
		// A second opinion is in each run, see isIn.
		return len(fitting) == 0 || p.found.Property != checker.Linearizability && p.found.isIn(o)
	}})
	if err != nil || shown > 0 || made < n {
		return suites.Expectation{}, false, err
	}
	return fitting[0], true, nil
}

// shows is the oracle: a run counts if the file of the trial would call it reproduced, and it is not
// another find of the same property.
func (p *pursuit) shows(ctx context.Context, t Trial, n, need int) (shown, made int, err error) {
	r, err := p.Plan.reproduction(p.found.Name, t, p.found.Signature, p.found.What)
	if err != nil {
		return 0, 0, nil // what the lock does not support shows nothing
	}
	e, err := experiment(r, false)
	if err != nil {
		return 0, 0, err
	}
	return p.make(ctx, series{
		trial: t, experiment: e, runs: n, need: need, keep: true,
		is: func(o runs.Outcome) bool { return e.Missed(o.Results) == "" && p.found.isIn(o) },
	})
}

// series is a number of runs of one experiment.
type series struct {
	trial      Trial
	experiment suites.Experiment
	runs       int
	is         func(runs.Outcome) bool // what is counted
	need       int                     // no more are made once so many are, or no longer can be; 0 for all
	keep       bool                    // the last one that is
}

// decided says whether it needs no more runs.
func (s series) decided(count, made int) bool {
	return made >= s.runs || s.need > 0 && (count >= s.need || count+s.runs-made < s.need)
}

// make makes a series, and returns how many runs are what is counted, of how many. Runs that fail, or
// in which the machine was too busy for the fault, are made again, as many as there were to be at most.
// If that many fail before they record anything, the find is left.
func (p *pursuit) make(ctx context.Context, s series) (count, made int, err error) {
	job, err := p.job(s.trial, s.experiment.Options)
	if err != nil {
		return 0, 0, nil // as above
	}
	failures, unmade, why := 0, 0, error(nil)
	for failures < s.runs && !s.decided(count, made) {
		end := earlier(p.end.Add(job.Length()), p.hunter.end)
		if time.Now().Add(job.Length()).After(end) {
			return count, made, &left{why: "the time for it was over"}
		}
		r := p.runner()
		r.Deadline, r.Skipped = end, func(int) error { return nil }
		r.Done = func(_ int, m suites.Made) error {
			p.found.Runs++
			if m.Outcome.History == nil {
				failures, unmade, why = failures+1, unmade+1, m.Err
				return nil
			}
			if failed(m.Outcome.Results) || m.Delayed {
				failures++
				return errors.Join(m.Err, os.RemoveAll(m.Outcome.Folder))
			}
			made++
			is := s.is(m.Outcome)
			if is {
				count++
			}
			if !is || !s.keep {
				return errors.Join(m.Err, os.RemoveAll(m.Outcome.Folder))
			}
			return errors.Join(m.Err, p.keep(s.trial, m.Outcome))
		}
		jobs := slices.Repeat([]suites.Job{job}, min(p.machine.Parallel, s.runs-made))
		interrupted, err := r.Run(ctx, jobs, p.interrupt)
		if err != nil {
			return count, made, err
		}
		if interrupted {
			return count, made, errInterrupted
		}
	}
	switch {
	case unmade >= s.runs:
		return count, made, &left{why: "its runs failed: " + why.Error(), failing: true}
	case !s.decided(count, made):
		return count, made, errBusy
	}
	return count, made, nil
}

// keep keeps one run of a trial that shows the find.
func (p *pursuit) keep(t Trial, run runs.Outcome) error {
	old, replaced := p.kept[t.key()]
	p.kept[t.key()] = run
	if !replaced {
		return nil
	}
	return os.RemoveAll(old.Folder)
}

// keepOne keeps the run of what the find became, with its pages, and removes those of trials that were
// only on the way.
func (p *pursuit) keepOne() error {
	best := p.found.Shrunk.key()
	if _, kept := p.kept[best]; !kept {
		best = p.found.Original.key()
	}
	var errs []error
	for key, run := range p.kept {
		if key != best {
			errs = append(errs, os.RemoveAll(run.Folder))
			continue
		}
		folder, err := filepath.Rel(p.Path, run.Folder)
		p.found.Run = folder
		errs = append(errs, err, run.WriteReports())
	}
	return errors.Join(errs...)
}
