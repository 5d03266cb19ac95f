// Package hunt searches for short schedules of faults that break a lock, reduces what it finds, and writes
// each finding as a reproduction. Guided trials are chosen by what earlier trials covered. Blind trials are
// drawn at random and are the baseline.
package hunt

import (
	"time"

	"lockcheck/internal/lockfile"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/internal/suites/trials"
)

// Plan says what a hunt tries. It must be made usable with Ready.
type Plan struct {
	Lock    string `json:"lock"`
	Version string `json:"version,omitempty"` // of the servers; "" for the default version
	// Nodes is the number of servers in all trials; 0 for the default number in most trials and other numbers
	// in some.
	Nodes int `json:"nodes,omitempty"`
	// TTL is the lease in most trials; 0 for the shortest lease that gives meaningful results.
	TTL  time.Duration `json:"ttl_ns,omitempty"`
	Seed uint64        `json:"seed"`
	// Blind is the share of trials, 0 to 1, that are drawn without regard to earlier trials.
	Blind float64 `json:"blind"`
	// Shard is the part of the trials that this hunt makes; zero for all trials.
	Shard suites.Shard `json:"shard,omitzero"`
	// Missing lists the parts that a merged hunt lacks.
	Missing []suites.Shard `json:"missing,omitempty"`

	subject trials.Subject
	space   space
}

// DefaultBlind is the default share of blind trials.
const DefaultBlind = 0.25

// Ready looks up the lock and finds what its trials can be made of. Its error is one of usage.
func (p Plan) Ready() (Plan, error) {
	lock, err := lockfile.Find(p.Lock)
	if err != nil {
		return p, &runs.UsageError{Err: err, About: "lock"}
	}
	if p.Blind < 0 || p.Blind > 1 {
		return p, runs.Usagef("--blind %v: it must be 0 to 1", p.Blind)
	}
	if p.TTL < 0 {
		return p, runs.Usagef("--ttl %s: a lease must be positive", p.TTL)
	}
	p.subject = trials.Subject{Lock: lock, Name: p.Lock, Version: p.Version, Nodes: p.Nodes, TTL: p.TTL}
	if _, err := p.outline(Trial{Use: trials.Use{Workers: fewest, Section: shortest}}); err != nil {
		return p, err
	}
	if p.Nodes > 0 { // outline has checked that the lock can have this many servers
		p.subject.Servers.Nodes, p.subject.Servers.Sizes = p.Nodes, nil
	}
	p.space = p.spaceOf()
	return p, nil
}

// isBlind says whether the i-th trial of this part is blind. The share of blind trials is kept at any time,
// even if many parts make few trials each.
func (p Plan) isBlind(i int) bool {
	before := float64(i) * p.Blind
	if p.Shard.Of > 0 {
		before += float64(p.Shard.N-1) / float64(p.Shard.Of)
	}
	return int(before+p.Blind) > int(before)
}
