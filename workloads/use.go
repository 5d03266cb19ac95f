package workloads

import (
	"cmp"
	"time"
)

// Use says how a worker uses its lock. It is passed on unchanged from the user's request to the worker process.
type Use struct {
	// TTL is the lease that attempts request; 0 for a lock without leases.
	TTL time.Duration `json:"ttl_ns" yaml:"ttl,omitempty"`
	// Permits is how many clients may hold a semaphore at once; 0 for one.
	Permits int `json:"permits,omitempty" yaml:"permits,omitempty"`
	// Section is the time between read and write.
	Section Range `json:"section" yaml:"section,omitempty"`
	// Updates is how many updates a worker makes in one hold, each in a section of its own; 0 for the
	// workload's number.
	Updates int `json:"updates,omitempty" yaml:"updates,omitempty"`
	// Think is the time between two holds; nil for 0 to 10 ms.
	Think *Range `json:"think,omitempty" yaml:"think,omitempty"`
	// Bare: the worker does not use the resource. It takes the lock, waits for the time of its section, and
	// releases the lock. OwnKey gives each such worker a lock of its own.
	Bare   bool `json:"bare,omitempty" yaml:"-"`
	OwnKey bool `json:"own_key,omitempty" yaml:"-"`
	// Wait is how long an attempt waits in the queue of a lock that has one; 0 for the timeout of other calls.
	Wait time.Duration `json:"wait_ns,omitempty" yaml:"wait,omitempty"`
	// LockDelay is how long the service refuses the lock after its session was lost: nil for the default, 0 for
	// no delay.
	LockDelay *time.Duration `json:"lock_delay_ns,omitempty" yaml:"lock-delay,omitempty"`
	// NoKeepAlive lets the lease of a session expire without renewal.
	NoKeepAlive bool `json:"no_keep_alive,omitempty" yaml:"no-keep-alive,omitempty"`
	// Renew extends the lease every TTL/3 while the worker is in its section.
	Renew bool `json:"renew,omitempty" yaml:"renew,omitempty"`
	// CheckBeforeWrite makes the worker check its deadline before it writes.
	CheckBeforeWrite bool `json:"check_before_write,omitempty" yaml:"check-before-write,omitempty"`
	// ExitOnLoss ends the process of a worker that learns that its lock is lost, with everything in progress.
	// The process is started again, as with Kubernetes operators.
	ExitOnLoss bool `json:"exit_on_loss,omitempty" yaml:"exit-on-loss,omitempty"`
	// IgnoreFailedAcquire makes the worker continue without the lock when its acquire fails, like a program
	// that ignores the error. An answer that the lock is taken is no failure.
	IgnoreFailedAcquire bool `json:"ignore_failed_acquire,omitempty" yaml:"ignore-failed-acquire,omitempty"`
	// After is how long the worker waits before its first attempt. Holds is the number of holds after which it
	// stops; 0: it does not stop.
	After time.Duration `json:"after_ns,omitempty" yaml:"after,omitempty"`
	Holds int           `json:"holds,omitempty" yaml:"holds,omitempty"`
}

// Or returns the use with its zero fields replaced by those of other.
func (u Use) Or(other Use) Use {
	return Use{
		TTL: cmp.Or(u.TTL, other.TTL), Section: cmp.Or(u.Section, other.Section), Wait: cmp.Or(u.Wait, other.Wait),
		Updates: cmp.Or(u.Updates, other.Updates), Permits: cmp.Or(u.Permits, other.Permits),
		Think: cmp.Or(u.Think, other.Think), Bare: u.Bare || other.Bare, OwnKey: u.OwnKey || other.OwnKey,
		LockDelay: cmp.Or(u.LockDelay, other.LockDelay), NoKeepAlive: u.NoKeepAlive || other.NoKeepAlive,
		Renew: u.Renew || other.Renew, CheckBeforeWrite: u.CheckBeforeWrite || other.CheckBeforeWrite,
		ExitOnLoss:          u.ExitOnLoss || other.ExitOnLoss,
		IgnoreFailedAcquire: u.IgnoreFailedAcquire || other.IgnoreFailedAcquire,
		After:               cmp.Or(u.After, other.After), Holds: cmp.Or(u.Holds, other.Holds),
	}
}
