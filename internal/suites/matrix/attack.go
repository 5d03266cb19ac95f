package matrix

import (
	"cmp"
	_ "embed"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"lockcheck/checker"
	"lockcheck/clients"
	"lockcheck/clusters/agent"
	"lockcheck/history"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites/trials"
	"lockcheck/internal/yamlfile"
	"lockcheck/nemesis"
)

//go:embed attacks.yaml
var attacksFile string

// AttacksFile is the text of attacks.yaml.
func AttacksFile() string { return attacksFile }

// Attack is a column of a comparison: the strongest known form of a fault, aimed at a role and a moment. Its
// runs are trials, as short as the lock allows.
type Attack struct {
	Name    string `yaml:"name"`
	Summary string `yaml:"summary"`
	// Fault is the same fault at random moments, as in --nemesis; "" if --nemesis has no such fault.
	Fault string `yaml:"fault,omitempty"`
	// Forms of the attack. A lock gets the first form that it supports.
	Forms []form `yaml:"forms"`
}

// form is an attack on some of the locks.
type form struct {
	trials.Use `yaml:",inline"`
	// TTL is the shortest lease that a trial may have; 0 means leastLease.
	TTL time.Duration `yaml:"ttl,omitempty"`
	// Servers restricts the form to locks with this many servers and no leader; 0 for any lock.
	Servers int `yaml:"servers,omitempty"`
	// WithoutLease restricts the form to locks that end with the connection of their holder.
	WithoutLease bool `yaml:"without-lease,omitempty"`
	// LockDelay restricts the form to locks with a lock delay.
	LockDelay bool             `yaml:"lock-delay,omitempty"`
	Schedule  nemesis.Schedule `yaml:"schedule,omitempty"`
	// Random lists faults as in --nemesis. Instead of following the schedule, a trial injects one of them at
	// random moments.
	Random []string `yaml:"random,omitempty,flow"`
}

// attacksOnce parses the constant attacksFile.
var attacksOnce = sync.OnceValues(func() (all []Attack, err error) {
	err = yamlfile.Read(strings.NewReader(attacksFile), &all)
	return all, err
})

// Attacks lists all attacks in the order of the columns.
func Attacks() []Attack {
	all, err := attacksOnce()
	if err != nil {
		panic(err) // a test parses the same embedded file
	}
	return all
}

// AttackNames lists the names of the attacks.
func AttackNames() []string {
	var names []string
	for _, a := range Attacks() {
		names = append(names, a.Name)
	}
	return names
}

// AttackByName finds an attack.
func AttackByName(name string) (Attack, bool) {
	all := Attacks()
	i := slices.IndexFunc(all, func(a Attack) bool { return a.Name == name })
	if i < 0 {
		return Attack{}, false
	}
	return all[i], true
}

// isAttack says whether the runs of the cell are trials of an attack.
func (c Place) isAttack() bool {
	_, is := AttackByName(c.Fault)
	return is
}

// Nemesis is the fault of a column as in --nemesis; the attack's name if --nemesis has no such fault.
func Nemesis(fault string) string {
	if a, is := AttackByName(fault); is && a.Fault != "" {
		return a.Fault
	}
	return fault
}

// cannotApply says in one or two words why an attack cannot be tried on a lock.
type cannotApply string

func (why cannotApply) Error() string { return string(why) }

// trialOutline outlines a trial of the attack on a lock. Its error is a cannotApply if no trial is possible.
func (a Attack) trialOutline(s trials.Subject, guard string, seed uint64) (runs.Outline, error) {
	lacks := unsupportedWord
	for _, f := range a.Forms {
		if !f.fits(s.Lock) {
			continue
		}
		s.TTL = f.lease(s.Info)
		outline, err := f.outline(s, guard, seed)
		var unsupported *nemesis.UnsupportedError
		switch {
		case err == nil:
			return outline, nil
		case !errors.As(err, &unsupported):
			return outline, err
		}
		lacks = inapplicable(unsupported, s.Lock)
	}
	return runs.Outline{}, cannotApply(lacks)
}

// fits says whether the form is meant for the lock.
func (f form) fits(lock lockfile.Lock) bool {
	return (f.Servers == 0 || f.Servers == lock.Servers.Nodes) && (!f.WithoutLease || lock.Info.TTL == 0 && lock.Servers.OnDocker()) &&
		(!f.LockDelay || lock.Info.LockDelay > 0)
}

