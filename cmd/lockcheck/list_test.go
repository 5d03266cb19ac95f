package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/clients"
	"lockcheck/clusters"
)

// TestLockItems: every lock says all that its row does.
func TestLockItems(t *testing.T) {
	items := lockItems()
	for i, lock := range clients.Table() {
		t.Run(lock.Name, func(t *testing.T) {
			if items[i].name != lock.Name {
				t.Fatalf("it is called %s", items[i].name)
			}
			text := strings.Join(items[i].lines, "\n")
			for _, what := range []string{"lease: ", "renewed: ", "when taken: ", "fencing token: ", "loss notification: ", "depends on: ", "guards: ", "servers: "} {
				if _, rest, found := strings.Cut(text, what); !found || rest == "" || strings.HasPrefix(rest, "\n") || strings.HasPrefix(rest, ";") {
					t.Errorf("%q is missing in\n%s", what, text)
				}
			}
			servers, _ := clusters.ByName(lock.Servers)
			said := append([]string{lock.Summary, lock.Token, lock.LossNotification, lock.Clock, lock.Library, lock.Naive}, servers.Versions...)
			if lock.TTL > 0 {
				said = append(said, lock.TTL.String(), lock.MinTTL.String(), lock.Effective(lock.TTL, lock.LockDelay).String())
			}
			for _, part := range said {
				if !strings.Contains(text, part) {
					t.Errorf("%q is not said in\n%s", part, text)
				}
			}
		})
	}
}

// TestLockItem: two locks that differ in everything.
func TestLockItem(t *testing.T) {
	lease := clients.Info{TTL: 2 * time.Second, MinTTL: time.Second, Expiry: 2, LockDelay: time.Second, Session: true, Queues: true}
	servers := clusters.Spec{Nodes: 5, Sizes: []int{3, 1}, Versions: []string{"3.6", "3.4"}}
	got := []string{leaseOf(lease), renewalOf(lease), attemptOf(lease), serversOf(servers, true), guardsOf(lease)}
	want := []string{
		"2s by default, at least 1s; of a dead holder: at most 5s (lock delay of 1s included)",
		"by its client, in the background", "it waits until it is free",
		"5, or --nodes 3 or 1; --pin ties workers to one each; --version 3.6 or 3.4",
		"none, cas, match, idempotency-key",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := leaseOf(clients.Info{Grace: time.Second}); got != "none: it ends with its holder's process or connection, within 1s" {
		t.Errorf("without a lease: %q", got)
	}
	bare := clients.Info{}
	got = []string{leaseOf(bare), renewalOf(bare), attemptOf(bare), serversOf(clusters.Spec{}, false), renewalOf(clients.Info{Renew: true}),
		guardsOf(clients.Info{Token: "counter"}), guardsOf(clients.Info{Ask: true}), guardsOf(clients.Info{Data: true})}
	want = []string{"none: only its release frees it", "no", "refused at once", "none", "with --renew",
		"none, fence, fence-writes, cas, match, idempotency-key", "none, ask, cas, match, idempotency-key", "none, database, cas, match, idempotency-key"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
