package clusters

import (
	"context"
	"errors"
	"fmt"
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
		"terms": leaseTerms, "waiting": leaseWaiting, "kept": leaseKept, "stranger": leaseStranger,
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
	one.kept(first) // whoever has ended its term has not lost it
	second := two.held("terms of two", time.Minute)
	if first.Token == 0 || second.Token <= first.Token {
		t.Errorf("token %d after %d", second.Token, first.Token)
	}
	one.released(first, clients.NotHeld)
	two.kept(second)
	two.released(second, clients.Done)
}

// leaseWaiting: who waits is granted the lock when it is released, without its lease having run
// out; an attempt that is given up leaves nothing behind.
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

// leaseStranger: what is released in the name of an attempt that never was is nobody's.
func leaseStranger(t *testing.T, cluster Cluster) {
	one, two := openLease(t, "k8s-lease", cluster, "w1"), openLease(t, "k8s-lease", cluster, "w2")
	grant := one.held("stranger", time.Minute)
	two.released(clients.Grant{Key: grant.Key, ID: grant.ID}, clients.NotHeld)
	one.kept(grant)
	one.released(grant, clients.Done)
}

// leaseLost: a leader whose renewals are not answered is told so. What it gives back then it can
// not know to have given back until the server answers again.
func leaseLost(t *testing.T, cluster Cluster) {
	one := openLease(t, "k8s-lease", cluster, "w1")
	grant := one.held("lost", 2*time.Second)
	server := cluster.Servers()[kubernetesEtcds]
	signal(t, server, agent.Stop)
	one.notified(grant)
	signal(t, server, agent.Continue)
	clustertest.Eventually(t, patience, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := one.lock.Release(ctx, grant); err != nil && !errors.Is(err, clients.ErrNotHeld) {
			return fmt.Errorf("release: %w", err)
		}
		return nil
	})
	two := openLease(t, "k8s-lease", cluster, "w2")
	two.released(two.held("lost", time.Minute), clients.Done)
}
