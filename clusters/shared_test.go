package clusters

import (
	"context"
	"fmt"
	"testing"
	"time"

	"lockcheck/clients"
)

// TestShared holds every lock that readers can share to what that means, on real servers.
func TestShared(t *testing.T) {
	for _, info := range clients.Table() {
		if !info.Shared {
			continue
		}
		t.Run(info.Name, func(t *testing.T) {
			t.Parallel()
			shared(t, info, started(t, info.Servers))
		})
	}
}

func shared(t *testing.T, info clients.Info, cluster Cluster) {
	attempts := 0
	try := func(lock clients.Lock, readers bool, within time.Duration) (clients.Grant, error) {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		attempts++
		grant, err := lock.Acquire(ctx, clients.Attempt{Key: "shared", ID: fmt.Sprintf("w1-%d", attempts), TTL: time.Minute, Shared: readers})
		grant.Shared = readers
		return grant, err
	}
	granted := func(what string, lock clients.Lock, readers bool) clients.Grant {
		t.Helper()
		grant, err := try(lock, readers, patience)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return grant
	}
	refused := func(what string, lock clients.Lock, readers bool) {
		t.Helper()
		// One that queues waits for as long as it may.
		if grant, err := try(lock, readers, 300*time.Millisecond); err == nil {
			t.Fatalf("%s: granted %+v", what, grant)
		}
	}
	release := func(lock clients.Lock, grant clients.Grant) {
		t.Helper()
		if err := lock.Release(t.Context(), grant); err != nil {
			t.Fatalf("release of %s: %v", grant.ID, err)
		}
	}
	one, other := openLock(t, info, cluster, "w1"), openLock(t, info, cluster, "w2")
	first, second := granted("a reader", one, true), granted("another reader", other, true)
	refused("a writer next to two readers", one, false)
	release(one, first)
	refused("a writer next to a reader", one, false)
	release(other, second)
	writer := granted("a writer alone", one, false)
	refused("a reader next to a writer", other, true)
	refused("another writer", other, false)
	release(one, writer)
	release(other, granted("a reader after the writer", other, true))
	release(one, granted("a writer after the reader", one, false))
}
