// Package apphunt searches for a short schedule of faults under which an invariant of a user's application does not
// hold.
package apphunt

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/checker/application"
	"lockcheck/internal/runs"
	"lockcheck/nemesis"
)

// Names in the folder of a hunt.
const (
	ResultFile = "hunt.json"
	runsFolder = "runs"
)

// Plan of a hunt.
type Plan struct {
	// Options are those of every trial, without a schedule; Options.Seed is the seed of the hunt. Options.Nemesis
	// lists the faults to draw from.
	Options runs.ApplicationOptions
	// Budget is how long trials may begin for.
	Budget time.Duration
	// Trials is how many there are at most; 0 for as many as there is time for.
	Trials int
}

// Signature tells findings apart: the property that was violated, and the invariant or the cause.
type Signature struct {
	Property checker.Property `json:"property"`
	What     string           `json:"what,omitempty"`
}

// String is as in "invariants billed-once".
func (s Signature) String() string { return strings.TrimSpace(string(s.Property) + " " + s.What) }

// Finding is what a trial showed first.
type Finding struct {
	Signature
	// Also is what else the same trial was the first to show. The schedule is reduced for the Signature.
	Also []Signature `json:"also,omitempty"`
	// Trial is the number of the trial that showed it first; the first trial, 0, has no faults.
	Trial    int    `json:"trial"`
	Sentence string `json:"sentence"` // of that trial
	Run      string `json:"run"`      // its folder
	// Seen is in how many of Reruns with the reduced schedule it showed again.
	Seen   int `json:"seen"`
	Reruns int `json:"reruns"`
	// Schedule is the file with the reduced schedule, in the folder of the hunt; "" for a finding without faults.
	Schedule string   `json:"schedule,omitempty"`
	Faults   []string `json:"faults,omitempty"`
}

// Result of a hunt.
type Result struct {
	Application string `json:"application"`
	Folder      string `json:"folder"`
	Trials      int    `json:"trials"`
	// Undecided are trials in which no fault was proven, or which showed nothing for another reason.
	Undecided   int       `json:"undecided"`
	Findings    []Finding `json:"findings"`
	Interrupted bool      `json:"interrupted,omitempty"`
}

// hunt is one in progress.
type hunt struct {
	Plan
	result   Result
	end      time.Time
	progress runs.Progress
	// test makes a run: runs.TestApplication, but in tests of this package.
	test func(context.Context, runs.ApplicationOptions, <-chan struct{}, runs.Progress) (runs.Outcome, error)
	stop <-chan struct{}
}

// Run hunts until the budget is over, and writes what it found into a folder of its own in the store. Its error says
// why a trial could not be made.
func Run(ctx context.Context, p Plan, interrupt <-chan struct{}, progress runs.Progress) (Result, error) {
	h := &hunt{Plan: p, end: time.Now().Add(p.Budget), progress: progress, test: runs.TestApplication, stop: interrupt}
	folder, err := runs.NewFolder(filepath.Join(p.Options.Store, runs.HuntFolder))
	if err != nil {
		return Result{}, err
	}
	h.result = Result{Application: p.Options.App.Name, Folder: folder}
	h.Options.Store = filepath.Join(folder, runsFolder)
	err = h.search(ctx)
	if saved := h.save(); err == nil {
		err = saved
	}
	return h.result, err
}

func (h *hunt) save() error {
	return runs.WriteFile(h.result.Folder, ResultFile, func(w io.Writer) error {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(h.result)
	})
}

// search makes trials: the first without faults, because what shows without any is not worth a search.
func (h *hunt) search(ctx context.Context) error {
	for n := 0; h.goesOn() && (h.Trials == 0 || n < h.Trials); n++ {
		o := h.trial(n)
		h.progress.Step("trial %d: %s", n, o.Nemesis)
		outcome, err := h.test(ctx, o, h.stop, quiet{h.progress})
		if outcome.History == nil {
			return err
		}
		if outcome.Interrupted {
			break
		}
		h.result.Trials++
		switch outcome.Results.Verdict {
		case checker.Violation:
			if err := h.examine(ctx, n, o, outcome); err != nil {
				return err
			}
		case checker.Valid:
		default:
			h.result.Undecided++
			h.progress.Step("trial %d shows nothing: %s", n, outcome.Results.Sentence)
		}
	}
	h.result.Interrupted = runs.Closed(h.stop)
	return nil
}

func (h *hunt) goesOn() bool { return !runs.Closed(h.stop) && time.Now().Before(h.end) }

// trial draws the options of one trial: one or two kinds of the faults, and a random schedule of them.
func (h *hunt) trial(n int) runs.ApplicationOptions {
	o := h.Options
	o.Seed = h.Options.Seed + uint64(n)
	if n == 0 {
		o.Nemesis = "none"
		return o
	}
	kinds := strings.Split(h.Options.Nemesis, ",")
	rng := rand.New(rand.NewPCG(o.Seed, 3))
	rng.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	o.Nemesis = strings.Join(kinds[:min(len(kinds), 1+rng.IntN(2))], ",")
	return o
}

