package checker

import (
	"cmp"
	"slices"
	"sort"

	"lockcheck/history"
	"lockcheck/internal/stats"
)

// Units that the interval of a share of lost updates is computed over.
const (
	OverFaults  = "faults"  // from the beginning of each fault to that of the next
	OverPeriods = "periods" // of a run without faults
	OverWindows = "windows" // faults and periods, of several runs
	OverRuns    = "runs"
)

// LossInterval is the 95 % confidence interval of the share of lost updates. Losses come in bursts, so it is
// computed over units that are independent of each other: see stats.ShareOf.
type LossInterval struct {
	LostLow  float64 `json:"lost_low"`
	LostHigh float64 `json:"lost_high"`
	// LostOver names the units, one of the Over constants, and LostUnits is the number of units that had
	// updates. Both are missing if nothing could be lost, and in results of older versions, whose interval
	// treated each update as independent.
	LostOver  string `json:"lost_over,omitempty"`
	LostUnits int    `json:"lost_units,omitempty"`
}

// newLossInterval computes the interval from the lost and the acknowledged updates of each unit.
func newLossInterval(over string, units []stats.Count) LossInterval {
	low, high := stats.ShareOf(units)
	i := LossInterval{LostLow: low, LostHigh: high, LostUnits: len(stats.Informative(units))}
	if i.LostUnits > 0 {
		i.LostOver = over
	}
	return i
}

// IntervalKnown says whether the interval excludes at least 1 % of all shares. If any updates were lost, that
// takes four units, and more if the units differ much.
func (i LossInterval) IntervalKnown() bool { return i.LostHigh-i.LostLow < 0.99 }

// periods is the number of equal parts that a run without faults is divided into. That is enough to see how
// much they vary, and each part is long enough that few bursts lie in two of them (B. W. Schmeiser, 1982, has
// between 10 and 30).
const periods = 20

// lossWindows divide a run into parts whose losses are independent. The effect of a fault ends when the next
// one begins, or earlier. So each window goes from the beginning of one fault to that of the next, and faults
// that were in force at once count as one. The time before the first fault belongs to the first window, and
// the time after the last fault to the last: updates there count, but are no separate draw of what a fault
// does. Without faults the windows are periods of equal length.
type lossWindows struct {
	over   string
	starts []int64 // of all windows except the first, in order
	counts []stats.Count
	at     int // the window that was last asked for
}

func (r *run) lossWindows() lossWindows {
	w := lossWindows{over: OverFaults, starts: r.faultGroups()}
	if len(w.starts) == 0 {
		w.over = OverPeriods
		active := r.activeTime()
		for i := range int64(periods) {
			w.starts = append(w.starts, active.from+i*active.length()/periods)
		}
	}
	w.starts = w.starts[1:]
	w.counts = make([]stats.Count, len(w.starts)+1)
	return w
}

// faultGroups returns, in order, when faults began while no other fault was certainly in force. A killed
// worker stays dead, so its kill counts as a fault without duration.
func (r *run) faultGroups() []int64 {
	var spans []span
	for i := range r.faults {
		switch f := &r.faults[i]; {
		case !f.Applied:
		case f.does(history.Ends) && f.onlyWorkers(r.workers):
			spans = append(spans, span{f.Begin, f.Begin})
		default:
			spans = append(spans, span{f.Begin, max(f.Begin, cmp.Or(f.certainTo, f.End))})
		}
	}
	var starts []int64
	for _, s := range united(spans) {
		starts = append(starts, s.from)
	}
	return starts
}

// of returns the window of a time in ns.
func (w *lossWindows) of(time int64) *stats.Count {
	after := func(i int) bool { return i == len(w.starts) || w.starts[i] > time }
	if !after(w.at) || w.at > 0 && after(w.at-1) { // most times are asked for in order
		w.at = sort.Search(len(w.starts), after)
	}
	return &w.counts[w.at]
}

// interval returns the interval of all counted updates, and the units that it is computed from.
func (w *lossWindows) interval() (LossInterval, []stats.Count) {
	counts := stats.Informative(w.counts)
	return newLossInterval(w.over, counts), slices.Clip(counts)
}
