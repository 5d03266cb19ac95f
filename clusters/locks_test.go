package clusters

import (
	"context"
	"fmt"
	"testing"
	"time"

	"lockcheck/clients"
	"lockcheck/clusters/agent"
	"lockcheck/clusters/clustertest"
	"lockcheck/history"
)

// pastValidity waits until the grant's validity has ended.
func pastValidity(t *testing.T, grant clients.Grant) {
	t.Helper()
	clustertest.Eventually(t, patience, func() error {
		if left := time.Duration(grant.Until - history.Now()); left >= 0 {
			return fmt.Errorf("%s of the validity are left", left)
		}
		return nil
	})
}

// TestLocks checks every lock with a lease against the contract of clients.Lock, on real servers.
func TestLocks(t *testing.T) {
	leased := func(info clients.Info) bool {
		naive := info.Naive != "" // breaks the contract on purpose
		// A session has no validity of its own, and its own tests, and so have the locks of other programs.
		return info.TTL > 0 && !naive && !info.Session && info.Program == ""
	}
	onServers(t, leased, func(t *testing.T, locks []clients.Info, cluster Cluster) {
		for _, info := range locks {
			t.Run(info.Name, func(t *testing.T) { keepsContract(t, info.Name, cluster) })
		}
	})
}

// onServers starts each kind of servers once, and tests the chosen locks that use it.
func onServers(t *testing.T, chosen func(clients.Info) bool, test func(t *testing.T, locks []clients.Info, cluster Cluster)) {
	byServers := make(map[string][]clients.Info)
	for _, info := range clients.Table() {
		if chosen(info) {
			byServers[info.Servers] = append(byServers[info.Servers], info)
		}
	}
	for servers, locks := range byServers {
		t.Run(servers, func(t *testing.T) {
			t.Parallel()
			test(t, locks, started(t, servers))
		})
	}
}

// keepsContract tests a lock with a lease.
func keepsContract(t *testing.T, lock string, cluster Cluster) {
	for name, contract := range map[string]func(a, b *worker){
		"release": contractRelease, "lease": contractLease, "renewal": contractRenewal,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			contract(openTwo(t, lock, cluster))
		})
	}
}

// contractLease: a lease that is not renewed ends after its validity. Its former holder cannot release the next
// holder's lock.
func contractLease(a, b *worker) {
	// A lock of several servers may be granted by a majority while the lease on another server is still in
	// force. The effect of the former holder's release on that server is not known for every library.
	a.untilAnswered("lease", func(key string) bool {
		first := a.acquire(key, 300*time.Millisecond)
		second := b.acquire(key, time.Minute)
		// Compared on one clock: no other grant within the validity.
		if now := history.Now(); now < first.Until {
			a.Errorf("granted to another %s before the validity ended", time.Duration(first.Until-now))
		}
		answered := a.releases(first, clients.NotHeld)
		a.refused("after the former holder released it", second)
		return answered
	})
}

func contractRenewal(a, b *worker) {
	renewer, can := a.Lock.(clients.Renewer)
	if can != a.info.Renew {
		a.Fatalf("can renew: %v, and the table says otherwise", can)
	}
	if !can {
		return
	}
	renew := func(grant clients.Grant) (until int64, err error) {
		ctx, cancel := context.WithTimeout(a.Context(), callLimit)
		defer cancel()
		return renewer.Renew(ctx, grant, time.Minute)
	}
	// redsync waits for each server for only a twentieth of the lease.
	a.untilAnswered("renewal", func(key string) bool { return a.renewal(b, key, renew) })
}

// renewal follows a grant from its first lease to its release. It returns whether the release was answered.
func (a *worker) renewal(b *worker, key string, renew func(clients.Grant) (int64, error)) bool {
	grant := a.acquire(key, 10*time.Second)
	var until int64
	a.outcome("renewal", clients.Done, func() (err error) { until, err = renew(grant); return err })
	if until <= grant.Until || until > history.Now()+time.Minute.Nanoseconds() {
		a.Errorf("valid until %d, before until %d", until, grant.Until)
	}
	pastValidity(a.T, grant)
	b.refused("after the first lease", grant)
	a.outcome("renewal by another", clients.NotHeld, func() error {
		_, err := renew(clients.Grant{Key: grant.Key, ID: "stranger-1"})
		return err
	})
	err := a.release(grant)
	switch outcome := clients.OutcomeOf(err); {
	case outcome == clients.Done:
	case outcome == clients.Unknown, outcome == clients.NotHeld && a.info.Servers == "redis5": // go-redis repeats a release whose answer came late
		return false
	default:
		a.Fatalf("release: %v", err)
	}
	a.outcome("renewal after the release", clients.NotHeld, func() error { _, err := renew(grant); return err })
	b.acquire(grant.Key, time.Minute) // a refused renewal granted nothing
	return true
}

// TestRedlockQuorum: Redlock works with two of five servers stopped, fails with three stopped, and works again
// when they continue. The same holds for redsync.
func TestRedlockQuorum(t *testing.T) {
	t.Parallel()
	cluster := started(t, "redis5")
	servers := cluster.Servers()
	// The library waits for each server for a twentieth of the lease.
	const lease = 20 * time.Second
	workers := []*worker{open(t, "redlock", "w1", cluster), open(t, "redlock+sequential", "w1", cluster), open(t, "redsync", "w1", cluster)}
	each := func(key string, do func(w *worker, key string)) {
		for _, w := range workers {
			do(w, w.info.Name+" "+key)
		}
	}
	each("all", func(w *worker, key string) { w.acquire(key, lease) })
	for i, node := range servers[:2] {
		signal(t, node, agent.Stop)
		each(fmt.Sprint("without ", i+1), func(w *worker, key string) {
			w.refused("with a majority", w.acquireFresh(key, lease))
		})
	}
	signal(t, servers[2], agent.Stop)
	for i := range 5 {
		each(fmt.Sprint("without three ", i), func(w *worker, key string) {
			_, err := w.try(key, time.Second, callLimit)
			// The stopped servers have the requests in their socket buffers and will execute them when they
			// continue.
			if clients.OutcomeOf(err) != clients.Unknown {
				t.Errorf("%s: outcome %d: %v", key, clients.OutcomeOf(err), err)
			}
		})
	}
	signal(t, servers[2], agent.Continue)
	each("without three 0", func(w *worker, key string) {
		w.refused("with a majority again", w.acquire(key, lease))
	})
}

