package harness

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"lockcheck/checker"
	"lockcheck/nemesis"
	"lockcheck/workloads"
)

//go:embed repros/*.yaml
var reproFiles embed.FS

// Reproduction is a published result: a fixed schedule, and the verdict that it
// must give. It is data, one file each.
type Reproduction struct {
	Name    string `yaml:"name"`
	Summary string `yaml:"summary"` // one line
	Claim   string `yaml:"claim"`   // what was published
	Source  string `yaml:"source"`  // where

	Lock        string           `yaml:"lock"`
	Workload    string           `yaml:"workload"`
	Guard       string           `yaml:"guard"`
	Concurrency int              `yaml:"concurrency"`
	Rate        float64          `yaml:"rate,omitempty"`
	TTL         yamlDuration     `yaml:"ttl"`
	Section     yamlDuration     `yaml:"section"`
	TimeLimit   yamlDuration     `yaml:"time-limit"`
	MinOps      int64            `yaml:"min-ops"`
	Schedule    nemesis.Schedule `yaml:"schedule"`

	Expect Expectation `yaml:"expect"`
	// Control is the same test with one thing changed, and what it must give.
	Control Control `yaml:"control"`
}

// Control is the negative control of a reproduction.
type Control struct {
	Summary string `yaml:"summary"`
	// Without lists the steps that are left out.
	Without []string `yaml:"without,omitempty"`
	// For replaces how long a step lasts.
	For    map[string]nemesis.Span `yaml:"for,omitempty"`
	Expect Expectation             `yaml:"expect"`
}

// Expectation is the verdict that a run must give, and what it must rest on.
type Expectation struct {
	Verdict checker.Verdict `yaml:"verdict"`
	// Violated lists properties that must be among the violated ones.
	Violated []checker.Property `yaml:"violated,omitempty"`
	// BrokenPromise asks for an overlap in which the service itself broke its
	// promise, not for a client that went on beyond it.
	BrokenPromise bool `yaml:"broken-promise,omitempty"`
}

// yamlDuration is a time.Duration in a file.
type yamlDuration time.Duration

func (d *yamlDuration) UnmarshalYAML(node *yaml.Node) error {
	parsed, err := time.ParseDuration(node.Value)
	if err != nil {
		return fmt.Errorf("line %d: %w", node.Line, err)
	}
	*d = yamlDuration(parsed)
	return nil
}

// Reproductions lists all reproductions in the order of their names.
func Reproductions() ([]Reproduction, error) {
	files, err := reproFiles.ReadDir("repros")
	if err != nil {
		return nil, err
	}
	var all []Reproduction
	for _, file := range files {
		text, err := reproFiles.ReadFile("repros/" + file.Name())
		if err != nil {
			return nil, err
		}
		r, err := readReproduction(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name(), err)
		}
		all = append(all, r)
	}
	return all, nil
}

func readReproduction(text io.Reader) (r Reproduction, err error) {
	decoder := yaml.NewDecoder(text)
	decoder.KnownFields(true)
	if err := decoder.Decode(&r); err != nil {
		return r, err
	}
	if err := r.Schedule.Check(); err != nil {
		return r, err
	}
	return r, r.checkControl()
}

// checkControl makes sure that the control differs from what it controls.
func (r Reproduction) checkControl() error {
	changed := slices.Clone(r.Control.Without)
	for id := range r.Control.For {
		changed = append(changed, id)
	}
	if len(changed) == 0 {
		return errors.New("the control changes nothing")
	}
	for _, id := range changed {
		if !slices.ContainsFunc(r.Schedule.Steps, func(s nemesis.Step) bool { return s.ID == id }) {
			return fmt.Errorf("the control changes step %q, which does not exist", id)
		}
	}
	return nil
}

// ReproductionByName finds a reproduction. The error of an unknown name is a
// *UsageError.
func ReproductionByName(name string) (Reproduction, error) {
	all, err := Reproductions()
	if err != nil {
		return Reproduction{}, err
	}
	var known []string
	for _, r := range all {
		if r.Name == name {
			return r, nil
		}
		known = append(known, r.Name)
	}
	return Reproduction{}, unknown("reproduction", name, known)
}

// Options returns the test that a reproduction consists of; its control for
// control. Store, Binary and what else belongs to the machine is left to the caller.
func (r Reproduction) Options(control bool) Options {
	schedule := r.Schedule
	if control {
		schedule = r.Control.apply(schedule)
	}
	section := time.Duration(r.Section)
	return Options{
		Lock: r.Lock, Workload: r.Workload, Guard: r.Guard, Concurrency: r.Concurrency, Rate: r.Rate,
		TTL: time.Duration(r.TTL), Section: workloads.Range{Min: section, Max: section},
		TimeLimit: time.Duration(r.TimeLimit), MinOps: r.MinOps,
		Schedule: &schedule, Seed: schedule.Seed, EndEarly: true,
	}
}

func (c Control) apply(s nemesis.Schedule) nemesis.Schedule {
	s = s.Without(c.Without...)
	steps := slices.Clone(s.Steps)
	for i := range steps {
		if span, changed := c.For[steps[i].ID]; changed {
			steps[i].For = span
		}
	}
	s.Steps = steps
	return s
}

// Missed says why results are not what was expected; "" if they are. A broken or
// undecided run never is, unless that was expected.
func (e Expectation) Missed(r checker.Results) string {
	if r.Verdict != e.Verdict {
		return fmt.Sprintf("the verdict is %s, not %s", r.Verdict, e.Verdict)
	}
	var violated []string
	for _, f := range r.Findings {
		if f.Verdict == checker.Violation {
			violated = append(violated, string(f.Property))
		}
	}
	for _, p := range e.Violated {
		if !slices.Contains(violated, string(p)) {
			return fmt.Sprintf("%s was not violated (only %s)", p, strings.Join(violated, ", "))
		}
	}
	if e.BrokenPromise && r.Overlaps.BrokenPromises == 0 {
		return "no overlap was a broken promise"
	}
	return ""
}

// Reproduce runs a reproduction or its control, on a machine described by the
// rest of the options, and says why the result is not the expected one, "" if it is.
func Reproduce(ctx context.Context, r Reproduction, control bool, machine Options, interrupt <-chan struct{}, progress Progress) (Outcome, string, error) {
	o := r.Options(control)
	o.Store, o.Binary, o.Version, o.Command, o.Images = machine.Store, machine.Binary, machine.Version, machine.Command, machine.Images
	o.Parameters = map[string]string{"reproduction": r.Name}
	expect := r.Expect
	if control {
		o.Parameters["control"] = r.Control.Summary
		expect = r.Control.Expect
	}
	outcome, err := Test(ctx, o, interrupt, progress)
	if outcome.History == nil {
		return outcome, "", err
	}
	return outcome, expect.Missed(outcome.Results), err
}
