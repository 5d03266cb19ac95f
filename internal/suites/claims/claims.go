// Package claims checks common claims about locks with runs. Each claim of claims.yaml names the experiments
// that support or contradict it: forms of reproductions, and the experiments in the folder runs. The verdict
// is computed from the stored runs of these experiments, so it changes when a lock does.
package claims

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"lockcheck/checker"
	"lockcheck/internal/suites"
	"lockcheck/internal/suites/findings"
	"lockcheck/internal/suites/repros"
	"lockcheck/internal/yamlfile"
)

//go:embed claims.yaml runs/*.yaml
var files embed.FS

// prefix begins the names of the experiments in the folder runs.
const prefix = "claim/"

// Claim is a claim about locks, and its evidence.
type Claim struct {
	Number int    `yaml:"number"`
	Text   string `yaml:"text"`
	// For and Against are experiments. If their runs are as expected, they support or contradict the claim.
	For     []Evidence `yaml:"for,omitempty"`
	Against []Evidence `yaml:"against,omitempty"`
	// Measured are experiments whose figures decide whether they support the claim.
	Measured []Measurement `yaml:"measured,omitempty"`
	// Missing says which evidence is still missing. A claim with missing evidence stays open.
	Missing string `yaml:"missing,omitempty"`
}

// Evidence is an experiment, and what it shows if its runs are as expected.
type Evidence struct {
	Run   reference `yaml:"run"`
	Shows string    `yaml:"shows"` // a sentence
	// Within has bounds in addition to what the experiment itself expects.
	Within suites.Bounds `yaml:"within,omitempty"`
}

// Measurement is an experiment that is as expected whatever its figures are. It supports the claim if the
// figures are Within the bounds, or if the figure More is higher than in the experiment Than. Otherwise it
// contradicts the claim.
type Measurement struct {
	Run    reference     `yaml:"run"`
	Shows  string        `yaml:"shows"` // what is measured
	Within suites.Bounds `yaml:"within,omitempty"`
	More   string        `yaml:"more,omitempty"`
	Than   reference     `yaml:"than,omitempty"`
}

// reference is the name of an experiment, and the line that named it.
type reference struct {
	Name string
	line int
}

func (r *reference) UnmarshalYAML(node *yaml.Node) error {
	r.line = node.Line
	return node.Decode(&r.Name)
}

// Claims lists all claims in the order of their numbers.
func Claims() ([]Claim, error) {
	file, err := files.Open("claims.yaml")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	known, err := experiments()
	if err != nil {
		return nil, err
	}
	all, err := read(file, known)
	if err != nil {
		return nil, fmt.Errorf("claims.yaml: %w", err)
	}
	return all, nil
}

// read reads claims that refer to known experiments. Its errors name the line.
func read(r io.Reader, known map[string]suites.Experiment) ([]Claim, error) {
	var all []Claim
	if err := yamlfile.Read(r, &all); err != nil {
		return nil, err
	}
	for i, c := range all {
		if c.Number != i+1 {
			return nil, fmt.Errorf("claim %d is where claim %d should be", c.Number, i+1)
		}
		if err := c.check(known); err != nil {
			return nil, fmt.Errorf("claim %d: %w", c.Number, err)
		}
	}
	return all, nil
}

func (c Claim) check(known map[string]suites.Experiment) error {
	if c.Text == "" {
		return errors.New("text: it says nothing")
	}
	if len(c.For)+len(c.Against)+len(c.Measured) == 0 && c.Missing == "" {
		return errors.New("it rests on nothing, and missing: does not say why")
	}
	for _, e := range slices.Concat(c.For, c.Against) {
		if err := e.Run.check(known, e.Shows); err != nil {
			return err
		}
	}
	for _, m := range c.Measured {
		if err := m.check(known); err != nil {
			return err
		}
	}
	return nil
}

func (m Measurement) check(known map[string]suites.Experiment) error {
	if err := m.Run.check(known, m.Shows); err != nil {
		return err
	}
	if (len(m.Within) > 0) == (m.More != "") || (m.More != "") != (m.Than.Name != "") {
		return fmt.Errorf("line %d: give either within, or more and than", m.Run.line)
	}
	if m.More == "" {
		return nil
	}
	if _, is := checker.FigureByName(m.More); !is {
		return fmt.Errorf("line %d: there is no figure %q", m.Run.line, m.More)
	}
	return m.Than.check(known, m.Shows)
}

func (r reference) check(known map[string]suites.Experiment, shows string) error {
	if _, is := known[r.Name]; !is {
		return fmt.Errorf("line %d: there is no experiment %q", r.line, r.Name)
	}
	if strings.TrimSpace(shows) == "" {
		return fmt.Errorf("line %d: shows: say what %s shows", r.line, r.Name)
	}
	return nil
}

// experiments are all experiments that a claim can refer to, by name.
func experiments() (map[string]suites.Experiment, error) {
	all, err := findings.Experiments()
	if err != nil {
		return nil, err
	}
	own, err := ownExperiments()
	if err != nil {
		return nil, err
	}
	known := make(map[string]suites.Experiment)
	for _, e := range append(all, own...) {
		if _, twice := known[e.Name]; twice {
			return nil, fmt.Errorf("two experiments are called %s", e.Name)
		}
		known[e.Name] = e
	}
	return known, nil
}

// ownExperiments are the experiments in the folder runs.
func ownExperiments() ([]suites.Experiment, error) {
	names, err := fs.Glob(files, "runs/*.yaml")
	if err != nil {
		return nil, err
	}
	var all []suites.Experiment
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		experiments, err := repros.ReadExperiments(bytes.NewReader(text), prefix)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, experiments...)
	}
	return all, nil
}
