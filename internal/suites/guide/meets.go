package guide

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"lockcheck/history"
	"lockcheck/internal/stats"
)

func unguarded(_, guard string) bool { return guard == history.GuardNone }

func withOrWithout(string, string) bool { return true }

func ofDatabase(lock, _ string) bool {
	info, known := infoOf(lock)
	return known && (info.Servers == noServers || slices.Contains(databases[:], info.Servers))
}

// soonFailover is how soon a lock has to pass on.
const soonFailover = 2 * time.Second

// costsData says whether a cell is broken in a way that costs data.
func (c Cell) costsData() bool {
	return c.State == Broken && slices.ContainsFunc(c.Groups, func(g Group) bool {
		return g.Broke > 0 && (g.Class == ByLock || g.Class == ByExpiry || g.Class == ByUse)
	})
}

// withoutFaults says whether a lock broke without any fault, and what is open if nobody knows.
func (e Evidence) withoutFaults(lock, guard string) (open []string, broke bool) {
	switch e.Cell(lock, None, guard).State {
	case Held:
		return nil, false
	case Broken:
		return nil, true
	}
	return []string{"never run without a fault"}, false
}

const brokeAlone = "broke without any fault"

// ruledOut is a lock that does not meet a need.
func ruledOut(format string, args ...any) Fit { return Fit{Against: fmt.Sprintf(format, args...)} }

// efficiency is for locks without a guard.
func efficiency(e Evidence, lock, guard string) Fit {
	open, broke := e.withoutFaults(lock, guard)
	if broke {
		return ruledOut(brokeAlone)
	}
	fit := e.summed(lock, guard, []string{None, Normal("kill:holder")})
	fit.Open = open
	var twice []string
	for _, fault := range e.faultsOf(lock, guard) {
		cell := e.Cell(lock, fault, guard)
		if slices.ContainsFunc(cell.Groups, func(g Group) bool { return g.Class == Stuck }) {
			return ruledOut("stuck under %s", fault)
		}
		switch worst, broken := cell.Worst(); {
		case broken && cell.costsData():
			twice = append(twice, worst.under(fault))
		case broken:
			fit.Known = append(fit.Known, worst.words()+" under "+worst.under(fault))
		}
	}
	if len(twice) > 0 {
		fit.Known = append([]string{"done twice under " + strings.Join(twice, ", ")}, fit.Known...)
	}
	fit.Known = append(fit.Known, e.ofKin(lock, guard, breaksToo)...)
	if d := e.deaths(lock); d.holders > 0 {
		fit.Known = append(fit.Known, d.text())
	}
	if a := e.alone(lock); a != nil {
		fit.Known = append(fit.Known, fmt.Sprintf("acquire p50 %s of %d", a.P50.Round(rounding(a.P50)), a.N))
	}
	return fit
}

// rounding is to what a time is rounded, as tables round it.
func rounding(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return 100 * time.Nanosecond
	}
	return 100 * time.Microsecond
}

// safety wants a guard that held wherever the lock alone is known to lose.
func safety(e Evidence, lock, guard string) Fit {
	open, broke := e.withoutFaults(lock, guard)
	if broke {
		return ruledOut(brokeAlone)
	}
	fit := e.summed(lock, guard, Usual())
	var untried []string
	for _, fault := range e.faultsOf(lock, history.GuardNone) {
		if !e.Cell(lock, fault, history.GuardNone).costsData() {
			continue
		}
		switch cell := e.Cell(lock, fault, guard); {
		case cell.State == NotTried:
			untried = append(untried, fault)
		case cell.State == TooShort:
			untried = append(untried, fault+inLongSections)
		case cell.State == NotSupported:
			return ruledOut("cannot be tried under %s", fault)
		}
	}
	if fit.Open = open; len(untried) > 0 {
		fit.Open = append(fit.Open, "not tried under "+strings.Join(untried, ", "))
	}
	for _, fault := range e.faultsOf(lock, guard) {
		switch cell := e.Cell(lock, fault, guard); {
		case cell.costsData():
			return ruledOut("lost data under %s%s", fault, withoutGuard(guard))
		case cell.State == Broken:
			worst, _ := cell.Worst()
			fit.Known = append(fit.Known, worst.words()+" under "+worst.under(fault))
		}
	}
	if kin := e.ofKin(lock, guard, losesToo); len(kin) > 0 && guard == history.GuardNone {
		return ruledOut("%s", kin[0])
	}
	if guard != history.GuardNone {
		fit.Known = append(fit.Known, e.madeHarmless(lock, guard)...)
	}
	return fit
}

func withoutGuard(guard string) string {
	if guard == history.GuardNone {
		return " without a guard"
	}
	return ""
}

// madeHarmless says in how many runs the guard was needed.
func (e Evidence) madeHarmless(lock, guard string) []string {
	var overlapped, runs int64
	var under []string
	for _, r := range e {
		if r.Lock != lock || r.Guard != guard || !r.decided() {
			continue
		}
		runs++
		if r.DoubleGrants+r.UsesAfterExpiry == 0 {
			continue
		}
		overlapped++
		for _, fault := range r.together(r.blamed()) {
			if !slices.Contains(under, fault) {
				under = append(under, fault)
			}
		}
	}
	if overlapped == 0 {
		return []string{"no two held it at once, so that the guard had nothing to refuse"}
	}
	return []string{fmt.Sprintf("two held it at once in %d of all %s behind this guard, under %s, and nothing was lost", overlapped, runsOf(runs), strings.Join(under, ", "))}
}

