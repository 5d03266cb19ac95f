package web

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"lockcheck/internal/runs"
	"lockcheck/internal/suites/matrix"
)

// maxComparisons is how many of the newest are listed above the runs; the others are
// folded.
const maxComparisons = 5

// comparison is one comparison of a store, as far as it can be told.
type comparison struct {
	Folder string // from the store
	matrix.Line
	// Problem is why there is no verdict: "" if there is one.
	Problem string
}

// knownComparison is what was read of a comparison, and from what state of its file.
type knownComparison struct {
	state
	comparison comparison
}

// compared lists comparisons, the newest first. Only those that have changed since the
// last look are read.
func (s *Store) compared(folders []string) []comparison {
	last := s.compares
	s.compares = make(map[string]knownComparison, len(folders))
	var all []comparison
	for _, folder := range folders {
		s.compares[folder] = s.refreshComparison(folder, last[folder])
		all = append(all, s.compares[folder].comparison)
	}
	slices.SortFunc(all, func(a, b comparison) int {
		return cmp.Or(b.Began.Compare(a.Began), cmp.Compare(b.Folder, a.Folder))
	})
	return all
}

// refreshComparison reads a comparison, unless it is still as it was last.
func (s *Store) refreshComparison(folder string, last knownComparison) knownComparison {
	now := knownComparison{comparison: comparison{Folder: folder}}
	info, err := s.root.Stat(path.Join(folder, runs.ComparisonDataFile))
	if err == nil {
		now.state = stateOf(info)
		if last.comparison.Folder != "" && last.state == now.state {
			return last
		}
		now.comparison.Line, err = s.comparisonLine(folder)
	}
	if err != nil {
		now.comparison = s.unread(folder, err)
	}
	return now
}

func (s *Store) comparisonLine(folder string) (matrix.Line, error) {
	var m matrix.Comparison
	if err := s.decode(path.Join(folder, runs.ComparisonDataFile), &m); err != nil {
		return matrix.Line{}, err
	}
	if m.Schema < 1 || m.Schema > matrix.Schema {
		return matrix.Line{}, fmt.Errorf("it has schema %d, and this lockcheck knows %d", m.Schema, matrix.Schema)
	}
	m.Verdict = matrix.VerdictOf(m) // older files do not say it
	return matrix.NewLine(m), nil
}

// unread is a comparison of which there is nothing but its page.
func (s *Store) unread(folder string, why error) comparison {
	c := comparison{Folder: folder, Problem: runs.ComparisonDataFile + " cannot be read: " + why.Error()}
	if errors.Is(why, fs.ErrNotExist) {
		c.Problem = "It has no " + runs.ComparisonDataFile + "."
	}
	if info, err := s.root.Stat(folder); err == nil {
		c.Began = info.ModTime()
	}
	return c
}

type comparisonRow struct {
	comparison
	Verdict, Class string // Class for the style sheet
	Time, To       string // To is its address
}

func newComparisonRow(c comparison) comparisonRow {
	return comparisonRow{
		comparison: c, Verdict: cmp.Or(c.Line.Verdict, noResults), Class: c.Line.Verdict,
		Time: timeOf(c.Began), To: address("files", c.Folder, runs.ComparisonFile),
	}
}
