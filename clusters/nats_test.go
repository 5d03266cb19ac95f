package clusters

import (
	"context"
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"lockcheck/clients"
	"lockcheck/clusters/agent"
	"lockcheck/clusters/clustertest"
)

// TestNATSOldLeader: a leader that is cut off still answers reads with what it has, and
// whoever asks it about a grant is not told so.
func TestNATSOldLeader(t *testing.T) {
	t.Parallel()
	cluster := started(t, "nats")
	info, _ := clients.ByName("nats-kv")
	first := mustAcquire(t, openLock(t, info, cluster, "w1"), "old", "w1-")
	var old *Node
	var others []*Node
	clustertest.Eventually(t, patience, func() error {
		old, others = nil, nil
		for _, node := range cluster.Servers() {
			if leads, err := node.Host.Leads(t.Context()); err == nil && leads {
				old = node
			} else {
				others = append(others, node)
			}
		}
		if old == nil || len(others) != 2 {
			return fmt.Errorf("%d servers that do not lead", len(others))
		}
		return nil
	})
	open := func(name string, nodes ...string) clients.Lock {
		lock, err := info.Open(clients.Config{Worker: name, TTL: info.TTL, Nodes: nodes})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = lock.Close() })
		return lock
	}
	asker := asking{t, open("resource", old.Address, old.Address, old.Address).(clients.Asker)}
	elsewhere := open("w2", others[0].Address, others[1].Address, others[0].Address)
	asker.holds("before", first, true)
	if _, err := old.Host.Cut(t.Context(), agent.Cut{ID: "old", Peers: []string{others[0].IP, others[1].IP}}); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, patience, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return elsewhere.Release(ctx, first)
	})
	second := mustAcquire(t, elsewhere, "old", "w2-")
	if holder := readFrom(t, old.Address, "old"); holder != first.ID {
		t.Errorf("the old leader reads %q, which is not old: nothing was tried", holder)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if holds, err := asker.Holds(ctx, first); err == nil {
		t.Errorf("the old leader says of the first grant: %t", holds)
	}
	if _, _, err := old.Host.Heal(t.Context(), "old"); err != nil {
		t.Fatal(err)
	}
	asker.holds("healed, the first", first, false)
	asker.holds("healed, the second", second, true)
}

// readFrom asks a server who holds a lock, as Get of the library does.
func readFrom(t *testing.T, address, lock string) string {
	t.Helper()
	conn, err := nats.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	key := "$KV.lockcheck.lock." + base64.RawURLEncoding.EncodeToString([]byte(lock))
	answer, err := conn.Request("$JS.API.DIRECT.GET."+clients.NATSStream+"."+key, nil, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer.Data)
}
