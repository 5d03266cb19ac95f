// Package remedies says which remedy helps against which cause of violations, and how far. Each remedy names
// the runs that show its effect. Whether a lock supports a remedy follows from what is known of the lock.
package remedies

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"lockcheck/clients"
	"lockcheck/history"
	"lockcheck/workloads"
)

// Remedy is a change that may help against violations.
type Remedy struct {
	Name  string // unique
	Words string // in a few words
	// Change is what a test changes to try the remedy. It is the zero value if lockcheck cannot try the
	// remedy with the same lock.
	Change Change
}

// Change is what a test changes. Only one of its fields is set.
type Change struct {
	Guard            workloads.Guard
	Renew            bool
	CheckBeforeWrite bool
	Leases           int    // factor by which the lease is longer
	Option           string // option of the lock's client; several as in "a+b"
}

// options are the names in Option.
func (c Change) options() []string {
	return strings.FieldsFunc(c.Option, func(r rune) bool { return r == '+' })
}

// Lock is the name of a lock with the options of the change.
func (c Change) Lock(name string) string {
	for _, option := range c.options() {
		if !slices.Contains(strings.Split(name, "+"), option) {
			name += "+" + option
		}
	}
	return name
}

// watches says whether the change makes the client watch a connection.
func (c Change) watches() bool { return slices.Contains(c.options(), clients.WatchConnection) }

// Flag is the flag of "lockcheck test" that makes the change, for a lock and its lease; "" for the zero
// value.
func (c Change) Flag(lock string, lease time.Duration) string {
	switch {
	case c.Option != "":
		return "--lock " + c.Lock(lock)
	case c.Guard != "":
		return "--guard " + string(c.Guard)
	case c.Renew:
		return "--renew"
	case c.CheckBeforeWrite:
		return "--check-before-write"
	case c.Leases > 0 && lease == 0:
		return "--ttl"
	case c.Leases > 0:
		return "--ttl " + (time.Duration(c.Leases) * lease).String()
	}
	return ""
}

// Names of remedies.
const (
	Fence        = "fence"
	CAS          = "cas"
	Ask          = "ask"
	Database     = "database"
	Idempotency  = "idempotency key"
	Renewal      = "renewal"
	LongerLease  = "longer lease"
	Check        = "check"
	Watched      = "watched connection"
	Probed       = "probed connection"
	Deadlines    = "deadlines of calls"
	KeepAlive    = "watched renewal"
	OwnSession   = "session for each attempt"
	EndsWaiting  = "wait that ends with the session"
	OneServer    = "one server"
	OnDisk       = "grants on disk"
	OwnerChecked = "owner-checked release"
	Obeyed       = "obeyed acquire"
	OtherSetting = "another setting"
	OtherLock    = "another lock"
)

// Names of remedies that are changes of an application.
const (
	UniqueKey     = "unique key"
	TermInWhere   = "token in the statement"
	ExternalKey   = "idempotency key elsewhere"
	ReadUnderLock = "decision under the lock"
	ConfirmStored = "confirmation after the commit"
	ReleaseAlways = "release on every path"
	RepairAtStart = "repair at the start"
	ShorterLease  = "shorter lease"
)

// longer is the factor by which a test with a longer lease extends the lease.
const longer = 5

// All lists the remedies, the most effective first.
func All() []Remedy {
	return []Remedy{
		{Fence, "a fencing token, checked by the resource on reads and writes", Change{Guard: workloads.Fence}},
		{Database, "the data in the lock's own database, accessed in its transaction or session", Change{Guard: workloads.Database}},
		{CAS, "a version check: compare-and-set at the resource", Change{Guard: workloads.CompareAndSet}},
		{Idempotency, "an idempotency key: the resource refuses work that was done before", Change{Guard: workloads.IdempotencyKey}},
		{Ask, "a resource that asks the lock service before each access", Change{Guard: workloads.Ask}},
		{Renewal, "renewal of the lease during the section", Change{Renew: true}},
		{LongerLease, "a longer lease", Change{Leases: longer}},
		{Check, "a look at the deadline before the write", Change{CheckBeforeWrite: true}},
		{Watched, "a client that watches the connection on which its lock depends", Change{Option: clients.WatchConnection}},
		{Probed, "a client that watches the connection on which its lock depends, and gives it up when nothing comes back", Change{Option: clients.KeepAlives + "+" + clients.WatchConnection}},
		{Deadlines, "a client that waits for no answer beyond the deadline of its call", Change{Option: clients.CallDeadlines}},
		{KeepAlive, "a holder that notices when the renewal of its lease has ended", Change{Option: clients.WatchKeepAlive}},
		{OwnSession, "a session for each attempt", Change{Option: clients.SessionPerAttempt}},
		{EndsWaiting, "a wait that ends when the client gives its session up", Change{Option: clients.StopWaiting}},
		{OneServer, "one server that all clients connect to", Change{Option: clients.OneServer}},
		{OnDisk, "a server that has each grant on its disk before it answers", Change{}},
		{OwnerChecked, "a release that looks at the owner first", Change{}},
		{Obeyed, "workers that check the result of acquire (omit --ignore-failed-acquire)", Change{}},
		{OtherSetting, "another setting or version of the same lock", Change{}},
		{OtherLock, "another lock", Change{}},
		{UniqueKey, "a unique key on the piece of work, inserted in the transaction that does it", Change{}},
		{TermInWhere, "the fencing token in the WHERE clause of every write", Change{}},
		{ExternalKey, "an idempotency key at the other side, for payments and mails", Change{}},
		{ReadUnderLock, "a decision that is made, or made again, under the lock", Change{}},
		{ConfirmStored, "a confirmation only once the work is committed", Change{}},
		{RepairAtStart, "a start that finishes or undoes what a dead replica left half done", Change{}},
		{ReleaseAlways, "a release on every path out of the section", Change{}},
		{ShorterLease, "a shorter lease", Change{}},
	}
}

