package clusters

import (
	"context"
	"testing"
	"time"

	"lockcheck/clients"
)

// TestShared checks on real servers that readers share a lock and writers do not, for every lock with readers.
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
	one, other := openTwo(t, info.Name, cluster)
	try := func(w *worker, readers bool, within time.Duration) (clients.Grant, error) {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		w.attempts++
		grant, err := w.Acquire(ctx, clients.Attempt{Key: "shared", ID: w.id(), TTL: time.Minute, Shared: readers})
		grant.Shared = readers
		return grant, err
	}
	granted := func(what string, w *worker, readers bool) clients.Grant {
		t.Helper()
		grant, err := try(w, readers, patience)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return grant
	}
	refused := func(what string, w *worker, readers bool) {
		t.Helper()
		// A queueing lock waits for as long as it may.
		if grant, err := try(w, readers, shortWait); err == nil {
			t.Fatalf("%s: granted %+v", what, grant)
		}
	}
	first, second := granted("a reader", one, true), granted("another reader", other, true)
	refused("a writer next to two readers", one, false)
	one.released(first, clients.Done)
	refused("a writer next to a reader", one, false)
	other.released(second, clients.Done)
	writer := granted("a writer alone", one, false)
	refused("a reader next to a writer", other, true)
	refused("another writer", other, false)
	one.released(writer, clients.Done)
	other.released(granted("a reader after the writer", other, true), clients.Done)
	one.released(granted("a writer after the reader", one, false), clients.Done)
}