// leastLease is three times the lease that a hunt begins with. On a busy machine shorter leases expire
// without a fault.
const leastLease = time.Second

func (f form) lease(info clients.Info) time.Duration {
	lease := info.Lease(max(cmp.Or(f.TTL, leastLease), info.ShortestTTL()))
	if info.MaxTTL != 0 {
		lease = min(lease, info.MaxTTL)
	}
	return lease
}

// withinLease is the longest section, in leases, of a holder that cannot renew. A longer section could lose
// the lock without a fault.
const withinLease = 0.6

func (f form) outline(s trials.Subject, guard string, seed uint64) (runs.Outline, error) {
	use := f.Use
	if ends := s.Info.TTL > 0 && !s.Info.Session; ends && !s.Info.Renew {
		if use.Renew { // its holder stops before the lease ends, so there is nothing to attack
			return runs.Outline{}, &nemesis.UnsupportedError{Where: "a lease without renewals", Err: nemesis.ErrNoRenewals}
		}
		use.Section = min(use.Section, withinLease)
	}
	use.Renew = use.Renew && s.Info.Renew
	if len(f.Random) > 0 {
		return f.random(s, use, guard, seed)
	}
	f.Schedule.Seed = seed
	o, err := s.Options(use, f.Schedule, 0)
	if err != nil {
		return runs.Outline{}, err
	}
	o.Guard = guard
	return runs.OutlineOf(trials.Quick(o))
}

const (
	// betweenRandom is the mean time between two random faults. forRandom is the time for random faults in a
	// trial beyond what the first fault needs.
	betweenRandom = time.Second
	forRandom     = 3 * time.Second
)

// random is a trial under one of the random faults that the lock supports. Successive seeds take the faults
// in turn.
func (f form) random(s trials.Subject, use trials.Use, guard string, seed uint64) (runs.Outline, error) {
	o := trials.Quick(s.Sketch(use, nemesis.Schedule{}))
	o.Schedule, o.EndEarly, o.Interval, o.Guard, o.Seed = nil, false, betweenRandom, guard, seed
	var supported []runs.Outline
	var unsupported error
	for _, o.Nemesis = range f.Random {
		if outline, err := runs.OutlineOf(o); err == nil {
			supported = append(supported, outline)
		} else {
			unsupported = err
		}
	}
	if len(supported) == 0 {
		return runs.Outline{}, unsupported
	}
	chosen := supported[(seed-1)%uint64(len(supported))]
	o.Nemesis, o.TimeLimit = chosen.Options.Nemesis, chosen.Recovery+chosen.Least+forRandom
	return runs.OutlineOf(o)
}

// byMachine says whether a lock broke in a trial only because the machine was too busy. Then sections
// outlasted their leases, and either no fault was exercised or the machine was seen to be late. Otherwise the
// fault may be the reason, for example by delaying an answer.
func byMachine(r checker.Results, late bool) bool {
	violated := 0
	for _, f := range r.Findings {
		if !f.Required || f.Verdict != checker.Violation {
			continue
		}
		violated++
		if len(f.Causes) != 1 || f.Causes[checker.CauseOutlasted] == 0 {
			return false
		}
	}
	return violated > 0 && (late || !slices.ContainsFunc(r.Faults, checker.FaultCoverage.Counts))
}

// Why a trial does not count.
const (
	tooBusy = "The machine was too busy: a section outlasted its lease, and no fault explains it."
	tooLate = "The machine was too busy: the fault may have missed its moment."
)

const unsupportedWord = "unsupported"

// inapplicable says in one or two words why an attack cannot apply to a lock.
func inapplicable(err *nemesis.UnsupportedError, lock lockfile.Lock) string {
	switch servers := lock.Servers; {
	case errors.Is(err, nemesis.ErrNoRenewals) && lock.Info.Session:
		return "session" // its client renews on its own, and does not say when
	case errors.Is(err, nemesis.ErrNoRenewals):
		return "no renewal"
	case servers.Nodes == 0:
		return "no server"
	case !servers.OnDocker():
		return "embedded"
	case errors.Is(err, agent.ErrNoLeader) && servers.Nodes == 1:
		return "one server"
	case errors.Is(err, agent.ErrNoLeader):
		return "no leader"
	case err.Fault == history.Clock:
		return "no clock"
	}
	return unsupportedWord
}
