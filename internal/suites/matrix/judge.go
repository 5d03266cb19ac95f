package matrix

import (
	"cmp"
	"slices"

	"lockcheck/checker"
	"lockcheck/reports"
)

// add takes a run with results into account of its cell.
func add(c *reports.Cell, seed uint64, folder string, d reports.Document) reports.CellRun {
	c.Versions, c.Source, c.Lease = d.Header.Versions, d.Header.Source, d.Header.Lease
	switch d.Results.Finding(checker.FencingOrder).Verdict {
	case checker.Valid:
		c.TokensKept++
	case checker.Violation:
		c.TokensViolated++
	}
	return runOf(seed, folder, d)
}

// runOf is a run as its results tell it; its folder is relative to that of the comparison.
func runOf(seed uint64, folder string, d reports.Document) reports.CellRun {
	r := reports.CellRun{Seed: seed, Folder: folder, Verdict: d.Results.Verdict, Sentence: d.Results.Sentence}
	sample := checker.SampleOf(d.Results)
	r.Sample = &sample
	rest := []checker.Verdict{checker.Valid}
	for _, f := range d.Results.Findings {
		switch {
		case !f.Required:
		case f.Verdict == checker.Violation:
			r.Violated = append(r.Violated, f.Property)
			r.HowViolated = append(r.HowViolated, reports.HowViolated(f, d.Results.Begin))
			if d.Results.Uncounted(f.Property) {
				r.Uncounted = append(r.Uncounted, f.Property)
			}
		case f.Verdict == checker.Broken, f.Verdict == checker.Undecided:
			rest = append(rest, f.Verdict)
		}
	}
	r.Rest = checker.MostTelling(rest)
	return r
}

// judge gives a cell with runs its verdicts. A threshold takes the place of the property
// whose violations it bounds; all others must be kept as ever, and a run that is undecided
// or broken says nothing of any threshold.
func judge(c *reports.Cell) {
	var verdicts []checker.Verdict
	for _, r := range c.Runs {
		violated := unbounded(r, c.Excused)
		if r.Verdict == checker.Violation && len(violated) == 0 {
			verdicts = append(verdicts, r.Rest)
		} else {
			verdicts = append(verdicts, r.Verdict)
		}
		for _, p := range violated {
			if !slices.Contains(c.Violated, p) {
				c.Violated = append(c.Violated, p)
			}
		}
	}
	if c.OutOfTime > 0 {
		verdicts = append(verdicts, checker.Undecided)
	}
	if len(verdicts) == 0 {
		return
	}
	c.OfRuns = checker.MostTelling(verdicts)
	for _, t := range c.Thresholds {
		verdicts = append(verdicts, t.Verdict)
	}
	c.Verdict = checker.MostTelling(verdicts)
}

// confirm takes into account that the runs of a cell were made again, round by round. What was
// violated stays violated, however seldom: it happened. A figure that missed its bound, and runs
// that were undecided or broken, may be due to the machine: those stand if they are so in most of
// the rounds again, or if a round is missing or lacks runs.
func confirm(c *reports.Cell, rounds []reports.Cell, asked int) {
	c.Rounds = []checker.Verdict{c.Verdict}
	for i, r := range rounds {
		c.Rounds = append(c.Rounds, r.Verdict)
		c.TokensKept, c.TokensViolated = c.TokensKept+r.TokensKept, c.TokensViolated+r.TokensViolated
		for _, run := range r.Runs {
			run.Round = i + 1
			c.Runs = append(c.Runs, run)
		}
		for _, p := range r.Violated {
			if !slices.Contains(c.Violated, p) {
				c.Violated = append(c.Violated, p)
			}
		}
	}
	stands := func(v checker.Verdict, of func(reports.Cell) checker.Verdict, certain bool) checker.Verdict {
		again, whole := 0, 0
		for _, r := range rounds {
			got := of(r)
			switch {
			case got == checker.Violation && certain:
				return checker.Violation
			case r.Missing > 0: // it may not have judged a threshold at all
				continue
			case got != checker.Valid:
				again++
			}
			whole++
		}
		if v == checker.Violation && certain || c.Missing > 0 || whole < asked || 2*again > whole {
			return v
		}
		return checker.Valid
	}
	c.OfRuns = stands(c.OfRuns, func(r reports.Cell) checker.Verdict { return r.OfRuns }, true)
	verdicts := []checker.Verdict{c.OfRuns}
	for i := range c.Thresholds {
		t := &c.Thresholds[i]
		f, _ := figureByName(t.Name)
		verdict := stands(t.Verdict, func(r reports.Cell) checker.Verdict { return thresholdOf(r, t.Name).Verdict }, f.counts())
		for _, r := range rounds {
			if got := thresholdOf(r, t.Name); t.Verdict != verdict && got.Verdict == verdict {
				*t = got
			}
		}
		verdicts = append(verdicts, verdict)
	}
	c.Verdict = checker.MostTelling(verdicts)
}

// thresholdOf is what the runs of a round say of a threshold; its zero value if too many are missing
// to say anything.
func thresholdOf(c reports.Cell, name string) reports.ThresholdResult {
	i := slices.IndexFunc(c.Thresholds, func(t reports.ThresholdResult) bool { return t.Name == name })
	if i < 0 {
		return reports.ThresholdResult{}
	}
	return c.Thresholds[i]
}

// unbounded lists what a run violates and no threshold takes the place of.
func unbounded(r reports.CellRun, excused []checker.Property) []checker.Property {
	return slices.DeleteFunc(slices.Clone(r.Violated), func(p checker.Property) bool {
		return slices.Contains(excused, p) && !slices.Contains(r.Uncounted, p)
	})
}

// VerdictOf returns that of all cells that have one. A whole that lacks runs is undecided
// unless the others tell more; a part without any has none, "".
func VerdictOf(m reports.Matrix) checker.Verdict {
	var verdicts []checker.Verdict
	if m.Lack() != "" {
		verdicts = append(verdicts, checker.Undecided)
	}
	for _, cell := range m.Cells {
		if v := cmp.Or(cell.Counts, cell.Verdict); v != "" { // older files do not say how a cell counts
			verdicts = append(verdicts, v)
		}
	}
	if len(verdicts) == 0 {
		return ""
	}
	return checker.MostTelling(verdicts)
}
