package clusters

import (
	"context"
	"fmt"
	"testing"
	"time"

	"lockcheck/clusters/clustertest"
)

// TestClusterFailover kills the primary that owns the slot of all locks. Its replica is elected, and the old
// primary returns as the replica.
func TestClusterFailover(t *testing.T) {
	t.Parallel()
	for _, servers := range []string{"redis-cluster", "valkey-cluster"} {
		t.Run(servers, func(t *testing.T) {
			t.Parallel()
			n := started(t, servers).Servers()
			for i, node := range n {
				if leads(t, node) != (i == 1) {
					t.Fatalf("%s leads: %v", node.Name, i != 1)
				}
			}
			primary, replica := n[1], n[4]
			killAndPing(t, primary)
			clustertest.Eventually(t, 60*time.Second, func() error {
				if yes, err := replica.Host.Leads(t.Context()); err != nil || !yes {
					return fmt.Errorf("the replica leads: %v, %v", yes, err)
				}
				return nil
			})
			if _, err := primary.Restart(context.WithoutCancel(t.Context())); err != nil {
				t.Fatal(err)
			}
			clustertest.Eventually(t, 60*time.Second, func() error {
				if yes, err := primary.Host.Leads(t.Context()); err != nil || yes {
					return fmt.Errorf("the old primary leads: %v, %v", yes, err)
				}
				return primary.Host.Ready(t.Context())
			})
		})
	}
}

// TestSecondReplica: with Sentinels, the sixth server is a second replica.
func TestSecondReplica(t *testing.T) {
	t.Parallel()
	r := request(t, "redis-failover")
	r.Nodes = failoverServers + 1
	n := startedWith(t, r).Servers()
	if !leads(t, n[0]) || leads(t, n[failoverServers]) {
		t.Error("not the first server leads")
	}
	clustertest.Eventually(t, patience, func() error {
		info, err := outside(t, n[0]).Info(t.Context(), "replication").Result()
		if replicas := infoField(info, "connected_slaves"); err == nil && replicas != "2" {
			err = fmt.Errorf("%s replicas", replicas)
		}
		return err
	})
}
