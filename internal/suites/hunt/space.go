package hunt

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"

	"lockcheck/history"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites/trials"
	"lockcheck/nemesis"
)

// Values that trials are drawn from, the simplest first.
const (
	fewest   = 2
	shortest = 0.05 // section, in leases; a trial fits about a hundred such holds
)

func workerCounts() []int   { return []int{fewest, 3, 5} }
func sections() []float64   { return []float64{shortest, 0.6, 1.6} }
func lengths() []float64    { return []float64{0.5, 1.3, 2.5} }
func clockSteps() []float64 { return []float64{1.5, 10, -10} }
func speeds() []float64     { return []float64{3, 0.3} }
func messageNumbers() []int { return []int{1, 2, 3, 5, 8} }

// moments lists what a step can wait for, the simplest first; "" for nothing.
func moments() []string {
	others := slices.DeleteFunc(nemesis.Moments(), func(when string) bool { return when == nemesis.WhenHolding })
	return append([]string{nemesis.WhenHolding, ""}, others...)
}

// actor is the role of the worker whose call made the moment that a step waited for.
const actor = "actor"

// canLast says whether a moment can still hold half a section later.
func canLast(when string) bool {
	return when == nemesis.WhenHolding || when == nemesis.WhenQueued || when == nemesis.WhenLost
}

// aim is a fault, its target, and the processes that the target is cut off from.
type aim struct{ fault, target, from string }

// space describes the trials that a lock allows.
type space struct {
	kinds []string         // kinds of faults
	aims  map[string][]aim // by kind
	whens map[aim][]string // the moments that a fault can be aimed at
	// long, renew, check, pin and brief say whether the lock supports the fields of Trial with these names.
	long, renew, check, pin, brief bool
	session                        bool // the client renews the lease on its own
	// nodes is the default number of servers, and sizes are the other possible numbers.
	nodes int
	sizes []int
	// unsupported lists the kinds of faults without a possible target, one string per reason.
	unsupported []string
}

// targets are the roles that faults can be aimed at, the simplest first.
func targets(servers int) []string {
	all := []string{"holder", "waiter", actor}
	if servers > 0 {
		all = append(all, "one")
	}
	if servers > 1 {
		all = append(all, "leader", "follower", "minority", "majority", "all")
	}
	return all
}

// cuts lists further aims of network faults: a target and the processes that it is cut off from.
func cuts(servers int) [][2]string {
	if servers <= 1 {
		return nil
	}
	return [][2]string{
		{"holder", "minority"}, {"holder", "majority"}, {"one worker", "minority"}, {"one worker", "majority"},
		{"leader", "servers"}, {"one", "servers"}, {"halves", ""}, {"ring", ""}, {"bridge", ""},
	}
}

// spaceOf tries out which faults, roles and moments the lock supports.
func (p Plan) spaceOf() space {
	s := space{aims: make(map[string][]aim), whens: make(map[aim][]string)}
	var reasons []string
	unsupported := make(map[string][]string) // the kinds by the reason why they are not supported
	vouches := p.subject.Info.TTL > 0 && !p.subject.Info.Session
	s.renew, s.check, s.long, s.session = p.subject.Info.Renew, vouches, p.subject.HasLong(), p.subject.Info.Session
	s.pin, s.brief = p.subject.Info.AnyServer && p.subject.Servers.Nodes > 1, p.subject.Info.GivesUp() && !p.subject.Info.CountsAnew
	if sizes := p.subject.Servers.AllSizes(); len(sizes) > 1 {
		s.nodes, s.sizes = sizes[0], sizes[1:]
	}
	for _, kind := range nemesis.Kinds() {
		var why error
		for _, a := range aimsOf(kind, p.subject.Servers.Nodes) {
			for _, when := range moments() {
				step := simplest(a)
				step.When = when
				_, err := runs.OutlineOf(p.sketch(Trial{Use: trials.Use{Workers: 3, Section: shortest, Renew: s.renew}, Steps: []Step{step}}))
				if why = cmp.Or(why, err); err == nil {
					s.whens[a] = append(s.whens[a], when)
				}
			}
			if len(s.whens[a]) > 0 {
				s.aims[kind.Name] = append(s.aims[kind.Name], a)
			}
		}
		switch {
		case len(s.aims[kind.Name]) > 0:
			s.kinds = append(s.kinds, kind.Name)
		case why != nil:
			reason := rootCause(why).Error()
			if unsupported[reason] == nil {
				reasons = append(reasons, reason)
			}
			unsupported[reason] = append(unsupported[reason], kind.Name)
		}
	}
	for _, reason := range reasons {
		s.unsupported = append(s.unsupported, strings.Join(unsupported[reason], ", ")+": "+reason)
	}
	return s
}

// roles lists the roles that coverage distinguishes. The first is the role for no fault.
func (s space) roles() []string {
	var all []string
	for _, kind := range s.kinds {
		for _, a := range s.aims[kind] {
			all = append(all, Step{Fault: a.fault, Target: a.target}.role())
		}
	}
	slices.Sort(all)
	return append([]string{noFault}, slices.Compact(all)...)
}

func rootCause(err error) error {
	var unsupported *nemesis.UnsupportedError
	if errors.As(err, &unsupported) {
		return unsupported.Err
	}
	return err
}

func aimsOf(kind nemesis.Kind, servers int) []aim {
	var all []aim
	for _, target := range targets(servers) {
		all = append(all, aim{fault: kind.Name, target: target})
	}
	if slices.Contains(kind.Uses, nemesis.UsesFrom) {
		for _, cut := range cuts(servers) {
			all = append(all, aim{kind.Name, cut[0], cut[1]})
		}
	}
	return all
}

func simplest(a aim) Step {
	s := Step{Fault: a.fault, Target: a.target, From: a.from, Length: lengths()[0]}
	s.Clock = firstOf(clocksOf(a.fault))
	return s
}

// clocksOf lists the values for a fault of clocks; nil for other faults.
func clocksOf(fault string) []float64 {
	switch fault {
	case history.Clock, history.ClockStrobe:
		return clockSteps()
	case history.ClockRate:
		return speeds()
	}
	return nil
}

func firstOf(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return values[0]
}

func lastOf(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return values[len(values)-1]
}

// oneOf draws one of the values; the zero value if there are none.
func oneOf[T any](rng *rand.Rand, values []T) (drawn T) {
	if len(values) == 0 {
		return drawn
	}
	return values[rng.IntN(len(values))]
}
