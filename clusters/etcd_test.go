package clusters

import (
	"context"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"lockcheck/clients"
	"lockcheck/clusters/agent"
	"lockcheck/clusters/clustertest"
	"lockcheck/history"
)

// startedEtcd starts servers of a version; "" and 0 for the defaults.
func startedEtcd(t *testing.T, version string, nodes int) Cluster {
	t.Helper()
	r := request(t, "etcd")
	r.Version, r.Nodes = version, nodes
	return startedWith(t, r)
}

// openUnkept opens a lock on etcd whose lease is not renewed.
func openUnkept(t *testing.T, lock, name string, cluster Cluster) *worker {
	t.Helper()
	return openWith(t, lock, clients.Config{Worker: name, Nodes: addresses(cluster), NoKeepAlive: true})
}

// withdrawn checks that an attempt on a held lock is refused and leaves nothing behind.
func (w *worker) withdrawn(by clients.Grant) {
	w.Helper()
	w.refused("while it is held", by)
	w.released(clients.Grant{Key: by.Key, ID: w.id()}, clients.NotHeld)
}

// etcdKeys reads the servers' keys directly.
type etcdKeys struct {
	*testing.T
	*clientv3.Client
}

func lookInto(t *testing.T, cluster Cluster) etcdKeys {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{cluster.Servers()[0].Address}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return etcdKeys{t, client}
}

// await waits until a lock has n keys, and returns their leases.
func (e etcdKeys) await(lock string, n int) (leases []clientv3.LeaseID) {
	e.Helper()
	clustertest.Eventually(e, patience, func() error {
		ctx, cancel := context.WithTimeout(e.Context(), 5*time.Second)
		defer cancel()
		answer, err := e.Get(ctx, lock+"/", clientv3.WithPrefix())
		if err != nil || len(answer.Kvs) != n {
			return fmt.Errorf("%s: %v, %w; want %d keys", lock, answer, err, n)
		}
		leases = nil
		for _, kv := range answer.Kvs {
			leases = append(leases, clientv3.LeaseID(kv.Lease))
		}
		return nil
	})
	return leases
}

// TestEtcd checks the locks on etcd against the contract of clients.Lock.
func TestEtcd(t *testing.T) {
	t.Parallel()
	cluster := startedEtcd(t, "", 0)
	for _, lock := range []string{
		"etcd+session-per-attempt+watch-session", "etcd-election+session-per-attempt+watch-session", "etcd-v3lock+check-keepalive+watch-keepalive", "etcd-v3lock-retry+watch-keepalive",
	} {
		t.Run(lock+" release", func(t *testing.T) {
			t.Parallel()
			contractRelease(openTwo(t, lock, cluster))
		})
		for name, contract := range map[string]func(*testing.T, string, Cluster){
			"queue": etcdQueue, "lease": etcdLeases, "lost": etcdLost,
		} {
			t.Run(lock+" "+name, func(t *testing.T) {
				t.Parallel()
				contract(t, lock, cluster)
			})
		}
	}
}

// TestEtcdAsDocumented: the lock as the library's documentation uses it excludes, queues, and releases its
// grants. It does not notice the end of its session.
func TestEtcdAsDocumented(t *testing.T) {
	t.Parallel()
	cluster := startedEtcd(t, "", 1)
	for _, lock := range []string{"etcd", "etcd-election"} {
		t.Run(lock, func(t *testing.T) {
			t.Parallel()
			etcdAsDocumented(t, lock, cluster)
		})
	}
}

func etcdAsDocumented(t *testing.T, lock string, cluster Cluster) {
	one, two, three := open(t, lock, "w1", cluster), open(t, lock, "w2", cluster), open(t, lock, "w3", cluster)
	look, key := lookInto(t, cluster), lock+" as documented"
	first := one.acquire(key, time.Minute)
	if first.Lost != nil {
		t.Error("a user who looks at nothing is notified")
	}
	waiting := two.queue(key, time.Minute)
	look.await(key, 2)
	three.refused("while it is held", first)
	look.await(key, 2) // the library removes its key itself
	one.released(first, clients.Done)
	second := two.granted(waiting)
	// The client does not notice the end of the session until the release finds no key.
	if _, err := look.Revoke(t.Context(), look.await(key, 1)[0]); err != nil {
		t.Fatal(err)
	}
	two.released(second, clients.NotHeld)
	// The library may not have seen the end of the session yet.
	two.released(two.acquireAtLast(key, time.Minute, time.Second), clients.Done)
	look.await(key, 0)
}

// TestEtcdRetryUnlock: a repeated Unlock removes the lock, and also a newer lock of the same session. Without
// the repetition the newer lock stays.
func TestEtcdRetryUnlock(t *testing.T) {
	t.Parallel()
	cluster := startedEtcd(t, "", 1)
	look := lookInto(t, cluster)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	locks := []string{"etcd", "etcd+retry-unlock"}
	for _, lock := range locks {
		holder := open(t, lock, "w1", cluster)
		if err := holder.Release(over, holder.acquire(lock, time.Minute)); clients.OutcomeOf(err) != clients.Unknown {
			t.Fatalf("%s: release without time: %v", lock, err)
		}
		holder.acquire(lock, time.Minute)
	}
	look.await(locks[1], 0)
	look.await(locks[0], 1) // though it has had more time
}

