// Package sweep measures with which leases, pauses of holders or critical sections a lock
// stops keeping workers apart. It begins with a coarse grid, and spends the rest of its
// budget where neighbours differ.
package sweep

import (
	"time"

	"lockcheck/clients"
	"lockcheck/history"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/runs"
	"lockcheck/nemesis"
	"lockcheck/workloads"
)

// Plan says what a sweep varies. Spans whose ends are equal do not vary.
type Plan struct {
	Lock    string          `json:"lock"`
	Version string          `json:"version,omitempty"` // of the servers; "" for the usual one
	TTL     workloads.Range `json:"ttl"`
	Pause   workloads.Range `json:"pause"`
	Section workloads.Range `json:"section"`
	// Steps is how many values of each the sweep begins with, both ends included.
	Steps            int    `json:"steps"`
	Renew            bool   `json:"renew,omitempty"`
	CheckBeforeWrite bool   `json:"check_before_write,omitempty"`
	Seed             uint64 `json:"seed"`

	info clients.Info
}

// Ready looks up the lock and checks the plan. Its error is one of usage.
func (p Plan) Ready() (Plan, error) {
	lock, err := lockfile.Find(p.Lock)
	if err != nil {
		return p, &runs.UsageError{Err: err, About: "lock"}
	}
	p.info = lock.Info
	if p.info.TTL == 0 {
		return p, runs.Usagef("--lock %s: it has no lease", p.Lock)
	}
	return p, p.Check()
}

// Times of a trial.
const (
	// most and enough are how many pauses it has: as many as take this long.
	most   = 4
	enough = 8 * time.Second
	// late is the length of a section from which on a pause begins when half of it is over.
	// Of shorter ones it might miss the end.
	late = 100 * time.Millisecond
	// workers contend for one lock: one more than can be in the way of each other.
	workers = 3
)

// pauses is how many a trial has.
func (p Point) pauses() int {
	return int(min(max(enough/p.Pause, 1), most))
}

// into is how long a holder has been in its section when its pause begins.
func (p Point) into() time.Duration {
	if p.Section < late {
		return 0
	}
	return (p.Section / 2).Round(time.Millisecond)
}

type trial struct {
	point   Point
	outline runs.Outline
	// takes is how long it is expected to take.
	takes time.Duration
}

// trial plans a run. Its error is a *runs.UsageError where the point makes no sense for the
// lock, or cannot be tested on this machine.
func (p Plan) trial(point Point) (trial, error) {
	o := runs.Options{
		Lock: p.Lock, ServerVersion: p.Version, Workload: history.WorkloadSet, Guard: string(workloads.NoGuard),
		Concurrency: workers, EndEarly: true, MinOps: 1,
		Use: workloads.Use{
			TTL: point.TTL, Section: workloads.Range{Min: point.Section, Max: point.Section},
			Renew: p.Renew, CheckBeforeWrite: p.CheckBeforeWrite,
		},
	}
	n := time.Duration(point.pauses())
	o.Schedule = &nemesis.Schedule{Steps: []nemesis.Step{{
		ID: pauseStep, Fault: history.Pause, Target: "holder", When: nemesis.WhenHolding,
		Into: nemesis.Span{Plus: point.into()}, For: nemesis.Span{Plus: point.Pause},
		After: nemesis.Span{Plus: 100 * time.Millisecond},
		// Somebody else has it in between.
		Every: nemesis.Span{Plus: point.Pause + 2*point.Section + 100*time.Millisecond}, Times: int(n),
	}}}
	outline, err := runs.OutlineOf(o)
	if err != nil {
		return trial{}, err
	}
	each := point.Pause + 4*point.Section + 200*time.Millisecond
	// The run ends with its schedule; this is for one whose holders are hard to meet.
	o.TimeLimit = (outline.Recovery + 2*time.Second + n*(each+2*point.Section+point.TTL) + time.Second - 1).Truncate(time.Second)
	outline, err = runs.OutlineOf(o)
	return trial{point, outline, startAndEnd + outline.Recovery + n*each}, err
}

// startAndEnd is what servers and workers take to start and end.
const startAndEnd = 5 * time.Second

// pauseStep names the pauses.
const pauseStep = "pause"

// rule is how long a lease must be in theory. What is renewed each third of its lease has two
// thirds of it left at least when a pause begins.
func (p Plan) rule() Rule {
	if p.info.Session || p.Renew {
		return Rule{Pauses: 1.5}
	}
	return Rule{Pauses: 1, Sections: 1}
}
