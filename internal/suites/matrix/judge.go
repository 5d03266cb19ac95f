package matrix

import (
	"slices"

	"lockcheck/checker"
	"lockcheck/reports"
)

// add counts a run with results in its cell.
func (c *Cell) add(seed uint64, folder string, d reports.Document) Run {
	c.Versions, c.Source, c.Lease = d.Header.Versions, d.Header.Source, d.Header.Lease
	switch d.Results.Finding(checker.FencingOrder).Verdict {
	case checker.Valid:
		c.TokensKept++
	case checker.Violation:
		c.TokensViolated++
	}
	return summarizeRun(seed, folder, d)
}

// summarizeRun summarizes the results of a run. Its folder is relative to the comparison's.
func summarizeRun(seed uint64, folder string, d reports.Document) Run {
	r := Run{Seed: seed, Folder: folder, Verdict: d.Results.Verdict, Sentence: d.Results.Sentence}
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

// judge sets the verdicts of a cell with runs. A threshold replaces the property whose violations it bounds.
// All other properties must hold, and an undecided or broken run decides no threshold.
func (c *Cell) judge() {
	var verdicts []checker.Verdict
	for _, r := range c.Runs {
		violated := unexcused(r, c.Excused)
		if r.Verdict == checker.Violation && len(violated) == 0 {
			verdicts = append(verdicts, r.Rest)
		} else {
			verdicts = append(verdicts, r.Verdict)
		}
		c.addViolated(violated)
	}
	if c.isAttack() && len(verdicts) > 0 {
		verdicts = []checker.Verdict{trialsVerdict(verdicts)}
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

// trialsVerdict is the verdict of the trials of an attack. One trial that breaks the lock is enough. A trial that
// failed, or whose fault hit no holder, does not count as held. If most trials are such, the attack is
// undecided.
func trialsVerdict(all []checker.Verdict) checker.Verdict {
	rest := slices.DeleteFunc(slices.Clone(all), func(v checker.Verdict) bool { return v == checker.Valid })
	held := len(all) - len(rest)
	if slices.Contains(rest, checker.Violation) || 2*held < len(all) {
		return checker.MostTelling(rest)
	}
	return checker.Valid
}

// confirmCell combines the runs of a cell with their repetitions, round by round. A violated property stays
// violated, however seldom, because the violation happened. The machine may have caused a missed bound or an
// undecided or broken run. Such verdicts stand only if they recur in most of the rounds, or if a round is
// missing or lacks runs.
func confirmCell(c *Cell, rounds []Cell, asked int) {
	c.Rounds = []checker.Verdict{c.Verdict}
	for i, r := range rounds {
		c.Rounds = append(c.Rounds, r.Verdict)
		c.TokensKept, c.TokensViolated = c.TokensKept+r.TokensKept, c.TokensViolated+r.TokensViolated
		for _, run := range r.Runs {
			run.Round = i + 1
			c.Runs = append(c.Runs, run)
		}
		c.addViolated(r.Violated)
	}
	r := confirmation{rounds, asked, c.Missing == 0}
	c.OfRuns = r.verdict(c.OfRuns, true, func(r Cell) checker.Verdict { return r.OfRuns })
	verdicts := []checker.Verdict{c.OfRuns}
	for i := range c.Thresholds {
		t := &c.Thresholds[i]
		f, _ := figureByName(t.Name)
		verdict := r.verdict(t.Verdict, f.countsEvents(), func(r Cell) checker.Verdict { return thresholdNamed(r, t.Name).Verdict })
		for _, r := range rounds {
			if got := thresholdNamed(r, t.Name); t.Verdict != verdict && got.Verdict == verdict {
				*t = got
			}
		}
		verdicts = append(verdicts, verdict)
	}
	c.Verdict = checker.MostTelling(verdicts)
}

// confirmation has the rounds in which the runs of a cell were repeated.
type confirmation struct {
	rounds   []Cell
	asked    int  // how many rounds were requested
	complete bool // no run of the suite itself is missing
}

// verdict combines a first verdict with the verdicts of the rounds. A certain violation stands.
func (r confirmation) verdict(first checker.Verdict, certain bool, of func(Cell) checker.Verdict) checker.Verdict {
	recurred, whole := 0, 0
	for _, round := range r.rounds {
		got := of(round)
		if got == checker.Violation && certain {
			return checker.Violation
		}
		if round.Missing > 0 { // the round may not have judged every threshold
			continue
		}
		whole++
		if got != checker.Valid {
			recurred++
		}
	}
	if first == checker.Violation && certain || !r.complete || whole < r.asked || 2*recurred > whole {
		return first
	}
	return checker.Valid
}

// addViolated adds the properties that the cell does not list yet.
func (c *Cell) addViolated(all []checker.Property) {
	for _, p := range all {
		if !slices.Contains(c.Violated, p) {
			c.Violated = append(c.Violated, p)
		}
	}
}

// thresholdNamed is a round's result for a threshold; the zero value if too many runs are missing to judge it.
func thresholdNamed(c Cell, name string) ThresholdResult {
	i := slices.IndexFunc(c.Thresholds, func(t ThresholdResult) bool { return t.Name == name })
	if i < 0 {
		return ThresholdResult{}
	}
	return c.Thresholds[i]
}

// unexcused lists the properties that a run violates and no threshold replaces.
func unexcused(r Run, excused []checker.Property) []checker.Property {
	return slices.DeleteFunc(slices.Clone(r.Violated), func(p checker.Property) bool {
		return slices.Contains(excused, p) && !slices.Contains(r.Uncounted, p)
	})
}

// VerdictOf combines the verdicts of all cells. A whole comparison that lacks runs is undecided, unless other
// cells are worse. A part without any verdict returns "".
func VerdictOf(m Comparison) checker.Verdict {
	var verdicts []checker.Verdict
	if m.Lack() != "" {
		verdicts = append(verdicts, checker.Undecided)
	}
	for _, cell := range m.Cells {
		if v := cell.countedVerdict(); v != "" {
			verdicts = append(verdicts, v)
		}
	}
	if len(verdicts) == 0 {
		return ""
	}
	return checker.MostTelling(verdicts)
}
