package checker

import (
	"cmp"
	"slices"
	"sort"

	"lockcheck/history"
	"lockcheck/internal/stats"
)

// What the interval of a share of lost updates is over.
const (
	OverFaults  = "faults"  // from the beginning of each to that of the next
	OverPeriods = "periods" // of a run without faults
	OverWindows = "windows" // both of them, of several runs
	OverRuns    = "runs"
)

// LossInterval is the 95 % interval of the share of lost updates. Losses come in bursts, so
// it is over units that are independent of each other: see stats.ShareOf.
type LossInterval struct {
	LostLow  float64 `json:"lost_low"`
	LostHigh float64 `json:"lost_high"`
	// LostOver says what the units are, one of the Over constants, and LostUnits how many of
	// them had updates. Both are missing where nothing could be lost, and in results of old,
	// whose interval took each update for independent.
	LostOver  string `json:"lost_over,omitempty"`
	LostUnits int    `json:"lost_units,omitempty"`
}

// newLossInterval is the interval of the updates that were lost in some units, of those
// that were acknowledged in them.
func newLossInterval(over string, units []stats.Count) LossInterval {
	low, high := stats.ShareOf(units)
	i := LossInterval{LostLow: low, LostHigh: high, LostUnits: len(stats.Informative(units))}
	if i.LostUnits > 0 {
		i.LostOver = over
	}
	return i
}

// IntervalKnown says whether the interval leaves anything out, at least 1 % of all shares. Where any
// updates were lost that takes four units, and more of them if they differ much.
func (i LossInterval) IntervalKnown() bool { return i.LostHigh-i.LostLow < 0.99 }

// periods is how many parts of equal length a run without faults is divided into: enough
// to see how much they vary, and long enough that few bursts lie in two of them (B. W.
// Schmeiser, 1982, has between 10 and 30).
const periods = 20

// lossWindows divide a run into parts whose losses do not hang together. What a fault does is
// done by the time that the next one begins, or ends: so each goes from the beginning of one
// to that of the next, and faults that were in force at once are one. The time before the
// first belongs to its window, and the time after the last to that one's: they are updates
// like others, but no draw of their own of what a fault does. Without faults they are
// periods of equal length.
type lossWindows struct {
	over   string
	starts []int64 // of all but the first, in order
	counts []stats.Count
	at     int // the last one that was asked for
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

// faultGroups returns when faults began while no other was certainly in force, in order. A
// worker that was killed stays dead: that is no fault that lasts.
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

// of is the window of a time, ns.
func (w *lossWindows) of(time int64) *stats.Count {
	after := func(i int) bool { return i == len(w.starts) || w.starts[i] > time }
	if !after(w.at) || w.at > 0 && after(w.at-1) { // most are asked for in the order of time
		w.at = sort.Search(len(w.starts), after)
	}
	return &w.counts[w.at]
}

// interval is that of all that was counted, and what it was counted from.
func (w *lossWindows) interval() (LossInterval, []stats.Count) {
	counts := stats.Informative(w.counts)
	return newLossInterval(w.over, counts), slices.Clip(counts)
}
