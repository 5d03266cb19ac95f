package workloads

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"lockcheck/clients"
	"lockcheck/history"
)

const (
	// databasePause is how long the resource waits before it asks a database again.
	databasePause = 100 * time.Millisecond
	// databaseLimit is how long the database may take at the end to say what was
	// committed: longer than its server waits for a client that is not heard of, and
	// shorter than the harness waits for the resource.
	databaseLimit = 2 * clients.SQLServerSilence
)

// database is the lock's own one, where it keeps the data in place of the resource.
type database struct {
	store clients.DataStore
	close io.Closer
}

// openDatabase returns nil where the resource keeps the data.
func openDatabase(c ResourceConfig, stop <-chan struct{}) (*database, error) {
	if c.Guard != Database {
		return nil, nil
	}
	store, lock, err := openAs[clients.DataStore](c, stop)
	if err != nil {
		return nil, err
	}
	return &database{store: store, close: lock}, nil
}

func (d *database) Close() error {
	if d == nil {
		return nil
	}
	return d.close.Close()
}

// prepare makes the places for the data. The servers may be about to come up.
func (d *database) prepare(ctx context.Context) error {
	return insist(ctx, d.store.PrepareData)
}

// insist does something again until it is done or ctx ends.
func insist(ctx context.Context, do func(context.Context) error) error {
	for {
		err := do(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(databasePause):
		}
	}
}

// report records what was committed to the keys that workers were told, and their final state,
// those included of which the database has nothing: what it lost is missed there. It may have kept
// the keys of other runs.
// The times of accesses are those of inOneOrder: when they took effect nobody has seen.
func (d *database) report(ctx context.Context, record *Emitter, keys []string) error {
	ctx, cancel := context.WithTimeout(ctx, databaseLimit)
	defer cancel()
	var accesses []clients.DataAccess
	var final map[string]clients.Data
	err := insist(ctx, func(ctx context.Context) (err error) {
		accesses, final, err = d.store.Committed(ctx)
		return err
	})
	if err != nil {
		return err
	}
	accesses = slices.DeleteFunc(accesses, func(a clients.DataAccess) bool { return !slices.Contains(keys, a.Key) })
	for i, a := range inOneOrder(accesses) {
		event := history.Event{
			Type: history.OK, F: history.Read, Key: a.Key, Client: a.Client, Op: a.Op, Grant: a.Grant,
			Seq: int64(i + 1), Base: a.Base, Element: a.Element, Version: a.Version,
		}
		if a.Write {
			event.F = history.Write
		}
		record.EmitAt(a.At, event)
	}
	for _, key := range keys {
		record.Emit(history.Event{
			Type: history.OK, F: history.Final, Key: key, Version: final[key].Version, Value: json.RawMessage(final[key].Value),
		})
	}
	return record.Err()
}

// inOneOrder puts accesses in the order of the times at which they were asked for, those
// of one key in the order in which they took effect: one that was asked for before another
// that took effect first gets the time of that one.
func inOneOrder(accesses []clients.DataAccess) []clients.DataAccess {
	latest := make(map[string]int64)
	for i := range accesses {
		a := &accesses[i]
		a.At = max(a.At, latest[a.Key])
		latest[a.Key] = a.At
	}
	slices.SortStableFunc(accesses, func(a, b clients.DataAccess) int { return cmp.Compare(a.At, b.At) })
	return accesses
}
