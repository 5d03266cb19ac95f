package clusters

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"lockcheck/clients"
	"lockcheck/clusters/clustertest"
)

// TestGalera: the servers form one cluster. It tests which locks exclude two workers on two servers, compared
// with two workers on one server.
func TestGalera(t *testing.T) {
	t.Parallel()
	cluster := started(t, "galera")
	awaitOneCluster(t, cluster)
	for _, lock := range []string{"galera-getlock", "galera-forupdate"} {
		for name, contract := range connectionContracts() {
			t.Run(lock+" "+name+" on one server", func(t *testing.T) { contract(openTwo(t, lock+"+one-server", cluster)) })
		}
	}
	t.Run("GET_LOCK on two servers", func(t *testing.T) {
		a, b := openTwo(t, "galera-getlock", cluster)
		first, second := a.acquire("both", 0), b.acquire("both", 0)
		b.released(second, clients.Done)
		a.released(first, clients.Done)
	})
	t.Run("FOR UPDATE on two servers", func(t *testing.T) {
		a, b := openTwo(t, "galera-forupdate", cluster)
		for _, w := range []*worker{a, b} { // the row must be on both servers before it is locked on one
			w.released(w.acquire("both", 0), clients.Done)
			awaitSameRow(t, cluster, "both")
		}
		first, second := a.acquire("both", 0), b.acquire("both", 0)
		a.released(first, clients.Done)
		b.released(second, clients.NotHeld) // this is the second to commit
	})
	t.Run("INSERT on two servers", func(t *testing.T) {
		contractRelease(openTwo(t, "galera-insert", cluster))
	})
}

// awaitOneCluster waits until each server reports a cluster of three.
func awaitOneCluster(t *testing.T, cluster Cluster) {
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

// awaitSameRow waits until all servers have the same content of a row. Servers apply another server's commit later,
// and then abort any transaction in its way.
func awaitSameRow(t *testing.T, cluster Cluster, key string) {
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

// TestGaleraRestart: a killed server joins the others again and catches up. That holds for the first server,
// too, and for all servers when all were killed.
func TestGaleraRestart(t *testing.T) {
	t.Parallel()
	cluster := started(t, "galera")
	servers := cluster.Servers()
	other, holder := openTwo(t, "galera-insert", cluster)
	// An attempt without an answer may leave a row that would block the next attempt.
	take := func(prefix string) clients.Grant { return holder.acquireFresh(prefix, 0) }
	for _, killed := range [][]*Node{servers[:1], servers} {
		for _, server := range killed {
			if _, err := server.Kill(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-server.Exited
		}
		var taken clients.Grant
		if len(killed) < len(servers) {
			taken = take("without one")
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
		awaitOneCluster(t, cluster)
		if len(killed) == len(servers) {
			taken = take("after all were gone")
		}
		other.refused("once the servers are back", taken)
	}
}

// TestGaleraView: each server's view names itself and all servers.
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
