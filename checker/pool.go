package checker

import "lockcheck/internal/stats"

// Pool adds up the results of several runs of the same test with different seeds.
type Pool struct {
	Runs         int64             `json:"runs"`
	Verdicts     map[Verdict]int64 `json:"verdicts"`
	Acknowledged int64             `json:"acknowledged"`
	Lost         int64             `json:"lost"`
	LossInterval
	// RunsLosing is the number of runs that lost anything, of RunsJudged runs that could. A broken run counts
	// in neither. LosingLow and LosingHigh bound the share of losing runs: 95 % Wilson interval, because runs
	// are independent.
	RunsJudged int64   `json:"runs_judged"`
	RunsLosing int64   `json:"runs_losing"`
	LosingLow  float64 `json:"losing_low"`
	LosingHigh float64 `json:"losing_high"`

	Overlaps          OverlapSummary          `json:"overlaps"`
	LossNotifications LossNotificationSummary `json:"loss_notifications"`
	// Stuck counts the locks of stopped, cut off or killed holders that others asked for in vain.
	Stuck       int64 `json:"stuck"`
	StaleWrites int64 `json:"stale_writes"`
	// Repeated is the number of jobs that were done again.
	Repeated int64 `json:"repeated,omitempty"`
	// Refused is the number of accesses that the guard refused.
	Refused int64 `json:"refused"`
	// Faults is the number of faults that counted: proven and exercised.
	Faults int64 `json:"faults"`
	// Causes of lost updates, see Finding.Causes.
	Causes   map[string]int64 `json:"causes,omitempty"`
	Measures Measures         `json:"measures"`
}

// PoolOf adds up results. A run whose updates could not be judged counts only as a run.
func PoolOf(all []Results) Pool {
	p := Pool{Verdicts: make(map[Verdict]int64), Causes: make(map[string]int64)}
	for _, r := range all {
		p.Runs++
		p.Verdicts[r.Verdict]++
		p.Acknowledged += r.Updates.Acknowledged
		p.Lost += r.Updates.Lost
		if r.Updates.Acknowledged > 0 {
			p.RunsJudged++
		}
		if r.Updates.Lost > 0 {
			p.RunsLosing++
		}
		p.Overlaps.merge(r.Overlaps)
		p.LossNotifications.merge(r.LossNotifications)
		p.Stuck += r.Failovers.Stuck
		p.Refused += r.Fence.RefusedReads + r.Fence.RefusedWrites
		p.Repeated += r.Updates.Repeated
		p.StaleWrites += int64(r.Finding(NoStaleWrite).Total)
		p.Measures.Merge(r.Measures)
		for class, n := range r.Finding(NoLostUpdate).Causes {
			p.Causes[class] += n
		}
		for _, f := range r.Faults {
			if f.Counts() {
				p.Faults++
			}
		}
	}
	p.LossInterval = pooledLosses(all)
	p.LosingLow, p.LosingHigh = stats.Wilson(p.RunsLosing, p.RunsJudged)
	return p
}

// enoughRuns is the number of runs from which runs are units of their own. With fewer runs the interval over
// them is more than a sixth wider than their spread alone justifies. (Student's distribution with nine
// degrees of freedom has its 97.5th percentile at 2.26, the normal one at 1.96.)
const enoughRuns = 10

// runsDiffer is how much larger the variance over runs must be than that over their windows to say that runs
// differ by more than their faults explain. Between five runs that do not differ, it is larger in one case of
// ten.
const runsDiffer = 2

// pooledLosses is the interval over runs, if there are enough of them or if they differ. Otherwise it is the
// interval over the windows of all runs. That includes the case that nothing was lost: then whether runs
// differ cannot be told, and each window is already assumed to lose all or nothing.
func pooledLosses(all []Results) LossInterval { return newLossInterval(lossUnits(all)) }

// lossUnits returns the units of that interval.
func lossUnits(all []Results) (over string, units []stats.Count) {
	var runs, windows []stats.Count
	for _, r := range all {
		u := r.Updates
		if u.Acknowledged == 0 {
			continue
		}
		runs = append(runs, stats.Count{K: u.Lost, N: u.Acknowledged})
		windows = append(windows, r.Losses...)
		switch {
		case len(r.Losses) == 0: // results of older versions
			u.LostOver = OverRuns
		case over != "" && over != u.LostOver:
			u.LostOver = OverWindows
		}
		if over != OverRuns {
			over = u.LostOver
		}
	}
	differ := len(runs) >= enoughRuns || stats.Variance(runs) > runsDiffer*stats.Variance(windows)
	if over == OverRuns || stats.Sum(runs).K > 0 && differ {
		return OverRuns, runs
	}
	return over, windows
}

func (o *OverlapSummary) merge(other OverlapSummary) {
	o.DoubleGrants += other.DoubleGrants
	o.UsesAfterExpiry += other.UsesAfterExpiry
	o.Unclassified += other.Unclassified
	o.EarlierHealthy += other.EarlierHealthy
	o.EarlierPaused += other.EarlierPaused
	o.EarlierCutOff += other.EarlierCutOff
	o.DoubleGrantsHealthy += other.DoubleGrantsHealthy
	o.DoubleGrantsPaused += other.DoubleGrantsPaused
	o.DoubleGrantsCutOff += other.DoubleGrantsCutOff
	o.Longest = max(o.Longest, other.Longest)
	o.Sum += other.Sum
}

func (s *LossNotificationSummary) merge(other LossNotificationSummary) {
	s.Replaced += other.Replaced
	s.Notified += other.Notified
	s.AtRelease += other.AtRelease
	s.Never += other.Never
	s.Latest = max(s.Latest, other.Latest)
}

// LossPerFault is the number of lost updates per fault that counted. Without such a fault it is infinite, or
// NaN if nothing was lost either.
func (p Pool) LossPerFault() float64 { return float64(p.Lost) / float64(p.Faults) }
