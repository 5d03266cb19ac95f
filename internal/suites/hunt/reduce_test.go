package hunt

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"lockcheck/internal/stats"
	"lockcheck/internal/suites"
	"lockcheck/internal/suites/trials"
)

func TestReruns(t *testing.T) {
	for _, c := range []struct {
		p    float64
		want int
	}{{1, 1}, {0.995, 1}, {0.9, 2}, {0.5, 7}, {0.2, 21}, {0.01, mostRuns}, {0, mostRuns}} {
		if got := rerunsFor(c.p); got != c.want {
			t.Errorf("%v: %d runs, want %d", c.p, got, c.want)
		}
	}
}

// simulated is a finding that shows with a probability if a trial has certain faults and enough workers, and
// otherwise never. A factor reduces the probability in short sections.
type simulated struct {
	rng     *rand.Rand
	needs   []string
	workers int
	p       float64
	brief   float64 // the factor for short sections; 0 for 1
}

func (s simulated) chance(t Trial) float64 {
	for _, fault := range s.needs {
		if !slices.ContainsFunc(t.Steps, func(step Step) bool { return step.Fault == fault }) {
			return 0
		}
	}
	if t.Workers < s.workers {
		return 0
	}
	if s.brief > 0 && t.Section == shortest {
		return s.p * s.brief
	}
	return s.p
}

func (s simulated) oracle(_ context.Context, t Trial, runs, need int) (c Count, err error) {
	for !(series{runs: runs, need: need}).isDecided(c) {
		c.Made++
		if s.rng.Float64() < s.chance(t) {
			c.Shown++
		}
	}
	return c, nil
}

// TestShrinkFlaky: whatever the luck, the returned form shows the finding. Its interval contains the true
// probability as often as the confidence level promises, and the form is nearly always the simplest.
func TestShrinkFlaky(t *testing.T) {
	p := ready(t, "redlock")
	covered, simplest, all, spent := 0, 0, 0, 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 1))
		trial := p.space.draw(rng)
		if len(trial.Steps) == 0 {
			continue
		}
		s := simulated{rng: rng, workers: oneOf(rng, []int{2, 3}), p: oneOf(rng, []float64{1, 0.9, 0.6, 0.4})}
		trial.Workers = max(trial.Workers, s.workers)
		for _, step := range trial.Steps[:rng.IntN(len(trial.Steps)+1)] {
			s.needs = append(s.needs, step.Fault)
		}
		small, c, runs := s.shrunk(t, p.space, trial)
		if runs == 0 {
			continue // it would not have been investigated
		}
		spent += runs
		all++
		if s.chance(small) == 0 || c.Shown == 0 {
			t.Fatalf("seed %d: %s never shows what %s does", seed, small, trial)
		}
		if low, high := stats.Wilson(int64(c.Shown), int64(c.Made)); low <= s.p && s.p <= high {
			covered++
		}
		slices.Sort(s.needs)
		if len(small.Steps) == len(slices.Compact(s.needs)) && small.Workers == s.workers && !small.Renew && !small.Check {
			simplest++
		}
	}
	t.Logf("of %d the interval holds the truth of %d, and %d are the simplest; %d runs each", all, covered, simplest, spent/all)
	if all < 200 || float64(covered) < 0.93*float64(all) || float64(simplest) < 0.8*float64(all) {
		t.Errorf("of %d the interval holds the truth of %d, and %d are the simplest", all, covered, simplest)
	}
}

