package web

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	g "maragu.dev/gomponents"
	"maragu.dev/gomponents/html"

	"lockcheck/internal/runs"
	"lockcheck/internal/suites/matrix"
	"lockcheck/reports"
)

// maxComparisons is how many of the newest comparisons are listed above the runs. The others are folded.
const maxComparisons = 5

// comparison is what the store knows of one comparison.
type comparison struct {
	Folder string // from the store
	matrix.Line
	// Problem is why there is no verdict; "" if there is one.
	Problem string
}

// knownComparison is a cached comparison and the state of the file that it was read from.
type knownComparison struct {
	state
	comparison comparison
}

// compared lists comparisons, the newest first. It reads only those that have changed since the last call.
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

// refreshComparison reads a comparison again if its file has changed.
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
	m.Verdict = matrix.VerdictOf(m) // files of earlier versions have no verdict
	return matrix.NewLine(m), nil
}

// unread is a comparison of which only the page is known.
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

// comparisonsOf lists comparisons.
func comparisonsOf(all []comparison) g.Node {
	if len(all) == 0 {
		return nil
	}
	tableOf := func(list []comparison) g.Node {
		return table("comparisons", heads("Began (UTC)", "Comparison", "Verdict", "What was found"), g.Map(list, comparison.row))
	}
	newest := min(len(all), maxComparisons)
	return reports.Section("Comparisons", reports.Wide("Comparisons", tableOf(all[:newest]),
		g.If(len(all) > newest, html.Details(html.Summary(g.Textf("%d earlier", len(all)-newest)), tableOf(all[newest:])))))
}

func (c comparison) row() g.Node {
	return html.Tr(cell("time", timeOf(c.Began)), reports.RowHead(link(address("files", c.Folder, runs.ComparisonFile), c.Folder)),
		html.Td(badge(c.Verdict)), cell("", cmp.Or(c.Problem, c.Sentence)))
}
