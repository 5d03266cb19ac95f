// Package hunt searches for short schedules of faults that break a lock. What it finds it
// makes smaller and writes down as a reproduction. Where trials aim follows from what earlier
// ones met, but for a share that is drawn blindly, with which the others are compared.
package hunt

import (
	"cmp"
	"time"

	"lockcheck/clients"
	"lockcheck/clusters"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
)

// Plan says what is hunted for.
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
	// Shard is the part of the hunt that this machine makes, of trials that are dealt out.
	Shard suites.Shard `json:"shard,omitzero"`
	// Missing are the parts of a hunt that was put together of which nothing came back.
	Missing []suites.Shard `json:"missing,omitempty"`

	info    clients.Info
	servers clusters.Spec
	space   space
}

// DefaultBlind is the usual share of trials that are drawn blindly.
const DefaultBlind = 0.25

// Ready looks up the lock, and what its trials can do. Its error is one of usage.
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
	p.info, p.servers = lock.Info, lock.Servers
	if _, err := p.outline(Trial{Workers: fewest, Section: shortest}); err != nil {
		return p, err
	}
	if p.Nodes > 0 { // known by now as one that the lock can have
		p.servers.Nodes, p.servers.Sizes = p.Nodes, nil
	}
	p.space = p.spaceOf()
	return p, nil
}

// lease is what trials ask for: the shortest that tells something; 0 for a lock without one.
func (p Plan) lease() time.Duration { return cmp.Or(p.TTL, p.info.ShortestTTL()) }

// shortDelay is a lock delay that is long for a trial and short for a hunt.
const shortDelay = time.Second

// lockDelay is that of trials; nil for the usual one, and for a lock without any.
func (p Plan) lockDelay() *time.Duration {
	if p.info.LockDelay <= shortDelay {
		return nil
	}
	delay := shortDelay
	return &delay
}

// isBlind says whether the i-th trial of this part is drawn blindly: the share is kept at any time,
// and by few trials of many parts, too.
func (p Plan) isBlind(i int) bool {
	before := float64(i) * p.Blind
	if p.Shard.Of > 0 {
		before += float64(p.Shard.N-1) / float64(p.Shard.Of)
	}
	return int(before+p.Blind) > int(before)
}
