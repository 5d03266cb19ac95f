package hunt

import (
	"context"
	"slices"
)

// oracle makes runs of a trial, and counts in how many a find shows. If need is not 0 it ends as
// soon as that many do, or no longer can. Its error says why it could not go on.
type oracle func(ctx context.Context, t Trial, runs, need int) (shown, made int, err error)

// shrink makes a trial simpler as long as the find shows again often enough: each change is dropped
// that keeps it from that. It returns the trials that were kept on the way, the simplest last; the
// first one is t itself. Whoever returns before all was tried because of an error gets what was reached.
func shrink(ctx context.Context, s space, t Trial, original confirmed, o oracle) ([]Trial, error) {
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

func (s space) firstThatShows(ctx context.Context, t Trial, original confirmed, o oracle, tried map[string]bool) (Trial, bool, error) {
	need, runs := original.again()
	var undecided error
	for _, candidate := range s.simpler(t) {
		if tried[candidate.key()] {
			continue
		}
		shown, _, err := o(ctx, candidate, runs, need)
		if err == errBusy {
			undecided = err
			continue
		}
		if err != nil {
			return t, false, err
		}
		tried[candidate.key()] = true
		if shown >= need {
			return candidate, true, nil
		}
	}
	return t, false, undecided
}

// simpler lists the trials that are simpler by one thing, those that save most first: no
// fault at all, a fault less, an option less, fewer workers and servers, simpler roles and
// shorter times.
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
		s.simplerStep(t.Steps[i], func(step Step) { add(func(t *Trial) { t.Steps[i] = step }) })
	}
	for _, section := range below(sections(), t.Section) {
		add(func(t *Trial) { t.Section = section })
	}
	return all
}

// simplerStep tells of each step that is simpler by one thing.
func (s space) simplerStep(step Step, tell func(Step)) {
	aims := s.aims[step.Fault]
	at := slices.Index(aims, step.aim())
	for _, a := range aims[:max(at, 0)] {
		changed := step
		changed.Target, changed.From = a.target, a.from
		tell(changed)
	}
	for _, when := range before(s.whens[step.aim()], step.When) {
		changed := step
		changed.When = when
		tell(changed)
	}
	if step.Order != apart {
		changed := step
		changed.Order = apart
		tell(changed)
	}
	if step.Half {
		changed := step
		changed.Half = false
		tell(changed)
	}
	for _, length := range below(lengths(), step.Length) {
		changed := step
		changed.Length = length
		tell(changed)
	}
	for _, clock := range before(clocksOf(step.Fault), step.Clock) {
		changed := step
		changed.Clock = clock
		tell(changed)
	}
}

// fewerNodes are the numbers of servers that are less than one; 0 is the usual one.
func (s space) fewerNodes(nodes int) []int {
	if nodes == 0 {
		nodes = s.nodes
	}
	return below(s.sizes, nodes)
}

// below are the values that are less than one.
func below[T int | float64](values []T, than T) []T {
	return slices.DeleteFunc(slices.Clone(values), func(v T) bool { return v >= than })
}

// before are the values that come earlier than one.
func before[T comparable](values []T, one T) []T {
	return values[:max(slices.Index(values, one), 0)]
}

// confirmed is how often a find showed again in runs that were made for that alone.
type confirmed struct {
	Shown int `json:"shown"`
	Made  int `json:"made"`
}

// likely is the probability by the rule of succession: six of six may be luck, too.
func (c confirmed) likely() float64 { return float64(c.Shown+1) / float64(c.Made+2) }

func (c confirmed) share() float64 {
	if c.Made == 0 {
		return 0
	}
	return float64(c.Shown) / float64(c.Made)
}

// reliable: all runs showed it but one, of as many as are made to confirm it.
func (c confirmed) reliable() bool { return c.Made >= toConfirm && c.Made-c.Shown <= 1 }

// again is in how many runs, of how many, a simpler trial must show it. What is reliable is to stay so;
// what is not was no luck if it shows twice.
func (c confirmed) again() (need, runs int) {
	if c.reliable() {
		return 3, 4
	}
	return 2, reruns(c.likely())
}

// holdsUp says whether a simpler trial shows it as often as the original, but for luck: in all runs but
// one in which that would, and in no less than half of them.
func (c confirmed) holdsUp(original confirmed) bool {
	would, does := c.Made*original.Shown, c.Shown*original.Made // both times original.Made
	return does >= would-original.Made && 2*does >= would
}

// settle confirms the simplest of some trials with runs of its own, for those that chose it
// flatter it. One that does not hold up gives way to the one before.
func settle(ctx context.Context, kept []Trial, original confirmed, o oracle) (Trial, confirmed, error) {
	for _, t := range slices.Backward(kept[1:]) {
		shown, made, err := o(ctx, t, toConfirm, 0)
		if c := (confirmed{shown, made}); made > 0 && c.holdsUp(original) {
			return t, c, err
		}
		if err != nil { // nothing is known to show it but the first
			return kept[0], original, err
		}
	}
	return kept[0], original, nil
}
