package checker

import (
	"math"
	"testing"
	"time"

	"lockcheck/internal/stats"
)

func TestPoolOf(t *testing.T) {
	run := func(v Verdict, lost, acknowledged, faults int64) Results {
		r := Results{Verdict: v, Updates: UpdateSummary{Lost: lost, Acknowledged: acknowledged}, Overlaps: OverlapSummary{UsesAfterExpiry: lost}}
		if lost > 0 {
			r.Findings = []Finding{{Property: NoLostUpdate, Causes: map[string]int64{CausePaused: lost}}, {Property: NoStaleWrite, Total: 1}}
		}
		r.Measures.Acquire.Add(time.Duration(acknowledged))
		for range faults {
			r.Faults = append(r.Faults, FaultCoverage{Applied: true, Proven: true, Exercised: true}, FaultCoverage{Applied: true, Proven: true})
		}
		return r
	}
	p := PoolOf([]Results{run(Violation, 2, 10, 3), run(Valid, 0, 20, 1), run(Violation, 1, 10, 2)})
	if p.Runs != 3 || p.Verdicts[Violation] != 2 || p.Lost != 3 || p.Acknowledged != 40 || p.RunsLosing != 2 ||
		p.Faults != 6 || p.Overlaps.UsesAfterExpiry != 3 || p.StaleWrites != 2 || p.Causes[CausePaused] != 3 || p.LossPerFault() != 0.5 {
		t.Errorf("%+v", p)
	}
	if n, most := p.Measures.Acquire.N, p.Measures.Acquire.Max; n != 3 || most != 20 {
		t.Errorf("%d acquires, the longest of %s", n, most)
	}
	broken := PoolOf([]Results{run(Violation, 2, 10, 1), run(Broken, 0, 0, 0), run(Undecided, 0, 0, 0)})
	if low, high := stats.Wilson(1, 1); broken.RunsJudged != 1 || broken.LosingLow != low || broken.LosingHigh != high {
		t.Errorf("one run of three could be judged: %+v", broken)
	}
	if none := PoolOf(nil); none.LostLow != 0 || none.LostHigh != 1 || !math.IsNaN(none.LossPerFault()) {
		t.Errorf("of nothing: %+v", none)
	}
}
