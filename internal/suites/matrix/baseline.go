package matrix

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lockcheck/checker"
	"lockcheck/internal/runs"
)

// Baseline is a comparison that another one is measured against, for example that of the main branch.
type Baseline struct {
	path  string
	cells map[Place]Cell
}

// ReadBaseline reads a baseline from the folder of a comparison or from its comparison.json.
func ReadBaseline(path string) (*Baseline, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, jsonFile)
	}
	text, err := os.ReadFile(path)
	var wrong *fs.PathError
	if errors.As(err, &wrong) {
		return nil, runs.Usagef("--baseline: %w", err)
	}
	if err != nil {
		return nil, err
	}
	var m Comparison
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, runs.Usagef("--baseline %s: %w", path, err)
	}
	switch {
	case m.Schema != Schema:
		return nil, runs.Usagef("--baseline %s: it has schema %d, and this lockcheck knows %d", path, m.Schema, Schema)
	case m.Shard != "":
		return nil, runs.Usagef("--baseline %s: it is part %s of a comparison; name the whole", path, m.Shard)
	}
	b := &Baseline{path: path, cells: make(map[Place]Cell)}
	for _, c := range m.Cells {
		b.cells[c.Place] = c
	}
	return b, nil
}

// Hold compares the cells of m with the baseline. A cell fails for what is worse than in the baseline, and
// passes if nothing is worse.
func (b *Baseline) Hold(m *Comparison, s Suite) {
	m.Baseline = b.path
	var all []*checker.Change
	for i := range m.Cells {
		c := &m.Cells[i]
		if len(c.Runs) == 0 {
			continue
		}
		c.Compared = b.compare(*c, s)
		for n := range c.Compared.Changes {
			all = append(all, &c.Compared.Changes[n])
		}
	}
	checker.DecideChanges(all)
	for i := range m.Cells {
		if c := &m.Cells[i]; c.Compared != nil {
			c.Compared.Figures = len(all)
			decideCell(c)
		}
	}
	m.Verdict = VerdictOf(*m)
}

// compare collects the figures by which a cell is compared.
func (b *Baseline) compare(c Cell, s Suite) *Compared {
	before, there := b.cells[c.Place]
	if !there || len(before.Runs) == 0 {
		return &Compared{New: true}
	}
	if before.Attack != c.Attack {
		return &Compared{Not: attackDiffers(before)}
	}
	if differs := settingsDiffer(before.Runs[0].Command, c.Runs[0].Command); differs != "" {
		return &Compared{Not: differs}
	}
	x, y := samples(before), samples(c)
	switch {
	case len(x) == 0:
		return &Compared{New: true}
	case len(y) == 0:
		return &Compared{Not: "no run was decided"}
	}
	compared := &Compared{Changes: checker.Changes(x, y)}
	if c.Counts == checker.Violation {
		compared.Since = s.newlyViolated(before, c)
	}
	return compared
}

// decideCell sets the verdict of a cell that has a baseline. A cell that is undecided or broken stays so, because
// it cannot be compared. A cell with too few runs also keeps its own verdict: the baseline neither excuses
// nor fails it.
func decideCell(c *Cell) {
	k := c.Compared
	switch {
	case k.Not != "":
		k.Verdict = checker.MostTelling([]checker.Verdict{c.Counts, checker.Undecided})
	case k.worse():
		k.Verdict = checker.Violation
	case k.New || k.tooFew() || c.Counts == checker.Undecided || c.Counts == checker.Broken:
		k.Verdict = c.Counts
	case c.Verdict == checker.Valid: // if it counts as a violation nevertheless, it was expected to fail
		k.Verdict = c.Counts
	default:
		k.Verdict = checker.Valid
	}
	c.Counts = k.Verdict
}

// newlyViolated lists the properties and thresholds that are violated now and were not before.
func (s Suite) newlyViolated(before, now Cell) (all []string) {
	known := before.violatedProperties()
	for _, r := range before.Runs {
		known = append(known, r.Violated...)
	}
	for _, p := range now.violatedProperties() {
		if !slices.Contains(known, p) && !slices.Contains(all, string(p)) {
			all = append(all, string(p))
		}
	}
	pool := before.Pool
	if before.FirstPool != nil {
		pool = *before.FirstPool
	}
	for _, t := range now.Thresholds {
		if t.Verdict != checker.Violation || slices.Contains(all, string(t.Counts)) {
			continue
		}
		i := slices.IndexFunc(s.Thresholds, func(bound Threshold) bool { return bound.Name == t.Name })
		f, _ := figureByName(t.Name)
		if i < 0 || f.judge(s.Thresholds[i].Bound, pool).Verdict != checker.Violation {
			all = append(all, t.String())
		}
	}
	return all
}

// samples are the samples of the decided runs, without the runs that only confirm others. In an undecided run
// the fault may not have been in force.
func samples(c Cell) (all []checker.Sample) {
	for _, r := range c.Runs {
		decided := r.Verdict == checker.Valid || r.Verdict == checker.Violation
		if r.Round == 0 && r.Sample != nil && decided {
			all = append(all, *r.Sample)
		}
	}
	return all
}

// attackDiffers says why the trials of a baseline come from another form of the attack, as far as the
// baseline tells.
func attackDiffers(before Cell) string {
	if before.Attack == "" {
		return "it does not say in which form the attack was made"
	}
	return "the attack has changed since"
}

// settingsDiffer lists the flags in which two commands differ, except for the seed and the minimum of
// operations; "" if they do not differ.
func settingsDiffer(before, now []string) string {
	a, b := settings(before), settings(now)
	var all []string
	for _, s := range a {
		if !slices.Contains(b, s) {
			all = append(all, s+" before")
		}
	}
	for _, s := range b {
		if !slices.Contains(a, s) {
			all = append(all, s+" now")
		}
	}
	if before == nil || now == nil {
		return "it is not known how the runs were made"
	}
	return strings.Join(all, ", ")
}

func settings(command []string) (all []string) {
	for i := 0; i < len(command); i++ {
		flag := command[i]
		if !strings.HasPrefix(flag, "--") {
			continue
		}
		if i+1 < len(command) && !strings.HasPrefix(command[i+1], "--") {
			i++
			if flag != "--seed" && flag != "--min-ops" {
				all = append(all, fmt.Sprintf("%s %s", flag, command[i]))
			}
			continue
		}
		all = append(all, flag)
	}
	return all
}