// together joins faults of which the run does not tell which one did it.
func (r Run) together(faults []string) []string {
	if len(r.Causes) == 0 && len(faults) > 1 {
		return []string{strings.Join(faults, " with ")}
	}
	return faults
}

// deaths are the holders of a lock whose processes died.
type deaths struct {
	runs, holders, stuck int64
	longest              time.Duration // until the next grant
	terms                terms         // the longest of all
}

// deaths sums up all runs in which holders were killed, behind whichever guard, and no clock was
// moved, by which a lease may end at any time.
func (e Evidence) deaths(lock string) (d deaths) {
	for _, r := range e {
		f, killed := r.fault(Normal("kill:holder"))
		if r.Lock != lock || !killed || f.Met == 0 || r.Failover == nil || r.movesClocks() {
			continue
		}
		d.runs, d.holders, d.stuck = d.runs+1, d.holders+r.Failover.Holders, d.stuck+r.Failover.Stuck
		d.longest = max(d.longest, r.Failover.Longest)
		d.terms.lease, d.terms.delay = max(d.terms.lease, r.Lease), max(d.terms.delay, r.terms().delay)
	}
	return d
}

func (d deaths) text() string {
	text := fmt.Sprintf("free %s after its holder died, at the longest (%s", d.longest.Round(time.Millisecond), manyHolders(d.holders))
	switch {
	case d.terms.lease == 0:
		text += ", no lease: it ends with the connection of its holder"
	case d.terms.delay > 0:
		text += fmt.Sprintf(", with leases of %s and lock delays of %s at most", d.terms.lease, d.terms.delay)
	default:
		text += fmt.Sprintf(", with leases of %s at most", d.terms.lease)
	}
	return text + ")"
}

func manyHolders(n int64) string {
	if n == 1 {
		return "1 holder"
	}
	return fmt.Sprintf("%d holders", n)
}

// failover looks at all runs in which holders were killed.
func failover(e Evidence, lock, guard string) Fit {
	open, broke := e.withoutFaults(lock, guard)
	d := e.deaths(lock)
	switch {
	case broke:
		return ruledOut(brokeAlone)
	case d.stuck > 0:
		return ruledOut("stuck after its holder died")
	case d.longest > soonFailover:
		return ruledOut("%s", d.text())
	case d.holders == 0:
		open = append(open, "no holder was killed")
	}
	fit := Fit{Runs: d.runs, Held: 1, Settings: 1, Known: []string{d.text()}, Open: open}
	_, fit.Bound = stats.Exact(0, d.runs)
	fit.Unproven = e.unproven(lock, guard)
	if machine := Normal("crash:holder"); e.Cell(lock, machine, guard).State == NotTried {
		fit.Unproven = append(fit.Unproven, machine)
	}
	for _, fault := range e.faultsOf(lock, guard) {
		if worst, broken := e.Cell(lock, fault, guard).Worst(); broken {
			fit.Known = append(fit.Known, fmt.Sprintf("%s under %s", worst.words(), worst.under(fault)))
		}
	}
	return fit
}

// databases are the clusters that somebody may have without any lock.
var databases = [...]string{"postgres", "mariadb"}

// noServers is what a lock needs that needs no cluster.
const noServers = "none"

func noInfrastructure(e Evidence, lock, guard string) Fit {
	info, _ := infoOf(lock)
	fit := safety(e, lock, guard)
	if info.Servers == noServers {
		fit.Known = append(fit.Known, "needs no servers, but a local file system that all workers share")
	} else {
		fit.Known = append(fit.Known, "needs "+info.Servers)
	}
	if guard == history.GuardDatabase {
		fit.Known = append(fit.Known, "only for data in that database, written through the connection that holds the lock")
	}
	return fit
}

// summed says what is known of a lock behind a guard, of which some faults are the settings of a
// need.
func (e Evidence) summed(lock, guard string, faults []string) Fit {
	fit := Fit{Unproven: e.unproven(lock, guard)}
	counted := make(map[string]bool) // a run with several faults once
	for _, fault := range faults {
		switch c := e.Cell(lock, fault, guard); c.State {
		case Held:
			fit.Held, fit.Bound = fit.Held+1, max(fit.Bound, c.Bound)
			for _, g := range c.Groups {
				for _, r := range g.Runs {
					fit.Runs += int64(one(!counted[r.ID]))
					counted[r.ID] = true
				}
			}
		case NotSupported:
			continue
		}
		fit.Settings++
	}
	return fit
}

// inLongSections says what runs lacked that were too short to tell.
const inLongSections = " in long sections"

// unproven lists the usual faults that no run tells of.
func (e Evidence) unproven(lock, guard string) []string {
	var all []string
	for _, fault := range Usual() {
		switch e.Cell(lock, fault, guard).State {
		case NotTried:
			all = append(all, fault)
		case TooShort:
			all = append(all, fault+inLongSections)
		}
	}
	return all
}

func runsOf(n int64) string {
	if n == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs", n)
}
