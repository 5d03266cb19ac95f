package guide

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/internal/stats"
	"lockcheck/internal/suites/matrix"
)

// attackPrefix begins the experiment name of a trial. The name of the attack follows.
const attackPrefix = "attack/"

// isTrial says whether the entry sums up trials of a comparison.
func (r Run) isTrial() bool { return strings.HasPrefix(r.Experiment, attackPrefix) }

// aimed says whether the faults were aimed at a moment. Those of the attack "random" were not.
func (r Run) aimed() bool { return r.Experiment != "" && r.Experiment != attackPrefix+"random" }

// sumTrials sums up the trials of one cell of a comparison, of which there may be many, in one entry for each
// way in which they ended. The IDs begin with that of the cell.
func sumTrials(cell string, trials []Run) (sums Evidence) {
	slices.SortFunc(trials, func(a, b Run) int { return cmp.Or(cmp.Compare(a.When, b.When), cmp.Compare(a.ID, b.ID)) })
	alike := make(map[string][]Run)
	for _, t := range trials {
		alike[t.end()] = append(alike[t.end()], t)
	}
	for end, these := range alike {
		sum := sumOf(these)
		sum.ID = cell + "/" + end
		sums = append(sums, sum)
	}
	return sums
}

// end says in words how a trial ended, as far as it matters whether two trials ended alike.
func (r Run) end() string {
	end := string(r.Verdict)
	if r.Breaks() {
		end = string(r.Class())
	}
	if r.DoubleGrants > 0 {
		end += ", granted twice"
	}
	if r.UsesAfterExpiry > 0 {
		end += ", used after expiry"
	}
	return end
}

// cellID is the ID of a sum without the way in which its trials ended; "" for other entries.
func (r Run) cellID() string {
	if !r.isTrial() || r.Of == 0 {
		return ""
	}
	return r.ID[:strings.LastIndex(r.ID, "/")]
}

// latestSums keeps each cell's sums in one list only: in that with more trials of the cell, or else in the newer one.
func latestSums(known, newer Evidence) (Evidence, Evidence) {
	count := func(all Evidence) map[string]int64 {
		trials := make(map[string]int64)
		for _, r := range all {
			trials[r.cellID()] += r.Of
		}
		return trials
	}
	before, after := count(known), count(newer)
	replaced := func(r Run) bool { return after[r.cellID()] >= before[r.cellID()] }
	outdated := func(r Run) bool { return r.cellID() != "" && replaced(r) }
	fewer := func(r Run) bool { return r.cellID() != "" && !replaced(r) }
	return slices.DeleteFunc(slices.Clone(known), outdated), slices.DeleteFunc(slices.Clone(newer), fewer)
}

// sumOf sums up trials that ended alike.
func sumOf(alike []Run) Run {
	sum := alike[0]
	sum.Of, sum.Met = int64(len(alike)), int64(len(alike))
	sum.Violated, sum.Causes, sum.Faults, sum.Updates, sum.Failover, sum.Acquire = nil, nil, nil, nil, nil, nil
	sum.DoubleGrants, sum.UsesAfterExpiry = 0, 0
	for _, t := range alike {
		for _, p := range t.Violated {
			if !slices.Contains(sum.Violated, p) {
				sum.Violated = append(sum.Violated, p)
			}
		}
		for cause, n := range t.Causes {
			if sum.Causes == nil {
				sum.Causes = make(map[string]int64)
			}
			sum.Causes[cause] += n
		}
		sum.DoubleGrants += t.DoubleGrants
		sum.UsesAfterExpiry += t.UsesAfterExpiry
		sum.Faults = addFaults(sum.Faults, t.Faults)
		sum.Updates = sum.Updates.plus(t.Updates)
		sum.Failover = sum.Failover.plus(t.Failover)
	}
	return sum
}

func addFaults(sum, more []Fault) []Fault {
	for _, f := range more {
		i := slices.IndexFunc(sum, func(s Fault) bool { return s.Name == f.Name })
		if i < 0 {
			sum = append(sum, f)
			continue
		}
		sum[i].Asked += f.Asked
		sum[i].Met += f.Met
	}
	return sum
}

// plus adds the updates of another trial as one unit. Trials are independent of each other, and their own
// units would be most of the evidence.
func (u *Updates) plus(more *Updates) *Updates {
	if more == nil {
		return u
	}
	sum := Updates{Over: checker.OverRuns}
	if u != nil {
		sum = *u
	}
	sum.Acknowledged += more.Acknowledged
	sum.Lost += more.Lost
	sum.Units = append(sum.Units, stats.Count{K: more.Lost, N: more.Acknowledged})
	return &sum
}

func (f *Failover) plus(more *Failover) *Failover {
	switch {
	case more == nil:
		return f
	case f == nil:
		return more
	}
	return &Failover{Holders: f.Holders + more.Holders, Stuck: f.Stuck + more.Stuck, Longest: max(f.Longest, more.Longest)}
}

// trialsOf identifies the trials that are summed up: those of a cell of a comparison, by when that began, under the
// same faults, on servers of the same version.
type trialsOf struct{ began, cell, faults, version string }

func (k trialsOf) id() string {
	return strings.Join([]string{k.began, k.cell, k.faults, k.version}, ", ")
}

// addTrial adds a trial. The name of its run ends with its seed.
func (c *collector) addTrial(comparison *matrix.Folder, run string, r Run) {
	cell, _, _ := strings.Cut(run, ", seed ")
	var faults []string
	for _, f := range r.Faults {
		faults = append(faults, f.Name)
	}
	key := trialsOf{comparison.Began().UTC().Format(time.RFC3339Nano), cell, strings.Join(faults, ","), r.Version()}
	c.trials[key] = append(c.trials[key], r)
}
