package guide

import (
	"cmp"
	"slices"
	"strings"

	"lockcheck/clients"
	"lockcheck/history"
	"lockcheck/internal/lockfile"
	"lockcheck/workloads"
)

// Fit is how a lock meets a need behind a guard, as far as runs have shown.
type Fit struct {
	Lock, Guard string
	// Against says what was seen that rules it out; "" if it meets the need.
	Against string
	Runs    int64 // in which no break was seen
	// Held of Settings of the need, no fault among them, had such runs.
	Held, Settings int
	// Bound is the largest of those of the settings that held: in which share of runs it may
	// break all the same. 0 if none held.
	Bound    float64
	Known    []string // what is known of it
	Unproven []string // faults that no run has shown it to stand
	// Open are those of them without which nobody can say whether it meets the need.
	Open []string
}

// Need is what somebody needs of a lock. Its rule alone decides who meets it.
type Need struct {
	Name string
	Rule string // in words
	// asks says whether the need is about a lock behind a guard.
	asks func(lock, guard string) bool
	fits func(e Evidence, lock, guard string) Fit
}

// Needs lists all of them.
func Needs() []Need {
	return []Need{
		{
			Name: "Work is only wasted if it is done twice",
			Rule: "Every lock without a guard that held in all runs without faults and was never stuck. That two hold it at once under a fault is accepted: the work is done again. " +
				"So its settings are two: no fault, and a holder whose process died, after which others must get the lock. The last column names the usual faults that were never tried. Work that takes longer than a lease which nobody renews is done twice with every lock that has a lease. " +
				"A short list of what is known may mean that few experiments were made.",
			asks: unguarded, fits: efficiency,
		}, {
			Name: "Data must never be lost",
			Rule: "A lock behind a guard (or without one) with which no run ever lost data, that held without faults, and that held under each fault which is known to lose data " +
				"without a guard. Without a guard, a lock is ruled out, too, if another one loses data that ends by the same rule: on the same servers by the same clock, or with a connection to a database. A guard is a check that your resource must make at each access, reads too. " +
				"Being stuck is accepted, and said: it loses nothing.",
			asks: withOrWithout, fits: safety,
		}, {
			Name: "Failover under 2 s, of a holder whose process died",
			Rule: "Locks that, in all runs in which a holder was killed and no clock was moved, passed on within 2 s each time, and that held without faults. A lock with a lease passes on when that ends, Consul's only after its lock delay: with the default lease of 2 s hardly any can be among these. With a shorter one some may; etcd accepts none. " +
				"A lock that ends with a connection passes on at once, as long as the machine of its holder lives. A stopped holder keeps it until it goes on; one that is cut off, or whose machine dies, until TCP gives up: 5 s as set here, by default more than two hours.",
			asks: unguarded, fits: failover,
		}, {
			Name: "No new infrastructure",
			Rule: "Locks that need no servers at all, or those of a database that you may have already, if they meet \"data must never be lost\" with the guard that is named.",
			asks: ofDatabase, fits: noInfrastructure,
		},
	}
}

// Choice is what is known of all locks that somebody with a need could choose.
type Choice struct {
	// Meet the need, those with the fewest settings that did not hold first: runs of different
	// workloads say no more about an order.
	Meet []Fit
	// Open are those of which it is not known.
	Open []Fit
	// Out are locks that do not meet it behind any guard, with what rules them out.
	Out []Fit
}

// Choice judges all locks.
func (n Need) Choice(e Evidence) (c Choice) {
	for _, lock := range e.Locks() {
		if wrongOnPurpose(lock) {
			continue
		}
		var out []Fit
		in := len(c.Meet) + len(c.Open)
		for _, guard := range e.guardsOf(lock) {
			if !n.asks(lock, guard) {
				continue
			}
			fit := n.fits(e, lock, guard)
			fit.Lock, fit.Guard = lock, guard
			switch {
			case fit.Against != "":
				out = append(out, fit)
			case len(fit.Open) > 0:
				c.Open = append(c.Open, fit)
			default:
				c.Meet = append(c.Meet, fit)
			}
		}
		switch {
		case in < len(c.Meet)+len(c.Open) || len(out) == 0:
		case n.asks(lock, anyGuard) && !e.triedGuard(lock) && canHaveGuard(lock):
			out[0].Open = []string{out[0].Against + ", never tried behind one"}
			c.Open = append(c.Open, out[0])
		default:
			c.Out = append(c.Out, out...)
		}
	}
	slices.SortStableFunc(c.Meet, func(a, b Fit) int {
		return cmp.Or(cmp.Compare(a.Settings-a.Held, b.Settings-b.Held), cmp.Compare(a.Lock, b.Lock))
	})
	return c
}

// anyGuard stands for whichever guard there is.
const anyGuard = "any"

// triedGuard says whether the lock was tried behind any.
func (e Evidence) triedGuard(lock string) bool {
	return slices.ContainsFunc(e.guardsOf(lock), func(guard string) bool { return guard != history.GuardNone })
}

// canHaveGuard says whether there is any that could make the lock's data safe.
func canHaveGuard(lock string) bool {
	info, known := infoOf(lock)
	return known && slices.ContainsFunc(workloads.Guards(), func(guard string) bool {
		return guard != history.GuardNone && workloads.Guard(guard).Lacks(info) == ""
	})
}

// wrongOnPurpose says whether a lock is there to show how not to do it, a version of servers
// that nobody should choose today, more than the lock itself, or served by lockcheck.
func wrongOnPurpose(lock string) bool {
	if strings.Contains(lock, "@") || strings.Contains(lock, useSign) {
		return true
	}
	found, err := lockfile.Find(lock)
	info := found.Info
	return err == nil && (info.Naive != "" || info.Unsafe && lock != history.LockNone || found.Servers.Embedded != nil)
}

// noChoice says why nobody should choose a lock, of those that are here for another reason; ""
// for others.
func noChoice(lock string) string {
	name, _, _ := strings.Cut(lock, "@")
	found, err := lockfile.Find(name)
	switch {
	case err != nil:
		return ""
	case name == history.LockNone:
		return "no lock at all"
	case found.Info.Naive != "" && strings.Contains(name, "+"):
		return "a form of a naive lock"
	case found.Info.Naive != "":
		return "naive: " + found.Info.Naive
	case found.Servers.Embedded != nil:
		return "served by lockcheck itself"
	}
	return ""
}

func infoOf(lock string) (clients.Info, bool) {
	name, _, _ := strings.Cut(lock, "@")
	if !lockfile.IsPath(name) { // a page asks tens of thousands of times, and needs no servers
		return clients.ByName(name)
	}
	found, err := lockfile.Find(name)
	return found.Info, err == nil
}