// TestUnsafeRelease: with a plain DEL or Delete, a late holder removes the next holder's lock. The
// owner-checked release does not.
func TestUnsafeRelease(t *testing.T) {
	t.Parallel()
	for servers, locks := range map[string]map[string]bool{ // by lock, whether it removes the lock
		"redis": {"redis-unsafe-release": true, "redis": false},
		"nats":  {"nats-kv-delete": true, "nats-kv": false},
	} {
		t.Run(servers, func(t *testing.T) {
			t.Parallel()
			cluster := started(t, servers)
			for lock, removes := range locks {
				t.Run(lock, func(t *testing.T) { releaseLate(open(t, lock, "w1", cluster), removes) })
			}
		})
	}
}

// releaseLate releases a lock that has been granted again since.
func releaseLate(w *worker, removes bool) {
	key := w.key("late")
	late := w.acquire(key, 300*time.Millisecond)
	next := w.acquire(key, time.Minute)
	if err := w.release(late); (err == nil) != removes {
		w.Errorf("late release: %v", err)
	}
	if !removes {
		w.refused("after the late release", next)
		return
	}
	w.acquire(key, time.Minute) // a third grant although the second holder still holds the lock
}

// TestNATSUpdate: a key renewed by Update no longer expires. As a control, a key renewed with its TTL does.
func TestNATSUpdate(t *testing.T) {
	t.Parallel()
	cluster := started(t, "nats")
	naive, control := open(t, "nats-kv-update", "w1", cluster), open(t, "nats-kv", "w1", cluster)
	renewed := func(w *worker, key string) clients.Grant {
		grant := w.acquire(key, time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if _, err := w.Lock.(clients.Renewer).Renew(ctx, grant, time.Second); err != nil {
			t.Fatal(err)
		}
		return grant
	}
	orphan := renewed(naive, "orphan")
	renewed(control, "control")
	control.acquire("control", time.Minute) // outlasts the lease of the other key
	naive.refused("after its lease", orphan)
}

// TestNoExpiry: the lock never expires, whatever lease was asked for. The control expires.
func TestNoExpiry(t *testing.T) {
	t.Parallel()
	cluster := started(t, "redis")
	naive, control := open(t, "redis-noexpiry", "w1", cluster), open(t, "redis", "w1", cluster)
	orphan := naive.acquire("orphan", 50*time.Millisecond)
	first := control.acquire("control", 300*time.Millisecond)
	control.acquire("control", time.Minute)
	pastValidity(t, first)
	naive.refused("after the time asked for", orphan)
}

// TestReentrant: the watchdog keeps a lock that was acquired twice until it has been released twice, and a lock whose
// client is closed ends with its lease.
func TestReentrant(t *testing.T) {
	t.Parallel()
	cluster := started(t, "redis")
	const lease = 3 * time.Second
	a, b := openTwo(t, "redis-reentrant", cluster)
	contractRelease(a, b)
	first := a.acquire("twice", lease)
	if _, err := a.Acquire(t.Context(), clients.Attempt{Key: first.Key, ID: first.ID, TTL: lease}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * lease) // a lease that nothing renews is over by then
	b.refused("after two leases", first)
	a.released(first, clients.Done)
	b.refused("after one of two releases", first)
	a.released(first, clients.Done)
	b.acquire("twice", time.Minute)

	closed := a.acquire("closed", lease)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	b.acquireAtLast(closed.Key, time.Minute, patience)
}

// TestSubscribe: a waiter is woken by a release, and by the end of a lease that nobody renews. A waiter that retries
// after a new subscription also finds a lock whose release it did not hear.
func TestSubscribe(t *testing.T) {
	t.Parallel()
	cluster := started(t, "redis")
	server := outside(t, cluster.Servers()[0])
	a, b := openTwo(t, "redis-reentrant+subscribe+retry-on-reconnect", cluster)
	waiting := func(grant clients.Grant) <-chan answer {
		answers := b.queue(grant.Key, time.Minute)
		clustertest.Eventually(t, patience, func() error {
			channels, err := server.PubSubChannels(t.Context(), "*"+grant.Key).Result()
			if err == nil && len(channels) == 0 {
				err = fmt.Errorf("nobody has subscribed")
			}
			return err
		})
		return answers
	}
	first := a.acquire("released", 10*patience)
	b.refused("while it is held", first)
	answers := waiting(first)
	a.released(first, clients.Done)
	b.granted(answers)

	unheard := a.acquire("unheard", 10*patience)
	answers = waiting(unheard)
	if err := server.Del(t.Context(), unheard.Key).Err(); err != nil {
		t.Fatal(err)
	}
	if err := server.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err(); err != nil {
		t.Fatal(err)
	}
	b.granted(answers)

	orphan := a.acquire("orphan", 3*time.Second)
	answers = waiting(orphan)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	b.granted(answers)
}
