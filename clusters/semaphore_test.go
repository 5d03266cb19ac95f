package clusters

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"lockcheck/clients"
	"lockcheck/clusters/clustertest"
)

// TestSemaphoreTable checks the embedded semaphore against a simulated clock.
func TestSemaphoreTable(t *testing.T) {
	now := int64(0)
	table := newLeases(func() int64 { return now })
	m := withoutTokens(table, table.methods())
	ask := func(key, id string) clients.MemoryRequest {
		return clients.MemoryRequest{Key: key, ID: id, TTL: 10, Permits: 2}
	}
	for i, step := range []struct {
		do     method
		of     clients.MemoryRequest
		done   bool
		holder string
		passes int64 // before the step
	}{
		{m.acquire, ask("k", "a"), true, "", 0},
		{m.acquire, ask("k", "b"), true, "", 2},
		{m.acquire, ask("k", "c"), false, "a", 0},
		{m.acquire, ask("l", "c"), true, "", 0},
		{m.release, ask("k", "c"), false, "a", 0}, // c holds another key
		{m.renew, ask("k", "c"), false, "a", 0},
		{m.acquire, ask("k", "d"), false, "a", 0}, // the failed release has freed nothing
		{m.renew, ask("k", "b"), true, "", 3},
		{m.acquire, ask("k", "d"), true, "", 5}, // a's lease has expired
		{m.release, ask("k", "a"), false, "b", 0},
		{m.holder, ask("k", "b"), true, "", 0},
		{m.acquire, ask("k", "e"), false, "b", 0},
		{m.release, ask("k", "d"), true, "", 0},
		{m.release, ask("k", "d"), false, "b", 0},
		{m.acquire, ask("k", "e"), true, "", 0},
		{m.holder, ask("k", "b"), false, "e", 5}, // at the end of b's lease
		{m.acquire, ask("k", "f"), true, "", 0},
		{m.acquire, ask("k", "g"), false, "e", 0},
	} {
		now += step.passes
		if r := step.do(step.of); r.Done != step.done || r.Holder != step.holder {
			t.Fatalf("step %d, at %d: %+v, want %+v", i, now, r, step)
		}
	}
}

// openPermits opens a semaphore for a worker.
func openPermits(t *testing.T, name string, permits int, cluster Cluster, worker string) *worker {
	t.Helper()
	return openWith(t, name, clients.Config{Worker: worker, Permits: permits, Nodes: addresses(cluster)})
}

// TestPermits checks the number of permits of every semaphore, on real servers.
func TestPermits(t *testing.T) {
	for _, info := range clients.Table() {
		if !info.Permits {
			continue
		}
		t.Run(info.Name, func(t *testing.T) {
			t.Parallel()
			cluster := started(t, info.Servers)
			for permits := 1; permits <= 3; permits++ {
				key := fmt.Sprintf("%s of %d", info.Name, permits)
				var holders []*worker
				var grants []clients.Grant
				for i := range permits {
					u := openPermits(t, info.Name, permits, cluster, fmt.Sprintf("w%d", i+1))
					holders, grants = append(holders, u), append(grants, u.acquire(key, time.Minute))
				}
				next := openPermits(t, info.Name, permits, cluster, "w9")
				next.refused("with no permit left", grants[0])
				next.acquire(key+"0", time.Minute) // another key with the same prefix
				holders[0].released(grants[0], clients.Done)
				grant := next.acquire(key, time.Minute)
				holders[0].refused("after its permit was passed on", slices.Concat(grants[1:], []clients.Grant{grant})[0])
				next.released(grant, clients.Done)
				for i := range permits - 1 {
					holders[i+1].keeps(grants[i+1])
					holders[i+1].released(grants[i+1], clients.Done)
				}
			}
		})
	}
}

// TestConsulSemaphoreLost: a holder whose session ends is notified, learns at its release that it has no
// permit, and is replaced.
func TestConsulSemaphoreLost(t *testing.T) {
	t.Parallel()
	cluster := started(t, "consul")
	first, second := openPermits(t, "consul-semaphore", 1, cluster, "w1"), openPermits(t, "consul-semaphore", 1, cluster, "w2")
	grant := first.acquire("lost", time.Minute)
	first.keeps(grant)
	admin := consulAdmin(t, cluster.Servers()[0])
	if _, err := admin.Session().Destroy(consulSession(t, admin, grant.ID).ID, nil); err != nil {
		t.Fatal(err)
	}
	first.notified(grant)
	after := second.acquire("lost", time.Minute)
	first.released(grant, clients.NotHeld)
	second.keeps(after)
	second.released(after, clients.Done)
	clustertest.Eventually(t, patience, func() error { return noHolders(admin, "lost") })
}

// noHolders checks that a semaphore has no keys left except its list.
func noHolders(admin *api.Client, key string) error {
	keys, _, err := admin.KV().Keys(key+"/", "", &api.QueryOptions{RequireConsistent: true})
	if err == nil && len(keys) != 1 {
		err = fmt.Errorf("there are %v", keys)
	}
	return err
}

// TestConsulSemaphoreLimit: an attempt with another number of permits is refused and has no effect.
func TestConsulSemaphoreLimit(t *testing.T) {
	t.Parallel()
	cluster := started(t, "consul")
	two, three := openPermits(t, "consul-semaphore", 2, cluster, "w1"), openPermits(t, "consul-semaphore", 3, cluster, "w2")
	grant := two.acquire("limit", time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := three.Acquire(ctx, clients.Attempt{Key: "limit", ID: "w2-1", TTL: time.Minute}); clients.OutcomeOf(err) != clients.NoEffect {
		t.Errorf("with another limit: %v", err)
	}
	two.released(grant, clients.Done)
}
