package clusters

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"lockcheck/clients"
	"lockcheck/clusters/clustertest"
)

// openAs opens a lock as a worker, whose number says on which server it begins.
func openAs(t *testing.T, lock, worker string, cluster Cluster) *locker {
	t.Helper()
	info := mustLock(t, lock)
	return &locker{t: t, lock: openLock(t, info, cluster, worker), info: info, worker: worker}
}

// TestGalera: the servers are one cluster, and what two workers on two of them exclude each
// other by; compared with the same on one server.
func TestGalera(t *testing.T) {
	t.Parallel()
	cluster := started(t, "galera")
	oneCluster(t, cluster)
	for _, lock := range []string{"galera-getlock", "galera-forupdate"} {
		for name, contract := range map[string]func(a, b *locker){
			"queue": contractQueue, "release": contractReleaseOnce, "end": contractEnd,
		} {
			t.Run(lock+" "+name+" on one server", func(t *testing.T) {
				contract(openAs(t, lock, "w1", cluster), openAs(t, lock, "w1", cluster))
			})
		}
		t.Run(lock+" with one-server", func(t *testing.T) {
			a, b := openAs(t, lock+"+one-server", "w1", cluster), openAs(t, lock+"+one-server", "w2", cluster)
			a.acquire(lock, 0)
			b.waits("by another worker", lock)
		})
	}
	t.Run("GET_LOCK on two servers", func(t *testing.T) {
		a, b := openAs(t, "galera-getlock", "w1", cluster), openAs(t, "galera-getlock", "w2", cluster)
		first, second := a.acquire("both", 0), b.acquire("both", 0)
		if err := b.release(second); err != nil {
			t.Errorf("release on n2: %v", err)
		}
		if err := a.release(first); err != nil {
			t.Errorf("release on n1: %v", err)
		}
	})
	t.Run("FOR UPDATE on two servers", func(t *testing.T) {
		a, b := openAs(t, "galera-forupdate", "w1", cluster), openAs(t, "galera-forupdate", "w2", cluster)
		// The row must be on both before it is locked on one.
		if err := a.release(a.acquire("both", 0)); err != nil {
			t.Fatal(err)
		}
		inStep(t, cluster, "both")
		if err := b.release(b.acquire("both", 0)); err != nil {
			t.Fatal(err)
		}
		inStep(t, cluster, "both")
		first, second := a.acquire("both", 0), b.acquire("both", 0)
		if err := a.release(first); err != nil {
			t.Errorf("the first to commit: %v", err)
		}
		if err := b.release(second); clients.OutcomeOf(err) != clients.NotHeld {
			t.Errorf("the second to commit: outcome %d: %v", clients.OutcomeOf(err), err)
		}
	})
	t.Run("INSERT on two servers", func(t *testing.T) {
		a, b := openAs(t, "galera-insert", "w1", cluster), openAs(t, "galera-insert", "w2", cluster)
		first := a.acquire("both", 0)
		b.outcome("by another worker", clients.Busy, func() error { _, err := b.try(first.Key, 0); return err })
		b.outcome("release by another", clients.NotHeld, func() error { return b.release(clients.Grant{Key: first.Key, ID: b.id()}) })
		if err := a.release(first); err != nil {
			t.Errorf("release: %v", err)
		}
		a.outcome("second release", clients.NotHeld, func() error { return a.release(first) })
		b.acquire("both", 0)
	})
}

// oneCluster waits until each server says that there are three.
func oneCluster(t *testing.T, cluster Cluster) {
	t.Helper()
	for _, server := range cluster.Servers() {
		clustertest.Eventually(t, patience, func() error {
			var size int
			err := askMaria(t.Context(), server.Address, "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'WSREP_CLUSTER_SIZE'", &size)
			if err == nil && size != 3 {
				err = fmt.Errorf("%s sees %d servers", server.Name, size)
			}
			return err
		})
	}
}

// inStep waits until all servers have the same of a row. What one has committed, the others apply
// later, and end whatever transaction is in the way then.
func inStep(t *testing.T, cluster Cluster, key string) {
	t.Helper()
	clustertest.Eventually(t, patience, func() error {
		var all []int64
		for _, server := range cluster.Servers() {
			var grants int64
			if err := askMaria(t.Context(), server.Address, "SELECT grants FROM lockcheck.lockcheck_rows WHERE name = '"+key+"'", &grants); err != nil {
				return err
			}
			all = append(all, grants)
		}
		if len(slices.Compact(all)) != 1 {
			return fmt.Errorf("the servers have %v", all)
		}
		return nil
	})
}

// TestGaleraRestart: a server that was killed joins the others again, and catches up on what
// it has missed. So does the first one, and so do all when none has lived on.
func TestGaleraRestart(t *testing.T) {
	t.Parallel()
	cluster := started(t, "galera")
	servers := cluster.Servers()
	holder, other := openAs(t, "galera-insert", "w2", cluster), openAs(t, "galera-insert", "w1", cluster)
	// Of an attempt without an answer a row may be left, which is in the way of the next.
	take := func(prefix string) string { return holder.acquireFresh(prefix, 0).Key }
	for _, killed := range [][]*Node{servers[:1], servers} {
		for _, server := range killed {
			if _, err := server.Kill(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-server.Exited
		}
		key := ""
		if len(killed) < len(servers) {
			key = take("without one")
		}
		for _, server := range killed {
			if _, err := server.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, server := range killed {
			if err := awaitReady(t.Context(), server); err != nil {
				t.Fatal(err)
			}
		}
		oneCluster(t, cluster)
		if len(killed) == len(servers) {
			key = take("after all were gone")
		}
		other.outcome("what was taken "+key, clients.Busy, func() error { _, err := other.try(key, 0); return err })
	}
}

// TestGaleraView: each server names itself and all of them.
func TestGaleraView(t *testing.T) {
	p := Place{IPs: []string{"a", "b", "c"}}
	for p.N = range p.IPs {
		view := lastView(p)
		own, members, _ := strings.Cut(view, "\n")
		if strings.Count(members, "member: ") != 3 || strings.Count(members, strings.TrimPrefix(own, "my_uuid: ")) == 0 {
			t.Errorf("server %d:\n%s", p.N, view)
		}
	}
}
