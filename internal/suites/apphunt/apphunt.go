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
	"lockcheck/internal/yamlfile"
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
	// Seen is in how many of Reruns with the reduced schedule it showed again, as its reproduction expects it.
	Seen   int `json:"seen"`
	Reruns int `json:"reruns"`
	// Reproduction is its file in the folder of the hunt, with the reduced schedule.
	Reproduction string   `json:"reproduction"`
	Faults       []string `json:"faults,omitempty"` // none for a finding that needs none
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
	calm     bool // the trial without faults was valid
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
		began := time.Now()
		outcome, err := h.test(ctx, o, h.stop, quiet{h.progress})
		if outcome.History == nil {
			return err
		}
		if outcome.Interrupted {
			break
		}
		h.result.Trials++
		h.calm = h.calm || n == 0 && outcome.Results.Verdict == checker.Valid
		switch outcome.Results.Verdict {
		case checker.Violation:
			if err := h.examine(ctx, n, o, outcome, time.Since(began)); err != nil {
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

// examine reduces the schedule of a trial that showed something new, and writes its reproduction. The trial took a time.
func (h *hunt) examine(ctx context.Context, n int, o runs.ApplicationOptions, outcome runs.Outcome, took time.Duration) error {
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
	schedule = inForce(schedule, outcome.Results)
	r := h.reduction(o, fresh[0], len(schedule.Steps), took)
	if schedule, err = r.reduce(ctx, schedule, &finding); err != nil {
		return err
	}
	finding.Faults = schedule.Faults()
	finding.Reproduction = fmt.Sprintf("finding-%d.yaml", len(h.result.Findings)+1)
	file, err := h.reproduction(finding, schedule)
	if err != nil {
		return err
	}
	write := func(w io.Writer) error { return yamlfile.Write(w, file) }
	if err := runs.WriteFile(h.result.Folder, finding.Reproduction, write); err != nil {
		return err
	}
	h.result.Findings = append(h.result.Findings, finding)
	return h.save()
}

// inForce leaves out the steps whose faults do not count: they explain nothing, and a reproduction demands each of its
// steps. Where none counts, all stay.
func inForce(s nemesis.Schedule, r checker.Results) nemesis.Schedule {
	var idle []string
	for _, step := range s.Steps {
		if !slices.ContainsFunc(r.Faults, func(f checker.FaultCoverage) bool { return f.Counts() && step.Began(f.ID) }) {
			idle = append(idle, step.ID)
		}
	}
	if len(idle) == len(s.Steps) {
		return s
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

// quiet passes on only how things stand.
type quiet struct{ runs.Progress }

// Step implements runs.Progress.
func (quiet) Step(string, ...any) {}
