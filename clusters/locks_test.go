package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"lockcheck/clients"
	"lockcheck/clusters/agent"
	"lockcheck/clusters/clustertest"
	"lockcheck/history"
)

// locker makes attempts on one lock, each under a name of its own.
type locker struct {
	t       *testing.T
	lock    clients.Lock
	info    clients.Info
	worker  string // "" for w1
	scope   string // begins the names of its keys: several locks share a cluster
	attempt int
}

// key is the name of a key in the scope of the locker, if it is not one already.
func (l *locker) key(name string) string {
	return l.scope + strings.TrimPrefix(name, l.scope)
}

// id is the name of the last attempt.
func (l *locker) id() string { return fmt.Sprintf("%s-%d", cmp.Or(l.worker, "w1"), l.attempt) }

func open(t *testing.T, lock string, cluster Cluster) *locker {
	t.Helper()
	info, ok := clients.ByName(lock)
	if !ok {
		t.Fatalf("no lock %q", lock)
	}
	base, _, _ := strings.Cut(lock, "+") // with options or without, it is one lock
	return &locker{t: t, lock: openLock(t, info, cluster, "w1"), info: info, scope: base + ":"}
}

func (l *locker) try(key string, ttl time.Duration) (clients.Grant, error) {
	l.attempt++
	ctx, cancel := context.WithTimeout(l.t.Context(), 5*time.Second)
	defer cancel()
	return l.lock.Acquire(ctx, clients.Attempt{Key: l.key(key), ID: l.id(), TTL: ttl})
}

// acquire tries until it has the lock: another holder's lease may have to end,
// and on a busy machine Redlock may miss its servers' answers.
func (l *locker) acquire(key string, ttl time.Duration) clients.Grant {
	l.t.Helper()
	var grant clients.Grant
	clustertest.Eventually(l.t, patience, func() (err error) {
		grant, err = l.try(key, ttl)
		return err
	})
	if grant.Key != l.key(key) || grant.ID != l.id() {
		l.t.Fatalf("granted %+v", grant)
	}
	return grant
}

// acquireFresh is acquire with another key for each attempt: what one has left
// behind, on a server that was slow, would be in the way of the next.
func (l *locker) acquireFresh(key string, ttl time.Duration) clients.Grant {
	l.t.Helper()
	var grant clients.Grant
	clustertest.Eventually(l.t, patience, func() (err error) {
		grant, err = l.try(fmt.Sprint(key, " ", l.attempt), ttl)
		return err
	})
	return grant
}

// held makes sure that the lock is taken, by the grant.
func (l *locker) held(when string, by clients.Grant) {
	l.t.Helper()
	clustertest.Eventually(l.t, patience, func() error {
		_, err := l.try(by.Key, time.Second)
		var busy *clients.BusyError
		switch {
		case err == nil:
			l.t.Fatalf("%s: granted, although %s holds it", when, by.ID)
		case errors.As(err, &busy) && (busy.Holder == by.ID || busy.Holder == "" && !namesHolder(l.info)):
			return nil
		}
		return fmt.Errorf("%s: %w, want busy for %s", when, err, by.ID)
	})
}

// namesHolder says whether a busy answer of a lock names the holder. A library may not, and
// what NATS has on record is read from a copy that can be old.
func namesHolder(info clients.Info) bool { return info.Library == "" && info.Servers != "nats" }

// refused asks until the release of a lock that is not held is refused. A
// library has no handle of it, and cannot tell.
func (l *locker) refused(what string, release func() error) {
	l.t.Helper()
	if l.info.Library != "" {
		l.outcome(what, clients.Unknown, release)
		return
	}
	l.outcome(what, clients.NotHeld, release)
}

// outcome asks until the call has the outcome.
func (l *locker) outcome(what string, want clients.Outcome, call func() error) {
	l.t.Helper()
	clustertest.Eventually(l.t, patience, func() error {
		if err := call(); clients.OutcomeOf(err) != want {
			return fmt.Errorf("%s: outcome %d (%v), want %d", what, clients.OutcomeOf(err), err, want)
		}
		return nil
	})
}

func (l *locker) release(grant clients.Grant) error {
	ctx, cancel := context.WithTimeout(l.t.Context(), 5*time.Second)
	defer cancel()
	return l.lock.Release(ctx, grant)
}

// pastValidity waits until the lock vouches for the grant no more.
func pastValidity(t *testing.T, grant clients.Grant) {
	t.Helper()
	clustertest.Eventually(t, patience, func() error {
		if left := time.Duration(grant.Until - history.Now()); left >= 0 {
			return fmt.Errorf("%s of the validity are left", left)
		}
		return nil
	})
}

