package matrix

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"lockcheck/checker"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/runs"
)

// CellParameter is the parameter of a run that names its cell and seed.
const CellParameter = "comparison"

// runName is the value of CellParameter.
func (p Place) runName(seed uint64) string { return fmt.Sprintf("%s, seed %d", p, seed) }

// AttackOf is the attack of a trial, according to the value of its CellParameter; false for a run under
// random faults.
func AttackOf(run string) (Attack, bool) {
	parts := strings.Split(run, ", ") // the path of a lock file may contain commas
	if len(parts) < 4 {
		return Attack{}, false
	}
	return AttackByName(parts[len(parts)-3])
}

// Counts says whether the results of a stored run are part of its cell. They are not if the run was repeated
// later, or if it is a trial that says nothing about its attack.
func (f *Folder) Counts(folder string, r checker.Results) bool {
	run, err := filepath.Rel(f.Path, folder)
	all := f.entries()
	i := slices.IndexFunc(all, func(e entry) bool { return e.Run == run })
	if err != nil || i < 0 {
		return false
	}
	last, _ := f.latestRun(all[i].Place, all[i].Seed)
	return last == all[i] && last.whyUncounted(r) == ""
}

// OptionsOf returns the options of the run with the given value of CellParameter, as a user would give them,
// but with the time limit of the run.
func (s Suite) OptionsOf(run string) (runs.Options, error) {
	for _, p := range s.places() {
		for round := range s.Confirm + 1 {
			for _, seed := range s.seedsOf(p, round) {
				if p.runName(seed) != run {
					continue
				}
				outline, err := p.outline(s)
				if err == nil {
					outline, err = p.withSeed(outline, seed)
				}
				if err != nil {
					return runs.Options{}, err
				}
				return p.runOptions(s, outline, seed)
			}
		}
	}
	return runs.Options{}, fmt.Errorf("%q is no run of the comparison", run)
}

// runOptions returns the options of a single run of the cell.
func (p Place) runOptions(s Suite, outline runs.Outline, seed uint64) (runs.Options, error) {
	if p.isAttack() {
		return outline.Options, nil
	}
	lock, err := lockfile.Find(outline.Options.Lock)
	if err != nil { // the lock file no longer exists
		return runs.Options{}, err
	}
	o := p.options(s, lock.Info)
	o.TimeLimit, o.Seed = outline.Options.TimeLimit, seed
	return o, nil
}
