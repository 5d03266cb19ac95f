package advise

import (
	"fmt"
	"math"
	"strings"
	"time"

	"lockcheck/clients"
	"lockcheck/internal/remedies"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/reports"
	"lockcheck/workloads"
)

// testRuns is the number of runs that test an advice.
const testRuns = 20

// Longer sections and pauses make a check take hours. They show no more, because the same rule derives the
// lease from the shorter values that are checked instead.
const (
	longSection, checkedSection = 2 * time.Second, time.Second
	longPause, checkedPause     = 30 * time.Second, 5 * time.Second
)

// checkedNeeds returns the figures that an advice is checked with, and how they differ from the team's; "" if they
// do not.
func (n Needs) checkedNeeds() (checked Needs, instead string) {
	checked = n
	var parts []string
	if long := n.longest(); long > longSection {
		checked.SectionP99, checked.SectionMax = min(n.SectionP99, checkedSection), min(n.SectionMax, checkedSection)
		parts = append(parts, inPlace("sections", checked.longest(), long))
	}
	if n.LongestPause > longPause {
		checked.LongestPause = checkedPause
		parts = append(parts, inPlace("pauses", checkedPause, n.LongestPause))
	}
	if len(parts) == 0 {
		return checked, ""
	}
	return checked, "with " + strings.Join(parts, ", ") + ", and with the lease that follows from these"
}

func inPlace(what string, checked, asked time.Duration) string {
	return fmt.Sprintf("%s of %s instead of %s (divided by %v)", what, checked, asked, math.Round(10*float64(asked)/float64(checked))/10)
}

// addCheck adds the commands that check an advice, and says how long they take.
func (n Needs) addCheck(a *reports.LockAdvice, info clients.Info) {
	checked, instead := n.checkedNeeds()
	a.Commands, a.Check = checked.commands(a.Lock, info, checked.plan(info)), instead
	o, _ := checked.Options(a.Lock, info, false)
	outline, err := runs.OutlineOf(o)
	if err != nil {
		return // running the command reports the same error
	}
	made := testRuns + len(a.Commands) - 1
	takes := time.Duration(made) * suites.Job{Outline: outline}.Length()
	a.Check = strings.TrimPrefix(fmt.Sprintf("%s; %d runs, at most %d min", instead, made, int((takes+time.Minute-1)/time.Minute)), "; ")
}

// commands are the commands with which a team checks an advice on its own machine: what must hold, what must
// fail, and the guard.
func (n Needs) commands(name string, info clients.Info, p plan) []string {
	if p.lease == 0 {
		return []string{n.line(name, p, fmt.Sprintf("--test-count %d", testRuns))}
	}
	lines := []string{n.line(name, p, fmt.Sprintf("--test-count %d", testRuns))}
	if half, loses := n.half(info, p); loses {
		lines = append(lines, n.line(name, half, "--expect violation"))
	}
	short := plan{lease: info.Lease((p.lease / 4).Truncate(unit)), renew: p.renew}
	return append(lines, n.line(name, short, "--guard "+string(remedies.GuardOf(info))))
}

// half is the plan with half of its lease, and whether a pause must break it.
func (n Needs) half(info clients.Info, p plan) (plan, bool) {
	half := plan{lease: (p.lease / 2).Truncate(max(info.TTLStep, unit)), renew: p.renew}
	if half.lease < info.MinTTL || info.LockDelay > 0 {
		return half, false
	}
	away := n.LongestPause
	if !p.renew && !info.Session {
		away = max(away, n.longest()) // a pause begins with its section
	}
	return half, time.Duration(max(info.Expiry, 1)*float64(half.lease)) < away
}

func (n Needs) line(name string, p plan, rest string) string {
	parts := []string{"lockcheck test --lock " + name}
	if p.lease > 0 {
		parts = append(parts, "--ttl "+p.lease.String())
	}
	if p.renew {
		parts = append(parts, "--renew")
	}
	parts = append(parts, "--section "+n.longest().String(), "--nemesis pause:holder --pause "+n.LongestPause.String(), "--min-ops 1", rest)
	return strings.Join(parts, " ")
}

// Options are the options of a run with the advised lease of a lock, or with half of it; false if half of it
// need not lose updates.
func (n Needs) Options(name string, info clients.Info, half bool) (runs.Options, bool) {
	p, tells := n.plan(info), true
	if half {
		p, tells = n.half(info, p)
	}
	return runs.Options{
		Lock: name, Workload: "set", Guard: string(workloads.NoGuard), Nemesis: "pause:holder", Pause: n.LongestPause,
		Interval: runs.DefaultInterval, Concurrency: runs.DefaultConcurrency, MinOps: 1,
		Use: workloads.Use{TTL: p.lease, Renew: p.renew, Section: workloads.Range{Min: n.longest(), Max: n.longest()}},
	}, tells
}
