package hunt

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"lockcheck/checker"
	"lockcheck/internal/stats"
)

// resultSchema is the version of the format of hunt.json.
const resultSchema = 1

// Result is what a hunt tried and found.
type Result struct {
	Schema int `json:"schema"`
	Plan
	Lease time.Duration `json:"lease_ns"` // of most trials; 0 for a lock without a lease
	Began time.Time     `json:"began"`
	// Arms are the guided trials, then the blind ones.
	Arms     []Arm     `json:"arms"`
	Findings []Finding `json:"finds"`
	// Inherent counts, by cause, the trials that showed what no lock with a lease can prevent.
	Inherent map[string]int `json:"inherent,omitempty"`
	Coverage
	// Unsupported lists, with the reason, the kinds of faults that the lock does not support.
	Unsupported []string `json:"unsupported,omitempty"`
}

// Coverage says which cells the trials covered. There is a cell for each combination of role, phase, state
// and moment.
type Coverage struct {
	Met     []Cell   `json:"met"` // each cell once
	Roles   []string `json:"roles"`
	Phases  []string `json:"phases"`
	States  []string `json:"states"`
	Moments []string `json:"moments"`
}

// Arm sums up the guided or the blind trials.
type Arm struct {
	Name   string        `json:"name"`
	Trials int           `json:"trials"`
	Failed int           `json:"failed,omitempty"` // failed trials
	Proven int           `json:"proven"`           // trials in which a fault was proven and exercised
	Took   time.Duration `json:"took_ns"`          // sum over all trials
	Cells  int           `json:"cells"`            // number of cells that this arm covered first
	// Showing counts the trials that showed a finding. Finds lists the keys of these findings. First is the
	// number of the first such trial, counted over both arms; 0 for none.
	Showing int      `json:"showing"`
	Finds   []string `json:"finds,omitempty"`
	First   int      `json:"first,omitempty"`
}

// Outcome says what became of a finding.
type Outcome string

// Outcomes. Unconfirmed is no evidence against a finding: its reruns were interrupted, failed, or never
// begun. Some reruns may have shown it.
const (
	Confirmed    Outcome = "confirmed"
	NotSeenAgain Outcome = "not seen again"
	Unconfirmed  Outcome = "unconfirmed"
)

// Finding is a violation that is not inherent in leases.
type Finding struct {
	record
	Headline string        `json:"headline"`
	First    int           `json:"first"`    // number of the trial that showed it first, from 1
	After    time.Duration `json:"after_ns"` // from the beginning of the hunt to the end of that trial
	Blind    bool          `json:"blind"`    // that trial was blind
	Seen     int           `json:"seen"`     // number of trials that showed it
	// Trial is the simplest form that is known to show the finding, and Steps the number of its faults.
	Trial string `json:"trial"`
	Steps int    `json:"steps"`
	Count        // the runs of Trial
	// Low and High are the 95 % Wilson interval of the share of runs that show it.
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
	Outcome Outcome `json:"outcome"`
	// Unfinished says in a sentence what still has to be done; "" for nothing.
	Unfinished string `json:"unfinished,omitempty"`
}

// Result sums up the hunt.
func (f *Folder) Result() Result {
	r := Result{
		Schema: resultSchema, Plan: f.Plan, Lease: f.Plan.subject.Lease(), Unsupported: f.Plan.space.unsupported, Inherent: make(map[string]int),
		Arms:     []Arm{{Name: "guided"}, {Name: "blind"}},
		Coverage: Coverage{Roles: f.Plan.space.roles(), Phases: faultPhases(), States: lockStates(), Moments: callMoments()},
	}
	for i, a := range f.attempts {
		arm := &r.Arms[0]
		if a.Blind {
			arm = &r.Arms[1]
		}
		arm.add(i+1, a)
		if r.Began.IsZero() || a.Began.Before(r.Began) {
			r.Began = a.Began
		}
		for _, cause := range a.Inherent {
			r.Inherent[cause]++
		}
		r.Met = append(r.Met, a.Fresh...)
	}
	for _, known := range f.records {
		r.Findings = append(r.Findings, f.summarize(known, r.Began))
	}
	for _, s := range f.findings() {
		if f.recordOf(s.Signature) == nil {
			stop := cmp.Or(f.skipped(s.Signature), &Stop{Kind: notBegun})
			r.Findings = append(r.Findings, f.summarize(record{Signature: s.Signature, Stopped: stop}, r.Began))
		}
	}
	return r
}

// add counts the trial with the given number, from 1.
func (a *Arm) add(number int, t attempt) {
	a.Trials++
	a.Took += t.Took
	a.Cells += len(t.Fresh)
	if t.Failed != "" {
		a.Failed++
	}
	if t.Proven {
		a.Proven++
	}
	if len(t.Finds) == 0 {
		return
	}
	a.Showing++
	a.First = cmp.Or(a.First, number)
	for _, s := range t.Finds {
		if !slices.Contains(a.Finds, s.key()) {
			a.Finds = append(a.Finds, s.key())
		}
	}
}

