package matrix

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/internal/lockfile"
	"lockcheck/nemesis"
	"lockcheck/present"
)

// Thresholds are the bounds for the runs of each cell, in the order of the file.
type Thresholds []Threshold

// Threshold is a bound for one figure.
type Threshold struct {
	Name  string
	Bound float64 // in the unit of the figure; durations in ns
}

// Figure is a figure that a threshold can bound.
type Figure struct {
	checker.Figure
	// Least: the bound is the smallest good value; otherwise it is the largest.
	Least bool
	// applies says whether the faults of a cell can give data at all; nil for always.
	applies func(Place) bool
}

// Figures lists all figures.
func Figures() []Figure {
	figure := func(name string, least bool, applies func(Place) bool) Figure {
		f, _ := checker.FigureByName(name)
		return Figure{Figure: f, Least: least, applies: applies}
	}
	var all []Figure
	for _, name := range []string{"lost", "overlaps", "double_grants", "stale_writes"} {
		all = append(all, figure(name, false, nil))
	}
	ops := figure("ops", true, nil)
	ops.Name = "min_ops" // the name of the flag for a single test
	all = append(all, ops, figure("throughput", true, nil))
	for _, name := range []string{"acquire_p50", "acquire_p99", "wait_p50", "wait_p99"} {
		all = append(all, figure(name, false, nil))
	}
	return append(all, figure("failover_p50", false, Place.affectsHolders), figure("failover_p99", false, Place.affectsHolders),
		figure("availability", true, Place.hasFaults))
}

func figureByName(name string) (Figure, bool) {
	all := Figures()
	i := slices.IndexFunc(all, func(f Figure) bool { return f.Name == name })
	if i < 0 {
		return Figure{}, false
	}
	return all[i], true
}

// countsEvents says whether the figure counts events that must never happen.
func (f Figure) countsEvents() bool { return f.Counts != "" || f.Name == "double_grants" }

// affectsHolders says whether the faults of the cell end workers, or silence workers whose lock expires. Only
// then does a lock pass on without a release.
func (c Place) affectsHolders() bool {
	name, _ := lockfile.CutVersion(c.Lock)
	lock, _ := lockfile.Find(name) // a lock that does not exist has no cell
	return slices.ContainsFunc(c.faultsOf(), func(w nemesis.Request) bool {
		silences := history.Does(w.Fault, history.Stops) || history.Does(w.Fault, history.Cuts)
		return nemesis.MeansWorkers(w.Target) && (history.Does(w.Fault, history.Ends) || silences && lock.Info.TTL > 0)
	})
}

func (c Place) hasFaults() bool { return len(c.faultsOf()) > 0 }

// check refuses a threshold that has no data in any of the cells, because it would seem kept.
func (t Thresholds) check(cells []Place) error {
	for _, threshold := range t {
		f, _ := figureByName(threshold.Name)
		if f.applies != nil && !slices.ContainsFunc(cells, f.applies) {
			return wrongKey([]any{"thresholds", f.Name}, "%s: none of the faults gives data for it", f.Name)
		}
	}
	return nil
}

// judge compares the pooled runs of a cell with the thresholds. While runs are missing, an upper bound can
// already be exceeded, but a lower bound cannot be missed yet.
func (t Thresholds) judge(c Place, p checker.Pool, complete bool) []ThresholdResult {
	var all []ThresholdResult
	for _, threshold := range t {
		f, _ := figureByName(threshold.Name)
		if f.applies != nil && !f.applies(c) || f.Least && !complete {
			continue
		}
		all = append(all, f.judge(threshold.Bound, p))
	}
	return all
}

// excuse lists the properties that thresholds replace.
func (t Thresholds) excuse() []checker.Property {
	var all []checker.Property
	for _, threshold := range t {
		if f, _ := figureByName(threshold.Name); f.Counts != "" {
			all = append(all, f.Counts)
		}
	}
	return all
}

func (f Figure) judge(bound float64, p checker.Pool) ThresholdResult {
	r := ThresholdResult{Name: f.Name, Counts: f.Counts, Bound: present.Value(f.Figure, bound), Verdict: checker.Undecided}
	value, known := f.Of(p)
	if !known {
		r.Value = "no data"
		return r
	}
	r.Value, r.Verdict = present.Value(f.Figure, value), checker.Valid
	if f.Least && value < bound || !f.Least && value > bound {
		r.Verdict = checker.Violation
	}
	return r
}

// UnmarshalYAML reads a mapping of figures to bounds.
func (t *Thresholds) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: thresholds: write figures and bounds, as in lost: 0", node.Line)
	}
	for i := 0; i < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		f, known := figureByName(name.Value)
		if !known {
			return fmt.Errorf("line %d: there is no threshold %q (there are %s)", name.Line, name.Value, figureNames())
		}
		if slices.ContainsFunc(*t, func(other Threshold) bool { return other.Name == f.Name }) {
			return fmt.Errorf("line %d: threshold %s is set twice", name.Line, f.Name)
		}
		bound, err := present.ParseValue(f.Figure, value.Value)
		if err != nil {
			return fmt.Errorf("line %d: %s: %w", value.Line, f.Name, err)
		}
		*t = append(*t, Threshold{Name: f.Name, Bound: bound})
	}
	return nil
}

// MarshalYAML is the inverse of UnmarshalYAML.
func (t Thresholds) MarshalYAML() (any, error) {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, threshold := range t {
		f, _ := figureByName(threshold.Name)
		value := strconv.FormatFloat(threshold.Bound, 'f', -1, 64)
		if f.Unit == checker.Duration {
			value = time.Duration(threshold.Bound).String()
		}
		node.Content = append(node.Content,
			&yaml.Node{Kind: yaml.ScalarNode, Value: f.Name}, &yaml.Node{Kind: yaml.ScalarNode, Value: value})
	}
	return node, nil
}

func figureNames() string {
	var names []string
	for _, f := range Figures() {
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}
