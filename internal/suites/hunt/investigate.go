package hunt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// State is how far the investigation of a finding got.
type State string

// States of an investigation. Each state of the first group has a transition. An investigation ends in a
// state of the second group, or in the state in which it was stopped.
const (
	confirming  State = "confirming"  // trials that showed the finding are rerun
	reducing    State = "reducing"    // the trial is made simpler
	settling    State = "settling"    // the simplest form is rerun, because the runs that selected it overstate how often it shows
	measuring   State = "measuring"   // the form is rerun on fresh servers, as "lockcheck repro" runs it
	controlling State = "controlling" // a change is sought under which the finding does not show

	// Waiting: the finding was confirmed but showed seldom, and another trial may show it more often.
	Waiting      State = "waiting"
	notSeenAgain State = "not seen again" // every trial was rerun completely, and none showed the finding
	done         State = "done"
)

// StopKind says why an investigation went no further.
type StopKind string

// Reasons for a stop. None of them says anything about the lock.
const (
	interrupted StopKind = "interrupted"
	outOfTime   StopKind = "out of time"
	tooBusy     StopKind = "machine too busy"
	cannotRun   StopKind = "runs failed"
	unsupported StopKind = "unsupported" // the lock or its servers cannot run a form

	notBegun   StopKind = "not begun"
	notRerun   StopKind = "another trial not rerun"
	superseded StopKind = "superseded"      // the second opinion, while other findings accuse the lock
	needsNone  StopKind = "no fault needed" // the lock fails without any fault
)

// Stop is why an investigation went no further. As an error it ends a series of runs that is not decided yet,
// so its counts are no evidence.
type Stop struct {
	Kind   StopKind `json:"kind"`
	At     State    `json:"at,omitempty"`
	Detail string   `json:"detail,omitempty"` // the text of an error
	Count           // the runs of the series that was stopped
	Of     int      `json:"of,omitempty"` // the planned number of runs
}

func (s *Stop) Error() string { return cmp.Or(s.Detail, string(s.Kind)) }

// isSoft says whether a shorter form of the finding may still be run.
func (s *Stop) isSoft() bool { return s.Kind == outOfTime || s.Kind == tooBusy }

// stopOf returns the Stop in an error; nil if there is none.
func stopOf(err error) *Stop {
	var stop *Stop
	_ = errors.As(err, &stop)
	return stop
}

// Runs and time for a finding.
const (
	toConfirm  = 6
	minControl = 5
	// batchesLeft divides the time that is left for a repeated form. The form's own runs and those of a
	// control take about four batches, and starting them takes some time too.
	batchesLeft = 5
	// reduceShare is the share of a finding's time for making its trial simpler. The rest is for measuring
	// and controls, which get more if their runs are long.
	reduceShare = 0.6
)

// investigation confirms a finding, reduces it, looks for its control, and writes the reproduction.
type investigation struct {
	search *search
	record *record
	end    time.Time
	// before is the record when its confirmed form was taken up again. written says whether a reproduction
	// was written since.
	before  record
	written bool
	kept    []Trial                 // forms from the original to the simplest, which is the last
	failed  *Stop                   // why a trial could not be rerun
	runs    map[string]runs.Outcome // the last run of each form that showed the finding, by the form's key
}

// transition does the work of a state and returns the next state; "" if a stop ends the investigation.
type transition func(*investigation, context.Context) (State, error)

func transitions() map[State]transition {
	return map[State]transition{
		confirming: (*investigation).confirm, reducing: (*investigation).reduce, settling: (*investigation).settle,
		measuring: (*investigation).measure, controlling: (*investigation).control,
	}
}

// firstState is the state in which the investigation of a finding starts or continues.
func (r record) firstState() State {
	if r.OriginalRuns.Shown == 0 || r.State == Waiting || r.State == confirming {
		return confirming
	}
	return reducing
}

// investigate takes a finding as far as time allows. The record has the result and the reason for any stop,
// even after an error.
func (s *search) investigate(ctx context.Context, r *record) error {
	began := time.Now()
	share := time.Duration(findingShare * float64(s.machine.Budget))
	i := &investigation{search: s, record: r, end: earlier(s.end, began.Add(share)), runs: make(map[string]runs.Outcome)}
	err := errors.Join(i.run(ctx, r.firstState()), i.keepOne())
	took := time.Since(began)
	r.Took += took
	s.investigated += took
	return err
}

