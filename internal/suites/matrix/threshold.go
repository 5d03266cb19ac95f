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
	"lockcheck/internal/runs"
	"lockcheck/nemesis"
	"lockcheck/reports"
)

// Thresholds are what the runs of each cell are held to, in the order of the file.
type Thresholds []Threshold

// Threshold is a bound of one figure.
type Threshold struct {
	Name  string
	Bound float64 // in the unit of the figure; a length of time in ns
}

// Figure is what a threshold can bound.
type Figure struct {
	checker.Figure
	// Least: the bound is the smallest good value; otherwise the largest.
	Least bool
	// applies says whether the faults of a cell can give data at all; nil for always.
	applies func(Cell) bool
}

// Figures lists all of them.
func Figures() []Figure {
	all := []Figure{
		{Figure: figureCalled("lost")},
		{Figure: figureCalled("overlaps")},
		{Figure: figureCalled("double_grants")},
		{Figure: figureCalled("stale_writes")},
		{Figure: figureCalled("ops"), Least: true},
		{Figure: figureCalled("throughput"), Least: true},
		{Figure: figureCalled("acquire_p50")},
		{Figure: figureCalled("acquire_p99")},
		{Figure: figureCalled("wait_p50")},
		{Figure: figureCalled("wait_p99")},
		{Figure: figureCalled("failover_p50"), applies: Cell.affectsHolders},
		{Figure: figureCalled("failover_p99"), applies: Cell.affectsHolders},
		{Figure: figureCalled("availability"), Least: true, applies: Cell.hasFaults},
	}
	for i := range all {
		f := &all[i]
		if f.Name == "ops" {
			f.Name = "min_ops" // as the flag of a single test
		}
	}
	return all
}

func figureCalled(name string) checker.Figure {
	f, _ := checker.FigureByName(name)
	return f
}

func figureByName(name string) (Figure, bool) {
	all := Figures()
	i := slices.IndexFunc(all, func(f Figure) bool { return f.Name == name })
	if i < 0 {
		return Figure{}, false
	}
	return all[i], true
}

// counts says whether the figure counts what must not happen, however seldom it does.
func (f Figure) counts() bool { return f.Counts != "" || f.Name == "double_grants" }

// affectsHolders says whether the faults of the cell end workers, or silence workers whose
// lock ends by itself: only then a lock passes on that was not released.
func (c Cell) affectsHolders() bool {
	name, _, _ := strings.Cut(c.Lock, "@")
	lock, _ := lockfile.Find(name) // one that there is not has no cell
	return slices.ContainsFunc(c.faultsOf(), func(w nemesis.Request) bool {
		silences := history.Does(w.Fault, history.Stops) || history.Does(w.Fault, history.Cuts)
		return nemesis.MeansWorkers(w.Target) && (history.Does(w.Fault, history.Ends) || silences && lock.Info.TTL > 0)
	})
}

func (c Cell) hasFaults() bool { return len(c.faultsOf()) > 0 }

// check refuses a threshold that bounds nothing in any of the cells: it would seem kept.
func (t Thresholds) check(cells []Cell) error {
	for _, threshold := range t {
		f, _ := figureByName(threshold.Name)
		if f.applies != nil && !slices.ContainsFunc(cells, f.applies) {
			return &placeError{[]any{"thresholds", f.Name}, runs.Usagef("thresholds: %s: none of the faults gives data for it", f.Name)}
		}
	}
	return nil
}

// judge holds the runs of a cell to the thresholds. While runs are missing an upper bound
// can already be exceeded, but a lower one not yet be missed.
func (t Thresholds) judge(c Cell, p checker.Pool, complete bool) []reports.ThresholdResult {
	var all []reports.ThresholdResult
	for _, threshold := range t {
		f, _ := figureByName(threshold.Name)
		if f.applies != nil && !f.applies(c) || f.Least && !complete {
			continue
		}
		all = append(all, f.judge(threshold.Bound, p))
	}
	return all
}

// excuse lists the properties that thresholds take the place of.
func (t Thresholds) excuse() []checker.Property {
	var all []checker.Property
	for _, threshold := range t {
		if f, _ := figureByName(threshold.Name); f.Counts != "" {
			all = append(all, f.Counts)
		}
	}
	return all
}

func (f Figure) judge(bound float64, p checker.Pool) reports.ThresholdResult {
	r := reports.ThresholdResult{Name: f.Name, Counts: f.Counts, Bound: f.Text(bound), Verdict: checker.Undecided}
	value, known := f.Of(p)
	if !known {
		r.Value = "no data"
		return r
	}
	r.Value, r.Verdict = f.Text(value), checker.Valid
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
		bound, err := f.Parse(value.Value)
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