// ByName finds a remedy in All; the zero Remedy if there is none.
func ByName(name string) Remedy {
	all := All()
	if i := slices.IndexFunc(all, func(r Remedy) bool { return r.Name == name }); i >= 0 {
		return all[i]
	}
	return Remedy{}
}

// Concerns says whether the remedy applies to the client and the servers of a lock at all. The servers of a
// user's lock may be of any kind.
func (r Remedy) Concerns(lock clients.Info) bool {
	switch {
	case r.Change.Option != "":
		_, takes := clients.ByName(r.Change.Lock(lock.Name))
		return takes
	case r.Name == OnDisk:
		return slices.Contains([]string{"", "redis", "redis5", "redis-aof", "redis-aof-everysec", "valkey"}, lock.Servers)
	}
	return true
}

// GuardOf is the guard that does most for a lock. There always is one, because a version check goes with
// every lock.
func GuardOf(lock clients.Info) workloads.Guard {
	for _, r := range All() {
		if r.Change.Guard != "" && r.Lacks(lock, 0) == "" {
			return r.Change.Guard
		}
	}
	return workloads.NoGuard
}

// Lacks says what a lock with some lease lacks for the remedy, in words that follow the name of the lock; ""
// for nothing.
func (r Remedy) Lacks(lock clients.Info, lease time.Duration) string {
	c := r.Change
	switch {
	case (c.Guard == workloads.Database || c.watches()) && lock.Data && lock.Unsafe:
		return "connects to a pooler, and that connection does not show who has the lock"
	case c.watches() && lock.Session:
		return "ends with its session, which outlasts a connection"
	case c.Guard != "":
		return c.Guard.Lacks(lock)
	case (c.Renew || c.CheckBeforeWrite || c.Leases > 0) && lock.TTL == 0:
		return "has no lease"
	case (c.Renew || c.CheckBeforeWrite) && lock.Session:
		return "renews its lease by itself, and tells no deadline"
	case c.Renew && !lock.Renew:
		return "cannot be renewed"
	case c.Leases > 0 && lock.MaxTTL != 0 && time.Duration(c.Leases)*lease > lock.MaxTTL:
		return fmt.Sprintf("allows no lease above %s", lock.MaxTTL)
	}
	return ""
}

// Bars says why the remedy does not go with a workload, in words that follow the name of a lock; "" if it
// does.
func (r Remedy) Bars(w workloads.Workload) string {
	switch c := r.Change; {
	case c.Guard != "" && w.Bars(c.Guard) != "":
		return w.Bars(c.Guard)
	case (c.Guard != "" || c.CheckBeforeWrite) && history.WritesNothing(w.Name):
		return "protects no writes in this workload"
	}
	return ""
}

// InForce says whether a run has the remedy already.
func (r Remedy) InForce(lock clients.Info, guard workloads.Guard, use workloads.Use) bool {
	c := r.Change
	switch {
	case c.Option != "":
		return c.Lock(lock.Name) == lock.Name
	case r.Name == OnDisk:
		return lock.Servers == "redis-aof"
	}
	return c.Guard != "" && c.Guard == guard || c.Renew && use.Renew || c.CheckBeforeWrite && use.CheckBeforeWrite
}

// LockOf returns what the header of a run says of its lock. It is false if that does not show what the lock
// supports, as for a user's lock in an older history.
func LockOf(h history.Header) (clients.Info, bool) {
	if info, known := clients.ByName(h.Lock); known {
		return info, true
	}
	info := clients.Info{Name: h.Lock, TTL: h.Lease, Session: h.Session}
	for _, s := range h.Supports {
		switch s {
		case history.SupportsToken:
			info.Token = "of the lock"
		case history.SupportsAsk:
			info.Ask = true
		case history.SupportsData:
			info.Data = true
		case history.SupportsRenew:
			info.Renew = true
		}
	}
	return info, h.Supports != nil
}
