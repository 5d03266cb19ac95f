package guide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockcheck/clients"
	"lockcheck/history"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/stats"
)

// Fit is a lock that meets a need behind a guard, as far as runs have shown.
type Fit struct {
	Lock, Guard string
	Runs        int64 // in which no break was seen
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
	fits func(Evidence, string, string) (Fit, bool)
}

// soonFailover is how soon a lock has to pass on.
const soonFailover = 2 * time.Second

// Needs lists all of them.
func Needs() []Need {
	return []Need{
		{
			Name: "Work is only wasted if it is done twice",
			Rule: "Every lock without a guard that held in all runs without faults and was never stuck. That two hold it at once under a fault is accepted: the work is done again. " +
				"So its settings are two: no fault, and a holder whose process died, after which others must get the lock. Which of the usual faults were never tried is named. Work that takes longer than a lease which nobody renews is done twice with every lock that has a lease. " +
				"A short list of what is known may mean that few experiments were made.",
			fits: efficiency,
		}, {
			Name: "Data must never be lost",
			Rule: "A lock behind a guard (or without one) with which no run ever lost data, that held without faults, and that held under each fault which is known to lose data " +
				"without a guard. Without a guard, a lock that ends by the same rule as one that is known to lose data is left out, too. A guard is a check that your resource must make at each access, reads too. " +
				"Being stuck is accepted, and said: it loses nothing.",
			fits: safety,
		}, {
			Name: "Failover under 2 s, of a holder whose process died",
			Rule: "Locks that, in all runs in which a holder was killed, passed on within 2 s each time, and that held without faults. A lock with a lease passes on when that ends, Consul's only after its lock delay: with the default lease of 2 s hardly any can be among these. With a shorter one some may; etcd accepts none. " +
				"A lock that ends with a connection passes on at once, as long as the machine of its holder lives. A stopped holder keeps it until it goes on; one that is cut off, or whose machine dies, until TCP gives up: 5 s as set here, by default more than two hours.",
			fits: failover,
		}, {
			Name: "No new infrastructure",
			Rule: "Locks that need no servers at all, or those of a database that you may have already, if they meet \"data must never be lost\" with the guard that is named.",
			fits: noInfrastructure,
		},
	}
}

// Fits lists who meets the need, those with the fewest settings that did not hold first: runs of
// different workloads say no more about an order. Open are those of which it is not known.
func (n Need) Fits(e Evidence) (all, open []Fit) {
	for _, lock := range e.Locks() {
		if wrongOnPurpose(lock) {
			continue
		}
		for _, guard := range e.guardsOf(lock) {
			fit, is := n.fits(e, lock, guard)
			fit.Lock, fit.Guard = lock, guard
			switch {
			case is && len(fit.Open) > 0:
				open = append(open, fit)
			case is:
				all = append(all, fit)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Fit) int {
		return cmp.Or(cmp.Compare(a.Settings-a.Held, b.Settings-b.Held), cmp.Compare(a.Lock, b.Lock))
	})
	return all, open
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
	case found.Info.Naive != "":
		return "wrong on purpose: " + found.Info.Naive
	case found.Servers.Embedded != nil:
		return "served by lockcheck itself"
	}
	return ""
}

func infoOf(lock string) (clients.Info, bool) {
	name, _, _ := strings.Cut(lock, "@")
	found, err := lockfile.Find(name)
	return found.Info, err == nil
}

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
	return []string{"no run without faults"}, false
}