// TestLocks holds every lock with a lease to the contract of clients.Lock, on
// real servers.
func TestLocks(t *testing.T) {
	byServers := make(map[string][]clients.Info)
	for _, info := range clients.Table() {
		naive := info.Naive != "" // it breaks the contract, and is there to show it
		if info.TTL == 0 || naive || info.Session {
			continue // a session has no validity of its own, and tests of its own
		}
		byServers[info.Servers] = append(byServers[info.Servers], info)
	}
	for servers, locks := range byServers {
		t.Run(servers, func(t *testing.T) {
			t.Parallel()
			cluster := started(t, servers)
			for _, info := range locks {
				t.Run(info.Name, func(t *testing.T) {
					for name, contract := range map[string]func(*locker, clients.Info){
						"release": contractRelease, "lease": contractLease, "renewal": contractRenewal, "keys": contractKeys,
					} {
						t.Run(name, func(t *testing.T) {
							t.Parallel()
							contract(open(t, info.Name, cluster), info)
						})
					}
				})
			}
		})
	}
}

func contractRelease(l *locker, info clients.Info) {
	first := l.acquire("release", time.Minute)
	if first.Until <= history.Now() || first.Until > history.Now()+time.Minute.Nanoseconds() {
		l.t.Errorf("valid until %d, now %d", first.Until, history.Now())
	}
	l.held("at first", first)
	stranger := clients.Grant{Key: first.Key, ID: "w2-1"}
	l.refused("release by another", func() error { return l.release(stranger) })
	l.held("after another one released it", first)
	if err := l.release(first); err != nil {
		l.t.Fatalf("release: %v", err)
	}
	l.refused("second release", func() error { return l.release(first) })
	second := l.acquire("release", time.Minute)
	if info.Token == "" {
		if first.Token != 0 || second.Token != 0 {
			l.t.Errorf("tokens %d and %d of a lock without", first.Token, second.Token)
		}
	} else if first.Token == 0 || second.Token <= first.Token {
		l.t.Errorf("token %d after %d", second.Token, first.Token)
	}
	l.refused("release by the former holder", func() error { return l.release(first) })
	l.held("after the former holder released it", second)
}

func contractLease(l *locker, _ clients.Info) {
	// A lock of several servers may be granted by a majority while the lease on one of the others is not over
	// yet. What the former holder's release does there is not known of every library: another try decides.
	const tries = 5
	for n := 1; ; n++ {
		key := fmt.Sprintf("lease-%d", n)
		first := l.acquire(key, 300*time.Millisecond)
		second := l.acquire(key, time.Minute)
		// Compared on one clock: nobody else within the validity.
		if now := history.Now(); now < first.Until {
			l.t.Errorf("granted to another %s before the validity ended", time.Duration(first.Until-now))
		}
		err := l.release(first)
		l.held("after the former holder released it", second)
		switch outcome := clients.OutcomeOf(err); {
		case outcome == clients.NotHeld:
			return
		case outcome != clients.Unknown || n == tries:
			l.t.Fatalf("release after the lease: outcome %d (%v), want %d", outcome, err, clients.NotHeld)
		}
	}
}

func contractRenewal(l *locker, info clients.Info) {
	renewer, can := l.lock.(clients.Renewer)
	if can != info.Renew {
		l.t.Fatalf("can renew: %v, and the table says otherwise", can)
	}
	if !can {
		return
	}
	renew := func(grant clients.Grant) (until int64, err error) {
		ctx, cancel := context.WithTimeout(l.t.Context(), 5*time.Second)
		defer cancel()
		return renewer.Renew(ctx, grant, time.Minute)
	}
	// redsync waits for each server for a twentieth of the lease, and no longer.
	grant := l.acquire("renewal", 10*time.Second)
	var until int64
	l.outcome("renewal", clients.Done, func() (err error) { until, err = renew(grant); return err })
	if until <= grant.Until || until > history.Now()+time.Minute.Nanoseconds() {
		l.t.Errorf("valid until %d, before until %d", until, grant.Until)
	}
	pastValidity(l.t, grant)
	l.held("after the first lease", grant)
	l.outcome("renewal by another", clients.NotHeld, func() error {
		_, err := renew(clients.Grant{Key: grant.Key, ID: "w2-1"})
		return err
	})
	// Again where a majority did not answer in time.
	l.outcome("release", clients.Done, func() error { return l.release(grant) })
	l.outcome("renewal after the release", clients.NotHeld, func() error { _, err := renew(grant); return err })
	l.acquire("renewal", time.Minute) // a refused renewal made no holder
}

