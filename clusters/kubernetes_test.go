//go:build kubernetes

package clusters

import (
	"context"
	"testing"
	"time"

	"lockcheck/clients"
	"lockcheck/clusters/agent"
	"lockcheck/clusters/clustertest"
)

// openLease opens the lock on Kubernetes for a worker.
func openLease(t *testing.T, name string, cluster Cluster, worker string) *sessionUser {
	t.Helper()
	config := clients.Config{Worker: worker}
	for _, node := range cluster.Servers() {
		if !node.Server.Hidden {
			config.Nodes = append(config.Nodes, node.Address)
		}
	}
	return openSession(t, name, config)
}

func TestKubernetes(t *testing.T) {
	t.Parallel()
	cluster := started(t, "kubernetes")
	for name, test := range map[string]func(*testing.T, Cluster){
		"terms": leaseTerms, "waiting": leaseWaiting, "kept": leaseKept,
	} {
		t.Run(name, func(t *testing.T) { test(t, cluster) })
	}
	t.Run("lost", func(t *testing.T) { leaseLost(t, cluster) }) // last: its server is stopped
}

// leaseTerms: one leads at a time, and each term has a greater token.
func leaseTerms(t *testing.T, cluster Cluster) {
	one, two := openLease(t, "k8s-lease", cluster, "w1"), openLease(t, "k8s-lease", cluster, "w2")
	first := one.held("terms of two", time.Minute)
	two.refused("terms of two")
	one.kept(first)
	one.released(first, clients.Done)
	second := two.held("terms of two", time.Minute)
	if first.Token == 0 || second.Token <= first.Token {
		t.Errorf("token %d after %d", second.Token, first.Token)
	}
	one.kept(first) // whoever has ended its term has not lost it
	one.released(first, clients.NotHeld)
	two.kept(second)
	two.released(second, clients.Done)
}

// leaseWaiting: who waits is granted the lock after it was given back; an attempt that is given up
// leaves nothing behind.
func leaseWaiting(t *testing.T, cluster Cluster) {
	one, two, three := openLease(t, "k8s-lease", cluster, "w1"), openLease(t, "k8s-lease", cluster, "w2"), openLease(t, "k8s-lease", cluster, "w3")
	first := one.held("waiting", 10*time.Second)
	three.refused("waiting")
	granted := make(chan clients.Grant, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if grant, err := two.acquire(ctx, "waiting", 10*time.Second); err == nil {
			granted <- grant
		}
		close(granted)
	}()
	one.released(first, clients.Done)
	if holds, err := one.lock.(clients.Asker).Holds(t.Context(), first); err != nil || holds {
		t.Errorf("given back, and held: %t (%v)", holds, err)
	}
	if grant, ok := <-granted; ok {
		two.released(grant, clients.Done)
	} else {
		t.Error("who waited was not granted the lock")
	}
}

// leaseKept: without ReleaseOnCancel the lease outlives the term, and runs out.
func leaseKept(t *testing.T, cluster Cluster) {
	one, two := openLease(t, "k8s-lease+keep-lease", cluster, "w1"), openLease(t, "k8s-lease+keep-lease", cluster, "w2")
	first := one.held("kept", 2*time.Second)
	one.released(first, clients.Done)
	asker := one.lock.(clients.Asker)
	if holds, err := asker.Holds(t.Context(), first); err != nil || !holds {
		t.Errorf("after its term its lease is held: %t (%v)", holds, err)
	}
	two.released(two.held("kept", 2*time.Second), clients.Done)
}

// leaseLost: a leader whose renewals are not answered is told so, and another one leads after it.
func leaseLost(t *testing.T, cluster Cluster) {
	one := openLease(t, "k8s-lease", cluster, "w1")
	grant := one.held("lost", 2*time.Second)
	server := cluster.Servers()[kubernetesEtcds]
	signal(t, server, agent.Stop)
	one.notified(grant)
	signal(t, server, agent.Continue)
	two := openLease(t, "k8s-lease", cluster, "w2")
	after := two.held("lost", 2*time.Second)
	if after.Token <= grant.Token {
		t.Errorf("token %d after %d", after.Token, grant.Token)
	}
	clustertest.Eventually(t, patience, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		// Its last write may have been what ended its lease: it does not know.
		if err := one.lock.Release(ctx, grant); err == nil {
			t.Fatal("what another one holds was given back")
		}
		holds, err := two.lock.(clients.Asker).Holds(ctx, after)
		if err == nil && !holds {
			t.Fatal("the successor has lost its lease")
		}
		return err
	})
}