// run makes transitions until none is left. The record keeps the first stop. Any other error is returned.
func (i *investigation) run(ctx context.Context, state State) error {
	defer i.restoreWritten()
	for {
		do, is := transitions()[state]
		if !is {
			break
		}
		if state == reducing {
			i.before = *i.record
			i.record.Control, i.record.ControlRuns = "", 0 // may belong to another form
		}
		next, err := do(i, ctx)
		if err != nil && i.record.Stopped == nil {
			i.record.Stopped = stopAt(state, err)
		}
		if err != nil && stopOf(err) == nil {
			i.record.State = state
			return err
		}
		if next == "" {
			break
		}
		state = next
	}
	if stop := i.record.Stopped; stop != nil && state != Waiting {
		state = stop.At
	}
	i.record.State = state
	return nil
}

// stopAt turns any error in a state into a Stop.
func stopAt(state State, err error) *Stop {
	stop := Stop{Kind: cannotRun, Detail: err.Error()}
	if s := stopOf(err); s != nil {
		stop = *s
	}
	stop.At = state
	return &stop
}

// nextUnlessStopped returns the next state, or "" if a stop rules out further runs.
func nextUnlessStopped(next State, err error) (State, error) {
	if stop := stopOf(err); err != nil && (stop == nil || !stop.isSoft()) {
		return "", err
	}
	return next, err
}

// confirm reruns the next trial that showed the finding. The trial that shows it most often is chosen. A
// trial that shows it in all runs except one is good enough, so no other is rerun.
func (i *investigation) confirm(ctx context.Context) (State, error) {
	r := i.record
	next := i.search.folder.sightings(*r)
	if len(next) == 0 || r.OriginalRuns.isReliable() {
		return i.confirmed()
	}
	seen := next[0]
	i.search.machine.Progress.Step("%s: rerunning trial %d, which showed it, %d times", r.Name, seen.Source, toConfirm)
	count, err := i.shows(ctx, seen, series{trial: seen.Original, runs: toConfirm, end: i.end})
	take := func() {
		r.Signature, r.What, r.Source, r.Run = seen.Signature, seen.What, seen.Source, seen.Run
		r.Original, r.OriginalRuns, r.Reduced = seen.Original, count, seen.Original
	}
	stop, completed := stopOf(err), r.Source > 0
	if stop != nil && stop.Shown > 0 && (r.Partial == nil || stop.Shown > r.Partial.Shown) {
		r.Partial = &Partial{seen.Original, stop.Count}
	}
	switch {
	case err == nil:
		r.Rerun = append(r.Rerun, seen.Source)
		if !completed || count.Shown > r.OriginalRuns.Shown {
			take()
		}
		return confirming, nil
	case stop == nil:
		return "", err
	case !completed && stop.Kind == outOfTime && count.Shown > 0: // it shows, and that suffices
		r.Rerun = append(r.Rerun, seen.Source)
		take()
		return reducing, nil
	case completed && (stop.Kind == cannotRun || stop.Kind == unsupported): // another trial may be rerun instead
		r.Rerun = append(r.Rerun, seen.Source)
		i.failed = cmp.Or(i.failed, stop)
		return confirming, nil
	case completed && stop.Kind == tooBusy && r.OriginalRuns.Shown > 0 && i.search.isPatient():
		return Waiting, err
	case stop.isSoft() && r.OriginalRuns.Shown > 0: // without a wait, the next state reports why it stops
		return reducing, nil
	}
	return "", err
}

// confirmed is the next state once no trial is left to be rerun.
func (i *investigation) confirmed() (State, error) {
	r := i.record
	switch {
	case r.OriginalRuns.Shown == 0 && i.failed != nil:
		return "", i.failed
	case r.OriginalRuns.Shown == 0:
		return notSeenAgain, nil
	case !r.OriginalRuns.isReliable() && len(r.Rerun) < maxReruns && i.search.isPatient():
		return Waiting, nil
	}
	return reducing, nil
}

// reduce makes the trial simpler, beginning with the form that an earlier, interrupted hunt reached.
func (i *investigation) reduce(ctx context.Context) (State, error) {
	r := i.record
	i.search.machine.Progress.Step("%s: shows in %d of %d runs; reducing it", r.Name, r.OriginalRuns.Shown, r.OriginalRuns.Made)
	end := earlier(i.end.Add(-i.afterReducing()), time.Now().Add(time.Duration(reduceShare*float64(time.Until(i.end)))))
	if r.Reduced.Times > 1 {
		r.Reduced.Times, r.ReducedRuns = 0, Count{}
	}
	var err error
	i.kept, err = reduce(ctx, i.search.folder.Plan.space, r.Reduced, r.OriginalRuns, i.oracle(end))
	i.keepIfInterrupted(err)
	if stop := stopOf(err); stop != nil && stop.Kind == cannotRun { // perhaps only one form cannot run
		return settling, err
	}
	return nextUnlessStopped(settling, err)
}