// efficiency is for locks without a guard.
func efficiency(e Evidence, lock, guard string) (Fit, bool) {
	open, broke := e.withoutFaults(lock, guard)
	if guard != history.GuardNone || broke {
		return Fit{}, false
	}
	fit := e.summed(lock, guard, []string{None, Normal("kill:holder")})
	fit.Open = open
	var twice []string
	for _, fault := range e.faultsOf(lock, guard) {
		cell := e.Cell(lock, fault, guard)
		if slices.ContainsFunc(cell.Groups, func(g Group) bool { return g.Class == Stuck }) {
			return Fit{}, false
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
	fit.Known = append(fit.Known, e.ofKin(lock, guard)...)
	if a := e.alone(lock); a != nil {
		fit.Known = append(fit.Known, fmt.Sprintf("acquire p50 %s of %d", a.P50.Round(rounding(a.P50)), a.N))
	}
	return fit, true
}

// rounding is to what a time is rounded, as tables round it.
func rounding(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return 100 * time.Nanosecond
	}
	return 100 * time.Microsecond
}

// safety wants a guard that held wherever the lock alone is known to lose.
func safety(e Evidence, lock, guard string) (Fit, bool) {
	open, broke := e.withoutFaults(lock, guard)
	if broke {
		return Fit{}, false
	}
	fit := e.summed(lock, guard, Usual())
	fit.Open = open
	for _, fault := range e.faultsOf(lock, history.GuardNone) {
		if !e.Cell(lock, fault, history.GuardNone).costsData() {
			continue
		}
		switch cell := e.Cell(lock, fault, guard); {
		case cell.State == NotTried:
			fit.Open = append(fit.Open, fault)
		case cell.State == TooShort:
			fit.Open = append(fit.Open, fault+inLongSections)
		case cell.State == NotSupported:
			return Fit{}, false
		}
	}
	for _, fault := range e.faultsOf(lock, guard) {
		switch cell := e.Cell(lock, fault, guard); {
		case cell.costsData():
			return Fit{}, false
		case cell.State == Broken:
			worst, _ := cell.Worst()
			fit.Known = append(fit.Known, worst.words()+" under "+worst.under(fault))
		}
	}
	if kin := e.ofKin(lock, guard); len(kin) > 0 && guard == history.GuardNone {
		return Fit{}, false
	}
	if guard != history.GuardNone {
		fit.Known = append(fit.Known, e.madeHarmless(lock, guard)...)
	}
	return fit, true
}

// madeHarmless says in how many runs the guard was needed.
func (e Evidence) madeHarmless(lock, guard string) []string {
	var overlapped, runs int64
	for _, r := range e {
		if r.Lock == lock && r.Guard == guard && r.decided() {
			runs++
			overlapped += int64(one(r.DoubleGrants+r.UsesAfterExpiry > 0))
		}
	}
	if overlapped == 0 {
		return []string{"no two held it at once, so that the guard had nothing to refuse"}
	}
	return []string{fmt.Sprintf("two held it at once in %d of %s, and nothing was lost", overlapped, runsOf(runs))}
}

// ofKin says what broke locks that end by the same rule: on the same servers by the same clock,
// or with a connection. It is no evidence of this one, but who chooses it should know.
func (e Evidence) ofKin(lock, guard string) []string {
	info, known := infoOf(lock)
	if !known {
		return nil
	}
	var order []string
	kin := make(map[string][]string) // by what broke them
	for _, other := range e.Locks() {
		theirs, is := infoOf(other)
		if !is || !kinship(lock, other, info, theirs) {
			continue
		}
		what := e.brokeKin(lock, other, guard, func(c Class) bool { return losesToo(info, c) })
		if what == "" {
			continue
		}
		if len(kin[what]) == 0 {
			order = append(order, what)
		}
		kin[what] = append(kin[what], other)
	}
	for i, what := range order {
		others, end, was := kin[what], "ends", "was"
		if len(others) > 1 {
			end, was = "end", "were"
			what = strings.ReplaceAll(what, "by itself", "by themselves")
		}
		order[i] = fmt.Sprintf("%s, which %s by the same rule, %s %s", strings.Join(others, ", "), end, was, what)
	}
	return order
}

// brokeKin says in words how the other lock broke where this one did not as badly; "" if in no way
// that counts.
func (e Evidence) brokeKin(lock, other, guard string, counts func(Class) bool) string {
	var all []string
	for _, class := range []Class{ByLock, ByExpiry} {
		var faults []string
		for _, fault := range e.faultsOf(other, guard) {
			worst, worse := e.worseOfKin(lock, other, fault, guard)
			if !worse || worst.Class != class || !counts(class) {
				continue
			}
			// A case is named once, not under each fault that it is a case of.
			if under := worst.under(cmp.Or(worst.Case, fault)); !slices.Contains(faults, under) {
				faults = append(faults, under)
			}
		}
		if i := slices.Index(faults, None); i >= 0 {
			all, faults = append(all, brokenWords(class)+" without any fault"), slices.Delete(faults, i, i+1)
		}
		if len(faults) > 0 {
			all = append(all, brokenWords(class)+" under "+strings.Join(faults, ", "))
		}
	}
	return strings.Join(all, ", and ")
}

// kinship says whether what broke the other lock says something of this one.
func kinship(lock, other string, info, theirs clients.Info) bool {
	return other != lock && theirs.Naive == "" && !strings.ContainsAny(other, useSign+"+") && related(info, theirs)
}

// worseOfKin is how the other lock broke under a fault, if that is worse than what is known of
// this one.
func (e Evidence) worseOfKin(lock, other, fault, guard string) (Group, bool) {
	theirs, broken := e.Cell(other, fault, guard).Worst()
	ours, also := e.Cell(lock, fault, guard).Worst()
	return theirs, broken && (!also || theirs.Class.severity() < ours.Class.severity())
}

// brokenKin lists the locks that end by the same rule and are broken by themselves where this one
// held.
func (e Evidence) brokenKin(lock, fault, guard string) []string {
	info, known := infoOf(lock)
	if !known {
		return nil
	}
	var kin []string
	for _, other := range e.Locks() {
		theirs, is := infoOf(other)
		if !is || !kinship(lock, other, info, theirs) {
			continue
		}
		if worst, worse := e.worseOfKin(lock, other, fault, guard); worse && worst.Class == ByLock {
			if worst.Case != "" {
				other += " (under " + worst.Case + ")"
			}
			kin = append(kin, other)
		}
	}
	return kin
}

// related says whether two locks end by the same rule.
func related(a, b clients.Info) bool {
	if inDatabase(a) || inDatabase(b) {
		return inDatabase(a) && inDatabase(b) && a.Clock == b.Clock
	}
	return a.TTL > 0 && b.TTL > 0 && kindOf(a.Servers) == kindOf(b.Servers) && a.Clock == b.Clock
}

// kindOf are the servers whose rules others have copied.
func kindOf(servers string) string {
	if servers == "valkey" {
		return "redis"
	}
	return servers
}

func inDatabase(info clients.Info) bool {
	return info.TTL == 0 && slices.Contains(databases[:], info.Servers)
}

// losesToo says whether what broke a lock of the same kin may lose data of this one. Each lock
// with a lease can be used after it, which its own runs show.
func losesToo(info clients.Info, class Class) bool {
	return class == ByLock || class == ByExpiry && info.TTL == 0
}

// failover looks at all runs in which holders were killed.
func failover(e Evidence, lock, guard string) (Fit, bool) {
	open, broke := e.withoutFaults(lock, guard)
	if guard != history.GuardNone || broke {
		return Fit{}, false
	}
	var holders, runs int64
	var longest, lease time.Duration
	for _, r := range e {
		f, killed := r.fault(Normal("kill:holder"))
		if r.Lock != lock || r.Guard != guard || !killed || f.Met == 0 || r.Failover == nil {
			continue
		}
		if r.Failover.Stuck > 0 || r.Failover.Longest > soonFailover {
			return Fit{}, false
		}
		runs, holders, longest, lease = runs+1, holders+r.Failover.Holders, max(longest, r.Failover.Longest), max(lease, r.Lease)
	}
	if holders == 0 {
		return Fit{}, false
	}
	fact := fmt.Sprintf("longest of %d: %s", holders, longest.Round(time.Millisecond))
	if lease > 0 {
		fact += fmt.Sprintf(", with leases of %s at most", lease)
	} else {
		fact += ", no lease: it ends with the connection of its holder"
	}
	fit := Fit{Runs: runs, Held: 1, Settings: 1, Known: []string{fact}, Open: open}
	_, fit.Bound = stats.Exact(0, runs)
	fit.Unproven = e.unproven(lock, guard)
	if machine := Normal("crash:holder"); e.Cell(lock, machine, guard).State == NotTried {
		fit.Unproven = append(fit.Unproven, machine)
	}
	for _, fault := range e.faultsOf(lock, guard) {
		if worst, broken := e.Cell(lock, fault, guard).Worst(); broken {
			fit.Known = append(fit.Known, fmt.Sprintf("%s under %s", worst.words(), worst.under(fault)))
		}
	}
	return fit, true
}

// words say how the lock broke.
func (g Group) words() string {
	if g.Class == ByToken && g.Pool.Lost == 0 {
		return brokenWords(ByToken) + " (nothing was lost)"
	}
	return brokenWords(g.Class)
}

func brokenWords(c Class) string {
	return map[Class]string{ByLock: "BROKEN by itself", ByExpiry: "used after expiry", ByUse: "written without the lock", ByToken: "token out of order", Stuck: "stuck", Late: "passed on late"}[c]
}

// databases are the clusters that somebody may have without any lock.
var databases = [...]string{"postgres", "mariadb"}

func noInfrastructure(e Evidence, lock, guard string) (Fit, bool) {
	info, known := infoOf(lock)
	if !known || info.Servers != "none" && !slices.Contains(databases[:], info.Servers) {
		return Fit{}, false
	}
	fit, is := safety(e, lock, guard)
	if info.Servers == "none" {
		fit.Known = append(fit.Known, "needs no servers, but a local file system that all workers share")
	} else {
		fit.Known = append(fit.Known, "needs "+info.Servers)
	}
	if guard == history.GuardDatabase {
		fit.Known = append(fit.Known, "only for data in that database, written through the connection that holds the lock")
	}
	return fit, is
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

// Locks lists those of which there are runs: in the order of the table of locks, then others.
func (e Evidence) Locks() []string {
	var names []string
	for _, r := range e {
		if !slices.Contains(names, r.Lock) {
			names = append(names, r.Lock)
		}
	}
	table := clients.Names()
	place := func(lock string) int {
		name, _, _ := strings.Cut(lock, "@")
		name = strings.FieldsFunc(name, func(r rune) bool { return r == '+' || r == ',' })[0]
		if i := slices.Index(table, name); i >= 0 {
			return i
		}
		return len(table)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b)) })
	return names
}

// guardsOf lists the guards of the runs of a lock, none first.
func (e Evidence) guardsOf(lock string) []string {
	var guards []string
	for _, r := range e {
		if r.Lock == lock && !slices.Contains(guards, r.Guard) {
			guards = append(guards, r.Guard)
		}
	}
	slices.SortFunc(guards, compareGuards)
	return guards
}

func compareGuards(a, b string) int {
	return cmp.Or(cmp.Compare(one(b == history.GuardNone), one(a == history.GuardNone)), cmp.Compare(a, b))
}

// faultsOf lists the faults of the runs of a lock behind a guard, the usual ones first.
func (e Evidence) faultsOf(lock, guard string) []string {
	faults := Usual()
	for _, r := range e {
		if r.Lock != lock || r.Guard != guard {
			continue
		}
		for _, f := range r.Faults {
			if !slices.Contains(faults, f.Name) {
				faults = append(faults, f.Name)
			}
		}
	}
	return faults
}
