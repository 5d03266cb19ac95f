package claims

import (
	"cmp"
	"fmt"
	"slices"

	"lockcheck/checker"
	"lockcheck/internal/suites"
	"lockcheck/present"
)

// Verdicts of claims.
const (
	Holds             = "holds"
	HoldsWithinLimits = "holds within limits"
	DoesNotHold       = "does not hold"
	Open              = "open"
)

// Judged is a claim, and what the stored runs say about it.
type Judged struct {
	Number  int
	Text    string
	Verdict string // one of Holds, HoldsWithinLimits, DoesNotHold and Open
	// For and Against are the experiments that support and contradict the claim.
	For, Against []Result
	Missing      string // which evidence is missing; "" for none
}

// Result is an experiment with its stored runs.
type Result struct {
	Experiment string
	Shows      string // a sentence: what is shown if the runs are as expected
	Runs       []suites.StoredRun
	AsExpected int      // how many runs were as expected
	Missed     string   // why it is not shown: because of the first run that was not as expected, or because of all runs together
	Figures    []string // of all runs together
}

// shown says whether the experiment was run, was always as expected, and has the data that it needs.
func (r Result) shown() bool {
	return len(r.Runs) > 0 && r.AsExpected == len(r.Runs) && r.Missed == ""
}

// Judge judges claims by the stored runs of their experiments.
func Judge(all []Claim, stored map[string][]suites.StoredRun) ([]Judged, error) {
	known, err := experiments()
	if err != nil {
		return nil, err
	}
	j := judger{known, stored}
	var judged []Judged
	for _, c := range all {
		judged = append(judged, j.claim(c))
	}
	return judged, nil
}

// judger compares claims with the stored runs of known experiments.
type judger struct {
	known map[string]suites.Experiment
	runs  map[string][]suites.StoredRun
}

func (j judger) claim(c Claim) Judged {
	judged := Judged{Number: c.Number, Text: c.Text, Missing: c.Missing}
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

// verdict combines the results. If any result is missing or not as expected, the claim is open, whatever the
// others show.
func verdict(j Judged) string {
	notShown := func(r Result) bool { return !r.shown() }
	switch all := slices.Concat(j.For, j.Against); {
	case j.Missing != "" || len(all) == 0 || slices.ContainsFunc(all, notShown):
		return Open
	case len(j.Against) == 0:
		return Holds
	case len(j.For) == 0:
		return DoesNotHold
	}
	return HoldsWithinLimits
}

func (j judger) evidence(e Evidence) Result {
	r, pool := j.stored(e.Run.Name, e.Within)
	r.Shows, r.Figures = e.Shows, keyFigures(j.known[e.Run.Name].Expect.Figures, e.Within, pool)
	return r
}

// measurement also says whether the measurement supports the claim. Without data it does neither: it is
// listed under For and leaves the claim open.
func (j judger) measurement(m Measurement) (all []Result, speaksFor bool) {
	r, pool := j.stored(m.Run.Name, nil)
	r.Shows = m.Shows
	if m.More != "" {
		return j.compared(m, r, pool)
	}
	r.Missed = cmp.Or(r.Missed, m.Within.Unknown(pool))
	if len(r.Runs) > 0 {
		r.Figures = append(keyFigures(nil, m.Within, pool), "claimed: "+m.Within.String())
	}
	return []Result{r}, m.Within.Missed(pool) == "" || !r.shown()
}

// compared returns a measurement together with the one that it is compared with.
func (j judger) compared(m Measurement, r Result, pool checker.Pool) (all []Result, speaksFor bool) {
	other, than := j.stored(m.Than.Name, nil)
	other.Shows = "What it is compared with."
	f, _ := checker.FigureByName(m.More)
	measured := func(r *Result, p checker.Pool) float64 {
		value, known := f.Of(p)
		if !known {
			r.Missed = cmp.Or(r.Missed, "no data for "+f.Name)
		} else {
			r.Figures = []string{f.Name + " " + present.Value(f, value)}
		}
		return value
	}
	more := measured(&r, pool) > measured(&other, than)
	return []Result{r, other}, more || !r.shown() || !other.shown()
}

// stored counts the runs of an experiment that are as expected and within additional bounds. It also pools
// all runs.
func (j judger) stored(name string, within suites.Bounds) (Result, checker.Pool) {
	r := Result{Experiment: name, Runs: j.runs[name]}
	var all []checker.Results
	for _, run := range r.Runs {
		missed := cmp.Or(j.known[name].Missed(run.Results), within.Missed(checker.PoolOf([]checker.Results{run.Results})))
		if missed == "" {
			r.AsExpected++
		}
		r.Missed = cmp.Or(r.Missed, missed)
		all = append(all, run.Results)
	}
	return r, checker.PoolOf(all)
}

// keyFigures lists the figures that the experiment is judged by. Without such figures it says how many
// updates were lost.
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
		all = append(all, fmt.Sprintf("%d of %d updates lost (%s)", p.Lost, p.Acknowledged, present.Interval(p.LossInterval)))
	}
	return all
}
