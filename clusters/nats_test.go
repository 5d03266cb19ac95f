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

// TestNATSOldLeader: a leader that is cut off still answers reads from its own copy. The question whether a
// grant is in force is not answered from it.
func TestNATSOldLeader(t *testing.T) {
	t.Parallel()
	cluster := started(t, "nats")
	first := open(t, "nats-kv", "w1", cluster).acquire("old", time.Minute)
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
	at := func(name string, nodes ...string) *worker {
		return openWith(t, "nats-kv", clients.Config{Worker: name, Nodes: nodes})
	}
	asker := at("resource", old.Address, old.Address, old.Address)
	elsewhere := at("w2", others[0].Address, others[1].Address, others[0].Address)
	asker.holds("before", first, true)
	if _, err := old.Host.Cut(t.Context(), agent.Cut{ID: "old", Peers: []string{others[0].IP, others[1].IP}}); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, patience, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return elsewhere.Release(ctx, first)
	})
	second := elsewhere.acquire("old", time.Minute)
	if holder := readFrom(t, old.Address, "old"); holder != first.ID {
		t.Errorf("the old leader reads %q, which is not old: nothing was tried", holder)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if holds, err := asker.Lock.(clients.Asker).Holds(ctx, first); err == nil {
		t.Errorf("the old leader says of the first grant: %t", holds)
	}
	if _, _, err := old.Host.Heal(t.Context(), "old"); err != nil {
		t.Fatal(err)
	}
	asker.holds("healed, the first", first, false)
	asker.holds("healed, the second", second, true)
}

// readFrom asks one server who holds a lock, as the library's Get does.
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