// signatures lists what a run violated.
func signatures(r checker.Results) []Signature {
	var all []Signature
	for _, f := range r.Findings {
		if !f.Required || f.Verdict != checker.Violation {
			continue
		}
		for _, i := range f.Violations {
			if application.Inherent(f.Property, i.Cause) {
				continue // the verdict does not rest on it
			}
			s := Signature{f.Property, i.Cause}
			if f.Property == checker.Invariants {
				s.What = i.Key
			}
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}

// examine reduces the schedule of a trial that showed something new.
func (h *hunt) examine(ctx context.Context, n int, o runs.ApplicationOptions, outcome runs.Outcome) error {
	var fresh []Signature
	for _, s := range signatures(outcome.Results) {
		known := func(f Finding) bool { return f.Signature == s || slices.Contains(f.Also, s) }
		if !slices.ContainsFunc(h.result.Findings, known) {
			fresh = append(fresh, s)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	for _, s := range fresh {
		h.progress.Step("trial %d: FOUND %s", n, s)
	}
	finding := Finding{Signature: fresh[0], Also: fresh[1:], Trial: n, Sentence: outcome.Results.Sentence, Run: h.within(outcome.Folder)}
	schedule, err := runs.ReadSchedule(outcome.Folder)
	if err != nil {
		return err
	}
	if schedule, err = h.reduce(ctx, o, inForce(schedule, outcome.Results), &finding); err != nil {
		return err
	}
	finding.Faults = schedule.Faults()
	if len(schedule.Steps) > 0 {
		finding.Schedule = fmt.Sprintf("finding-%d.yaml", len(h.result.Findings)+1)
		if err := runs.WriteFile(h.result.Folder, finding.Schedule, schedule.Write); err != nil {
			return err
		}
	}
	h.result.Findings = append(h.result.Findings, finding)
	return h.save()
}

// inForce leaves out the steps whose faults were never proven: they explain nothing.
func inForce(s nemesis.Schedule, r checker.Results) nemesis.Schedule {
	var idle []string
	for _, step := range s.Steps {
		if !slices.ContainsFunc(r.Faults, func(f checker.FaultCoverage) bool { return f.Proven && step.Began(f.ID) }) {
			idle = append(idle, step.ID)
		}
	}
	return s.Without(idle...)
}

// within is a path as seen from the folder of the hunt.
func (h *hunt) within(path string) string {
	relative, err := filepath.Rel(h.result.Folder, path)
	if err != nil {
		return path
	}
	return relative
}

// reruns is how often a reduced schedule is tried at the end, and tries how often a smaller one is before it is taken
// for harmless.
const (
	reruns = 3
	tries  = 2
)

// reduce leaves out steps for as long as the finding still shows without them, and counts how often it shows at the
// end. What is left may show by chance alone, where a fault must strike at the right moment: then the whole schedule stays.
func (h *hunt) reduce(ctx context.Context, o runs.ApplicationOptions, s nemesis.Schedule, f *Finding) (nemesis.Schedule, error) {
	whole := s
	for i := 0; i < len(s.Steps) && len(s.Steps) > 1 && h.goesOn(); {
		smaller := s.Without(s.Steps[i].ID)
		seen, made, err := h.shows(ctx, o, smaller, f.Signature, tries, 1)
		if err != nil {
			return s, err
		}
		if seen == 0 || made == 0 {
			i++
			continue
		}
		h.progress.Step("%s shows without %s", f.Signature, s.Steps[i].ID)
		s = smaller
	}
	var err error
	f.Seen, f.Reruns, err = h.shows(ctx, o, s, f.Signature, reruns, reruns)
	if err != nil || 2*f.Seen >= f.Reruns || len(s.Steps) == len(whole.Steps) {
		return s, err
	}
	seen, made, err := h.shows(ctx, o, whole, f.Signature, reruns, reruns)
	if seen > f.Seen {
		f.Seen, f.Reruns, s = seen, made, whole
	}
	return s, err
}

// shows counts in how many of the runs that it makes with a schedule something shows, and stops when it is enough.
func (h *hunt) shows(ctx context.Context, o runs.ApplicationOptions, s nemesis.Schedule, what Signature, runsAtMost, enough int) (seen, made int, err error) {
	o.Schedule, o.Nemesis = &s, ""
	if len(s.Steps) == 0 {
		o.Schedule, o.Nemesis = nil, "none"
	}
	for range runsAtMost {
		if runs.Closed(h.stop) {
			return seen, made, nil
		}
		outcome, err := h.test(ctx, o, h.stop, quiet{h.progress})
		if outcome.History == nil {
			return seen, made, err
		}
		if outcome.Interrupted {
			return seen, made, nil
		}
		made++
		if slices.Contains(signatures(outcome.Results), what) {
			if seen++; seen == enough {
				break
			}
		}
	}
	return seen, made, nil
}

// quiet passes on only how things stand.
type quiet struct{ runs.Progress }

// Step implements runs.Progress.
func (quiet) Step(string, ...any) {}
