package guide

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"lockcheck/history"
	"lockcheck/internal/suites/matrix"
	"lockcheck/nemesis"
	"lockcheck/reports"
)

// Suffixes of a fault's name after kind and target. Each suffix makes a separate fault: that a lock survived
// a short pause says nothing about a long one.
const (
	briefly   = " briefly"       // it ended before the lock could expire
	backwards = " back"          // of a clock
	partly    = " partly"        // only some of the usual peers were out of reach
	inVersion = " in version "   // what follows is the version in which servers were started again
	amongOnes = " among servers" // servers were cut off from servers, not from workers
)

// Normal is the canonical name of the faults of a comparison's cell, such as "clock" or "pause:holder". The
// name is kind and target, None for no fault, with a comma between several faults. The name of an unknown
// fault is the text itself.
func Normal(faults string) string {
	requests, err := nemesis.ParseRequests(faults)
	if err != nil {
		return faults
	}
	if len(requests) == 0 {
		return None
	}
	var names []string
	for _, r := range requests {
		kind, _ := nemesis.KindByName(r.Fault)
		names = append(names, r.Fault+":"+role(cmp.Or(r.Target, kind.Target)))
	}
	return strings.Join(names, ",")
}

// Usual lists the faults that every lock is compared under, by canonical name.
func Usual() []string {
	var names []string
	for _, fault := range matrix.RandomFaults() {
		names = append(names, Normal(fault))
	}
	return names
}

type lockEnds struct {
	lease time.Duration // after this time the lock of a silent holder is free for certain; 0 for never
	cut   time.Duration // after this time a cut connection ends a lock without a lease; 0 for never
}

// faultsOf lists the faults in a run's schedule and what became of them.
func faultsOf(d reports.Document, schedule nemesis.Schedule, lock lockEnds) []Fault {
	var all []Fault
	for _, step := range schedule.Steps {
		name := nameOf(step, d.Header, lock)
		i := slices.IndexFunc(all, func(f Fault) bool { return f.Name == name })
		if i < 0 {
			i = len(all)
			all = append(all, Fault{Name: name})
		}
		began := 0
		for _, f := range d.Results.Faults {
			if !step.Began(f.ID) {
				continue
			}
			began++
			if f.Counts() {
				all[i].Met++
			}
		}
		all[i].Asked += max(began, 1)
	}
	return all
}

func nameOf(s nemesis.Step, h history.Header, lock lockEnds) string {
	whom := whomOf(s, h)
	name := s.Fault + ":" + whom
	onWorkers := nemesis.MeansWorkers(whom)
	name += peersOf(s, onWorkers)
	if s.Version != "" {
		name += inVersion + s.Version
	}
	stops, cuts := history.Does(s.Fault, history.Stops), history.Does(s.Fault, history.Cuts)
	silent := s.For.Of(lock.lease)
	switch {
	case onWorkers && (stops && silent < lock.lease || cuts && silent < max(lock.lease, lock.cut)), !onWorkers && (stops || cuts) && silent < lock.cut:
		name += briefly
	case history.Does(s.Fault, history.Steps) && s.Step.Of(lock.lease) < 0:
		name += backwards
	case s.Fault == history.Clock && s.Step.Of(lock.lease) < lock.lease:
		name += briefly
	}
	return name
}

// whomOf is the role of the target. Nodes that a schedule names get the role of a random target that could
// have been them.
func whomOf(s nemesis.Step, h history.Header) string {
	names := strings.Split(s.Target, ",")
	servers, workers := 0, 0
	for _, name := range names {
		name = strings.TrimSpace(name)
		servers += boolToInt(slices.Contains(h.Servers, name))
		workers += boolToInt(slices.Contains(h.Workers, name))
	}
	switch n := len(h.Servers); {
	case workers == 1 && len(names) == 1 && s.When == nemesis.WhenHolding && cmp.Or(s.Of, s.Target) == s.Target:
		return "holder"
	case workers == 1 && len(names) == 1:
		return "one worker"
	case workers == len(names):
		return "workers"
	case servers == len(names) && servers == 1, s.Target == "all" && n == 1:
		return role("one")
	case servers == len(names) && servers == n:
		return "all"
	case servers == len(names) && 2*servers > n:
		return "majority"
	case servers == len(names):
		return "minority"
	}
	return role(s.Target)
}

// role returns one name for roles that mean the same.
func role(target string) string {
	switch target {
	case "", "one", "follower":
		return "one server"
	}
	return target
}

// peersOf distinguishes network faults that leave some of the usual peers within reach.
func peersOf(s nemesis.Step, onWorkers bool) string {
	usual := "workers"
	if onWorkers {
		usual = "servers"
	}
	switch {
	case s.From == "", s.From == usual, s.From == "all":
		return ""
	case !onWorkers && !nemesis.MeansWorkers(s.From) && !strings.HasPrefix(s.From, "w"):
		return amongOnes
	}
	return partly
}

func boolToInt(is bool) int {
	if is {
		return 1
	}
	return 0
}
