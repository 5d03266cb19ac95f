// Package hunt searches for short schedules of faults that break a lock, reduces what it finds, and writes it as a
// reproduction. Guided trials aim by what earlier ones covered. Blind ones are drawn by chance and are the baseline.
package hunt

import (
	"time"

	"lockcheck/internal/lockfile"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/internal/suites/trials"
)

// Plan says what a hunt tries. Only Ready makes it fit for use.
type Plan struct {
	Lock    string `json:"lock"`
	Version string `json:"version,omitempty"` // of the servers; "" for the usual one
	// Nodes is the number of servers in all trials; 0 for the usual one, and others in some.
	Nodes int `json:"nodes,omitempty"`
	// TTL is the lease in most trials; 0 for the shortest that tells something.
	TTL  time.Duration `json:"ttl_ns,omitempty"`
	Seed uint64        `json:"seed"`
	// Blind is the share of trials, 0 to 1, that are drawn without regard to earlier ones.
	Blind float64 `json:"blind"`
	// Shard is the part of the trials that this hunt makes; zero for all.
	Shard suites.Shard `json:"shard,omitzero"`
	// Missing are the parts that a merged hunt lacks.
	Missing []suites.Shard `json:"missing,omitempty"`

	subject trials.Subject
	space   space
}

// DefaultBlind is the usual share of trials that are drawn blindly.
const DefaultBlind = 0.25

// Ready finds the lock and what its trials can be made of. Its error is one of usage.
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
	if p.Nodes > 0 { // outline has checked that the lock can have it
		p.subject.Servers.Nodes, p.subject.Servers.Sizes = p.Nodes, nil
	}
	p.space = p.spaceOf()
	return p, nil
}

// isBlind says whether the i-th trial of this part is blind. At any time the share is kept, by few trials of many parts
// together as well.
func (p Plan) isBlind(i int) bool {
	before := float64(i) * p.Blind
	if p.Shard.Of > 0 {
		before += float64(p.Shard.N-1) / float64(p.Shard.Of)
	}
	return int(before+p.Blind) > int(before)
}
