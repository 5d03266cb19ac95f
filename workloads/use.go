package workloads

import (
	"cmp"
	"time"
)

// Use says how a worker uses its lock. It is handed on whole, from what a user asks for to
// what a worker process is told.
type Use struct {
	// TTL is the lease that attempts ask for; 0 for a lock without one.
	TTL time.Duration `json:"ttl_ns" yaml:"ttl,omitempty"`
	// Permits is how many may hold the lock at once, of one that has permits; 0 for one.
	Permits int `json:"permits,omitempty" yaml:"permits,omitempty"`
	// Section is the time between read and write.
	Section Range `json:"section" yaml:"section,omitempty"`
	// Updates is how many updates a worker makes in one hold, each with a section of its own; 0
	// for as many as the workload says.
	Updates int `json:"updates,omitempty" yaml:"updates,omitempty"`
	// Think is the time between two holds; nil for 0 to 10 ms.
	Think *Range `json:"think,omitempty" yaml:"think,omitempty"`
	// Bare leaves the resource alone: the worker takes the lock, lets the time of its section
	// pass, and gives it back. OwnKey gives each such worker a lock of its own.
	Bare   bool `json:"bare,omitempty" yaml:"-"`
	OwnKey bool `json:"own_key,omitempty" yaml:"-"`
	// Wait is how long an attempt waits in the queue of a lock that has one; 0 for as long
	// as other calls.
	Wait time.Duration `json:"wait_ns,omitempty" yaml:"wait,omitempty"`
	// LockDelay is how long the service keeps the lock of a lost session: nil for the usual
	// time, 0 for not at all.
	LockDelay *time.Duration `json:"lock_delay_ns,omitempty" yaml:"lock-delay,omitempty"`
	// NoKeepAlive leaves the lease of a session to run out.
	NoKeepAlive bool `json:"no_keep_alive,omitempty" yaml:"no-keep-alive,omitempty"`
	// Renew extends the lease each TTL/3 while the worker is in its section.
	Renew bool `json:"renew,omitempty" yaml:"renew,omitempty"`
	// CheckBeforeWrite makes the worker look at its deadline before it writes.
	CheckBeforeWrite bool `json:"check_before_write,omitempty" yaml:"check-before-write,omitempty"`
	// ExitOnLoss ends the process of a worker that learns that its lock is lost, with all that it
	// does, and starts it again, as operators of Kubernetes do.
	ExitOnLoss bool `json:"exit_on_loss,omitempty" yaml:"exit-on-loss,omitempty"`
	// IgnoreFailedAcquire makes the worker go on as if it had the lock when its acquire
	// fails, as a program does that drops the error. One that finds the lock taken is no
	// failure.
	IgnoreFailedAcquire bool `json:"ignore_failed_acquire,omitempty" yaml:"ignore-failed-acquire,omitempty"`
	// After is how long the worker waits before its first attempt, Holds after how many
	// holds it has done its part; 0 for never.
	After time.Duration `json:"after_ns,omitempty" yaml:"after,omitempty"`
	Holds int           `json:"holds,omitempty" yaml:"holds,omitempty"`
}

// Or returns the use with what it leaves open as in another.
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