// etcdQueue: a waiter is granted the lock when it is released, and a waiter that gives up leaves no key behind.
func etcdQueue(t *testing.T, lock string, cluster Cluster) {
	one, two, three := open(t, lock, "w1", cluster), open(t, lock, "w2", cluster), open(t, lock, "w3", cluster)
	look, key := lookInto(t, cluster), lock+" queue"
	first := one.acquire(key, time.Minute)
	waiting := two.queue(key, time.Minute)
	look.await(key, 2)
	three.withdrawn(first)
	look.await(key, 2)
	one.released(first, clients.Done)
	two.released(two.granted(waiting), clients.Done)
	look.await(key, 0)
}

// etcdLeases: a lease that is not renewed expires, but not before its validity ends. As a control a renewed
// lease does not expire.
func etcdLeases(t *testing.T, lock string, cluster Cluster) {
	kept, left, next := open(t, lock, "w1", cluster), openUnkept(t, lock, "w2", cluster), open(t, lock, "w3", cluster)
	keptKey, leftKey := lock+" kept", lock+" left"
	holder := kept.acquire(keptKey, time.Second) // 2 s is the minimum
	orphan := left.acquire(leftKey, time.Second)
	if orphan.Lost != nil {
		t.Error("notified of the end of a lease that nobody keeps")
	}
	next.acquire(leftKey, time.Minute)
	if now := history.Now(); now < orphan.Until {
		t.Errorf("granted to another %s before the validity ended", time.Duration(orphan.Until-now))
	}
	left.released(orphan, clients.NotHeld)
	next.withdrawn(holder)
	kept.released(holder, clients.Done)
}

// etcdLost: the holder of a revoked lease is notified, and another holder is not.
func etcdLost(t *testing.T, lock string, cluster Cluster) {
	one, two := openTwo(t, lock, cluster)
	look, key := lookInto(t, cluster), lock+" lost"
	gone, kept := one.acquire(key, time.Second), two.acquire(key+" not", time.Second)
	if _, err := look.Revoke(t.Context(), look.await(key, 1)[0]); err != nil {
		t.Fatal(err)
	}
	one.notified(gone)
	two.keeps(kept)
	one.released(gone, clients.NotHeld)
	two.released(kept, clients.Done)
}

// TestEtcdExpiredGrant: servers of 3.4 grant the lock to a waiter whose key is gone, and the client detects
// that. Later servers do not grant it.
func TestEtcdExpiredGrant(t *testing.T) {
	for version, dies := range map[string]bool{"3.4.3": true, "3.6.16": false} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			cluster := startedEtcd(t, version, 1)
			for _, lock := range []string{"etcd-v3lock", "etcd-v3lock-retry", "etcd-header-revision", "etcd"} {
				t.Run(lock, func(t *testing.T) {
					t.Parallel()
					// The client library of 3.6 checks its own key, whatever the servers do.
					etcdExpired(t, lock, cluster, dies && lock != "etcd")
				})
			}
		})
	}
}

func etcdExpired(t *testing.T, lock string, cluster Cluster, dies bool) {
	one, two := open(t, lock, "w1", cluster), openUnkept(t, lock, "w2", cluster)
	look, key := lookInto(t, cluster), lock+" expired"
	holder := one.acquire(key, time.Minute)
	waiting := two.queue(key, time.Second)
	look.await(key, 2)
	look.await(key, 1) // the waiter's key is gone
	one.released(holder, clients.Done)
	answer := <-waiting
	if !dies {
		if outcome := clients.OutcomeOf(answer.err); outcome != clients.NoEffect {
			t.Errorf("outcome %d (%v), granted %+v", outcome, answer.err, answer.grant)
		}
		return
	}
	if answer.err != nil || !answer.grant.Expired || answer.grant.Lost != nil {
		t.Fatalf("granted %+v, %v", answer.grant, answer.err)
	}
	if naive := lock == "etcd-header-revision"; naive != (answer.grant.Token != 0) {
		t.Errorf("token %d of a expired grant", answer.grant.Token)
	}
	two.released(answer.grant, clients.NotHeld)
}

// TestEtcdPhantomLeader: unlike a waiter for a Mutex, a candidate whose key is gone is told that it leads. Its
// Resign deletes no other key.
func TestEtcdPhantomLeader(t *testing.T) {
	t.Parallel()
	cluster := startedEtcd(t, "", 1)
	one, two, three := open(t, "etcd-election", "w1", cluster), openUnkept(t, "etcd-election", "w2", cluster), open(t, "etcd-election", "w3", cluster)
	look := lookInto(t, cluster)
	leader := one.acquire("k", time.Minute)
	phantom := two.queue("k", time.Second)
	look.await("k", 2)
	next := three.queue("k", time.Minute)
	look.await("k", 3)
	look.await("k", 2) // the second candidate's key is gone
	one.released(leader, clients.Done)
	second, third := two.granted(phantom), three.granted(next)
	if second.Token <= leader.Token || third.Token <= second.Token {
		t.Fatalf("elected %+v and %+v after %+v", second, third, leader)
	}
	two.released(second, clients.NotHeld)
	look.await("k", 1)
	three.released(third, clients.Done)
	look.await("k", 0)
}