// keepIfInterrupted keeps the simplest form for a resumed hunt if this one was interrupted. How often that form shows
// the finding is unknown.
func (i *investigation) keepIfInterrupted(err error) {
	if stop := stopOf(err); stop != nil && stop.Kind == interrupted && len(i.kept) > 1 {
		i.record.Reduced, i.record.ReducedRuns = i.kept[len(i.kept)-1], Count{}
	}
}

// settle chooses the simplest form whose own runs show the finding often enough.
func (i *investigation) settle(ctx context.Context) (State, error) {
	r := i.record
	before := r.ReducedRuns
	if r.Reduced.key() == r.Original.key() {
		before = r.OriginalRuns
	}
	var err error
	if r.Reduced, r.ReducedRuns, err = settle(ctx, i.kept, r.OriginalRuns, i.oracle(i.end)); r.Reduced.key() == i.kept[0].key() {
		r.ReducedRuns = before
	}
	i.keepIfInterrupted(err)
	return nextUnlessStopped(measuring, err)
}

// afterReducing estimates the time for measuring the form and running one control. It assumes that the form
// shows as often as the original and that the control needs only minControl runs. It is 0 if the form cannot
// be run.
func (i *investigation) afterReducing() time.Duration {
	t, err := i.repeatedFor(i.record.Reduced, i.record.OriginalRuns)
	if err != nil {
		return 0
	}
	outline, err := i.search.folder.Plan.outline(t)
	if err != nil {
		return 0
	}
	batches, side := 0, i.search.gate.Limit()
	for _, n := range []int{toConfirm, minControl} {
		batches += (n + side - 1) / side
	}
	return time.Duration(batches) * suites.Job{Outline: outline}.Length()
}

// repeatedFor returns the form with its step repeated often enough to show the finding, if some of its runs
// did not.
func (i *investigation) repeatedFor(t Trial, c Count) (Trial, error) {
	if c.Shown == c.Made {
		return t, nil
	}
	outline, err := i.search.folder.Plan.outline(t)
	if err != nil {
		return t, &Stop{Kind: unsupported, Detail: err.Error()}
	}
	return t.repeated(c.likely(), outline.Effective, min(maxLength, time.Until(i.end)/batchesLeft)), nil
}

// measure reruns the form on fresh servers. If the form does not always show the finding, its step is
// repeated, unless the finding then shows less often. The original replaces a form that no longer shows the
// finding or is less reliable.
func (i *investigation) measure(ctx context.Context) (State, error) {
	r := i.record
	before, single := cmp.Or(r.ReducedRuns, r.OriginalRuns), r.Reduced
	repeated, err := i.repeatedFor(single, before)
	if err != nil {
		return "", err
	}
	measured := map[string]bool{}
	try := func(t Trial, always bool) error {
		if measured[t.key()] {
			return nil
		}
		count, err := i.shows(ctx, *r, series{trial: t, runs: toConfirm, end: i.end, ownServers: true})
		if err == nil {
			measured[t.key()] = true
			if always || count.share() > r.ReducedRuns.share() {
				r.Reduced, r.ReducedRuns = t, count
			}
		}
		return err
	}
	err = try(repeated, true)
	if err == nil && r.ReducedRuns.share() < before.share() {
		other := single
		if repeated.key() == single.key() {
			if other, err = i.repeatedFor(single, r.ReducedRuns); err != nil {
				return "", err
			}
		}
		err = try(other, false)
	}
	if err == nil && (r.ReducedRuns.Shown == 0 || r.OriginalRuns.isReliable() && !r.ReducedRuns.isReliable()) {
		err = try(r.Original, false)
	}
	return nextUnlessStopped(controlling, err)
}

