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

// State is how far a finding was investigated.
type State string

// States of an investigation. Each of the first group has one transition; an investigation stays in one of the second
// group, or in the one in which it was stopped.
const (
	confirming  State = "confirming"  // trials that showed it are rerun
	reducing    State = "reducing"    // its trial is made simpler
	settling    State = "settling"    // the simplest form is rerun: the runs that chose it flatter it
	measuring   State = "measuring"   // on servers of its own, as "lockcheck repro" runs it
	controlling State = "controlling" // a change is sought without which it does not show

	// Waiting: it was confirmed, but showed seldom, and another trial may show it more often.
	Waiting      State = "waiting"
	notSeenAgain State = "not seen again" // every trial was rerun to the end, and none showed it
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
	unsupported StopKind = "unsupported" // a form that the lock or its servers cannot run

	notBegun   StopKind = "not begun"
	notRerun   StopKind = "another trial not rerun"
	superseded StopKind = "superseded"      // a second opinion, where other findings accuse the lock
	needsNone  StopKind = "no fault needed" // the lock fails without any
)

// Stop is why an investigation went no further. As an error it ends a series of runs before the series is decided: its
// counts are no evidence.
type Stop struct {
	Kind   StopKind `json:"kind"`
	At     State    `json:"at,omitempty"`
	Detail string   `json:"detail,omitempty"` // of an error
	Count           // the runs of the series that was stopped
	Of     int      `json:"of,omitempty"` // how many there were to be
}

func (s *Stop) Error() string { return cmp.Or(s.Detail, string(s.Kind)) }

// isSoft says whether a shorter form of the finding may still be run.
func (s *Stop) isSoft() bool { return s.Kind == outOfTime || s.Kind == tooBusy }

// stopOf is the stop that an error is; nil for any other error.
func stopOf(err error) *Stop {
	var stop *Stop
	_ = errors.As(err, &stop)
	return stop
}

// Runs of a finding.
const (
	toConfirm  = 6
	minControl = 5
	// batchesLeft divides the time that is left for a repeated form: its own runs and those of a control take about
	// four batches, and starting them takes some time as well.
	batchesLeft = 5
	// reduceShare is the share of a finding's time for making it smaller. The rest is for what comes after, and more
	// where runs are too long for it.
	reduceShare = 0.6
)

// investigation confirms a finding, reduces it, looks for its control, and writes the reproduction.
type investigation struct {
	search *search
	record *record
	end    time.Time
	// before is the finding when its confirmed form was taken up again, and written whether a reproduction of
	// another form was written since.
	before  record
	written bool
	kept    []Trial                 // forms on the way from the original to the simplest, which is the last
	failed  *Stop                   // of a trial that could not be rerun
	runs    map[string]runs.Outcome // the last run of each form that shows the finding, by the form's key
}

// transition does what there is to do in a state, and returns the next one; "" if a stop allows none.
type transition func(*investigation, context.Context) (State, error)

func transitions() map[State]transition {
	return map[State]transition{
		confirming: (*investigation).confirm, reducing: (*investigation).reduce, settling: (*investigation).settle,
		measuring: (*investigation).measure, controlling: (*investigation).control,
	}
}

// begin is the state in which a finding is taken up.
func (r record) begin() State {
	if r.OriginalRuns.Shown == 0 || r.State == Waiting || r.State == confirming {
		return confirming
	}
	return reducing
}

// investigate takes a finding as far as there is time for. What it reached, and why it went no further, is in the
// record, after an error too.
func (s *search) investigate(ctx context.Context, r *record) error {
	began := time.Now()
	share := time.Duration(findingShare * float64(s.machine.Budget))
	i := &investigation{search: s, record: r, end: earlier(s.end, began.Add(share)), runs: make(map[string]runs.Outcome)}
	err := errors.Join(i.run(ctx, r.begin()), i.keepOne())
	took := time.Since(began)
	r.Took += took
	s.investigated += took
	return err
}

// run makes transitions until none is left. Stops are kept in the record, the first one alone; any other error is
// returned as well.
func (i *investigation) run(ctx context.Context, state State) error {
	defer i.restore()
	for {
		do, is := transitions()[state]
		if !is {
			break
		}
		if state == reducing {
			i.before = *i.record
			i.record.Control, i.record.ControlRuns = "", 0 // perhaps of another form
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

// stopAt is the stop of a state by an error of any kind.
func stopAt(state State, err error) *Stop {
	stop := Stop{Kind: cannotRun, Detail: err.Error()}
	if s := stopOf(err); s != nil {
		stop = *s
	}
	stop.At = state
	return &stop
}

// onward is the next state after a transition, unless a stop allows no more runs.
func onward(next State, err error) (State, error) {
	if stop := stopOf(err); err != nil && (stop == nil || !stop.isSoft()) {
		return "", err
	}
	return next, err
}

// confirm reruns the next trial that showed the finding. The one that shows it most often is taken; one that does so
// in all runs except one is good enough.
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
	case !completed && stop.Kind == outOfTime && count.Shown > 0: // enough to say that it shows
		r.Rerun = append(r.Rerun, seen.Source)
		take()
		return reducing, nil
	case completed && (stop.Kind == cannotRun || stop.Kind == unsupported): // another trial may be rerun instead
		r.Rerun = append(r.Rerun, seen.Source)
		i.failed = cmp.Or(i.failed, stop)
		return confirming, nil
	case completed && stop.Kind == tooBusy && r.OriginalRuns.Shown > 0 && i.search.isPatient():
		return Waiting, err
	case stop.isSoft() && r.OriginalRuns.Shown > 0: // what comes next, without any wait, says why it ends
		return reducing, nil
	}
	return "", err
}

// confirmed is the state after every trial that could be rerun was.
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

// reduce makes the form simpler, from where an earlier hunt was stopped.
func (i *investigation) reduce(ctx context.Context) (State, error) {
	r := i.record
	i.search.machine.Progress.Step("%s: shows in %d of %d runs; reducing it", r.Name, r.OriginalRuns.Shown, r.OriginalRuns.Made)
	end := earlier(i.end.Add(-i.afterReducing()), time.Now().Add(time.Duration(reduceShare*float64(time.Until(i.end)))))
	if r.Reduced.Times > 1 {
		r.Reduced.Times, r.ReducedRuns = 0, Count{}
	}
	var err error
	i.kept, err = reduce(ctx, i.search.folder.Plan.space, r.Reduced, r.OriginalRuns, i.oracle(end))
	i.leaveAt(err)
	if stop := stopOf(err); stop != nil && stop.Kind == cannotRun { // perhaps of one form only
		return settling, err
	}
	return onward(settling, err)
}

// leaveAt keeps the simplest form for a hunt that goes on, if this one was interrupted. How often it shows the finding
// is not known.
func (i *investigation) leaveAt(err error) {
	if stop := stopOf(err); stop != nil && stop.Kind == interrupted && len(i.kept) > 1 {
		i.record.Reduced, i.record.ReducedRuns = i.kept[len(i.kept)-1], Count{}
	}
}

// settle takes the simplest form that holds up in runs of its own.
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
	i.leaveAt(err)
	return onward(measuring, err)
}