// TestEtcdResignOnce: after a Resign that failed the key remains, and the session's next campaign gets the same
// term. After a Resign that succeeded the term is new.
func TestEtcdResignOnce(t *testing.T) {
	t.Parallel()
	cluster := startedEtcd(t, "", 1)
	one := open(t, "etcd-election", "w1", cluster)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	first := one.acquire("k", time.Minute)
	if err := one.Release(over, first); clients.OutcomeOf(err) != clients.Unknown {
		t.Fatalf("resignation without time: %v", err)
	}
	again := one.acquire("k", time.Minute)
	one.released(again, clients.Done)
	if next := one.acquire("k", time.Minute); again.Token != first.Token || next.Token <= first.Token {
		t.Errorf("terms %d, %d, %d", first.Token, again.Token, next.Token)
	}
}

// TestEtcdObserved: the watch reports each key when it is created and when it is gone, with the holder's token,
// also for a lease that expires. It reports nothing else.
func TestEtcdObserved(t *testing.T) {
	t.Parallel()
	cluster := startedEtcd(t, "", 1)
	info, _ := clients.ByName("etcd")
	stop, ended, seen := make(chan struct{}), make(chan error, 1), make(chan clients.Observation, 100)
	go func() {
		ended <- info.Observe(t.Context(), clients.Config{Nodes: []string{cluster.Servers()[0].Address}}, stop, func(o clients.Observation) { seen <- o })
	}()
	next := func() clients.Observation {
		t.Helper()
		select {
		case o := <-seen:
			return o
		case err := <-ended:
			t.Fatalf("the watch ended: %v", err)
		case <-time.After(patience):
			t.Fatal("nothing was observed")
		}
		return clients.Observation{}
	}
	// The watch begins at some time; it need not see keys created before.
	one := open(t, "etcd", "w1", cluster)
	for began := false; !began; {
		one.released(one.acquire("probe", time.Minute), clients.Done)
		select {
		case <-seen:
			began = true
		case <-time.After(100 * time.Millisecond):
		}
	}
	held := one.acquire("held", time.Minute)
	entry := next()
	for entry.Key == "probe" {
		entry = next()
	}
	if want := (clients.Observation{Key: "held", Token: held.Token}); entry != want {
		t.Errorf("observed %+v, want %+v", entry, want)
	}
	left := openUnkept(t, "etcd", "w2", cluster).acquire("left", 2*time.Second) // its lease is not renewed
	for _, want := range []clients.Observation{{Key: "left", Token: left.Token}, {Key: "left", Token: left.Token, Gone: true}} {
		if got := next(); got != want {
			t.Errorf("observed %+v, want %+v", got, want)
		}
	}
	one.released(held, clients.Done)
	close(stop) // events until now are still reported
	if got, want := next(), (clients.Observation{Key: "held", Token: held.Token, Gone: true}); got != want {
		t.Errorf("observed %+v, want %+v", got, want)
	}
	if err := <-ended; err != nil || len(seen) != 0 {
		t.Errorf("ended with %v, and %d more observations", err, len(seen))
	}
}

// TestEtcdLeader: one server reports that it leads, another when that one is stopped, and exactly one when it
// continues.
func TestEtcdLeader(t *testing.T) {
	for _, version := range []string{"3.4.3", "3.6.16"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			cluster := startedEtcd(t, version, 3)
			for _, node := range cluster.Servers() {
				if got, err := node.Host.Version(t.Context()); got != version {
					t.Errorf("%s says that it is %q, %v", node.Name, got, err)
				}
				reading, err := node.Host.Clock(t.Context())
				if low, high := reading.Offset(); err != nil || low > 500*time.Millisecond || high < -500*time.Millisecond {
					t.Errorf("%s is between %s and %s ahead, %v", node.Name, low, high, err)
				}
			}
			first := leaderOf(t, cluster, nil)
			signal(t, first, agent.Stop)
			leaderOf(t, cluster, first)
			signal(t, first, agent.Continue)
			leaderOf(t, cluster, nil)
		})
	}
}

// leaderOf waits until exactly one server, other than a stopped one, reports that it leads.
func leaderOf(t *testing.T, cluster Cluster, stopped *Node) (leader *Node) {
	t.Helper()
	clustertest.Eventually(t, patience, func() error {
		n := 0
		for _, node := range cluster.Servers() {
			if node == stopped {
				continue
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			leads, err := node.Host.Leads(ctx)
			cancel()
			if err != nil {
				return err
			}
			if leads {
				leader, n = node, n+1
			}
		}
		if n != 1 {
			return fmt.Errorf("%d servers lead", n)
		}
		return nil
	})
	return leader
}