// shrunk confirms a trial, reduces it, and settles the result. It also returns how many runs the reduction
// took; 0 if the trial was not confirmed.
func (s simulated) shrunk(t *testing.T, space space, trial Trial) (small Trial, c Count, spent int) {
	t.Helper()
	original, _ := s.oracle(t.Context(), trial, toConfirm, 0)
	if original.Shown == 0 {
		return trial, Count{}, 0
	}
	kept, err := reduce(t.Context(), space, trial, original, func(ctx context.Context, t Trial, runs, need int) (Count, error) {
		c, err := s.oracle(ctx, t, runs, need)
		spent += c.Made
		return c, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if small, c, err = settle(t.Context(), kept, original, s.oracle); err != nil {
		t.Fatal(err)
	}
	return small, c, spent
}

// TestShrinkReliable: a finding that always shows is not reduced to a form in which it often does not.
func TestShrinkReliable(t *testing.T) {
	p := ready(t, "redlock")
	trial := Trial{Use: trials.Use{Workers: 3, Section: 1.6, Renew: true}, Steps: []Step{{Fault: "pause", Target: "holder", When: "holding", Length: 2.5}}}
	for _, factor := range []float64{0.7, 0.5, 0.3} {
		lost := 0
		for seed := range uint64(200) {
			s := simulated{rng: rand.New(rand.NewPCG(seed, 1)), needs: []string{"pause"}, p: 1, brief: factor}
			small, _, _ := s.shrunk(t, p.space, trial)
			if s.chance(small) < 1 {
				lost++
			}
			if small.Renew || small.Workers != fewest {
				t.Errorf("seed %d: %s could be smaller at no price", seed, small)
			}
		}
		t.Logf("of 200 %d show in %v of their runs only", lost, factor)
		if most := map[float64]int{0.7: 80, 0.5: 16, 0.3: 4}[factor]; lost > most {
			t.Errorf("of 200 %d show in %v of their runs only, more than %d", lost, factor, most)
		}
	}
}

// TestSettle: a simpler trial that was kept by luck alone gives way to the trial before it.
func TestSettle(t *testing.T) {
	chances := map[int]float64{5: 1, 3: 0.9, 2: 0.1}
	rng := rand.New(rand.NewPCG(1, 1))
	var kept []Trial
	for _, workers := range []int{5, 3, 2} {
		kept = append(kept, Trial{Use: trials.Use{Workers: workers}})
	}
	o := func(_ context.Context, t Trial, runs, _ int) (Count, error) {
		c := Count{Made: runs}
		for range runs {
			if rng.Float64() < chances[t.Workers] {
				c.Shown++
			}
		}
		return c, nil
	}
	got, c, err := settle(t.Context(), kept, Count{6, 6}, o)
	if err != nil || got.Workers != 3 || c.Made != toConfirm {
		t.Errorf("%d workers, %+v, %v", got.Workers, c, err)
	}
	if got, c, _ := settle(t.Context(), kept[:1], Count{6, 6}, o); got.Workers != 5 || c.Shown != 6 {
		t.Errorf("what could not be made smaller is %d workers, %+v", got.Workers, c)
	}
	late := func(context.Context, Trial, int, int) (Count, error) { return Count{Made: 4}, &Stop{Kind: outOfTime} }
	if got, c, err := settle(t.Context(), kept, Count{6, 6}, late); got.Workers != 5 || c.Shown != 6 || stopOf(err) == nil {
		t.Errorf("one that did not show in the time there was: %d workers, %+v, %v", got.Workers, c, err)
	}
}

// TestReduceStops: a stop returns the forms reached so far, and a form that the lock does not support is
// skipped.
func TestReduceStops(t *testing.T) {
	p := ready(t, "memory")
	trial := Trial{Use: trials.Use{Workers: 5, Section: 1.6}, Steps: []Step{{Fault: "pause", Target: "all", Length: 2.5}}}
	shows, late := error(nil), &Stop{Kind: outOfTime}
	for _, c := range []struct {
		name    string
		answers []error // to the forms in their order; the last answer applies to all further forms
		kept    int
	}{
		{"one was reached", []error{shows, late}, 2}, {"one is unsupported", []error{&Stop{Kind: unsupported}, shows, late}, 2}, {"no time at all", []error{late}, 1},
	} {
		calls := 0
		o := func(_ context.Context, _ Trial, _, need int) (Count, error) {
			err := c.answers[min(calls, len(c.answers)-1)]
			calls++
			if err != nil {
				return Count{}, err
			}
			return Count{need, need}, nil
		}
		kept, err := reduce(t.Context(), p.space, trial, Count{6, 6}, o)
		if stopOf(err) == nil || len(kept) != c.kept {
			t.Errorf("%s: %d kept, %v", c.name, len(kept), err)
		}
	}
}

// TestSimplerEnds: making a trial simpler ends, at a trial that cannot be made simpler.
func TestSimplerEnds(t *testing.T) {
	p := ready(t, "redlock")
	rng := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		trial := p.space.draw(rng)
		for steps := 0; ; steps++ {
			simpler := p.space.simpler(trial)
			if len(simpler) == 0 {
				break
			}
			if trial = oneOf(rng, simpler); steps > 200 {
				t.Fatalf("no end to %s", trial)
			}
		}
		if len(trial.Steps) > 0 || trial.Workers != fewest || trial.Section != shortest {
			t.Errorf("%s cannot be simpler", trial)
		}
	}
}

// TestRepeated: the step of a finding that shows seldom is repeated until the finding shows nearly always,
// within three minutes. A trial that always shows it, or has several steps in order, is not repeated.
func TestRepeated(t *testing.T) {
	step := Step{Fault: "pause", Target: "waiter", When: "holding", Length: 1.3}
	one := Trial{Use: trials.Use{Workers: 3, Section: 0.6}, Steps: []Step{step}}
	two := one
	two.Steps = []Step{step, {Fault: "kill", Target: "one", Length: 1.3, Order: then}}
	for _, c := range []struct {
		name  string
		trial Trial
		p     float64
		want  int
	}{
		{"always", one, 1, 0}, {"mostly", one, 0.9, 2}, {"seldom", one, 0.1, 25}, {"in an order", two, 0.1, 0}, {"without a fault", Trial{Use: trials.Use{Workers: 3}}, 0.5, 7},
	} {
		if got := c.trial.repeated(c.p, 2*time.Second, maxLength).Times; got != c.want {
			t.Errorf("%s: %d times, want %d", c.name, got, c.want)
		}
	}
	p := ready(t, "redlock")
	again := one.repeated(0.1, p.subject.Lease(), maxLength)
	if _, err := p.outline(again); err != nil {
		t.Errorf("%s: %v", again, err)
	}
	if s := again.schedule(time.Second).Steps[0]; s.Times != again.Times || s.Every.IsZero() {
		t.Errorf("the step is made %d times, every %v", s.Times, s.Every)
	}
}

// TestTimeForControl: a form that must be repeated takes longer runs, and time is left for the runs of a
// control.
func TestTimeForControl(t *testing.T) {
	trial := Trial{Use: trials.Use{Workers: 3, Section: 0.6}, Steps: []Step{{Fault: "pause", Target: "waiter", When: "holding", Length: 1.3}}}
	takes := func(runs Count, left time.Duration) time.Duration {
		i := &investigation{
			search: &search{folder: &Folder{Plan: ready(t, "redlock")}, machine: Machine{Parallel: 3}, gate: suites.NewGate(3)},
			record: &record{Reduced: trial, OriginalRuns: runs},
			end:    time.Now().Add(left),
		}
		return i.afterReducing()
	}
	always, half := takes(Count{6, 6}, time.Hour), takes(Count{3, 6}, time.Hour)
	if always <= 0 || half <= always {
		t.Errorf("%s for what always shows, %s for what shows in half of the runs", always, half)
	}
	if brief := takes(Count{1, 6}, 4*time.Minute); brief > 4*time.Minute {
		t.Errorf("%s for what shows seldom, in a find that has four minutes", brief)
	}
}
