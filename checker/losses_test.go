package checker

import (
	"slices"
	"testing"

	"lockcheck/history"
	"lockcheck/internal/stats"
)

// TestWindows checks which updates lie between which faults, and which of them were lost. There is one update
// every 100 ms, starting at 50 ms.
func TestWindows(t *testing.T) {
	updating := func(n int64, base func(i int64) int64) *script {
		s := newScript().acquire("w1", "a", 10, 11)
		for i := range n {
			s.write("a", 50+100*float64(i), i+1, base(i), i+1)
		}
		return s
	}
	ten := func() *script { return updating(10, func(i int64) int64 { return i }) }
	lossOf45 := "[1,2,3,6,7,8,9,10]"
	kill := history.Fault{ID: "k", Kind: "kill", Targets: []string{"w2"}}
	for _, c := range []struct {
		name, final string
		s           *script
		over        string
		want        []stats.Count
	}{
		{"one fault: the time before it is its own", lossOf45, ten().pause("f1", 400, 500, "w1"), OverFaults, []stats.Count{{K: 2, N: 10}}},
		{"two faults", lossOf45, ten().pause("f1", 200, 300, "w1").pause("f2", 400, 500, "w1"), OverFaults, []stats.Count{{K: 1, N: 4}, {K: 1, N: 6}}},
		{"none lost", "[1,2,3,4,5,6,7,8,9,10]", ten().pause("f1", 200, 300, "w1").pause("f2", 400, 500, "w1"), OverFaults, []stats.Count{{N: 4}, {N: 6}}},
		{"faults that overlap are one", lossOf45, ten().pause("f1", 200, 450, "w1").pause("f2", 400, 500, "w2").pause("f3", 700, 800, "w1"), OverFaults, []stats.Count{{K: 2, N: 7}, {N: 3}}},
		{"a fault that was over before all updates has none", lossOf45, ten().pause("f1", 20, 22, "w1").pause("f2", 30, 32, "w1"), OverFaults, []stats.Count{{K: 2, N: 10}}},
		{"the dead stay dead", lossOf45, ten().fault(kill, 200, 210).pause("f2", 400, 500, "w1"), OverFaults, []stats.Count{{K: 1, N: 4}, {K: 1, N: 6}}},
		{"a fault that never was", lossOf45, ten().stage(200, history.Fault{ID: "f1", Kind: "pause", Stage: history.Skipped}), OverPeriods, []stats.Count{{N: 1}, {N: 1}, {N: 1}, {K: 1, N: 1}, {K: 1, N: 1}, {N: 1}, {N: 1}, {N: 1}, {N: 1}, {N: 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.release("a", 1000, 1001).phase(1001, history.PhaseFinal).final("k0", c.final).end().check(t)
			if r.Updates.LostOver != c.over || !slices.Equal(r.Losses, c.want) || r.Updates.LostUnits != len(c.want) {
				t.Errorf("%v over %d %s, want %v over %s", r.Losses, r.Updates.LostUnits, r.Updates.LostOver, c.want, c.over)
			}
			if all := stats.Sum(r.Losses); all.K != r.Updates.Lost || all.N != r.Updates.Acknowledged {
				t.Errorf("%v of %+v", all, r.Updates)
			}
		})
	}
}

// TestWindowsOfCounter: increments that were lost without an explanation count in some window, too.
func TestWindowsOfCounter(t *testing.T) {
	s := newScript().acquire("w1", "a", 10, 11).with(func(h *history.Header) { h.Workload = "counter" })
	for i := range int64(10) {
		base := i
		if i == 3 || i == 7 { // these overwrite the previous write
			base--
		}
		s.write("a", 50+100*float64(i), i+1, base, i+1)
	}
	s.pause("f1", 200, 300, "w1").pause("f2", 600, 700, "w1")
	for final, lost := range map[string]int64{"10": 0, "9": 1, "4": 6, "0": 10} {
		clone := *s
		clone.events = slices.Clone(s.events)
		r := clone.release("a", 1000, 1001).final("k0", final).end().check(t)
		all := stats.Sum(r.Losses)
		if all.K != lost || all.K != r.Updates.Lost || all.N != 10 || len(r.Losses) != 2 {
			t.Errorf("%s: %v of %+v", final, r.Losses, r.Updates)
		}
		for _, w := range r.Losses {
			if w.K > w.N {
				t.Errorf("%s: %v", final, r.Losses)
			}
		}
	}
}

// TestPooledLosses checks the units of the interval over several runs.
func TestPooledLosses(t *testing.T) {
	run := func(over string, losses ...stats.Count) Results {
		all := stats.Sum(losses)
		r := Results{Updates: UpdateSummary{Acknowledged: all.N, Lost: all.K, LossInterval: LossInterval{LostOver: over}}, Losses: losses}
		if over == "" { // results of older versions
			r.Losses = nil
		}
		return r
	}
	some, none := stats.Count{K: 3, N: 40}, stats.Count{N: 60}
	faults, calm, old := run(OverFaults, some, none, some), run(OverPeriods, none, none), run("", some, none)
	bad := run(OverFaults, stats.Count{K: 39, N: 40}, stats.Count{K: 38, N: 40}, stats.Count{K: 39, N: 40})
	clean := run(OverFaults, none, none, none)
	for _, c := range []struct {
		name  string
		runs  []Results
		over  string
		units int
	}{
		{"none", nil, "", 0},
		{"one", []Results{faults}, OverFaults, 3},
		{"one without updates", []Results{faults, {}}, OverFaults, 3},
		{"few", slices.Repeat([]Results{faults}, 9), OverFaults, 27},
		{"enough", slices.Repeat([]Results{faults}, 10), OverRuns, 10},
		{"enough, but nothing lost", slices.Repeat([]Results{clean}, 10), OverFaults, 30},
		{"that differ", []Results{clean, faults, bad, clean, faults}, OverRuns, 5},
		{"of both kinds", []Results{faults, calm, faults}, OverWindows, 8},
		{"of old", []Results{old, old}, OverRuns, 2},
		{"one of old", []Results{faults, old, calm}, OverRuns, 3},
	} {
		p := PoolOf(c.runs)
		if p.LostOver != c.over || p.LostUnits != c.units {
			t.Errorf("%s: over %d %s, want %d %s", c.name, p.LostUnits, p.LostOver, c.units, c.over)
		}
	}
}

// TestDifferences: single runs are not compared, sets of runs are, and all figures share one significance
// level.
func TestDifferences(t *testing.T) {
	set := func(n int, lost, gone int64) []Results {
		var all []Results
		for i := range int64(n) {
			all = append(all, Results{
				Updates:    UpdateSummary{Acknowledged: 100 + i, Lost: lost * (1 + i%2)},
				Operations: Operations{Acquired: 100 + i, GoneAtRelease: gone * (1 + i%2)},
			})
		}
		return all
	}
	for _, c := range []struct {
		name                    string
		first, second           []Results
		compared, worse, better bool
		needed                  int
	}{
		{"a single one against another", set(1, 1, 0), set(1, 40, 0), false, false, false, 4},
		{"three of each", set(3, 1, 0), set(3, 40, 0), false, false, false, 4},
		{"four of each", set(4, 1, 0), set(4, 40, 0), true, true, false, 4},
		{"four of each, the other way round", set(4, 40, 0), set(4, 1, 0), true, false, true, 4},
		{"four of each with two figures", set(4, 1, 1), set(4, 40, 1), false, false, false, 5},
		{"five of each with two figures", set(5, 1, 1), set(5, 40, 1), true, true, false, 5},
		{"the same", set(5, 20, 1), set(5, 20, 1), true, false, false, 5},
		{"three and six", set(3, 1, 0), set(6, 40, 0), true, true, false, 4},
		{"nothing lost", set(9, 0, 0), set(9, 0, 0), false, false, false, 0},
	} {
		all := Differences(c.first, c.second)
		d := all[0]
		if d.Compared != c.compared || d.Worse() != c.worse || d.Better() != c.better || RunsNeeded(all) != c.needed {
			t.Errorf("%s: %+v, %d runs needed", c.name, d, RunsNeeded(all))
		}
	}
}
