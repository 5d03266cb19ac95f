// Package repros has the published results that lockcheck reproduces, each with its control.
package repros

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"lockcheck/clients"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/internal/yamlfile"
	"lockcheck/nemesis"
	"lockcheck/workloads"
)

//go:embed *.yaml
var files embed.FS

// prefix comes before the names of reproductions among the experiments.
const prefix = "repro/"

// Reproduction is a published result: a fixed schedule, and the verdict that it
// must give. It is data, one file each.
type Reproduction struct {
	Name string `yaml:"name"`
	// Path of its file; "" for one that is built in.
	Path    string `yaml:"-"`
	Summary string `yaml:"summary"` // one line
	Claim   string `yaml:"claim"`   // what was published
	Source  string `yaml:"source"`  // where

	// Each stands for many locks in place of Lock: "lease" for all whose lock can
	// end by itself, "token" for those of them that hand out fencing tokens, or a list
	// of names. The name of the lock is then appended to that of the reproduction.
	Each     each             `yaml:"each,omitempty"`
	Setup    Setup            `yaml:",inline"`
	Schedule nemesis.Schedule `yaml:"schedule,omitempty"`

	Expect suites.Expectation `yaml:"expect"`
	// Control is the same test with one thing changed, and what it must give; nil if
	// there is none.
	Control *Control `yaml:"control,omitempty"`
	// Fast is a shorter form, for those that take their time.
	Fast *Fast `yaml:"fast,omitempty"`
}

// Setup is what a reproduction says of its test, apart from the schedule. What it
// leaves out is as in runs.Options, or in runs.ApplicationOptions if there is an Application.
type Setup struct {
	Application   `yaml:",inline"`
	Require       []string `yaml:"require,omitempty,flow"` // properties required in addition to the usual ones
	Lock          string   `yaml:"lock,omitempty"`
	Version       string   `yaml:"version,omitempty"` // of the servers
	Nodes         int      `yaml:"nodes,omitempty"`
	Pin           bool     `yaml:"pin,omitempty"`
	Workload      string   `yaml:"workload,omitempty"`
	Guard         string   `yaml:"guard,omitempty"`
	Concurrency   int      `yaml:"concurrency,omitempty"`
	Rate          float64  `yaml:"rate,omitempty"`
	workloads.Use `yaml:",inline"`
	TimeLimit     time.Duration `yaml:"time-limit,omitempty"`
	MinOps        int64         `yaml:"min-ops,omitempty"`
	UntilOverlap  bool          `yaml:"until-overlap,omitempty"`
	EndRecovered  bool          `yaml:"end-recovered,omitempty"`
	Handover      time.Duration `yaml:"handover,omitempty"` // bounds no-idle-lock
	// Workers are what single ones do otherwise than the others.
	Workers []workloads.Use `yaml:"workers,omitempty"`
}

// Control is the negative control of a reproduction.
type Control struct {
	Summary string `yaml:"summary"`
	// Setup replaces what it names of the setup.
	Setup yaml.Node `yaml:"setup,omitempty"`
	// Without lists the steps that are left out.
	Without []string `yaml:"without,omitempty"`
	// For replaces how long a step lasts.
	For map[string]nemesis.Span `yaml:"for,omitempty"`
	// Fault replaces the kind of fault of a step.
	Fault  map[string]string  `yaml:"fault,omitempty"`
	Expect suites.Expectation `yaml:"expect"`
}

// Changes is the setup of a control that sets values, each after its key.
func Changes(texts ...string) yaml.Node {
	node := yaml.Node{Kind: yaml.MappingNode}
	for _, text := range texts {
		node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: text})
	}
	return node
}

// Fast is a shorter form of a reproduction.
type Fast struct {
	Setup    yaml.Node        `yaml:"setup"`
	Schedule nemesis.Schedule `yaml:"schedule"`
}

// All lists all reproductions that are built in, in the order of their files.
func All() ([]Reproduction, error) {
	built, err := builtIn()
	var all []Reproduction
	for _, r := range built {
		all = append(all, r.forEach()...)
	}
	return all, err
}

