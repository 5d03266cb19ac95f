package sweep

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"lockcheck/checker"
	"lockcheck/internal/runs"
	"lockcheck/internal/stats"
	"lockcheck/internal/suites"
)

// Names of the files of a sweep.
const (
	ledgerFile = "ledger.jsonl"
	runsFolder = "runs"
	HTMLFile   = "sweep.html"
	ChartFile  = "sweep.svg"
)

// Folder is a sweep on disk.
type Folder struct {
	Path string
	Plan Plan

	ledger *suites.Ledger[heading, entry]
	points map[Point]*tally
}

// heading is the first line of the ledger.
type heading struct {
	Schema int  `json:"schema"`
	Plan   Plan `json:"plan"`
}

const ledgerSchema = 1

// entry is a trial that was made.
type entry struct {
	Point
	suites.Recorded
}

// tally counts what the trials at a point showed.
type tally struct {
	results   []checker.Results
	runs      []string
	failed    int
	pauses    int64 // pauses that hit a holder
	incidents int64 // pauses that led to overlapping holders
}

// Create makes the folder of a new sweep. A folder that already holds a sweep is an error of usage.
func Create(path string, p Plan) (*Folder, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, runs.Unusable(err)
	}
	ledger, err := suites.CreateLedger[heading, entry](filepath.Join(path, ledgerFile), heading{ledgerSchema, p})
	if errors.Is(err, os.ErrExist) {
		return nil, runs.Usagef("--out %s: it holds a sweep; --resume %s goes on with it", path, path)
	}
	if err != nil {
		return nil, runs.Unusable(err)
	}
	return &Folder{Path: path, Plan: p, ledger: ledger, points: make(map[Point]*tally)}, nil
}

// Open reads a sweep without changing it.
func Open(path string) (*Folder, error) {
	ledger, err := suites.OpenLedger[heading, entry](filepath.Join(path, ledgerFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, runs.Usagef("--resume %s: it holds no sweep; name the folder that the sweep printed at its end", path)
	}
	if err != nil {
		return nil, err
	}
	if ledger.Heading.Schema != ledgerSchema {
		return nil, runs.Usagef("--resume %s: its ledger has schema %d, which this version does not know; go on with the version that began it, or begin a new sweep", path, ledger.Heading.Schema)
	}
	f := &Folder{Path: path, ledger: ledger, points: make(map[Point]*tally)}
	if f.Plan, err = ledger.Heading.Plan.Ready(); err != nil {
		return nil, err
	}
	for _, e := range ledger.Entries() {
		if err := f.countTrial(e); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *Folder) countTrial(e entry) error {
	m := f.points[e.Point]
	if m == nil {
		m = new(tally)
		f.points[e.Point] = m
	}
	if e.Failed != "" {
		m.failed++
		return nil
	}
	if !filepath.IsLocal(e.Run) {
		return runs.Usagef("the run %q is not within the sweep", e.Run)
	}
	document, err := runs.ReadResults(filepath.Join(f.Path, e.Run))
	if err != nil {
		return err
	}
	m.add(document.Results, e.Run)
	return nil
}

// add counts the pauses of a trial. A trial that failed or is broken counts none.
func (m *tally) add(r checker.Results, run string) {
	if r.Verdict == checker.Broken || r.Finding(checker.Assumptions).Verdict == checker.Broken {
		m.failed++
		return
	}
	m.results, m.runs = append(m.results, r), append(m.runs, run)
	for i, f := range r.Faults {
		if !f.Counts() {
			continue
		}
		m.pauses++
		until := r.End
		if i+1 < len(r.Faults) && r.Faults[i+1].Begin > 0 {
			until = r.Faults[i+1].Begin
		}
		overlaps := r.Finding(checker.MutualExclusion).Violations
		if slices.ContainsFunc(overlaps, func(o checker.Incident) bool { return causedBy(o, f, until) }) {
			m.incidents++
		}
	}
}

// causedBy says whether a pause caused an overlap: the pause hit the earlier holder, and the overlap began
// during the pause or before the next one.
func causedBy(overlap checker.Incident, pause checker.FaultCoverage, until int64) bool {
	return len(overlap.Workers) > 0 && slices.Contains(pause.Targets, overlap.Workers[0]) &&
		pause.Begin <= overlap.From && overlap.From < until
}

// answer says whether the lock failed to keep workers apart at a point; known is false without any pause that
// counts.
func (m *tally) answer() (violated, known bool) {
	if m == nil || m.pauses == 0 {
		return false, false
	}
	return m.incidents > 0, true
}

// Sweep builds the result from the trials made so far.
func (f *Folder) Sweep() Sweep {
	s := Sweep{
		Schema: Schema, Lock: f.Plan.Lock, Rule: f.Plan.rule(),
		Renew: f.Plan.Renew, CheckBeforeWrite: f.Plan.CheckBeforeWrite,
		TTL: f.Plan.TTL.String(), Pause: f.Plan.Pause.String(), Section: f.Plan.Section.String(),
	}
	for _, e := range f.ledger.Entries() {
		if s.Began.IsZero() || e.Began.Before(s.Began) {
			s.Began = e.Began
		}
		s.Took += e.Took
	}
	for _, point := range f.requiredPoints() {
		m := Measured{Point: point}
		if t := f.points[point]; t != nil {
			m = t.measured(point)
		}
		if _, err := f.Plan.trial(point); err != nil {
			m.Unsupported = err.Error()
		}
		s.Points = append(s.Points, m)
	}
	return s
}

func (t *tally) measured(at Point) Measured {
	pool := checker.PoolOf(t.results)
	m := Measured{
		Point: at, Runs: t.runs, Failed: t.failed, Pauses: t.pauses, Incidents: t.incidents,
		Acknowledged: pool.Acknowledged, Lost: pool.Lost, LossInterval: pool.LossInterval,
	}
	m.Low, m.High = stats.Wilson(t.incidents, t.pauses)
	if share, known := pool.Measures.Availability(); known {
		m.Availability = &share
	}
	return m
}

// WriteReports writes the sweep as pages and as JSON into its folder.
func (f *Folder) WriteReports(s Sweep) error {
	return suites.WriteReports(f.Path, "sweep", s, s.Page())
}
