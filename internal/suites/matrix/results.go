package matrix

import (
	"errors"
	"io"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/runs"
	"lockcheck/reports"
)

// Matrix puts together the results of the runs that are there.
func (f *Folder) Matrix() (reports.Matrix, error) {
	m := reports.Matrix{
		Schema: reports.MatrixSchema, Shard: f.Shard.String(),
		Locks: f.Suite.Locks, Faults: f.Suite.Faults, Guards: f.Suite.Guards,
		Thresholds: len(f.Suite.Thresholds) > 0, About: make(map[string]reports.About),
	}
	for _, lock := range f.Suite.Locks {
		m.About[lock] = about(lock)
	}
	m.Began, m.Took = f.times()
	for _, place := range f.Suite.cells() {
		cell, err := f.judged(place)
		if err != nil {
			return m, err
		}
		m.Cells = append(m.Cells, cell)
	}
	m.Verdict = VerdictOf(m)
	return m, nil
}

func about(lock string) reports.About {
	name, _, _ := strings.Cut(lock, "@")
	found, _ := lockfile.Find(name) // a file may be gone by now
	return reports.About{Servers: found.Servers.Nodes, Token: found.Info.Token, Clock: found.Info.Clock}
}

// times says when the first run began and how long it was until the last one ended.
func (f *Folder) times() (began time.Time, took time.Duration) {
	var end time.Time
	for _, e := range f.entries() {
		if e.OutOfTime {
			continue
		}
		if began.IsZero() || e.Began.Before(began) {
			began = e.Began
		}
		if over := e.Began.Add(e.Took); over.After(end) {
			end = over
		}
	}
	return began, end.Sub(began)
}

// judged is a cell with all that is there of it.
func (f *Folder) judged(cell Cell) (reports.Cell, error) {
	c, all, err := f.round(cell, 0)
	if err != nil {
		return c, err
	}
	var rounds []reports.Cell
	for n := 1; n <= f.Suite.Confirm; n++ {
		r, results, err := f.round(cell, n)
		if err != nil {
			return c, err
		}
		if len(r.Runs) > 0 {
			rounds, all = append(rounds, r), append(all, results...)
		}
	}
	// A run that failed may have been made once more since, and its cell be valid: what the
	// rounds saw happened all the same.
	if len(rounds) > 0 {
		first := c.Pool
		c.FirstPool, c.Pool = &first, checker.PoolOf(all)
	}
	if len(rounds) > 0 || f.unconfirmed(cell, c) {
		confirm(&c, rounds, f.Suite.Confirm)
	}
	f.Suite.expect(cell, &c)
	return c, nil
}

// unconfirmed says whether the runs of a cell are to be made again: it is complete, not valid, and
// not as expected.
func (f *Folder) unconfirmed(place Cell, c reports.Cell) bool {
	f.Suite.expect(place, &c)
	return f.Suite.Confirm > 0 && len(c.Runs) > 0 && c.Missing == 0 && c.Counts != checker.Valid
}

// round is a cell by one round of its runs, and the results of these.
func (f *Folder) round(cell Cell, n int) (c reports.Cell, all []checker.Results, err error) {
	c = reports.Cell{Lock: cell.Lock, Fault: cell.Fault, Guard: cell.Guard, Excused: f.Suite.Thresholds.excuse()}
	outline, why := cell.outline(f.Suite)
	for _, seed := range f.Suite.seedsOf(cell, n) {
		e, ran := f.ran(cell, seed)
		if !ran || e.OutOfTime {
			c.Missing++
			if ran {
				c.OutOfTime++
			}
			continue
		}
		r := reports.CellRun{Seed: seed, Verdict: checker.Broken, Sentence: e.Failed}
		if e.Run != "" {
			document, err := runs.ReadResults(f.file(e.Run))
			if err != nil {
				return c, nil, err
			}
			r = add(&c, seed, e.Run, document)
			all = append(all, document.Results)
		}
		r.Took, r.Command = e.Took, cell.command(f.Suite, outline, seed)
		c.Runs = append(c.Runs, r)
	}
	if unsupported(why) != "" && len(c.Runs) == 0 {
		c.Unavailable, c.Missing = unsupported(why), 0
		return c, nil, nil
	}
	c.Pool = checker.PoolOf(all)
	if len(c.Runs) > 0 {
		c.Thresholds = f.Suite.Thresholds.judge(cell, c.Pool, c.Missing == 0)
	}
	judge(&c)
	return c, all, nil
}

// WriteReports writes the comparison for people and for programs into its folder.
func (f *Folder) WriteReports(m reports.Matrix) error {
	var errs []error
	for name, write := range map[string]func(io.Writer, reports.Matrix) error{
		jsonFile: reports.MatrixJSON, HTMLFile: reports.MatrixHTML,
		markdownFile: reports.MatrixMarkdown, junitFile: reports.MatrixJUnit,
	} {
		errs = append(errs, runs.WriteFile(f.Path, name, func(w io.Writer) error { return write(w, m) }))
	}
	return errors.Join(errs...)
}