// builtIn lists those of All, with those that are made for many locks once.
func builtIn() ([]Reproduction, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var all []Reproduction
	for _, file := range entries {
		text, err := files.ReadFile(file.Name())
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

// forEach returns the reproduction once for each lock that it is for.
func (r Reproduction) forEach() []Reproduction {
	if len(r.Each) == 0 {
		return []Reproduction{r}
	}
	var all []Reproduction
	for _, lock := range clients.Table() {
		if r.Each.means(lock) {
			all = append(all, r.of(lock.Name, lock))
		}
	}
	return all
}

// of returns the reproduction for one of the locks that it is for, as a test names that.
func (r Reproduction) of(name string, lock clients.Info) Reproduction {
	r.Setup.Lock, r.Name = name, r.Name+"-"+lock.Name
	if lock.Endless {
		r.Setup.Wait = 0
	}
	return r
}

// each is a list of locks, or the one word for many.
type each []string

const (
	eachLease = "lease"
	eachToken = "token"
)

func (e *each) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.SequenceNode {
		if err := node.Decode((*[]string)(e)); err != nil {
			return err
		}
		for i, name := range *e {
			if _, known := clients.ByName(name); !known {
				return fmt.Errorf("line %d: each: there is no lock %q", node.Content[i].Line, name)
			}
		}
		return nil
	}
	if node.Value != eachLease && node.Value != eachToken {
		return fmt.Errorf("line %d: each: %q is neither %s nor %s, nor a list of locks", node.Line, node.Value, eachLease, eachToken)
	}
	*e = each{node.Value}
	return nil
}

func (e each) means(lock clients.Info) bool {
	switch e[0] {
	case eachLease:
		return lock.PassesOn()
	case eachToken:
		return lock.PassesOn() && lock.Token != ""
	}
	return slices.Contains(e, lock.Name)
}

// String says in words which locks are meant.
func (e each) String() string {
	switch e[0] {
	case eachLease:
		return "locks with a lease"
	case eachToken:
		return "locks with a lease and fencing tokens"
	}
	return strings.Join(e, ", ")
}

// ReadExperiments reads a file in the form of a reproduction, of which only the name, the
// test and what is expected of it must be there. It returns, for each of its locks, the
// test and its control if there is one; prefix comes before their names. Errors name the
// line.
func ReadExperiments(text io.Reader, prefix string) ([]suites.Experiment, error) {
	file, err := readReproduction(text)
	if err != nil {
		return nil, err
	}
	if file.Name == "" {
		return nil, errNoName
	}
	var all []suites.Experiment
	for _, r := range file.forEach() {
		experiments, err := r.experiments(prefix)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Name, err)
		}
		all = append(all, experiments...)
	}
	return all, nil
}

func readReproduction(text io.Reader) (r Reproduction, err error) {
	file, err := yamlfile.Parse(text, &r)
	if err != nil {
		return r, err
	}
	if err := r.checkKeys(file); err != nil {
		return r, err
	}
	if err := r.Schedule.Check(); err != nil {
		return r, err
	}
	return r, errors.Join(r.checkControl(), r.checkFast())
}

// checkControl makes sure that the control differs from what it controls.
func (r Reproduction) checkControl() error {
	if r.Control == nil {
		return nil
	}
	changed := slices.Clone(r.Control.Without)
	changed = slices.AppendSeq(changed, maps.Keys(r.Control.For))
	changed = slices.AppendSeq(changed, maps.Keys(r.Control.Fault))
	if len(changed) == 0 && r.Control.Setup.IsZero() {
		return errors.New("the control changes nothing")
	}
	for _, id := range changed {
		if !slices.ContainsFunc(r.Schedule.Steps, func(s nemesis.Step) bool { return s.ID == id }) {
			return fmt.Errorf("the control changes step %q, which does not exist", id)
		}
	}
	setup, err := r.Setup.with(r.Control.Setup)
	if err == nil && len(changed) > 0 && setup.Nemesis != "" {
		err = errors.New("the control changes steps, and its nemesis replaces all of them")
	}
	return err
}

func (r *Reproduction) checkFast() error {
	if r.Fast == nil {
		return nil
	}
	_, err := r.Setup.with(r.Fast.Setup)
	return errors.Join(err, r.Fast.Schedule.Check())
}

