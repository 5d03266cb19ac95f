// Package advise turns a team's figures into advice about locks. Its rules are those of docs/costs.md.
package advise

import (
	"fmt"
	"strings"
	"time"

	"lockcheck/clients"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/remedies"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites/guide"
	"lockcheck/reports"
	"lockcheck/workloads"
)

// Needs are the figures of a team.
type Needs struct {
	// SectionP99 is the 99th percentile of the team's critical sections, and SectionMax an upper bound of all
	// of them; 0 if unknown.
	SectionP99 time.Duration
	SectionMax time.Duration
	// LongestPause is the longest time for which one of the team's processes was ever seen paused.
	LongestPause time.Duration
	// Failover is the time within which another worker must get the lock of a dead holder; 0 for any time.
	Failover time.Duration
	Locks    []string
}

// DefaultLocks has one lock of each kind that teams choose from.
func DefaultLocks() []string {
	return []string{"redis", "redlock", "etcd", "zookeeper", "consul", "postgres-lease", "postgres-session"}
}

// Advise says what the figures require, and what is known to break the locks that meet them. Its error is one
// of usage.
func Advise(n Needs, known guide.Evidence) (reports.Advice, error) {
	if err := n.validate(); err != nil {
		return reports.Advice{}, err
	}
	a := reports.Advice{
		SectionP99: n.SectionP99, SectionMax: n.SectionMax, LongestPause: n.LongestPause, Failover: n.Failover,
		Unproven: n.unproven(),
	}
	for _, name := range n.Locks {
		lock, err := lockfile.Find(name)
		if err != nil {
			return a, &runs.UsageError{Err: err, About: "lock"}
		}
		a.Locks = append(a.Locks, withKnown(n.adviceFor(name, lock.Info), lock.Info.Name, known))
	}
	return a, nil
}

func (n Needs) validate() error {
	switch {
	case n.SectionP99 <= 0:
		return runs.Usagef("--section-p99: say how long 99 of 100 critical sections last at most, as in 300ms")
	case n.LongestPause <= 0:
		return runs.Usagef("--longest-pause: say how long a process of yours was ever stopped, as in 4s")
	case n.Failover < 0:
		return runs.Usagef("--failover must not be negative; write the longest time that others may wait for a dead holder, as in 10s")
	case n.SectionMax != 0 && n.SectionMax < n.SectionP99:
		return runs.Usagef("--section-max %s: it is less than --section-p99 %s", n.SectionMax, n.SectionP99)
	case len(n.Locks) == 0:
		return runs.Usagef("--lock: name at least one, as in --lock redis,etcd")
	}
	return nil
}

// Margins added to what a lease must outlast.
const (
	// fixedMargin covers the round trip to the service, and timers.
	fixedMargin = 100 * time.Millisecond
	// clockShare covers clocks that run at different speeds, and figures that were not quite the worst case.
	clockShare = 10
)

func withMargin(d time.Duration) time.Duration { return d + d/clockShare + fixedMargin }

// renewals is how many pauses a lease must last if it is renewed every third of its length. When a pause
// begins, at least two thirds of the lease are left.
const renewals = 1.5

type plan struct {
	lease time.Duration // 0 for a lock without a lease
	renew bool          // by the worker
	why   string
	// outlasts is the shortest lease that suffices. It is less than lease if servers with default settings
	// grant none so short.
	outlasts time.Duration
}

// plan is the shortest lease that suffices and that servers with default settings grant.
func (n Needs) plan(info clients.Info) plan {
	var p plan
	pause := withMargin(n.LongestPause)
	switch {
	case info.TTL == 0:
		return p
	case info.Session || info.Renew && n.SectionMax == 0:
		p.lease, p.renew = time.Duration(renewals*float64(pause)), !info.Session
		p.why = fmt.Sprintf("1.5 × (pause %s + margin %s): what is renewed each third of the lease has two thirds left when a pause begins", n.LongestPause, pause-n.LongestPause)
	default:
		hold := n.LongestPause + n.longest()
		p.lease = withMargin(hold)
		p.why = fmt.Sprintf("pause %s + section %s + margin %s, without renewal", n.LongestPause, n.longest(), p.lease-hold)
	}
	p.outlasts = info.Lease(roundedUp(p.lease))
	p.lease = max(p.outlasts, info.Delivered.MinTTL)
	return p
}

func (n Needs) longest() time.Duration { return max(n.SectionP99, n.SectionMax) }

// unit is the granularity of leases, which keeps them readable.
const unit = 10 * time.Millisecond

func roundedUp(d time.Duration) time.Duration { return (d + unit - 1) / unit * unit }