func contractKeys(l *locker, _ clients.Info) {
	one := l.acquire("one", time.Minute)
	l.acquire("other", time.Minute)
	l.held("with another key taken", one)
}

// TestRedlockQuorum: it works with two of five servers stopped, not with three,
// and with them again. So does the library.
func TestRedlockQuorum(t *testing.T) {
	t.Parallel()
	cluster := started(t, "redis5")
	servers := cluster.Servers()
	// The library waits for a server for a twentieth of the lease.
	const lease = 20 * time.Second
	lockers := []*locker{open(t, "redlock", cluster), open(t, "redlock+sequential", cluster), open(t, "redsync", cluster)}
	each := func(key string, do func(l *locker, key string)) {
		for _, l := range lockers {
			do(l, l.info.Name+" "+key)
		}
	}
	each("all", func(l *locker, key string) { l.acquire(key, lease) })
	for i, node := range servers[:2] {
		signal(t, node, agent.Stop)
		each(fmt.Sprint("without ", i+1), func(l *locker, key string) {
			l.held("with a majority", l.acquireFresh(key, lease))
		})
	}
	signal(t, servers[2], agent.Stop)
	for i := range 5 {
		each(fmt.Sprint("without three ", i), func(l *locker, key string) {
			_, err := l.try(key, time.Second)
			// The stopped ones have it in their sockets, and will do it when they wake up.
			if clients.OutcomeOf(err) != clients.Unknown {
				t.Errorf("%s: outcome %d: %v", key, clients.OutcomeOf(err), err)
			}
		})
	}
	signal(t, servers[2], agent.Continue)
	each("without three 0", func(l *locker, key string) {
		l.held("with a majority again", l.acquire(key, lease))
	})
}

// TestUnsafeRelease: a holder that is late removes the lock of the next one, with a plain
// DEL or Delete, compared with the owner-checked release, which does not.
func TestUnsafeRelease(t *testing.T) {
	t.Parallel()
	for servers, locks := range map[string]map[string]bool{ // to whether they remove it
		"redis": {"redis-unsafe-release": true, "redis": false},
		"nats":  {"nats-kv-delete": true, "nats-kv": false},
	} {
		t.Run(servers, func(t *testing.T) {
			t.Parallel()
			cluster := started(t, servers)
			for lock, removes := range locks {
				t.Run(lock, func(t *testing.T) { releaseLate(open(t, lock, cluster), removes) })
			}
		})
	}
}

// releaseLate releases a lock that somebody else has by then.
func releaseLate(l *locker, removes bool) {
	late := l.acquire("late", 300*time.Millisecond)
	next := l.acquire("late", time.Minute)
	if err := l.release(late); (err == nil) != removes {
		l.t.Errorf("late release: %v", err)
	}
	if !removes {
		l.held("after the late release", next)
		return
	}
	l.acquire("late", time.Minute) // a third one, although the second holds it
}

// TestNATSUpdate: a key that was renewed by Update does not run out any more, compared with
// one that was renewed with its TTL.
func TestNATSUpdate(t *testing.T) {
	t.Parallel()
	cluster := started(t, "nats")
	naive, control := open(t, "nats-kv-update", cluster), open(t, "nats-kv", cluster)
	renewed := func(l *locker, key string) clients.Grant {
		grant := l.acquire(key, time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if _, err := l.lock.(clients.Renewer).Renew(ctx, grant, time.Second); err != nil {
			t.Fatal(err)
		}
		return grant
	}
	orphan := renewed(naive, "orphan")
	renewed(control, "control")
	control.acquire("control", time.Minute) // which is longer than the lease of the other one
	naive.held("after its lease", orphan)
}

// TestNoExpiry: whatever lease was asked for, the lock does not end by itself;
// compared with one that does.
func TestNoExpiry(t *testing.T) {
	t.Parallel()
	cluster := started(t, "redis")
	naive, control := open(t, "redis-noexpiry", cluster), open(t, "redis", cluster)
	orphan := naive.acquire("orphan", 50*time.Millisecond)
	first := control.acquire("control", 300*time.Millisecond)
	control.acquire("control", time.Minute)
	pastValidity(t, first)
	naive.held("after the time asked for", orphan)
	if orphan.Until != 0 {
		t.Errorf("valid until %d", orphan.Until)
	}
}
