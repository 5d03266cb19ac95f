package hunt

import (
	"context"
	"math"
	"slices"
)

// oracle runs a form of a finding and counts the runs that show it. If need is not 0, it ends as soon as need
// runs show the finding or no longer can. An error, such as a Stop, says that the series is undecided. Its
// count has the runs made so far.
type oracle func(ctx context.Context, t Trial, runs, need int) (Count, error)

// reduce makes a trial simpler as long as the finding still shows often enough. It returns the forms that it
// kept, t first and the simplest last. With an error it returns the forms reached so far.
func reduce(ctx context.Context, s space, t Trial, original Count, o oracle) ([]Trial, error) {
	kept := []Trial{t}
	tried := map[string]bool{t.key(): true}
	for {
		smaller, found, err := s.firstThatShows(ctx, kept[len(kept)-1], original, o, tried)
		if !found || err != nil {
			return kept, err
		}
		kept = append(kept, smaller)
	}
}

// firstThatShows tries the simpler forms in order. A form that the lock does not support is never tried
// again. A form for which the machine was too busy may be tried later; if no other form shows the finding,
// the error says so.
func (s space) firstThatShows(ctx context.Context, t Trial, original Count, o oracle, tried map[string]bool) (Trial, bool, error) {
	need, runs := original.simplerRule()
	var undecided error
	for _, candidate := range s.simpler(t) {
		if tried[candidate.key()] {
			continue
		}
		count, err := o(ctx, candidate, runs, need)
		switch stop := stopOf(err); {
		case stop != nil && stop.Kind == tooBusy:
			undecided = err
			continue
		case err != nil && (stop == nil || stop.Kind != unsupported):
			return t, false, err
		}
		tried[candidate.key()] = true
		if err == nil && count.Shown >= need {
			return candidate, true, nil
		}
	}
	return t, false, undecided
}

// simpler lists the trials that are simpler in one respect, the biggest savings first: no fault at all, one
// fault less, one option less, fewer workers and servers, simpler roles, shorter times.
func (s space) simpler(t Trial) []Trial {
	var all []Trial
	add := func(change func(*Trial)) {
		smaller := t
		smaller.Steps = slices.Clone(t.Steps)
		change(&smaller)
		if smaller = smaller.normal(); smaller.key() != t.key() {
			all = append(all, smaller)
		}
	}
	if len(t.Steps) > 1 {
		add(func(t *Trial) { t.Steps = nil })
	}
	for i := range t.Steps {
		add(func(t *Trial) { t.Steps = without(t.Steps, i) })
	}
	add(func(t *Trial) { t.Long = false })
	add(func(t *Trial) { t.Renew = false })
	add(func(t *Trial) { t.Check = false })
	add(func(t *Trial) { t.Pin = false })
	add(func(t *Trial) { t.Brief = false })
	for _, workers := range below(workerCounts(), t.Workers) {
		add(func(t *Trial) { t.Workers = workers })
	}
	for _, nodes := range s.fewerNodes(t.Nodes) {
		add(func(t *Trial) { t.Nodes = nodes })
	}
	for i := range t.Steps {
		for _, step := range s.simplerSteps(t.Steps[i]) {
			add(func(t *Trial) { t.Steps[i] = step })
		}
	}
	for _, section := range below(sections(), t.Section) {
		add(func(t *Trial) { t.Section = section })
	}
	return all
}

// simplerSteps lists the steps that are simpler in one respect.
func (s space) simplerSteps(step Step) []Step {
	var all []Step
	add := func(change func(*Step)) {
		changed := step
		change(&changed)
		all = append(all, changed)
	}
	aims := s.aims[step.Fault]
	for _, a := range aims[:max(slices.Index(aims, step.aim()), 0)] {
		add(func(s *Step) { s.Target, s.From = a.target, a.from })
	}
	for _, when := range before(s.whens[step.aim()], step.When) {
		add(func(s *Step) { s.When = when })
	}
	if step.Order != apart {
		add(func(s *Step) { s.Order = apart })
	}
	if step.Half {
		add(func(s *Step) { s.Half = false })
	}
	for _, length := range below(lengths(), step.Length) {
		add(func(s *Step) { s.Length = length })
	}
	for _, nth := range before(messageNumbers(), step.Nth) {
		add(func(s *Step) { s.Nth = nth })
	}
	for _, clock := range before(clocksOf(step.Fault), step.Clock) {
		add(func(s *Step) { s.Clock = clock })
	}
	return all
}

// fewerNodes lists the possible numbers of servers below nodes; 0 stands for the default number.
func (s space) fewerNodes(nodes int) []int {
	if nodes == 0 {
		nodes = s.nodes
	}
	return below(s.sizes, nodes)
}

func below[T int | float64](values []T, than T) []T {
	return slices.DeleteFunc(slices.Clone(values), func(v T) bool { return v >= than })
}

// before lists the values that come before one.
func before[T comparable](values []T, one T) []T {
	return values[:max(slices.Index(values, one), 0)]
}

// Count says in how many runs a finding showed.
type Count struct {
	Shown int `json:"shown"`
	Made  int `json:"made"`
}

// likely estimates the probability with the rule of succession, because six of six may be luck.
func (c Count) likely() float64 { return float64(c.Shown+1) / float64(c.Made+2) }

func (c Count) share() float64 {
	if c.Made == 0 {
		return 0
	}
	return float64(c.Shown) / float64(c.Made)
}

// isReliable says whether all runs of a complete confirmation, except at most one, show the finding.
func (c Count) isReliable() bool { return c.Made >= toConfirm && c.Made-c.Shown <= 1 }

// simplerRule says in how many of how many runs a simpler form must show the finding. A reliable finding must stay
// reliable. For an unreliable one, two runs rule out luck.
func (c Count) simplerRule() (need, runs int) {
	if c.isReliable() {
		return 3, 4
	}
	return 2, rerunsFor(c.likely())
}

// holdsUp says whether a simpler form shows the finding as often as the original, give or take one run, and
// at least half as often.
func (c Count) holdsUp(original Count) bool {
	would, does := c.Made*original.Shown, c.Shown*original.Made // both are scaled by original.Made
	return does >= would-original.Made && 2*does >= would
}

// settle confirms the simplest form with fresh runs, because the runs that selected it overstate how often it
// shows. A form that does not hold up gives way to the form before it.
func settle(ctx context.Context, kept []Trial, original Count, o oracle) (Trial, Count, error) {
	for _, t := range slices.Backward(kept[1:]) {
		c, err := o(ctx, t, toConfirm, 0)
		if c.Made > 0 && c.holdsUp(original) {
			return t, c, err
		}
		if err != nil { // only the first form is known to show the finding
			return kept[0], original, err
		}
	}
	return kept[0], original, nil
}

const (
	doubt    = 0.01 // accepted probability that a finding does not show in any of its reruns by chance
	mostRuns = 40   // upper limit for the reruns of one form
)

// rerunsFor is the number of runs of which at least one shows the finding, except with probability doubt, if
// each run shows it with probability p.
func rerunsFor(p float64) int {
	if p <= 0 {
		return mostRuns
	}
	return min(mostRuns, max(1, int(math.Ceil(math.Log(doubt)/math.Log(1-p)))))
}
