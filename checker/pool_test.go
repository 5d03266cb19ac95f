package checker

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"lockcheck/internal/stats"
)

func TestPoolOf(t *testing.T) {
	run := func(v Verdict, lost, acknowledged, faults int64) Results {
		r := Results{Verdict: v, Updates: UpdateSummary{Lost: lost, Acknowledged: acknowledged}, Overlaps: OverlapSummary{OutlivedLeases: lost}}
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
		p.Faults != 6 || p.Overlaps.OutlivedLeases != 3 || p.StaleWrites != 2 || p.Causes[CausePaused] != 3 || p.LossPerFault() != 0.5 {
		t.Errorf("%+v", p)
	}
	if n, most := p.Measures.Acquire.N, p.Measures.Acquire.Max; n != 3 || most != 20 {
		t.Errorf("%d acquires, the longest of %s", n, most)
	}
	if low, high := stats.Wilson(3, 40); p.LostLow != low || p.LostHigh != high {
		t.Errorf("interval %g to %g", p.LostLow, p.LostHigh)
	}
	broken := PoolOf([]Results{run(Violation, 2, 10, 1), run(Broken, 0, 0, 0), run(Undecided, 0, 0, 0)})
	if low, high := stats.Wilson(1, 1); broken.RunsJudged != 1 || broken.LosingLow != low || broken.LosingHigh != high {
		t.Errorf("one run of three could be judged: %+v", broken)
	}
	if none := PoolOf(nil); none.LostLow != 0 || none.LostHigh != 1 || !math.IsNaN(none.LossPerFault()) {
		t.Errorf("of nothing: %+v", none)
	}
}

// TestSameShare has figures that the test is known by, and what must be so.
func TestSameShare(t *testing.T) {
	for _, c := range []struct {
		k1, n1, k2, n2 int64
		want           float64
	}{
		{3, 4, 1, 4, 0.48571}, // the lady who tastes tea, two-sided
		{1, 10, 11, 14, 0.0027595},
		{0, 10, 0, 10, 1},
		{10, 10, 0, 10, 1.0825e-5},
		{0, 0, 5, 10, 1},
		{5, 10, 50, 100, 1},
	} {
		if got := SameShare(c.k1, c.n1, c.k2, c.n2); math.Abs(got-c.want) > c.want*1e-3 {
			t.Errorf("%d/%d and %d/%d: %g, want %g", c.k1, c.n1, c.k2, c.n2, got, c.want)
		}
	}
	random := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		n1, n2 := 1+random.Int64N(40), 1+random.Int64N(40)
		k1, k2 := random.Int64N(n1+1), random.Int64N(n2+1)
		p := SameShare(k1, n1, k2, n2)
		if p <= 0 || p > 1 || math.Abs(p-SameShare(k2, n2, k1, n1)) > 1e-9 || math.Abs(p-SameShare(n1-k1, n1, n2-k2, n2)) > 1e-9 {
			t.Fatalf("%d/%d and %d/%d: %g", k1, n1, k2, n2, p)
		}
	}
	if p := SameShare(5, 100_000, 40, 100_000); p > 1e-6 {
		t.Errorf("5 and 40 of 100000: %g", p)
	}
}

// TestSameShareHolds: of samples with the same share no more than one in twenty is
// called different at 5 %.
func TestSameShareHolds(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 1))
	draw := func(n int64, share float64) (k int64) {
		for range n {
			if random.Float64() < share {
				k++
			}
		}
		return k
	}
	const trials = 2000
	same, different := 0, 0
	for range trials {
		if SameShare(draw(60, 0.2), 60, draw(60, 0.2), 60) < 0.05 {
			same++
		}
		if SameShare(draw(60, 0.2), 60, draw(60, 0.6), 60) < 0.05 {
			different++
		}
	}
	if same > trials/20+30 || different < trials*9/10 {
		t.Errorf("%d of %d called different though the same, %d of %d though not", same, trials, different, trials)
	}
}