// afterReducing is how long the runs take that measure the form and those of one control, if the form shows as often
// as the original and the fewest runs of the control are enough; 0 if it cannot be run.
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

// repeatedFor is the form with its step as often as it takes to show the finding, if some of its runs did not.
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

// measure reruns the form on servers of its own. If it does not always show, its step is repeated, unless the finding
// then shows less often. A form that shows it no more, or less reliably than the original, gives way to that.
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
	return onward(controlling, err)
}

// control looks for a change that makes the difference, and writes the reproduction.
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
	if shows.Shown > 0 { // or none could differ
		controls = plan.controls(r.Reduced, file)
	}
	var stopped error
	for _, c := range controls {
		expect, err := i.differs(ctx, file, c, n)
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

// write stores the reproduction, unless less is known of this form than of the one that was written earlier.
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

// restore goes back to the form whose reproduction is written, if none of this investigation was.
func (i *investigation) restore() {
	if i.before.File == "" || i.written {
		return
	}
	now := *i.record
	*i.record = i.before
	i.record.Runs, i.record.State, i.record.Stopped = now.Runs, now.State, now.Stopped
}

// differs runs a control. If no run shows the finding it returns what all runs gave, otherwise nil.
func (i *investigation) differs(ctx context.Context, file repros.Reproduction, c repros.Control, n int) (*suites.Expectation, error) {
	r := i.record
	fitting := r.expectations()
	file.Control = &c
	e, err := experiment(file, true)
	if err != nil {
		return nil, &Stop{Kind: unsupported, Detail: err.Error()}
	}
	count, err := i.make(ctx, series{trial: r.Reduced, options: e.Options, runs: n, need: 1, end: i.end, is: func(o runs.Outcome) bool {
		fitting = slices.DeleteFunc(fitting, func(x suites.Expectation) bool {
			e.Expect = x
			return e.Missed(o.Results) != ""
		})
		// The second opinion is judged by the expectation alone, see isIn.
		return len(fitting) == 0 || r.Property != checker.Linearizability && r.isIn(o)
	}})
	if err != nil || count.Shown > 0 {
		return nil, err
	}
	return &fitting[0], nil
}

// oracle reruns forms of the finding, until then.
func (i *investigation) oracle(end time.Time) oracle {
	return func(ctx context.Context, t Trial, n, need int) (Count, error) {
		return i.shows(ctx, *i.record, series{trial: t, runs: n, need: need, end: end})
	}
}

// shows counts the runs of a form that "lockcheck repro" would call reproduced and that are no other finding of the
// same property. A form that cannot be run is a Stop, not a count of zero.
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
	s.is = func(o runs.Outcome) bool { return e.Missed(o.Results) == "" && of.isIn(o) }
	return i.make(ctx, s)
}

// series is a number of runs with the same options.
type series struct {
	trial      Trial
	options    runs.Options
	runs       int
	need       int       // it ends once so many count, or no longer can; 0 to make all runs
	end        time.Time // when the last run may begin
	is         func(runs.Outcome) bool
	keep       bool // the last run that counts
	ownServers bool // no cluster of an earlier run is used again
}

// isDecided says whether no more runs are needed.
func (s series) isDecided(c Count) bool {
	return c.Made >= s.runs || s.need > 0 && (c.Shown >= s.need || c.Shown+s.runs-c.Made < s.need)
}

// make makes a series and counts its runs. A run that failed, or in which the machine was too busy for the fault, is
// made again, at most as often as the series has runs. A series that ended before it was decided is a Stop.
func (i *investigation) make(ctx context.Context, s series) (c Count, err error) {
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
				if s.is(m.Outcome) {
					c.Shown++
					if s.keep {
						return errors.Join(m.Err, i.keep(s.trial, m.Outcome))
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

// keep keeps one run of a form that shows the finding.
func (i *investigation) keep(t Trial, run runs.Outcome) error {
	old, replaced := i.runs[t.key()]
	i.runs[t.key()] = run
	if !replaced {
		return nil
	}
	return os.RemoveAll(old.Folder)
}

// keepOne keeps the run of the final form with its pages, and removes those of forms on the way.
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

// progress says how far the investigation got, for the log of a hunt.
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
