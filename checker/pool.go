package checker

import (
	"math"

	"lockcheck/internal/stats"
)

// Pool adds up what several runs came to: of the same test with other seeds.
type Pool struct {
	Runs         int64             `json:"runs"`
	Verdicts     map[Verdict]int64 `json:"verdicts"`
	Acknowledged int64             `json:"acknowledged"`
	Lost         int64             `json:"lost"`
	// LostLow and LostHigh bound the share of lost updates: 95 % Wilson interval.
	// Losses of one run may hang together, so that it is too narrow rather than too wide.
	LostLow  float64 `json:"lost_low"`
	LostHigh float64 `json:"lost_high"`
	// RunsLosing is in how many runs anything was lost, of RunsJudged in which anything
	// could be: a run that is broken says neither. Runs do not hang together.
	RunsJudged int64   `json:"runs_judged"`
	RunsLosing int64   `json:"runs_losing"`
	LosingLow  float64 `json:"losing_low"`
	LosingHigh float64 `json:"losing_high"`

	Overlaps OverlapSummary `json:"overlaps"`
	Notices  NoticeSummary  `json:"notices"`
	// Stuck is how many locks of holders that were stopped, cut off or ended others asked
	// for in vain.
	Stuck       int64 `json:"stuck"`
	StaleWrites int64 `json:"stale_writes"`
	// Refused is how many accesses the guard refused.
	Refused int64 `json:"refused"`
	// Faults that were proven and met somebody.
	Faults int64 `json:"faults"`
	// Causes of lost updates, see Finding.Causes.
	Causes   map[string]int64 `json:"causes,omitempty"`
	Measures Measures         `json:"measures"`
}

// PoolOf adds up results. A run whose updates could not be judged counts as a run only.
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
		p.Notices.merge(r.Notices)
		p.Stuck += r.Handovers.Stuck
		p.Refused += r.Fence.RefusedReads + r.Fence.RefusedWrites
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
	p.LostLow, p.LostHigh = stats.Wilson(p.Lost, p.Acknowledged)
	p.LosingLow, p.LosingHigh = stats.Wilson(p.RunsLosing, p.RunsJudged)
	return p
}

// merge adds what another run came to.
func (o *OverlapSummary) merge(other OverlapSummary) {
	o.BrokenPromises += other.BrokenPromises
	o.OutlivedLeases += other.OutlivedLeases
	o.Unclassified += other.Unclassified
	o.EarlierHealthy += other.EarlierHealthy
	o.EarlierPaused += other.EarlierPaused
	o.EarlierCutOff += other.EarlierCutOff
	o.BrokenHealthy += other.BrokenHealthy
	o.BrokenPaused += other.BrokenPaused
	o.BrokenCutOff += other.BrokenCutOff
	o.Longest = max(o.Longest, other.Longest)
	o.Sum += other.Sum
}

// merge adds what another run came to.
func (s *NoticeSummary) merge(other NoticeSummary) {
	s.Replaced += other.Replaced
	s.Told += other.Told
	s.AtRelease += other.AtRelease
	s.Never += other.Never
	s.Latest = max(s.Latest, other.Latest)
}

// LossPerFault is how many updates were lost for each fault that counted. Without any it
// is infinite, or NaN if nothing was lost either.
func (p Pool) LossPerFault() float64 { return float64(p.Lost) / float64(p.Faults) }

// SameShare returns the probability of a difference at least as large as that between
// k1 of n1 and k2 of n2 if both had the same share: Fisher's exact test, two-sided (R. A.
// Fisher, 1922), which is right for small numbers too. It is 1 if either n is 0, or less
// than what is counted of it.
func SameShare(k1, n1, k2, n2 int64) float64 {
	if n1 <= 0 || n2 <= 0 || k1 > n1 || k2 > n2 { // nothing that could be compared
		return 1
	}
	k := k1 + k2
	seen := logHypergeometric(k1, n1, k, n1+n2)
	p := 0.0
	for x := max(0, k-n2); x <= min(k, n1); x++ {
		// Rounding must not leave out what is as likely as what was seen.
		if at := logHypergeometric(x, n1, k, n1+n2); at <= seen+1e-7 {
			p += math.Exp(at)
		}
	}
	return min(p, 1)
}

// logHypergeometric is the logarithm of the probability that x of n1 are among the k
// of n that were drawn.
func logHypergeometric(x, n1, k, n int64) float64 {
	return logChoose(n1, x) + logChoose(n-n1, k-x) - logChoose(n, k)
}

func logChoose(n, k int64) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

// Difference is how often something happened in two runs, of how many times that it
// could have.
type Difference struct {
	What string
	// K1 of N1 in the first run, K2 of N2 in the second.
	K1, N1, K2, N2 int64
}

// significant is the probability below which a difference is not put down to chance: 5 %
// for all that two runs are compared by together (C. E. Bonferroni).
const significant = 0.05 / 3

// Differences are those that two runs are compared by. Of lost updates the writes that
// lost them are counted: one write can lose many.
func Differences(a, b Results) []Difference {
	return []Difference{
		{What: "writes that lost updates", K1: a.Updates.LossEvents, N1: a.Updates.Acknowledged, K2: b.Updates.LossEvents, N2: b.Updates.Acknowledged},
		{
			What: "stale writes", K1: int64(a.Finding(NoStaleWrite).Total), N1: a.Operations.Acknowledged,
			K2: int64(b.Finding(NoStaleWrite).Total), N2: b.Operations.Acknowledged,
		},
		{What: "locks gone at release", K1: a.Operations.GoneAtRelease, N1: a.Operations.Acquired, K2: b.Operations.GoneAtRelease, N2: b.Operations.Acquired},
	}
}

// Chance is the probability of such a difference between runs that do not differ.
func (d Difference) Chance() float64 { return SameShare(d.K1, d.N1, d.K2, d.N2) }

// Worse says whether the second run has a higher share, and not by chance.
func (d Difference) Worse() bool { return d.higher() && d.Chance() < significant }

// Better says whether it has a lower one, and not by chance.
func (d Difference) Better() bool { return !d.higher() && d.Chance() < significant }

func (d Difference) higher() bool { return float64(d.K2)*float64(d.N1) > float64(d.K1)*float64(d.N2) }
