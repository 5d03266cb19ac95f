// Package sweep measures for which leases, pauses of holders and critical sections a lock stops keeping
// workers apart. It begins with a coarse grid and spends the rest of its budget where neighbours differ.
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

// Plan says what a sweep varies. A range with equal ends does not vary.
type Plan struct {
	Lock    string          `json:"lock"`
	Version string          `json:"version,omitempty"` // of the servers; "" for the default version
	TTL     workloads.Range `json:"ttl"`
	Pause   workloads.Range `json:"pause"`
	Section workloads.Range `json:"section"`
	// Steps is how many values per range the first grid has, both ends included.
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
		return p, runs.Usagef("--locks %s: it has no lease to sweep; name a lock with one", p.Lock)
	}
	return p, p.Check()
}

// Times of a trial.
const (
	// A trial has at most mostPauses pauses, and no more than fit into pauseTime.
	mostPauses = 4
	pauseTime  = 8 * time.Second
	// halfwayFrom is the shortest section in which a pause begins halfway. In shorter sections, a pause at half the
	// section might come after the end.
	halfwayFrom = 100 * time.Millisecond
	// workers contend for one lock: one more than the two that can overlap.
	workers = 3
)

func (p Point) pauses() int {
	return int(min(max(pauseTime/p.Pause, 1), mostPauses))
}

// pauseOffset is how long a holder has been in its section when the pause begins.
func (p Point) pauseOffset() time.Duration {
	if p.Section < halfwayFrom {
		return 0
	}
	return (p.Section / 2).Round(time.Millisecond)
}

type trial struct {
	point   Point
	outline runs.Outline
	// takes is the expected length of the trial.
	takes time.Duration
}

// trial plans a run. Its error is a *runs.UsageError if the point makes no sense for the lock or cannot be
// tested on this machine.
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
		Into: nemesis.Span{Plus: point.pauseOffset()}, For: nemesis.Span{Plus: point.Pause},
		After: nemesis.Span{Plus: 100 * time.Millisecond},
		// Between two pauses, another worker gets the lock.
		Every: nemesis.Span{Plus: point.Pause + 2*point.Section + 100*time.Millisecond}, Times: int(n),
	}}}
	outline, err := runs.OutlineOf(o)
	if err != nil {
		return trial{}, err
	}
	each := point.Pause + 4*point.Section + 200*time.Millisecond
	// The run ends with its schedule. The limit is for a run that rarely finds a holder to pause.
	o.TimeLimit = (outline.Recovery + 2*time.Second + n*(each+2*point.Section+point.TTL) + time.Second - 1).Truncate(time.Second)
	outline, err = runs.OutlineOf(o)
	return trial{point, outline, startAndEnd + outline.Recovery + n*each}, err
}

// startAndEnd is the time that servers and workers take to start and end.
const startAndEnd = 5 * time.Second

// pauseStep is the ID of the pauses.
const pauseStep = "pause"

// rule is how long a lease must be in theory. A lease that is renewed every third of its length has at least
// two thirds left when a pause begins.
func (p Plan) rule() Rule {
	if p.info.Session || p.Renew {
		return Rule{Pauses: 1.5}
	}
	return Rule{Pauses: 1, Sections: 1}
}
