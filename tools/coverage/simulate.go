package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"

	"lockcheck/checker"
	"lockcheck/internal/stats"
)

func simulated(out io.Writer, trials int) {
	singleRuns(out, trials)
	pooledRuns(out, trials)
	comparisons(out, trials)
}

// tally counts how often the true share lies within our intervals, and within intervals over single updates.
type tally struct {
	trials, within, below, above int // above: the interval lies above the true share
	overUpdates                  int
	width                        float64
}

// add adds the interval for a share of some updates.
func (t *tally) add(truth, low, high float64, updates stats.Count) {
	t.trials++
	t.width += high - low
	switch {
	case low > truth:
		t.above++
	case high < truth:
		t.below++
	default:
		t.within++
	}
	if low, high := stats.Wilson(updates.K, updates.N); low <= truth && truth <= high {
		t.overUpdates++
	}
}

func (t *tally) addPool(truth float64, p checker.Pool) {
	t.add(truth, p.LostLow, p.LostHigh, stats.Count{K: p.Lost, N: p.Acknowledged})
}

func (t tally) share() float64    { return t.of(t.within) }
func (t tally) of(n int) float64  { return 100 * float64(n) / float64(t.trials) }
func (t tally) meanWidth() string { return fmt.Sprintf("%.3f", t.width/float64(t.trials)) }