// control looks for a change under which the finding does not show, and writes the reproduction.
func (i *investigation) control(ctx context.Context) (State, error) {
	r := i.record
	if r.ReducedRuns.Made == 0 && r.Reduced.key() != r.Original.key() {
		return "", &Stop{Kind: tooBusy, Detail: "how often the smaller form shows it is not known"}
	}
	plan := i.search.folder.Plan
	file, err := plan.reproduction(r.Name, r.Reduced, r.Signature, r.What)
	if err != nil {
		return "", &Stop{Kind: unsupported, Detail: err.Error()}
	}
	shows := cmp.Or(r.ReducedRuns, r.OriginalRuns)
	low, _ := stats.Wilson(int64(shows.Shown), int64(shows.Made))
	n := max(minControl, rerunsFor(low))
	var controls []repros.Control
	// If the form never shows the finding, no control could differ from it.
	if shows.Shown > 0 {
		controls = plan.controls(r.Reduced, file)
	}
	var stopped error
	for _, c := range controls {
		expect, err := i.preventsFinding(ctx, file, c, n)
		stop := stopOf(err)
		if err != nil && (stop == nil || stop.Kind == interrupted) {
			return "", err
		}
		if expect != nil {
			c.Expect = *expect
			file.Control, r.Control, r.ControlRuns, stopped = &c, c.Summary, n, nil
			break
		}
		if stop != nil && stop.Kind != unsupported {
			stopped = err
			if stop.Kind != tooBusy {
				break
			}
		}
	}
	if err := i.write(file); err != nil {
		return "", err
	}
	return done, stopped
}

