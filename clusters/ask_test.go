package clusters

import (
	"context"
	"fmt"
	"testing"
	"time"

	"lockcheck/clients"
	"lockcheck/clusters/agent"
	"lockcheck/clusters/clustertest"
)

// asking is somebody without a lock who asks the service of one.
type asking struct {
	*testing.T
	clients.Asker
}

func openAsker(t *testing.T, info clients.Info, cluster Cluster) asking {
	t.Helper()
	asker, can := openLock(t, info, cluster, "resource").(clients.Asker)
	if !can {
		t.Fatal("it cannot ask, and the table says otherwise")
	}
	return asking{t, asker}
}

// openLock opens a lock for a worker, or whoever else.
func openLock(t *testing.T, info clients.Info, cluster Cluster, name string) clients.Lock {
	t.Helper()
	config := clients.Config{Worker: name, TTL: info.TTL}
	for _, node := range cluster.Servers() {
		if !node.Server.Hidden {
			config.Nodes = append(config.Nodes, node.Address)
		}
	}
	lock, err := info.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Close() })
	return lock
}

// holds wants the answer for a grant.
func (a asking) holds(when string, grant clients.Grant, want bool) {
	a.Helper()
	clustertest.Eventually(a, patience, func() error {
		ctx, cancel := context.WithTimeout(a.Context(), time.Second)
		defer cancel()
		got, err := a.Holds(ctx, grant)
		if err == nil && got != want {
			a.Fatalf("%s: %s of %s holds it: %t", when, grant.ID, grant.Key, got)
		}
		return err
	})
}

// TestAsk holds every lock whose service can be asked to clients.Asker, on real servers.
func TestAsk(t *testing.T) {
	byServers := make(map[string][]clients.Info)
	for _, info := range clients.Table() {
		if info.Ask {
			byServers[info.Servers] = append(byServers[info.Servers], info)
		}
	}
	for servers, locks := range byServers {
		t.Run(servers, func(t *testing.T) {
			t.Parallel()
			cluster := started(t, servers)
			for _, info := range locks {
				t.Run(info.Name, func(t *testing.T) { askWho(t, info, cluster) })
			}
			t.Run("no answer", func(t *testing.T) { askInVain(t, locks[0], cluster) })
		})
	}
}

// askWho follows a lock from hand to hand.
func askWho(t *testing.T, info clients.Info, cluster Cluster) {
	asker := openAsker(t, info, cluster)
	first, second := openLock(t, info, cluster, "w1"), openLock(t, info, cluster, "w2")
	key := "ask-" + info.Name // memcached takes no spaces
	nobody := clients.Grant{Key: key, ID: "w0-1", Token: 1 << 40}
	asker.holds("at first", nobody, false)
	one := mustAcquire(t, first, key, "w1-1")
	asker.holds("granted", one, true)
	asker.holds("granted to somebody else", nobody, false)
	asker.holds("granted under another name", clients.Grant{Key: key + "s", ID: one.ID, Token: one.Token}, false)
	if info.Queues {
		next := make(chan clients.Grant, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			grant, _ := second.Acquire(ctx, clients.Attempt{Key: key, ID: "w2-1", TTL: time.Minute})
			next <- grant
		}()
		asker.holds("somebody queues", one, true)
		mustRelease(t, first, one)
		two := <-next
		asker.holds("released", one, false)
		asker.holds("granted to who queued", two, true)
		mustRelease(t, second, two)
		asker.holds("released, too", two, false)
		return
	}
	mustRelease(t, first, one)
	asker.holds("released", one, false)
	two := mustAcquire(t, second, key, "w2-1")
	asker.holds("granted again", one, false)
	asker.holds("granted to the next", two, true)
}

func mustAcquire(t *testing.T, lock clients.Lock, key, id string) clients.Grant {
	t.Helper()
	var grant clients.Grant
	attempt := 0
	clustertest.Eventually(t, patience, func() (err error) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		attempt++
		grant, err = lock.Acquire(ctx, clients.Attempt{Key: key, ID: fmt.Sprint(id, attempt), TTL: time.Minute})
		return err
	})
	return grant
}

func mustRelease(t *testing.T, lock clients.Lock, grant clients.Grant) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := lock.Release(ctx, grant); err != nil {
		t.Fatalf("release of %s: %v", grant.ID, err)
	}
}

// askInVain: servers that are stopped say nothing, and nobody takes that for an answer;
// when they run again they answer.
func askInVain(t *testing.T, info clients.Info, cluster Cluster) {
	asker := openAsker(t, info, cluster)
	nobody := clients.Grant{Key: "in-vain", ID: "w0-1", Token: 1 << 40}
	asker.holds("before", nobody, false)
	for _, node := range cluster.Servers() {
		signal(t, node, agent.Stop)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if holds, err := asker.Holds(ctx, nobody); err == nil || holds {
		t.Errorf("stopped servers say that it is held: %t, %v", holds, err)
	}
	for _, node := range cluster.Servers() {
		signal(t, node, agent.Continue)
	}
	asker.holds("afterwards", nobody, false)
}