func row(out io.Writer, cells ...string) { fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | ")) }

func head(out io.Writer, cells ...string) {
	row(out, cells...)
	fmt.Fprintln(out, strings.Repeat("| --- ", len(cells))+"|")
}

func percent(x float64) string { return fmt.Sprintf("%.1f", x) }

// singleRuns compares the interval over the faults of one run with the interval over its updates.
func singleRuns(out io.Writer, trials int) {
	faults := []int{4, 5, 6, 8, 10, 14, 30, 60}
	cells := []string{"lost at a fault", "share"}
	for _, n := range faults {
		cells = append(cells, fmt.Sprint(n))
	}
	fmt.Fprintf(out, "Coverage in %%, by the number of faults (%d histories a cell); in brackets that of an interval over updates:\n\n", trials)
	head(out, cells...)
	low, within, high := 0, 0, 0
	for _, s := range services() {
		truth := s.truth()
		cells := []string{s.name, percent(100*truth) + " %"}
		for _, n := range faults {
			r := rand.New(rand.NewPCG(uint64(n), 2))
			var t tally
			for range trials {
				windows := s.draw(r, n)
				low, high := stats.ShareOf(windows)
				t.add(truth, low, high, stats.Sum(windows))
			}
			cells = append(cells, fmt.Sprintf("%s (%.0f)", percent(t.share()), t.of(t.overUpdates)))
			switch {
			case t.share() < 93:
				low++
			case t.share() > 97:
				high++
			default:
				within++
			}
		}
		row(out, cells...)
	}
	fmt.Fprintf(out, "\nOf these cells %d are below 93 %%, %d from 93 to 97 %%, %d above.\n", low, within, high)
}

// pooledRuns tests the interval of several runs of five faults each, as PoolOf computes it.
func pooledRuns(out io.Writer, trials int) {
	counts := []int{2, 3, 5, 9, 10, 20, 30}
	cells := []string{"lost at a fault", "runs differ by"}
	for _, n := range counts {
		cells = append(cells, fmt.Sprint(n))
	}
	fmt.Fprintf(out, "\nCoverage in %% of several runs of five faults each, by the number of runs (%d a cell). Where runs differ, what a fault costs is multiplied in each by a factor of its own, the logarithm of which deviates by that much:\n\n", trials/2)
	head(out, cells...)
	chosen := services()
	for _, s := range []service{chosen[0], chosen[2], chosen[7], chosen[13]} {
		for _, differ := range []float64{0, 0.3, 0.6} {
			run := func(r *rand.Rand) checker.Results { return resultsOf(differing(r, s.draw(r, 5), differ)) }
			truth := trueShare(run)
			cells := []string{s.name, fmt.Sprintf("%g", differ)}
			for _, n := range counts {
				r := rand.New(rand.NewPCG(uint64(n), 3))
				var t tally
				for range trials / 2 {
					t.addPool(truth, checker.PoolOf(several(r, n, run)))
				}
				cells = append(cells, percent(t.share()))
			}
			row(out, cells...)
		}
	}
}

// differing scales what each fault of a run costs by one random factor.
func differing(r *rand.Rand, windows []stats.Count, by float64) []stats.Count {
	factor := math.Exp(by * r.NormFloat64())
	for i := range windows {
		w := &windows[i]
		w.K = min(w.N, int64(factor*float64(w.K)+r.Float64()))
	}
	return windows
}

// resultsOf is a run with the given windows. Each window with a loss has a stale write, and a lock that was
// gone at its release.
func resultsOf(windows []stats.Count) checker.Results {
	all, bursts := stats.Sum(windows), int64(0)
	for _, w := range windows {
		bursts += min(w.K, 1)
	}
	low, high := stats.ShareOf(windows)
	return checker.Results{
		Losses: windows,
		Updates: checker.UpdateSummary{
			Acknowledged: all.N, Lost: all.K,
			LossInterval: checker.LossInterval{LostLow: low, LostHigh: high, LostOver: checker.OverFaults, LostUnits: len(windows)},
		},
		Findings:   []checker.Finding{{Property: checker.NoStaleWrite, Total: int(bursts)}},
		Operations: checker.Operations{Acknowledged: all.N, Acquired: all.N, GoneAtRelease: bursts},
	}
}

func several(r *rand.Rand, n int, run func(*rand.Rand) checker.Results) []checker.Results {
	all := make([]checker.Results, n)
	for i := range all {
		all[i] = run(r)
	}
	return all
}

func trueShare(run func(*rand.Rand) checker.Results) float64 {
	var all stats.Count
	for _, x := range several(rand.New(rand.NewPCG(1, 1)), 60_000, run) {
		all.K += x.Updates.Lost
		all.N += x.Updates.Acknowledged
	}
	return all.Share()
}

// comparisons counts how often two sets of runs with five faults each are reported as different.
func comparisons(out io.Writer, trials int) {
	trials = max(trials/4, 1)
	fmt.Fprintf(out, "\nTwo sets of runs of five faults each, compared by lost updates, stale writes and locks gone at release, %d times: how often, in %%, the second is said to be worse in any of them, and how often better, though both are alike; and how often worse where a fault costs two or three times as many updates, at as many faults:\n\n", trials)
	head(out, "lost at a fault", "runs a side", "worse", "better", "worse if it costs 2 ×", "3 ×")
	chosen := services()
	for _, s := range []service{chosen[0], chosen[2], chosen[7], chosen[13]} {
		for _, n := range []int{4, 5, 10, 20} {
			cells := []string{s.name, fmt.Sprint(n)}
			for _, factor := range []float64{1, 2, 3} {
				worse, better := reportedShares(s, n, factor, trials)
				cells = append(cells, percent(worse))
				if factor == 1 {
					cells = append(cells, percent(better))
				}
			}
			row(out, cells...)
		}
	}
}

// reportedShares is how often, in percent, the second set is called worse and better, if a fault costs factor times as
// much there.
func reportedShares(s service, runs int, factor float64, trials int) (worse, better float64) {
	r := rand.New(rand.NewPCG(uint64(runs), 5))
	costly := func(r *rand.Rand) checker.Results {
		windows := s.draw(r, 5)
		for i := range windows {
			windows[i].K = min(windows[i].N, int64(factor*float64(windows[i].K)))
		}
		return resultsOf(windows)
	}
	plain := func(r *rand.Rand) checker.Results { return resultsOf(s.draw(r, 5)) }
	for range trials {
		w, b := worseOrBetter(checker.Differences(several(r, runs, plain), several(r, runs, costly)))
		worse += w
		better += b
	}
	return 100 * worse / float64(trials), 100 * better / float64(trials)
}

// worseOrBetter returns 1 for worse if the second set is reported as worse in anything, and 1 for better likewise.
func worseOrBetter(all []checker.Difference) (worse, better float64) {
	for _, d := range all {
		if d.Worse() {
			worse = 1
		}
		if d.Better() {
			better = 1
		}
	}
	return worse, better
}