// write stores the reproduction, unless the reproduction written earlier is of a form that is better known.
func (i *investigation) write(file repros.Reproduction) error {
	r, b := i.record, i.before
	if b.File != "" && (b.Control != "" && r.Control == "" || b.ReducedRuns.Made > 0 && r.ReducedRuns.Made == 0) {
		return nil
	}
	hunt := i.search.folder.Path
	folder := filepath.Join(hunt, findsFolder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	path, err := write(folder, file)
	if err != nil {
		return err
	}
	i.written = true
	r.File, err = filepath.Rel(hunt, path)
	return err
}

// restoreWritten goes back to the form with a written reproduction if this investigation wrote none.
func (i *investigation) restoreWritten() {
	if i.before.File == "" || i.written {
		return
	}
	now := *i.record
	*i.record = i.before
	i.record.Runs, i.record.State, i.record.Stopped = now.Runs, now.State, now.Stopped
}

// preventsFinding runs a control. If no run shows the finding, it returns the strictest expectation that all runs
// met, otherwise nil.
func (i *investigation) preventsFinding(ctx context.Context, file repros.Reproduction, c repros.Control, n int) (*suites.Expectation, error) {
	r := i.record
	fitting := r.expectations()
	file.Control = &c
	e, err := experiment(file, true)
	if err != nil {
		return nil, &Stop{Kind: unsupported, Detail: err.Error()}
	}
	count, err := i.runSeries(ctx, series{trial: r.Reduced, options: e.Options, runs: n, need: 1, end: i.end, counts: func(o runs.Outcome) bool {
		fitting = slices.DeleteFunc(fitting, func(x suites.Expectation) bool {
			e.Expect = x
			return e.Missed(o.Results) != ""
		})
		// For the second opinion only the expectation decides, see isIn.
		return len(fitting) == 0 || r.Property != checker.Linearizability && r.isIn(o)
	}})
	if err != nil || count.Shown > 0 {
		return nil, err
	}
	return &fitting[0], nil
}

// oracle returns a function that reruns forms of the finding until the given end.
func (i *investigation) oracle(end time.Time) oracle {
	return func(ctx context.Context, t Trial, n, need int) (Count, error) {
		return i.shows(ctx, *i.record, series{trial: t, runs: n, need: need, end: end})
	}
}

// shows counts the runs that "lockcheck repro" would call reproduced, and that do not show a different
// finding of the same property. A form that cannot be run is a Stop, not a count of zero.
func (i *investigation) shows(ctx context.Context, of record, s series) (Count, error) {
	file, err := i.search.folder.Plan.reproduction(i.record.Name, s.trial, of.Signature, of.What)
	if err != nil {
		return Count{}, &Stop{Kind: unsupported, Detail: err.Error(), Of: s.runs}
	}
	e, err := experiment(file, false)
	if err != nil {
		return Count{}, err
	}
	s.options, s.keep = e.Options, true
	s.counts = func(o runs.Outcome) bool { return e.Missed(o.Results) == "" && of.isIn(o) }
	return i.runSeries(ctx, s)
}

type series struct {
	trial      Trial
	options    runs.Options
	runs       int
	need       int       // the series ends once this many runs count, or no longer can; 0 to make all runs
	end        time.Time // when the last run may begin
	counts     func(runs.Outcome) bool
	keep       bool // keep the last run that counts
	ownServers bool // do not reuse a cluster of an earlier run
}

// isDecided says whether no more runs are needed.
func (s series) isDecided(c Count) bool {
	return c.Made >= s.runs || s.need > 0 && (c.Shown >= s.need || c.Shown+s.runs-c.Made < s.need)
}

// runSeries runs a series and counts its runs. A run that failed, or in which the machine was too busy for the
// fault, is repeated, at most as often as the series has runs. A series that ends before it is decided is a
// Stop.
func (i *investigation) runSeries(ctx context.Context, s series) (c Count, err error) {
	stop := func(kind StopKind, detail string) (Count, error) {
		return c, &Stop{Kind: kind, Detail: detail, Count: c, Of: s.runs}
	}
	job, err := i.search.job(s.trial, s.options)
	if err != nil {
		return stop(unsupported, err.Error())
	}
	failures, unmade, why := 0, 0, error(nil)
	for failures < s.runs && !s.isDecided(c) {
		end := earlier(s.end.Add(job.Length()), i.search.end)
		if time.Now().Add(job.Length()).After(end) {
			return stop(outOfTime, "")
		}
		r := i.search.runner()
		if s.ownServers {
			r.Machine.Pool = nil
		}
		r.Deadline, r.Skipped = end, func(int) error { return nil }
		r.Done = func(_ int, m suites.Made) error {
			i.record.Runs++
			switch {
			case m.Outcome.History == nil:
				failures, unmade, why = failures+1, unmade+1, m.Err
				return nil
			case m.Outcome.Results.Verdict == checker.Broken || m.Delayed:
				failures++
			default:
				c.Made++
				if s.counts(m.Outcome) {
					c.Shown++
					if s.keep {
						return errors.Join(m.Err, i.keepRun(s.trial, m.Outcome))
					}
				}
			}
			return errors.Join(m.Err, os.RemoveAll(m.Outcome.Folder))
		}
		jobs := slices.Repeat([]suites.Job{job}, min(i.search.machine.Parallel, s.runs-c.Made))
		stopped, err := r.Run(ctx, jobs, i.search.interrupt)
		if err != nil {
			return c, err
		}
		if stopped {
			return stop(interrupted, "")
		}
	}
	switch {
	case unmade >= s.runs:
		return stop(cannotRun, why.Error())
	case !s.isDecided(c):
		return stop(tooBusy, "")
	}
	return c, nil
}

// keepRun keeps one run, the latest, of each form that shows the finding.
func (i *investigation) keepRun(t Trial, run runs.Outcome) error {
	old, replaced := i.runs[t.key()]
	i.runs[t.key()] = run
	if !replaced {
		return nil
	}
	return os.RemoveAll(old.Folder)
}

// keepOne keeps the run of the final form with its reports, and removes the runs of all other forms.
func (i *investigation) keepOne() error {
	best := i.record.Reduced.key()
	if _, kept := i.runs[best]; !kept {
		best = i.record.Original.key()
	}
	var errs []error
	for key, run := range i.runs {
		if key != best {
			errs = append(errs, os.RemoveAll(run.Folder))
			continue
		}
		folder, err := filepath.Rel(i.search.folder.Path, run.Folder)
		i.record.Run = folder
		errs = append(errs, err, run.WriteReports())
	}
	return errors.Join(errs...)
}

// progress says in the log of a hunt how far the investigation got.
func (r record) progress() string {
	switch {
	case r.State == Waiting:
		return fmt.Sprintf("shows in %d of %d runs; waiting for another trial that shows it", r.OriginalRuns.Shown, r.OriginalRuns.Made)
	case r.ReducedRuns.Made > 0:
		return fmt.Sprintf("shows in %d of %d runs of: %s", r.ReducedRuns.Shown, r.ReducedRuns.Made, r.Reduced)
	case r.OriginalRuns.Shown > 0:
		return fmt.Sprintf("shows in %d of %d runs of: %s", r.OriginalRuns.Shown, r.OriginalRuns.Made, r.Original)
	case r.Stopped != nil:
		return "not confirmed. " + r.Stopped.sentence()
	}
	return fmt.Sprintf("not seen again in %d runs", r.OriginalRuns.Made)
}
