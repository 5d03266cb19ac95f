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
	// databasePause is how long the resource waits before it retries a request to a database.
	databasePause = 100 * time.Millisecond
	// databaseLimit is how long the database may take, at the end, to return what was committed. It is longer
	// than the server waits for a silent client, and shorter than the harness waits for the resource.
	databaseLimit = 2 * clients.SQLServerSilence
)

// database is the lock's own database when it stores the data instead of the resource.
type database struct {
	store clients.DataStore
	close io.Closer
}

// openDatabase returns nil if the resource stores the data.
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

// prepare creates the tables for the data. It retries, because the servers may still be starting.
func (d *database) prepare(ctx context.Context) error {
	return insist(ctx, d.store.PrepareData)
}

// insist repeats do until it succeeds or ctx ends.
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

// report records the committed accesses to the keys that workers were given, and the final state of each key. A
// key that the database does not have is included, because its absence shows what the database lost. Keys of
// other runs, which the database may still have, are left out.
//
// The times of accesses come from inOneOrder, because it was not observed when an access took effect.
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

// inOneOrder sorts accesses by the times of their requests, but keeps those of each key in the order in which
// they took effect. If an access was requested before another one that took effect earlier, it gets the time of
// that one.
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
