package checker

import (
	"math/rand/v2"
	"testing"
	"time"

	"lockcheck/internal/stats"
)

// burstRuns are samples of runs in which each fault, with probability loses, loses all updates of its window.
// Waits take about wait.
func burstRuns(random *rand.Rand, runs int, loses float64, wait time.Duration) (all []Sample) {
	for range runs {
		s := Sample{Over: OverFaults}
		for range 4 {
			u := stats.Count{N: 24 + random.Int64N(110)}
			s.Faults.N++
			if random.Float64() < loses {
				u.K = u.N
				s.Faults.K++
			}
			s.Losses = append(s.Losses, u)
		}
		s.Updates = stats.Sum(s.Losses)
		d := time.Duration(float64(wait) * (0.8 + 0.4*random.Float64()))
		s.Wait = &d
		all = append(all, s)
	}
	return all
}

// decided returns the changes between two sets of runs, judged without other tests.
func decided(before, now []Sample) []Change {
	all := Changes(before, now)
	var each []*Change
	for i := range all {
		each = append(each, &all[i])
	}
	DecideChanges(each)
	return all
}

func anyWorse(all []Change) bool {
	for _, c := range all {
		if c.Worse() {
			return true
		}
	}
	return false
}

// TestChangesByChance: of sets that are alike, bursts of losses included, at most about one in twenty is
// called worse. A set that is much worse is found.
func TestChangesByChance(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const trials = 40
	for _, c := range []struct {
		name            string
		runs            int
		before, now     float64
		slower          time.Duration
		atLeast, atMost int // number of trials that are called worse
	}{
		{"alike, in bursts", 5, 0.3, 0.3, 1, 0, 2},
		{"alike, nothing lost", 5, 0, 0, 1, 0, 2},
		{"more bursts", 5, 0.05, 0.8, 1, 38, trials},
		{"three times as slow", 5, 0, 0, 3, 38, trials},
		{"faster, and fewer bursts", 5, 0.8, 0.05, 1, 0, 0},
	} {
		worse := 0
		for range trials {
			if anyWorse(decided(burstRuns(random, c.runs, c.before, time.Second), burstRuns(random, c.runs, c.now, c.slower*time.Second))) {
				worse++
			}
		}
		if worse < c.atLeast || worse > c.atMost {
			t.Errorf("%s: %d of %d are worse, want %d to %d", c.name, worse, trials, c.atLeast, c.atMost)
		}
	}
}

// TestChangesTooFew: too few units to show any difference are not compared, and the change says so.
func TestChangesTooFew(t *testing.T) {
	second, third := time.Second, 3*time.Second
	one := func(d *time.Duration, n int) (all []Sample) {
		for range n {
			all = append(all, Sample{Wait: d})
		}
		return all
	}
	for _, c := range []struct {
		name            string
		before, now     int
		compared, worse bool
	}{
		{"one and one", 1, 1, false, false},
		{"three and three", 3, 3, false, false},
		{"twenty and one", 20, 1, true, true},
		{"four and four", 4, 4, true, true},
	} {
		all := decided(one(&second, c.before), one(&third, c.now))
		if len(all) != 1 || all[0].Compared != c.compared || all[0].Worse() != c.worse {
			t.Errorf("%s: %+v", c.name, all)
		}
	}
	slightly := 1100 * time.Millisecond
	if all := decided(one(&second, 9), one(&slightly, 9)); !all[0].Shown || all[0].Worse() {
		t.Errorf("a tenth slower, which another machine may be: %+v", all)
	}
	never := forEver
	if all := decided(one(&second, 9), one(&never, 9)); !all[0].Worse() {
		t.Errorf("never: %+v", all)
	}
	if needed := UnitsNeeded(3, 12); stats.Least(needed, 3) > Chance/12 || stats.Least(needed-1, 3) <= Chance/12 {
		t.Errorf("%d units are needed", needed)
	}
}

// TestLeastFound: the share that leastFound reports is found, and no smaller one is.
func TestLeastFound(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	before, now := burstRuns(random, 5, 0, time.Second), burstRuns(random, 5, 0, time.Second)
	now[0].Losses[0].K, now[0].Updates.K = 1, 1
	all := decided(before, now)
	if all[0].What != LostUpdates || all[0].Shown || all[0].Found <= all[0].Now || all[0].Found >= 1 {
		t.Errorf("%+v", all[0])
	}
	few := decided(before[:1], now[:1])
	if few[0].Found != 0 && !few[0].Compared {
		t.Errorf("of one run: %+v", few[0])
	}
}

// TestFaultsWithIncidents: an incident belongs to the last fault before it.
func TestFaultsWithIncidents(t *testing.T) {
	fault := func(begin int64, counts bool) FaultCoverage {
		return FaultCoverage{Applied: counts, Proven: counts, Exercised: counts, Begin: begin}
	}
	at := func(times ...int64) Results {
		r := Results{Faults: []FaultCoverage{fault(30, true), fault(10, true), fault(20, false)}}
		f := Finding{Verdict: Violation, Total: len(times)}
		for _, from := range times {
			f.Violations = append(f.Violations, Incident{From: from})
		}
		r.Findings = []Finding{f}
		return r
	}
	unlisted := at(15)
	unlisted.Findings[0].Total = 2
	for _, c := range []struct {
		name string
		r    Results
		want stats.Count
	}{
		{"none", at(), stats.Count{K: 0, N: 2}},
		{"before all", at(9), stats.Count{K: 0, N: 2}},
		{"at the begin of one, and after it", at(10, 29), stats.Count{K: 1, N: 2}},
		{"of both", at(25, 31, 99), stats.Count{K: 2, N: 2}},
		{"not all listed", unlisted, stats.Count{}},
		{"without faults", Results{}, stats.Count{}},
	} {
		if got := faultsWithIncidents(c.r); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
