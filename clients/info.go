package clients

import (
	"context"
	"time"

	"lockcheck/history"
)

// Info describes what a user must know about a lock before choosing it.
type Info struct {
	Name    string
	Summary string
	// Servers names the cluster that the lock needs, see package clusters.
	Servers string
	// TTL is the default lease; 0 for a lock that never ends by itself.
	TTL time.Duration
	// MinTTL is the shortest lease that the service accepts.
	MinTTL time.Duration
	// MaxTTL is the longest lease; 0 if no limit matters in practice.
	MaxTTL time.Duration
	// Delivered has the servers' default limits if lockcheck configures others.
	Delivered Delivered
	// TTLStep is the unit of leases: the service rounds a requested lease up to it; 0 if it grants leases
	// exactly.
	TTLStep time.Duration
	// Expiry is the number of lease lengths after which, at the latest, the service ends a lease that is not
	// renewed; 0 means 1.
	Expiry float64
	// LockDelay is how long the service refuses the lock to others after its holder has lost it; 0 for no
	// delay.
	LockDelay time.Duration
	// Grace is how much longer the lock may take to become free. It covers the service's timer granularity and
	// the retry of a client.
	Grace time.Duration
	// Session: the client renews the lease in the background for as long as it runs and reaches its servers.
	Session bool
	// Queues: an attempt waits until the lock is granted or the context ends.
	Queues bool
	// CountsAnew: each attempt measures the holder's lease from the moment at which it first sees that lease.
	// So an attempt that waits for less than a lease never gets the lock of a dead holder.
	CountsAnew bool
	// Endless: a waiting attempt cannot be cancelled. It lasts until the lock is granted or the attempt fails.
	Endless bool
	// CountsWakes: the client counts the notifications that wake a waiting attempt (Grant.Wakes).
	CountsWakes bool
	// AnyServer: any server can serve a worker alone, so each worker can be tied to one server.
	AnyServer        bool
	Shared           bool   // readers can share the lock
	Permits          bool   // the lock is a semaphore: Config.Permits clients may hold it at once
	Renew            bool   // the holder can extend the lease
	Ask              bool   // the service can be asked whether a grant is in force
	Data             bool   // the lock's database can store the data, too
	Token            string // source of the fencing token; "" for none
	LossNotification string // how the holder learns that it has lost the lock
	Clock            string // the clock on which mutual exclusion depends
	WallClocks       bool   // the clients' own wall clocks may matter for mutual exclusion
	// Library is the module whose lock this is, used unmodified; "" for a protocol that this package implements
	// itself. A library may not name the current holder, and may not be able to withdraw an attempt whose
	// answer was lost. Where the service allows that, this package does it with other calls. It also reads what
	// the library discards of an answer.
	Library string
	// Modules are the Go modules on which the client is built. Their versions are recorded with a run.
	Modules []string
	// Unsafe: two workers can hold the lock at once even without any fault.
	Unsafe bool
	// Program names the worker program (a folder in workers/) if lockcheck itself does not link the library, or
	// links another version; "" for lockcheck itself.
	Program string
	// Naive states the flaw of a lock that is in the table to demonstrate it; "" for other locks.
	Naive string
	// Options are ways to use the lock that go beyond the examples in its library's documentation. An option is
	// in force only if the lock's name includes it.
	Options []Option
	options optionSet // those in force
	Open    func(Config) (Lock, error)
	// Observe reports what the service itself has on record, until stop is closed; nil for a service that
	// cannot be asked.
	Observe func(ctx context.Context, c Config, stop <-chan struct{}, report func(Observation)) error
}

// Delivered has the shortest and the longest lease in the servers' default configuration, with the setting that
// changes each. A limit is 0 if lockcheck does not change it.
type Delivered struct {
	MinTTL, MaxTTL         time.Duration
	MinSetting, MaxSetting string
}

// Lease returns the length of the lease that the service grants if ttl is requested; 0 if the lock never ends
// by itself.
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

// shortestTTL is the shortest lease with which a test measures the lock. With a shorter one it would measure
// the machine: processes wait for a processor for a considerable part of the lease.
const shortestTTL = 300 * time.Millisecond

// neverNotified is the LossNotification of a lock whose client never reports a loss.
const neverNotified = "never"

// Notifies reports whether the client notifies the holder of a loss without a call to Renew.
func (i Info) Notifies() bool { return i.LossNotification != neverNotified && !i.Renew }

// ShortestTTL returns the shortest lease with which a test still measures the lock; 0 for a lock without
// leases.
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

// Supports lists the lock's capabilities in the terms of history.Header; never nil.
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

// GivesUp reports whether an attempt waits in a queue and gives up when its context ends.
func (i Info) GivesUp() bool { return i.Queues && !i.Endless }

// PassesOn reports whether repeated attempts eventually get the lock of a stopped holder. The lock must have a
// lease, must not be CountsAnew, and must not be Naive. Every such lock is in the reproductions of a stopped
// holder.
func (i Info) PassesOn() bool { return i.TTL != 0 && !i.CountsAnew && i.Naive == "" }

// Effective returns the time from the last renewal until the lock is certainly free, not counting Grace; 0 if
// the lock never becomes free.
func (i Info) Effective(ttl, lockDelay time.Duration) time.Duration {
	lease := i.Lease(ttl)
	if i.Expiry > 0 {
		lease = time.Duration(i.Expiry * float64(lease))
	}
	return lease + lockDelay
}

// Observation is what a lock service reports about an entry in a lock's queue. The entry belongs to the holder
// or to a waiter.
type Observation struct {
	Key   string // the lock's name
	Token uint64 // of the entry, as in Grant
	Gone  bool   // the entry was removed
	// From is the address of the connection that removed it, and Command what it sent; "" if the service does not tell.
	From, Command string
}
