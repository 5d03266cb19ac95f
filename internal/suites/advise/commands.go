package advise

import (
	"fmt"
	"strings"
	"time"

	"lockcheck/clients"
	"lockcheck/internal/remedies"
	"lockcheck/internal/runs"
	"lockcheck/workloads"
)

// tests is how many runs an advice is tested with.
const tests = 20

// commands are the lines by which a team checks an advice on its own machine: what holds,
// what must not, and the guard.
func (n Needs) commands(name string, info clients.Info, p plan) []string {
	if p.lease == 0 {
		return []string{n.line(name, p, fmt.Sprintf("--test-count %d", tests))}
	}
	lines := []string{n.line(name, p, fmt.Sprintf("--test-count %d", tests))}
	if half, loses := n.half(info, p); loses {
		lines = append(lines, n.line(name, half, "--expect violation"))
	}
	short := plan{lease: info.Lease((p.lease / 4).Truncate(unit)), renew: p.renew}
	return append(lines, n.line(name, short, "--guard "+string(remedies.GuardOf(info))))
}

// half is the plan with half of its lease, and whether a pause must break that.
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

// Options are those of a run with the advised lease of a lock, or with half of it; false if
// half of it need not lose anything.
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
