package workloads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"lockcheck/clients"
	"lockcheck/clusters/clustertest"
	"lockcheck/history"
)

// fakeStore returns the results that the test sets.
type fakeStore struct {
	err      error // of each access
	failures int   // number of failures of Committed before it answers
	accesses []clients.DataAccess
	final    map[string]clients.Data
}

var errStore = errors.New("the database does not answer")

func (f *fakeStore) PrepareData(context.Context) error { return nil }

func (f *fakeStore) Access(context.Context, clients.Grant, clients.DataAccess, json.RawMessage) (clients.Data, error) {
	return clients.Data{}, f.err
}

func (f *fakeStore) Committed(context.Context) ([]clients.DataAccess, map[string]clients.Data, error) {
	if f.failures--; f.failures >= 0 {
		return nil, nil, errStore
	}
	return f.accesses, f.final, nil
}

// TestInOneOrder: accesses are sorted by time, but those of one key stay in the order in which they took
// effect.
func TestInOneOrder(t *testing.T) {
	a := func(key string, version, at int64) clients.DataAccess {
		return clients.DataAccess{Key: key, Version: version, At: at}
	}
	for _, c := range []struct {
		name     string
		accesses []clients.DataAccess
		want     []string // key, version, time
	}{
		{"none", nil, nil},
		{"one key", []clients.DataAccess{a("k0", 0, 1), a("k0", 1, 2)}, []string{"k0 0 1", "k0 1 2"}},
		{"two keys", []clients.DataAccess{a("k0", 1, 1), a("k0", 2, 5), a("k1", 1, 3)}, []string{"k0 1 1", "k1 1 3", "k0 2 5"}},
		{"one that had to wait", []clients.DataAccess{a("k0", 1, 4), a("k0", 2, 2)}, []string{"k0 1 4", "k0 2 4"}},
		{"on each key", []clients.DataAccess{a("k0", 1, 4), a("k0", 2, 2), a("k1", 1, 3), a("k1", 2, 1)}, []string{"k1 1 3", "k1 2 3", "k0 1 4", "k0 2 4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, a := range inOneOrder(c.accesses) {
				got = append(got, fmt.Sprintf("%s %d %d", a.Key, a.Version, a.At))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestDatabaseReport: the database's record of accesses becomes that of the resource.
func TestDatabaseReport(t *testing.T) {
	var out lockedBuffer
	store := &fakeStore{
		failures: 1,
		accesses: []clients.DataAccess{
			{Key: "k0", Client: "w1", Op: 2, Grant: "w1-1", At: 10},
			{Key: "k0", Client: "w1", Op: 3, Grant: "w1-1", At: 20, Write: true, Element: 7, Version: 1},
			{Key: "k1", Client: "w2", Op: 2, Grant: "w2-1", At: 15},
			{Key: "r1k0", Client: "w1", Op: 2, Grant: "w1-1", At: 5}, // of an earlier run
		},
		final: map[string]clients.Data{"k0": {Version: 1, Value: "[7]"}},
	}
	d := &database{store: store}
	if err := d.report(t.Context(), NewEmitter(history.Resource, &out), []string{"k0", "k1", "k2"}); err != nil {
		t.Fatal(err)
	}
	events := out.events(t)
	validate(t, events)
	var got []string
	for i, e := range events {
		if e.F == history.Final {
			e.Time = int64(i)
		}
		got = append(got, fmt.Sprintf("%d %d %s %s %s %s v%d e%d %s", e.Seq, e.Time, e.F, e.Type, e.Key, e.Grant, e.Version, e.Element, e.Value))
	}
	want := []string{
		"1 10 read ok k0 w1-1 v0 e0 ",
		"2 15 read ok k1 w2-1 v0 e0 ",
		"3 20 write ok k0 w1-1 v1 e7 ",
		"0 3 final ok k0  v1 e0 [7]",
		"0 4 final ok k1  v0 e0 ",
		"0 5 final ok k2  v0 e0 ", // either all its data were lost, or there were none
	}
	if !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&database{store: &fakeStore{failures: 1 << 30}}).report(ctx, NewEmitter(history.Resource, &out), nil); !errors.Is(err, errStore) {
		t.Errorf("a database that does not answer: %v", err)
	}
}

// TestDatabaseAccess: an access that fails ends the section but not the worker. Its event has the known
// outcome.
func TestDatabaseAccess(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want history.Type
	}{
		{"done", nil, history.OK},
		{"without effect", &clients.NoEffectError{Err: errStore}, history.Fail},
		{"of unknown outcome", errStore, history.Info},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out lockedBuffer
			w := &worker{store: &fakeStore{err: c.err}, record: NewEmitter("w1", &out)}
			w.config.Name, w.config.Timeout = "w1", patience
			_, err := w.access(t.Context(), clients.Grant{Key: "k0", ID: "w1-1"}, Access{})
			var refused *refusedError
			if errors.As(err, &refused) != (c.err != nil) {
				t.Errorf("error %v", err)
			}
			events := out.events(t)
			if last := events[len(events)-1]; last.Type != c.want || last.F != history.Read {
				t.Errorf("recorded %+v", last)
			}
		})
	}
}

// TestDatabaseRotation: a resource that does not see the accesses counts attempts, and knows the keys that it
// has given out.
func TestDatabaseRotation(t *testing.T) {
	for name, c := range map[string]struct {
		database    *database
		want, named []string
	}{
		"database": {new(database), []string{"k0", "k0", "k1", "k1", "k2"}, []string{"k0", "k1", "k2"}},
		"resource": {nil, []string{"k0", "k0", "k0", "k0", "k0"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := &resource{config: ResourceConfig{Rotate: 2}, database: c.database, keys: make(map[string]*keyState), unfinished: make(map[string]bool)}
			var got []string
			for range c.want {
				got = append(got, r.currentKey(KeyRequest{}).Key)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("named %q, want %q", got, c.want)
			}
			if named := r.named(); !slices.Equal(named, c.named) {
				t.Errorf("knows %q, want %q", named, c.named)
			}
		})
	}
}

// TestDatabaseWhich: the guard Database needs a lock whose database can store the data.
func TestDatabaseWhich(t *testing.T) {
	clustertest.ClientLibraries(t)
	for lock, fine := range map[string]bool{"memory": false, "postgres-lease": false, "postgres-xact": true} {
		d, err := openDatabase(ResourceConfig{Guard: Database, Service: &ServiceConfig{Lock: lock, Nodes: []string{"127.0.0.1:1"}}}, nil)
		if (err == nil) != fine {
			t.Errorf("%s: %v", lock, err)
		}
		_ = d.Close()
	}
}
