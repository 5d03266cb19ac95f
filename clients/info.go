package clients

import (
	"context"
	"time"

	"lockcheck/history"
)

// Info describes a lock: what a user must know before choosing it.
type Info struct {
	Name    string
	Summary string
	// Servers names the cluster that it needs, see package clusters.
	Servers string
	// TTL is the default lease; 0 for a lock that never ends by itself.
	TTL time.Duration
	// MinTTL is the shortest lease that the service accepts.
	MinTTL time.Duration
	// MaxTTL is the longest; 0 for no bound that matters.
	MaxTTL time.Duration
	// Delivered are the bounds that its servers have as they are delivered, where lockcheck sets
	// others.
	Delivered Delivered
	// TTLStep is the unit in which leases are granted, to which one that is asked for is
	// rounded up; 0 for a service that grants it as it is.
	TTLStep time.Duration
	// Expiry is after how many leases at most the service ends one that nobody
	// renews; 0 means 1.
	Expiry float64
	// LockDelay is how long the service keeps a lock from others after it took it
	// from its holder; 0 for a service that knows no such delay.
	LockDelay time.Duration
	// Grace is how much longer a lock may take to be free again: the service's
	// own granularity and the client's retry.
	Grace time.Duration
	// Session: the client renews the lease by itself in the background, for as
	// long as it runs and reaches its servers.
	Session bool
	// Queues: an attempt waits until it is granted the lock or its context ends.
	Queues bool
	// CountsAnew: each attempt counts the lease of a holder from when it first sees it, so that
	// one that waits for less than a lease is never granted what a dead holder has left.
	CountsAnew bool
	// Endless: nothing can end an attempt that waits, so that it lasts until it is granted
	// the lock or fails.
	Endless bool
	// CountsWakes: the client counts what wakes an attempt up that waits (Grant.Wakes).
	CountsWakes bool
	// AnyServer: each server can serve a worker alone, so that workers can be
	// tied to one each.
	AnyServer        bool
	Shared           bool   // readers can share it
	Permits          bool   // it is a semaphore: as many may hold it at once as are asked for
	Renew            bool   // the holder can extend the lease
	Ask              bool   // the service can be asked whether a grant is in force
	Data             bool   // its database can keep the data, too
	Token            string // source of the fencing token; "" for none
	LossNotification string // how the holder learns that its lock is gone
	Clock            string // the clock on which mutual exclusion depends
	// Library is the module whose lock this is, used as it is; "" for a protocol
	// that this package speaks itself. A library may not name the holder that it
	// found, and may not be able to take back an attempt whose answer was lost: where
	// its service can, by other calls, that is done here, as is what the library
	// keeps to itself of an answer.
	Library string
	// Modules are the Go modules that the client is built on, whose versions are
	// recorded with a run.
	Modules []string
	// Unsafe: two workers hold it at once even without any fault.
	Unsafe bool
	// Program names the program of the workers (a folder of workers/) where lockcheck itself does not
	// have the library, or has another version of it; "" for lockcheck itself.
	Program string
	// Naive says what is wrong with a lock that is here to show just that.
	Naive string
	// Options are what the lock can be used with beyond what its library's own
	// documentation shows. None is in force unless the lock is named with it.
	Options []Option
	options optionSet // in force
	Open    func(Config) (Lock, error)
	// Observe reports what the service itself has on record, until stop is closed; nil
	// for one that nobody can ask.
	Observe func(ctx context.Context, c Config, stop <-chan struct{}, report func(Observation)) error
}

// Delivered are the shortest and the longest lease that servers grant before anybody sets them up,
// each with the setting that changes it; 0 where lockcheck leaves a bound as it is.
type Delivered struct {
	MinTTL, MaxTTL         time.Duration
	MinSetting, MaxSetting string
}

// Lease returns the time after which the lock can end by itself when a lease
// of ttl was asked for; 0 if it never does.
func (i Info) Lease(ttl time.Duration) time.Duration {
	if i.TTL == 0 {
		return 0
	}
	lease := max(ttl, i.MinTTL)
	if i.TTLStep > 0 {
		lease = (lease + i.TTLStep - 1) / i.TTLStep * i.TTLStep
	}
	return lease
}

// shortestTTL is the lease below which what is measured is the machine and not the lock: processes
// wait for a processor for a good part of it.
const shortestTTL = 300 * time.Millisecond

// neverNotified is the LossNotification of a lock whose client says nothing of a loss.
const neverNotified = "never"

// Notifies says whether the client notifies a holder of a loss without being asked to renew.
func (i Info) Notifies() bool { return i.LossNotification != neverNotified && !i.Renew }

// ShortestTTL is the shortest lease that a test can ask for and learn something of the lock; 0
// for a lock without one.
func (i Info) ShortestTTL() time.Duration {
	if i.TTL == 0 {
		return 0
	}
	ttl := i.Lease(max(i.MinTTL, shortestTTL))
	if i.MaxTTL != 0 {
		ttl = min(ttl, i.MaxTTL)
	}
	return ttl
}

// Supports lists what the lock can do, in the words of history.Header; never nil.
func (i Info) Supports() []string {
	supported := []string{}
	for _, s := range []struct {
		can  bool
		what string
	}{
		{i.Token != "", history.SupportsToken}, {i.Ask, history.SupportsAsk},
		{i.Data, history.SupportsData}, {i.Renew, history.SupportsRenew},
	} {
		if s.can {
			supported = append(supported, s.what)
		}
	}
	return supported
}

// GivesUp says whether an attempt waits in a queue, and until its context ends at most.
func (i Info) GivesUp() bool { return i.Queues && !i.Endless }

// PassesOn says whether who asks again and again is granted the lock of a holder that was stopped: it has a
// lease, of which no attempt must wait for all, and is not Naive. For each such lock there are the
// reproductions of a stopped holder.
func (i Info) PassesOn() bool { return i.TTL != 0 && !i.CountsAnew && i.Naive == "" }

// Effective returns the time after which a lock is free again for certain, but
// for Grace, when its holder no longer renews the lease; 0 if it never is.
func (i Info) Effective(ttl, lockDelay time.Duration) time.Duration {
	lease := i.Lease(ttl)
	if i.Expiry > 0 {
		lease = time.Duration(i.Expiry * float64(lease))
	}
	return lease + lockDelay
}

// Observation is what a lock service itself says of a key in the queue of one of its locks: one
// that is held, or waits in the queue.
type Observation struct {
	Key   string // the lock's name
	Token uint64 // of the key, as in Grant
	Gone  bool   // it is not on record any more
}
