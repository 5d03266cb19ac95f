package clusters

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"lockcheck/clients"
	"lockcheck/clusters/clustertest"
)

// renewals collects what a client reports of its sessions.
type renewals struct {
	mu       sync.Mutex
	opened   []clients.Renewal
	answered int // renewals that succeeded
	refused  int
}

func (r *renewals) hear(renewal clients.Renewal) (answered func(error)) {
	return func(err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		switch {
		case clients.OutcomeOf(err) == clients.NotHeld:
			r.refused++
		case err == nil && renewal.Opens:
			r.opened = append(r.opened, renewal)
		case err == nil:
			r.answered++
		}
	}
}

// TestSessionRenewals: while a client holds a lock under a session, it has reported that it opened one, and goes on
// reporting that it renews it. A session of one attempt names that attempt.
func TestSessionRenewals(t *testing.T) {
	sessions := func(info clients.Info) bool { return info.Session && info.Program == "" && info.Naive == "" }
	onServers(t, sessions, func(t *testing.T, locks []clients.Info, cluster Cluster) {
		for _, info := range locks {
			t.Run(info.Name, func(t *testing.T) {
				t.Parallel()
				reportsRenewals(t, info, cluster)
			})
		}
	})
}

func reportsRenewals(t *testing.T, info clients.Info, cluster Cluster) {
	var heard renewals
	ttl := info.ShortestTTL()
	w := openWith(t, info.Name, clients.Config{Worker: "w1", Nodes: addresses(cluster), TTL: ttl, Permits: 1, Renewing: heard.hear})
	grant := w.acquire(w.key("renewals"), ttl)
	clustertest.Eventually(t, patience, func() error {
		heard.mu.Lock()
		defer heard.mu.Unlock()
		if heard.answered < 2 {
			return fmt.Errorf("%d renewals of %s were answered", heard.answered, grant.ID)
		}
		return nil
	})
	heard.mu.Lock()
	defer heard.mu.Unlock()
	of := func(r clients.Renewal) bool {
		return r.ID == "" && r.Key == "" || r.ID == grant.ID && r.Key == grant.Key
	}
	if len(heard.opened) == 0 || !slices.ContainsFunc(heard.opened, of) {
		t.Errorf("opened %+v, not the session of %s", heard.opened, grant.ID)
	}
	if heard.refused > 0 {
		t.Errorf("%d renewals were refused while the lock was held", heard.refused)
	}
}