func (n Needs) adviceFor(name string, info clients.Info) reports.LockAdvice {
	p := n.plan(info)
	a := reports.LockAdvice{
		Lock: name, Ends: endsWith(info), Lease: p.lease, Renew: p.renew, Why: p.why,
		Guard: string(remedies.GuardOf(info)), RestsOn: restsOn(name, info),
	}
	if info.MaxTTL > 0 && p.lease > info.MaxTTL {
		a.Unfit = fmt.Sprintf("it takes a lease of %s, and its servers allow %s at most", p.lease, info.MaxTTL)
		if d := info.Delivered; d.MaxTTL > 0 {
			a.Unfit = fmt.Sprintf("it takes a lease of %s; servers as delivered grant %s at most, and those of lockcheck, with another %s, %s", p.lease, d.MaxTTL, d.MaxSetting, info.MaxTTL)
		}
		return a
	}
	if info.TTL > 0 {
		a.FreeAfter = info.Effective(p.lease, info.LockDelay)
		a.Servers = serverLimits(info.Delivered, p)
		n.addContradiction(&a, info, p)
	}
	n.addCheck(&a, info)
	return a
}

// withKnown adds what is known to break a lock that fits. The evidence uses the lock's own name, not the path
// of its file.
func withKnown(a reports.LockAdvice, name string, known guide.Evidence) reports.LockAdvice {
	if a.Unfit != "" {
		return a
	}
	a.Runs = known.Runs(name, a.Guard)
	for _, b := range known.Breaks(name, a.Guard) {
		a.Known = append(a.Known, reports.KnownBreak{Fault: b.Alone.Fault, Alone: b.Alone.Text(), Guarded: b.Guarded.Text(), Line: b.Worst().Groups[0].Command()})
	}
	return a
}

func endsWith(info clients.Info) string {
	switch {
	case info.Session:
		return "a session that its client keeps alive"
	case info.TTL > 0:
		return "a lease"
	}
	return "its holder's connection"
}

// serverLimits says where the advised lease exceeds the limits of servers with default settings; "" if it does
// not.
func serverLimits(d clients.Delivered, p plan) string {
	switch {
	case p.outlasts < d.MinTTL:
		return fmt.Sprintf("as delivered they grant no lease below %s (%s), else %s were enough", d.MinTTL, d.MinSetting, p.outlasts)
	case d.MaxTTL > 0 && p.lease > d.MaxTTL:
		return fmt.Sprintf("as delivered they grant %s at most: set %s to %s or more", d.MaxTTL, d.MaxSetting, p.lease)
	}
	return ""
}

// addContradiction says that no lease meets the wanted failover, and what can meet it.
func (n Needs) addContradiction(a *reports.LockAdvice, info clients.Info, p plan) {
	if n.Failover == 0 || a.FreeAfter <= n.Failover {
		return
	}
	a.Contradiction = fmt.Sprintf("a lock whose holder died is free after %s, and you want %s: ", a.FreeAfter, n.Failover)
	lower := "set " + info.Delivered.MinSetting + " to it"
	if free := info.Effective(p.outlasts, info.LockDelay); free <= n.Failover {
		a.Contradiction += fmt.Sprintf("a lease of %s outlasts the pause and ends after %s, if you %s", p.outlasts, free, lower)
		return
	}
	a.Contradiction += "no lease both outlasts the pause and ends so soon"
	if lease, fits := shortened(info, n.Failover); fits {
		a.ShortLease = lease
		a.Contradiction += fmt.Sprintf("; with guard %s a lease of %s is safe, for what a paused holder writes is refused", a.Guard, lease)
		if lease < info.Delivered.MinTTL {
			a.Contradiction += "; " + lower
		}
	} else {
		a.Contradiction += "; its servers accept no lease that ends so soon"
	}
}

// shortened is the longest lease with which a lock is free again within the failover time.
func shortened(info clients.Info, failover time.Duration) (time.Duration, bool) {
	left := failover - info.LockDelay
	if info.Expiry > 0 {
		left = time.Duration(float64(left) / info.Expiry)
	}
	if info.TTLStep > 0 {
		left = left / info.TTLStep * info.TTLStep
	}
	left = left.Truncate(time.Millisecond)
	return left, left > 0 && left >= info.MinTTL
}

// restsOn names the reproductions that support the advice.
func restsOn(name string, info clients.Info) []string {
	if lockfile.IsPath(name) || !info.PassesOn() {
		return nil
	}
	base, _, _ := strings.Cut(name, "+")
	all := []string{"holder-pause-" + base}
	if workloads.Fence.Lacks(info) == "" {
		all = append(all, "holder-pause-fenced-"+base)
	}
	return all
}

// unproven lists the assumptions that no run can check for a team.
func (n Needs) unproven() []string {
	all := []string{
		fmt.Sprintf("That no pause is longer than %s. The longest that was seen is no bound: only a guard makes a longer one safe.", n.LongestPause),
		"That clocks of servers do not jump. A lock that depends on a wall clock is lost with a step, whatever its lease.",
		"That servers keep what they acknowledged. Where they fail over, or restart empty, a lease helps nobody.",
	}
	if n.SectionMax == 0 {
		all = append(all, fmt.Sprintf("How long the longest section is: one in a hundred is longer than %s. With renewal that does not matter; without it, a longer section that is paused can outlast its lease. With --section-max the lease covers it.", n.SectionP99))
	}
	return all
}
