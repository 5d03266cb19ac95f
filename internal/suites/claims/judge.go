package claims

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"lockcheck/checker"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/reports"
)

// Verdicts of claims.
const (
	Holds             = "holds"
	HoldsWithinLimits = "holds within limits"
	DoesNotHold       = "does not hold"
	Open              = "open"
)

// Judge puts the stored runs next to the claims that rest on them.
func Judge(all []Claim, stored map[string][]suites.StoredRun) ([]reports.Claim, error) {
	known, err := experiments()
	if err != nil {
		return nil, err
	}
	j := judge{known, stored}
	var judged []reports.Claim
	for _, c := range all {
		judged = append(judged, j.claim(c))
	}
	return judged, nil
}

// judge holds claims against the stored runs of known experiments.
type judge struct {
	known map[string]suites.Experiment
	runs  map[string][]suites.StoredRun
}

func (j judge) claim(c Claim) reports.Claim {
	judged := reports.Claim{Number: c.Number, Text: c.Text, Missing: c.Missing}
	for _, e := range c.For {
		judged.For = append(judged.For, j.evidence(e))
	}
	for _, e := range c.Against {
		judged.Against = append(judged.Against, j.evidence(e))
	}
	for _, m := range c.Measured {
		all, speaksFor := j.measurement(m)
		if speaksFor {
			judged.For = append(judged.For, all...)
		} else {
			judged.Against = append(judged.Against, all...)
		}
	}
	judged.Verdict = verdict(judged)
	return judged
}

// verdict is what the runs amount to. One that is missing or not as expected leaves it
// open, whatever the others show.
func verdict(c reports.Claim) string {
	if c.Missing != "" || !allShown(c.For) || !allShown(c.Against) {
		return Open
	}
	switch {
	case len(c.For) > 0 && len(c.Against) > 0:
		return HoldsWithinLimits
	case len(c.For) > 0:
		return Holds
	case len(c.Against) > 0:
		return DoesNotHold
	}
	return Open
}

func allShown(all []reports.ClaimEvidence) bool {
	for _, e := range all {
		if !e.Shown() {
			return false
		}
	}
	return true
}

func (j judge) evidence(e Evidence) reports.ClaimEvidence {
	judged, pool := j.stored(e.Run.Name, e.Within)
	judged.Shows, judged.Figures = e.Shows, keyFigures(j.known[e.Run.Name].Expect.Figures, e.Within, pool)
	return judged
}

// measurement also says for which side it speaks. One without data speaks for none: it is
// listed under For, and leaves the claim open.
func (j judge) measurement(m Measurement) (all []reports.ClaimEvidence, speaksFor bool) {
	e, pool := j.stored(m.Run.Name, nil)
	e.Shows = m.Shows
	if m.More != "" {
		return j.compared(m, e, pool)
	}
	e.Missed = cmp.Or(e.Missed, m.Within.Unknown(pool))
	if e.N > 0 {
		e.Figures = append(keyFigures(nil, m.Within, pool), "claimed: "+m.Within.String())
	}
	return []reports.ClaimEvidence{e}, m.Within.Missed(pool) == "" || !e.Shown()
}

// compared is a measurement next to the one that it is compared with.
func (j judge) compared(m Measurement, e reports.ClaimEvidence, pool checker.Pool) (all []reports.ClaimEvidence, speaksFor bool) {
	other, than := j.stored(m.Than.Name, nil)
	other.Shows = "What it is compared with."
	f, _ := checker.FigureByName(m.More)
	measured := func(e *reports.ClaimEvidence, p checker.Pool) float64 {
		value, known := f.Of(p)
		if !known {
			e.Missed = cmp.Or(e.Missed, "no data for "+f.Name)
		} else {
			e.Figures = []string{f.Name + " " + f.Text(value)}
		}
		return value
	}
	more := measured(&e, pool) > measured(&other, than)
	return []reports.ClaimEvidence{e, other}, more || !e.Shown() || !other.Shown()
}

// stored says how many runs of an experiment are as expected, each within some bounds too,
// and adds all of them up.
func (j judge) stored(name string, within suites.Bounds) (reports.ClaimEvidence, checker.Pool) {
	e := reports.ClaimEvidence{Experiment: name}
	var all []checker.Results
	for _, run := range j.runs[name] {
		e.N++
		e.Runs = append(e.Runs, reports.ClaimRun{Report: filepath.Join(run.Folder, runs.ReportFile), Started: run.Header.Started})
		missed := cmp.Or(j.known[name].Missed(run.Results), within.Missed(checker.PoolOf([]checker.Results{run.Results})))
		if missed == "" {
			e.AsExpected++
		}
		e.Missed = cmp.Or(e.Missed, missed)
		all = append(all, run.Results)
	}
	return e, checker.PoolOf(all)
}

// keyFigures are those that the experiment is judged by, else what became of the updates.
func keyFigures(expected, within suites.Bounds, p checker.Pool) []string {
	if p.Runs == 0 {
		return nil
	}
	var all []string
	for _, b := range slices.Concat(expected, within) {
		if text := b.Observed(p); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	if len(all) == 0 && p.Acknowledged > 0 {
		all = append(all, fmt.Sprintf("%d of %d updates lost (%s)", p.Lost, p.Acknowledged, p.IntervalWords()))
	}
	return all
}
