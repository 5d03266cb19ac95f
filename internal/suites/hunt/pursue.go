package hunt

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lockcheck/checker"
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
	// kept is the run of its own that shows it, "" for none yet.
	kept string
}

// confirm sees which of the trials that showed it shows it again, and goes on with the best of
// them. One that does so in half of its runs is good enough.
func (p *pursuit) confirm(ctx context.Context) error {
	best, kept, err := *p.found, "", error(nil)
	for _, s := range p.sightings(*p.found) {
		p.machine.Progress.Step("%s: seen in trial %d; making %d runs of that", p.found.Name, s.First, toConfirm)
		p.found.First, p.found.What, p.found.Original, p.found.Run = s.First, s.What, s.Original, s.Run
		p.kept = ""
		p.found.OriginalRuns.Shown, p.found.OriginalRuns.Made, err = p.shows(ctx, s.Original, toConfirm, false)
		if err != nil {
			break
		}
		p.found.GoneInto = append(p.found.GoneInto, s.First)
		if best.First == 0 || p.found.OriginalRuns.Shown > best.OriginalRuns.Shown {
			best, kept = *p.found, p.kept
		}
		if !best.seldom() {
			break
		}
	}
	if best.First > 0 {
		best.GoneInto, best.Runs = p.found.GoneInto, p.found.Runs
		*p.found, p.kept = best, kept
	}
	if errors.Is(err, errNoTime) && p.found.OriginalRuns.Shown > 0 {
		err = nil
	}
	if err != nil || p.found.OriginalRuns.Shown == 0 {
		return err
	}
	if p.found.Seldom = p.found.seldom() && len(p.found.GoneInto) < mostTries && p.isPatient(); p.found.Seldom {
		return nil
	}
	if err := p.shrink(ctx); err != nil {
		return err
	}
	return p.control(ctx)
}

// seldom says whether fewer than half of the runs showed it.
func (f found) seldom() bool { return 2*f.OriginalRuns.Shown < f.OriginalRuns.Made }

// shrink makes it smaller. What it has when time is up is kept.
func (p *pursuit) shrink(ctx context.Context) error {
	p.machine.Progress.Step("%s: shows in %d of %d; making it smaller", p.found.Name, p.found.OriginalRuns.Shown, p.found.OriginalRuns.Made)
	kept, err := shrink(ctx, p.Plan.space, p.found.Original, reruns(p.found.OriginalRuns.likely()), p.shows)
	if errors.Is(err, errNoTime) {
		p.found.Unfinished, err = "there was no time to make it smaller to the end", nil
	}
	if err != nil {
		return err
	}
	p.found.Shrunk, p.found.ShrunkRuns, err = settle(ctx, kept, p.found.OriginalRuns, toConfirm, p.shows)
	return err
}

// control looks for a change that makes the difference, and writes the file.
func (p *pursuit) control(ctx context.Context) error {
	f := p.found
	r, err := p.Plan.reproduction(f.Name, f.Shrunk, f.Signature, f.What)
	if err != nil {
		return err
	}
	low, _ := stats.Wilson(int64(f.ShrunkRuns.Shown), int64(f.ShrunkRuns.Made))
	runs := max(atLeast, reruns(low))
	var outOfTime error
	for _, c := range p.Plan.controls(f.Shrunk, r) {
		expect, is, err := p.makesDifference(ctx, r, c, runs)
		if errors.Is(err, errNoTime) {
			outOfTime = err
			break
		}
		if err != nil {
			return err
		}
		if is {
			c.Expect = expect
			r.Control, f.Control, f.ControlRuns = &c, c.Summary, runs
			break
		}
	}
	folder := filepath.Join(p.Path, findsFolder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	path, err := write(folder, r)
	if err != nil {
		return err
	}
	if f.File, err = filepath.Rel(p.Path, path); err != nil {
		return err
	}
	return outOfTime
}

// makesDifference says whether none of some runs of a control shows the find, and what they
// all gave.
func (p *pursuit) makesDifference(ctx context.Context, r repros.Reproduction, c repros.Control, runs int) (suites.Expectation, bool, error) {
	fitting := p.found.expectations()
	r.Control = &c
	e, err := experiment(r, true)
	if err != nil {
		return suites.Expectation{}, false, err
	}
	different := 0
	_, made, err := p.make(ctx, series{trial: p.found.Shrunk, experiment: e, runs: runs, untilOne: true, is: func(results checker.Results) bool {
		fits := false
		for i := 0; i < len(fitting); {
			e.Expect = fitting[i]
			if e.Missed(results) == "" {
				fits = true
				i++
				continue
			}
			fitting = append(fitting[:i:i], fitting[i+1:]...)
		}
		if fits {
			different++
		}
		return !fits // it ends the series
	}})
	if err != nil || different < made || made < runs || len(fitting) == 0 {
		return suites.Expectation{}, false, err
	}
	return fitting[0], true, nil
}

// shows is the oracle: a run counts if the file of the trial would call it reproduced.
func (p *pursuit) shows(ctx context.Context, t Trial, runs int, untilShown bool) (shown, made int, err error) {
	if p.found.DataLost && !t.wipes() {
		return 0, 0, nil // without a loss of data it is another find
	}
	r, err := p.Plan.reproduction(p.found.Name, t, p.found.Signature, p.found.What)
	if err != nil {
		return 0, 0, nil // what the lock does not support shows nothing
	}
	e, err := experiment(r, false)
	if err != nil {
		return 0, 0, err
	}
	return p.make(ctx, series{
		trial: t, experiment: e, runs: runs, untilOne: untilShown, keep: true,
		is: func(results checker.Results) bool { return e.Missed(results) == "" },
	})
}

// series is a number of runs of one experiment.
type series struct {
	trial      Trial
	experiment suites.Experiment
	runs       int
	is         func(checker.Results) bool // what is counted
	untilOne   bool                       // no more are made after one that is
	keep       bool                       // the last one that is
}

// make makes a series, and returns how many runs are what is counted, of how many.
func (p *pursuit) make(ctx context.Context, s series) (count, made int, err error) {
	job, err := p.job(s.trial, s.experiment.Options)
	if err != nil {
		return 0, 0, nil // as above
	}
	for made < s.runs && (count == 0 || !s.untilOne) {
		if time.Now().Add(job.Outline.Recovery).After(p.end) {
			return count, made, errNoTime
		}
		r := p.runner()
		r.Done = func(_ int, m suites.Made) error {
			made++
			p.found.Runs++
			if m.Outcome.History == nil {
				return nil
			}
			if !s.is(m.Outcome.Results) {
				return os.RemoveAll(m.Outcome.Folder)
			}
			count++
			if !s.keep {
				return os.RemoveAll(m.Outcome.Folder)
			}
			return errors.Join(m.Outcome.WriteReports(), p.keep(m.Outcome.Folder))
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
	return count, made, nil
}

// keep keeps one run that shows the find.
func (p *pursuit) keep(folder string) error {
	run, err := filepath.Rel(p.Path, folder)
	if err != nil {
		return err
	}
	old := p.kept
	p.found.Run, p.kept = run, run
	if old == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(p.Path, old))
}
