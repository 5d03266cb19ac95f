package matrix

import (
	"fmt"
	"regexp"
	"strconv"

	"lockcheck/internal/lockfile"
	"lockcheck/internal/runs"
)

// CellParameter is the parameter of a run that names its cell and seed.
const CellParameter = "comparison"

// cellText is the value of CellParameter.
var cellText = regexp.MustCompile(`^(.+?), (.+), guard (\S+), seed (\d+)$`)

// OptionsOf returns the test that a run of a comparison was, from the value of its
// CellParameter: as a user would give it, but with its time limit.
func (s Suite) OptionsOf(cell string) (runs.Options, error) {
	parts := cellText.FindStringSubmatch(cell)
	if parts == nil {
		return runs.Options{}, fmt.Errorf("%q is no cell of a comparison", cell)
	}
	seed, err := strconv.ParseUint(parts[4], 10, 64)
	if err != nil {
		return runs.Options{}, err
	}
	c := Place{Lock: parts[1], Fault: parts[2], Guard: parts[3]}
	outline, err := c.outline(s)
	if err != nil {
		return runs.Options{}, err
	}
	return c.test(s, outline, seed)
}

// test are the options of a single run of the cell.
func (c Place) test(s Suite, outline runs.Outline, seed uint64) (runs.Options, error) {
	lock, err := lockfile.Find(outline.Options.Lock)
	if err != nil { // its file is gone
		return runs.Options{}, err
	}
	o := c.options(s, lock.Info)
	o.TimeLimit, o.Seed = outline.Options.TimeLimit, seed
	return o, nil
}