// summarize combines a record with what the trials showed of the finding.
func (f *Folder) summarize(r record, began time.Time) Finding {
	if r.Source == 0 { // no trial that showed it was rerun
		for _, s := range f.sightings(record{Signature: r.Signature})[:1] {
			r.What, r.Original, r.Run = s.What, s.Original, s.Run
		}
	}
	out := Finding{
		record: r, Headline: r.Signature.String(), Trial: r.Original.String(), Steps: len(r.Original.Steps), Count: r.OriginalRuns,
	}
	if r.ReducedRuns.Made > 0 {
		out.Trial, out.Steps, out.Count = r.Reduced.String(), len(r.Reduced.Steps), r.ReducedRuns
	}
	confirmedAgain := r.OriginalRuns.Shown+r.ReducedRuns.Shown > 0
	if p := r.Partial; p != nil && !confirmedAgain {
		out.Trial, out.Steps, out.Count = p.Trial.String(), len(p.Trial.Steps), p.Count
	}
	out.Low, out.High = stats.Wilson(int64(out.Shown), int64(out.Made))
	for i, a := range f.attempts {
		if !a.shows(r.Signature) {
			continue
		}
		if out.Seen++; out.Seen == 1 {
			out.First, out.Blind, out.After = i+1, a.Blind, a.Began.Add(a.Took).Sub(began)
		}
	}
	if out.Stopped = f.stopped(r); out.Stopped != nil {
		out.Unfinished = out.Stopped.sentence()
	}
	switch {
	case confirmedAgain:
		out.Outcome = Confirmed
	case r.State == notSeenAgain && r.Partial == nil && out.Stopped == nil:
		out.Outcome = NotSeenAgain
	default:
		out.Outcome = Unconfirmed
	}
	return out
}

// stopped says why a finding needs more work; nil if it needs none.
func (f *Folder) stopped(r record) *Stop {
	switch {
	case r.Stopped != nil:
		return r.Stopped
	case r.State == Waiting:
		return cmp.Or(f.skipped(r.Signature), &Stop{Kind: notBegun, At: reducing})
	case r.OriginalRuns.Shown == 0 && len(f.sightings(r)) > 0:
		return &Stop{Kind: notRerun, At: confirming}
	}
	return nil
}

func (s *Stop) sentence() string {
	switch s.Kind {
	case superseded:
		return "Not investigated: other findings take precedence."
	case needsNone:
		return "Not investigated: this lock fails without any fault."
	case notRerun:
		return "Another trial that showed it was not rerun."
	}
	what := map[State]string{
		confirming: "The confirmation", reducing: "Reducing it", settling: "Reducing it", measuring: "Measuring how often it shows",
		controlling: "The search for a control",
	}[s.At]
	if s.Kind == notBegun {
		if s.At == reducing {
			return "It was not reduced yet."
		}
		return "There was no time to rerun it."
	}
	why := map[StopKind]string{
		interrupted: "was interrupted", outOfTime: "ran out of time", tooBusy: "stopped: the machine was too busy, or runs failed",
		cannotRun: "failed", unsupported: "stopped: it cannot be run",
	}[s.Kind]
	text := cmp.Or(what, "The investigation") + " " + why
	if s.Of > 0 && s.At == confirming {
		text += fmt.Sprintf(" after %d of %d runs", s.Made, s.Of)
		if s.Made > 0 {
			text += fmt.Sprintf(", %d of which showed it", s.Shown)
		}
	}
	if s.Detail != "" {
		text += ": " + s.Detail
	}
	return text + "."
}

// Counts says whether the finding affects the verdict. A lock is called stuck because of elapsed time alone,
// which a busy machine can cause. So a stuck lock counts only if it was seen again.
func (f Finding) Counts() bool { return f.Property != checker.Liveness || f.Outcome == Confirmed }

// trials counts the trials made, the trials that show something about the lock, and the trials with a proven
// fault.
func (r Result) trials() (made, useful, proven int) {
	for _, arm := range r.Arms {
		made, useful, proven = made+arm.Trials, useful+arm.Trials-arm.Failed, proven+arm.Proven
	}
	return made, useful, proven
}

// Verdict is violation if a finding counts. It is undecided if no trial showed anything about the lock, no
// fault was proven, a part is missing, or a finding that might count is unconfirmed. Otherwise it is valid as
// far as the trials went.
func (r Result) Verdict() checker.Verdict {
	_, useful, proven := r.trials()
	hasFaults := len(r.Roles) > 1 // the first role stands for no fault
	mightCount := func(f Finding) bool { return f.Outcome == Unconfirmed }
	switch {
	case slices.ContainsFunc(r.Findings, Finding.Counts):
		return checker.Violation
	case useful == 0, hasFaults && proven == 0, len(r.Missing) > 0, slices.ContainsFunc(r.Findings, mightCount):
		return checker.Undecided
	}
	return checker.Valid
}
