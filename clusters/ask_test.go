package clusters

import (
	"context"
	"testing"
	"time"

	"lockcheck/clients"
	"lockcheck/clusters/agent"
)

// TestAsk checks clients.Asker on real servers, for every lock whose service can answer who holds it.
func TestAsk(t *testing.T) {
	asks := func(info clients.Info) bool { return info.Ask }
	onServers(t, asks, func(t *testing.T, locks []clients.Info, cluster Cluster) {
		for _, info := range locks {
			t.Run(info.Name, func(t *testing.T) { askWho(t, info, cluster) })
		}
		t.Run("no answer", func(t *testing.T) { askStoppedServers(t, locks[0], cluster) })
	})
}

// askWho asks about a lock while it changes hands.
func askWho(t *testing.T, info clients.Info, cluster Cluster) {
	asker := open(t, info.Name, "resource", cluster)
	first, second := openTwo(t, info.Name, cluster)
	key := first.key("ask")
	nobody := clients.Grant{Key: key, ID: "w0-1", Token: 1 << 40}
	asker.holds("at first", nobody, false)
	const lease = 20 * time.Second // an attempt left over on slow servers expires before the next attempts give up
	one := first.acquireAtLast(key, lease, callLimit)
	asker.holds("granted", one, true)
	asker.holds("granted to somebody else", nobody, false)
	asker.holds("granted under another name", clients.Grant{Key: key + "s", ID: one.ID, Token: one.Token}, false)
	if info.Queues {
		next := second.queue(key, time.Minute)
		asker.holds("somebody queues", one, true)
		first.released(one, clients.Done)
		two := second.granted(next)
		asker.holds("released", one, false)
		asker.holds("granted to who queued", two, true)
		second.released(two, clients.Done)
		asker.holds("released, too", two, false)
		return
	}
	first.released(one, clients.Done)
	asker.holds("released", one, false)
	two := second.acquireAtLast(key, lease, callLimit)
	asker.holds("granted again", one, false)
	asker.holds("granted to the next", two, true)
}

// askStoppedServers: stopped servers give no answer, and the asker reports none. When they continue they answer.
func askStoppedServers(t *testing.T, info clients.Info, cluster Cluster) {
	asker := open(t, info.Name, "resource", cluster)
	nobody := clients.Grant{Key: "in-vain", ID: "w0-1", Token: 1 << 40}
	asker.holds("before", nobody, false)
	for _, node := range cluster.Servers() {
		signal(t, node, agent.Stop)
	}
	ctx, cancel := context.WithTimeout(t.Context(), shortWait)
	defer cancel()
	if holds, err := asker.Lock.(clients.Asker).Holds(ctx, nobody); err == nil || holds {
		t.Errorf("stopped servers say that it is held: %t, %v", holds, err)
	}
	for _, node := range cluster.Servers() {
		signal(t, node, agent.Continue)
	}
	asker.holds("afterwards", nobody, false)
}
