//go:build kubernetes

package clusters

import (
	"testing"
	"time"

	"lockcheck/clients"
	"lockcheck/clusters/agent"
)

func TestKubernetes(t *testing.T) {
	t.Parallel()
	cluster := started(t, "kubernetes")
	t.Run("release", func(t *testing.T) { contractRelease(openTwo(t, "k8s-lease", cluster)) })
	t.Run("waiting", func(t *testing.T) { leaseWaiting(t, cluster) })
	t.Run("kept", func(t *testing.T) { leaseKept(t, cluster) })
	t.Run("lost", func(t *testing.T) { leaseLost(t, cluster) }) // last: its server is stopped
}

// leaseWaiting: a waiter is granted the lock after its release, and an attempt that gave up leaves nothing
// behind.
func leaseWaiting(t *testing.T, cluster Cluster) {
	one, two := openTwo(t, "k8s-lease", cluster)
	three := open(t, "k8s-lease", "w3", cluster)
	first := one.acquire("waiting", 10*time.Second)
	three.refused("while it is held", first)
	waiting := two.queue("waiting", 10*time.Second)
	one.released(first, clients.Done)
	one.keeps(first) // a holder that has released has not lost the lease
	one.holds("given back", first, false)
	two.released(two.granted(waiting), clients.Done)
}

// leaseKept: without ReleaseOnCancel the lease outlives the release, and expires.
func leaseKept(t *testing.T, cluster Cluster) {
	one, two := openTwo(t, "k8s-lease+keep-lease", cluster)
	first := one.acquire("kept", 2*time.Second)
	one.released(first, clients.Done)
	one.holds("after its term", first, true)
	two.released(two.acquire("kept", 2*time.Second), clients.Done)
}

// leaseLost: a leader whose renewals are not answered is notified, and another becomes leader.
func leaseLost(t *testing.T, cluster Cluster) {
	one, two := openTwo(t, "k8s-lease", cluster)
	grant := one.acquire("lost", 2*time.Second)
	server := cluster.Servers()[kubernetesEtcds]
	signal(t, server, agent.Stop)
	one.notified(grant)
	signal(t, server, agent.Continue)
	after := two.acquire("lost", 2*time.Second)
	if after.Token <= grant.Token {
		t.Errorf("token %d after %d", after.Token, grant.Token)
	}
	// The release may have been written with the lease already lost, so the client cannot know its effect.
	if err := one.release(grant); err == nil {
		t.Fatal("what another one holds was given back")
	}
	two.holds("after the release of the lease before", after, true)
}