// with returns the setup with what a part of a file says otherwise.
func (s Setup) with(changes yaml.Node) (Setup, error) {
	if changes.IsZero() {
		return s, nil
	}
	text, err := yaml.Marshal(&changes)
	if err != nil {
		return s, err
	}
	if s.LockDelay != nil {
		own := *s.LockDelay // reading writes through the pointer
		s.LockDelay = &own
	}
	s.Environment = maps.Clone(s.Environment) // and into the map
	err = yamlfile.Read(bytes.NewReader(text), &s)
	return s, err
}

// Form says in which form a reproduction is run.
type Form struct {
	Control bool // the control in place of the finding
	Fast    bool // the shorter form, if it has one
}

// in is what the reproduction says of its test in one of its forms.
func (r Reproduction) in(form Form) (setup Setup, schedule nemesis.Schedule, err error) {
	setup, schedule = r.Setup, r.Schedule
	if form.Fast {
		if r.Fast == nil {
			return setup, schedule, runs.Usagef("--fast: %s has no shorter form", r.Name)
		}
		schedule = r.Fast.Schedule
		if setup, err = setup.with(r.Fast.Setup); err != nil {
			return setup, schedule, err
		}
	}
	if form.Control {
		if r.Control == nil {
			return setup, schedule, runs.Usagef("--control: %s has no control", r.Name)
		}
		schedule = r.Control.apply(schedule)
		setup, err = setup.with(r.Control.Setup)
	}
	return setup, schedule, err
}

// options are those of the test of a lock. What belongs to the machine is left to the caller.
func (s Setup) options(schedule nemesis.Schedule) runs.Options {
	return runs.Options{
		Schedule: &schedule, Seed: schedule.Seed,
		Lock: s.Lock, ServerVersion: s.Version, Nodes: s.Nodes, Pin: s.Pin,
		Workload: s.Workload, Guard: s.Guard, Concurrency: s.Concurrency, Rate: s.Rate,
		Use: s.Use, Workers: s.Workers, Require: s.Require, Handover: s.Handover,
		TimeLimit: s.TimeLimit, MinOps: s.MinOps, UntilOverlap: s.UntilOverlap, EndEarly: true, EndRecovered: s.EndRecovered,
	}
}

func (c Control) apply(s nemesis.Schedule) nemesis.Schedule {
	s = s.Without(c.Without...)
	steps := slices.Clone(s.Steps)
	for i := range steps {
		if span, changed := c.For[steps[i].ID]; changed {
			steps[i].For = span
		}
		steps[i].Fault = cmp.Or(c.Fault[steps[i].ID], steps[i].Fault)
	}
	s.Steps = steps
	return s
}

// Experiments are the reproduction and, if there is one, its control.
func (r Reproduction) Experiments() ([]suites.Experiment, error) { return r.experiments(prefix) }

func (r Reproduction) experiments(prefix string) ([]suites.Experiment, error) {
	finding, err := r.experiment(prefix, Form{})
	if err != nil || r.Control == nil {
		return []suites.Experiment{finding}, err
	}
	control, err := r.experiment(prefix, Form{Control: true})
	return []suites.Experiment{finding, control}, err
}

func (r Reproduction) experiment(prefix string, form Form) (suites.Experiment, error) {
	setup, schedule, err := r.in(form)
	if err != nil {
		return suites.Experiment{}, err
	}
	e := suites.Experiment{Name: prefix + r.Name, Subject: r.Name, Setting: suites.SettingFinding, Expect: r.Expect}
	if form.Fast {
		e.Name += "/fast"
	}
	if form.Control {
		e.Name, e.Setting, e.Expect = e.Name+"/control", suites.SettingControl, r.Control.Expect
	}
	if setup.App == "" {
		e.Options = setup.options(schedule)
		return e, nil
	}
	e.Application, err = setup.application(schedule)
	if err == nil {
		err = haveInvariants(e.Application.App, e.Expect.Invariants)
	}
	return e, err
}

// Experiment is the reproduction in one of its forms. What belongs to the machine is left to the caller.
func (r Reproduction) Experiment(form Form) (suites.Experiment, error) {
	return r.experiment(prefix, form)
}
