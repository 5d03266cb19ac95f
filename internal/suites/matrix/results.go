package matrix

import (
	"errors"
	"io"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/clients"
	"lockcheck/clusters"
	"lockcheck/internal/runs"
	"lockcheck/reports"
)

// Comparison puts together what the runs came to that are there.
func (f *Folder) Comparison() (reports.Comparison, error) {
	c := reports.Comparison{
		Schema: reports.ComparisonSchema, Shard: f.Shard.String(),
		Locks: f.Suite.Locks, Faults: f.Suite.Faults, Guards: f.Suite.Guards,
		Thresholds: len(f.Suite.Thresholds) > 0, About: make(map[string]reports.About),
	}
	for _, lock := range f.Suite.Locks {
		c.About[lock] = about(lock)
	}
	c.Began, c.Took = f.times()
	for _, cell := range f.Suite.cells() {
		compared, err := f.compared(cell)
		if err != nil {
			return c, err
		}
		c.Cells = append(c.Cells, compared)
	}
	return c, nil
}

func about(lock string) reports.About {
	name, _, _ := strings.Cut(lock, "@")
	info, _ := clients.ByName(name)
	servers, _ := clusters.ByName(info.Servers)
	return reports.About{Servers: servers.Nodes, Token: info.Token, Clock: info.Clock}
}

// times says when the first run began and how long it was until the last one ended.
func (f *Folder) times() (began time.Time, took time.Duration) {
	var end time.Time
	for _, e := range f.entries {
		if began.IsZero() || e.Began.Before(began) {
			began = e.Began
		}
		if over := e.Began.Add(e.Took); over.After(end) {
			end = over
		}
	}
	return began, end.Sub(began)
}

func (f *Folder) compared(cell Cell) (reports.ComparedCell, error) {
	c := reports.ComparedCell{Lock: cell.Lock, Fault: cell.Fault, Guard: cell.Guard, Excused: f.Suite.Thresholds.excuse()}
	var all []checker.Results
	for _, seed := range f.Suite.Seeds {
		e, ran := f.ran(cell, seed)
		switch {
		case !ran:
			c.Missing++
			continue
		case e.Run == "":
			c.Runs = append(c.Runs, reports.ComparedRun{Seed: seed, Verdict: checker.Broken, Sentence: e.Failed})
			continue
		}
		document, err := runs.ReadResults(f.file(e.Run))
		if err != nil {
			return c, err
		}
		c.Add(reports.RunOf(seed, e.Run, document), document)
		all = append(all, document.Results)
	}
	if _, err := cell.outline(f.Suite); unavailable(err) != "" && len(c.Runs) == 0 {
		c.Unavailable, c.Missing = unavailable(err), 0
		return c, nil
	}
	c.Pool = checker.PoolOf(all)
	if len(c.Runs) > 0 {
		c.Thresholds = f.Suite.Thresholds.judge(cell, c.Pool, c.Missing == 0)
	}
	c.Judge()
	return c, nil
}

// WriteReports writes the comparison for people and for programs into its folder.
func (f *Folder) WriteReports(c reports.Comparison) error {
	var errs []error
	for name, write := range map[string]func(io.Writer, reports.Comparison) error{
		jsonFile: reports.ComparisonJSON, HTMLFile: reports.ComparisonHTML,
		markdownFile: reports.ComparisonMarkdown, junitFile: reports.ComparisonJUnit,
	} {
		errs = append(errs, runs.WriteFile(f.Path, name, func(w io.Writer) error { return write(w, c) }))
	}
	return errors.Join(errs...)
}
