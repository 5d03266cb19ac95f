package clusters

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockcheck/clients"
	"lockcheck/clusters/agent"
	"lockcheck/clusters/clustertest"
)

// TestKill kills a Redis and restarts it. Its address and its cuts stay. So does its data on disk: everything
// with an append-only file, and nothing without.
func TestKill(t *testing.T) {
	for servers, kept := range map[string]bool{"redis": false, "redis-aof": true} {
		t.Run(servers, func(t *testing.T) {
			t.Parallel()
			cluster := started(t, servers)
			node := cluster.Servers()[0]
			client := outside(t, node)
			if err := client.Set(t.Context(), "key", "value", 0).Err(); err != nil {
				t.Fatal(err)
			}
			if _, err := node.Host.Cut(t.Context(), agent.Cut{ID: "stays", Peers: []string{"192.0.2.1"}}); err != nil {
				t.Fatal(err)
			}
			for round := range 2 { // a restarted server can be killed again
				killAndPing(t, node)
				if _, err := node.Restart(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, err := node.Restart(t.Context()); err != nil {
					t.Errorf("started again twice: %v", err)
				}
				clustertest.Eventually(t, 20*time.Second, func() error { return ping(t, node, time.Second) })
				if cuts, err := node.Host.Cuts(t.Context()); err != nil || len(cuts) != 1 {
					t.Errorf("round %d: cuts %v, %v", round, cuts, err)
				}
				got, err := client.Get(t.Context(), "key").Result()
				if kept && (err != nil || got != "value") || !kept && !errors.Is(err, redis.Nil) {
					t.Errorf("round %d: the key is %q, %v, want it kept: %v", round, got, err, kept)
				}
			}
		})
	}
}

// refusing is a host whose Signal fails.
type refusing struct {
	agent.Local
	err error
}

func (r refusing) Signal(context.Context, agent.Signal) (agent.Moment, error) {
	return agent.Moment{}, r.err
}

// TestKillFails: a node that was not killed is not restarted, and its later end is a failure. A kill without an
// answer may have taken effect, so the node counts as killed.
func TestKillFails(t *testing.T) {
	for _, c := range []struct {
		name   string
		before bool
		err    error
		killed bool
	}{
		{"refused", false, errors.New("no process to signal"), false},
		{"refused, dead already", true, errors.New("no process to signal"), true},
		{"no answer", false, fmt.Errorf("agent: signal: %w", context.DeadlineExceeded), true},
		{"given up", false, fmt.Errorf("agent: signal: %w", context.Canceled), true},
		{"control", false, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			restarts := 0
			node := &Node{Host: refusing{err: c.err}, Again: func(context.Context) error { restarts++; return nil }}
			node.killed.Store(c.before)
			if _, err := node.Kill(t.Context()); !errors.Is(err, c.err) {
				t.Errorf("got %v", err)
			}
			if killed := node.killed.Load(); killed != c.killed {
				t.Errorf("counts as killed: %v", killed)
			}
			if _, err := node.Restart(t.Context()); err != nil || (restarts == 1) != c.killed {
				t.Errorf("started again %d times, %v", restarts, err)
			}
		})
	}
}

// killAndPing kills a server and checks that it no longer answers.
func killAndPing(t *testing.T, node *Node) {
	t.Helper()
	kill(t, node)
	if err := ping(t, node, time.Second); err == nil {
		t.Error("a dead server answers")
	}
}

// kill kills a node and waits until nothing runs on it any more.
func kill(t *testing.T, node *Node) {
	t.Helper()
	if _, err := node.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, 20*time.Second, func() error {
		processes, err := node.Host.Processes(t.Context())
		if err == nil && len(processes) > 0 {
			err = fmt.Errorf("%v still run", processes)
		}
		return err
	})
	select {
	case exit := <-node.Exited:
		if !exit.Killed {
			t.Errorf("it ended without being killed: %s", exit.Reason)
		}
	case <-time.After(20 * time.Second):
		t.Error("its end was not told")
	}
}

// TestFailover kills the primary. The Sentinels promote the replica, and the old primary returns as its
// replica.
func TestFailover(t *testing.T) {
	t.Parallel()
	n := started(t, "redis-failover").Servers()
	if leads(t, n[0]) != true || leads(t, n[1]) != false || leads(t, n[2]) != false {
		t.Fatal("not the first server leads")
	}
	if address, err := primaryOf(t.Context(), n[2].Address); err != nil || address != n[0].Address {
		t.Fatalf("the primary is %s, %v", address, err)
	}
	killAndPing(t, n[0])
	clustertest.Eventually(t, 60*time.Second, func() error {
		address, err := primaryOf(t.Context(), n[2].Address)
		if err == nil && address != n[1].Address {
			err = fmt.Errorf("the primary is %s", address)
		}
		return err
	})
	if !leads(t, n[1]) {
		t.Error("the replica was not promoted")
	}
	if _, err := n[0].Restart(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, 60*time.Second, func() error {
		if yes, err := n[0].Host.Leads(t.Context()); err != nil || yes {
			return fmt.Errorf("the old primary leads: %v, %v", yes, err)
		}
		return n[0].Host.Ready(t.Context())
	})
}

// primaryOf asks a Sentinel for the address of the primary.
func primaryOf(ctx context.Context, sentinel string) (string, error) {
	client := redis.NewSentinelClient(redisOptions(sentinel))
	defer client.Close()
	parts, err := client.GetMasterAddrByName(ctx, clients.FailoverName).Result()
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(parts[0], parts[1]), nil
}

func leads(t *testing.T, node *Node) bool {
	t.Helper()
	yes, err := node.Host.Leads(t.Context())
	if err != nil {
		t.Error(err)
	}
	return yes
}
