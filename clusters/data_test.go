package clusters

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"lockcheck/clients"
)

// dataLock is a lock that keeps the data in its database.
type dataLock struct {
	*worker
	clients.DataStore
}

func openDataLock(t *testing.T, lock string, cluster Cluster) dataLock {
	t.Helper()
	w := open(t, lock, "w1", cluster)
	store, can := w.Lock.(clients.DataStore)
	if !can {
		t.Fatal("it keeps no data, and the table says otherwise")
	}
	k := dataLock{w, store}
	for range 2 { // the second call keeps existing data
		if err := k.PrepareData(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

func (k dataLock) access(grant clients.Grant, a clients.DataAccess, value string) (clients.Data, error) {
	ctx, cancel := context.WithTimeout(k.Context(), callLimit)
	defer cancel()
	a.Client, a.Write = "w1", value != ""
	return k.Access(ctx, grant, a, json.RawMessage(value))
}

// done makes an access that must succeed.
func (k dataLock) done(grant clients.Grant, value string, want clients.Data) {
	k.Helper()
	if got, err := k.access(grant, clients.DataAccess{Op: 1, Element: 7, Base: 3, At: 5}, value); err != nil || got != want {
		k.Fatalf("%s %q: %+v, %v, want %+v", grant.ID, value, got, err, want)
	}
}

// committed returns the accesses that took effect on a key, as text, and the final data.
func (k dataLock) committed(key string) (accesses []string, final clients.Data) {
	k.Helper()
	ctx, cancel := context.WithTimeout(k.Context(), patience)
	defer cancel()
	all, data, err := k.Committed(ctx)
	if err != nil {
		k.Error(err)
	}
	for _, a := range all {
		if a.Key == key {
			accesses = append(accesses, fmt.Sprintf("%s %t %d", a.Grant, a.Write, a.Version))
		}
	}
	return accesses, data[key]
}

// TestDataStore checks clients.DataStore on a real server, for every lock that keeps the data in its database.
func TestDataStore(t *testing.T) {
	t.Parallel()
	cluster := started(t, "postgres")
	for lock, transaction := range map[string]bool{"postgres-session": false, "postgres-xact": true, "postgres-row": true} {
		t.Run(lock, func(t *testing.T) {
			for name, contract := range map[string]func(*testing.T, string, Cluster, bool){
				"accesses": dataAccesses, "wait": dataWait, "end": dataEnd,
			} {
				t.Run(name, func(t *testing.T) { contract(t, lock, cluster, transaction) })
			}
		})
	}
}

// dataAccesses: a holder reads what it wrote, and so does the next holder.
func dataAccesses(t *testing.T, lock string, cluster Cluster, _ bool) {
	k := openDataLock(t, lock, cluster)
	key := k.key("accesses")
	first := k.acquire(key, 0)
	k.done(first, "", clients.Data{})
	k.done(first, "[7]", clients.Data{Version: 1, Value: "[7]"})
	k.done(first, "", clients.Data{Version: 1, Value: "[7]"})
	k.released(first, clients.Done)
	if _, err := k.access(first, clients.DataAccess{}, ""); clients.OutcomeOf(err) != clients.NoEffect {
		t.Errorf("access after the release: %v", err)
	}
	second := k.acquire(key, 0)
	k.done(second, "[7,8]", clients.Data{Version: 2, Value: "[7,8]"})
	k.released(second, clients.Done)
	accesses, final := k.committed(key)
	want := []string{first.ID + " false 0", first.ID + " true 1", first.ID + " false 1", second.ID + " true 2"}
	if !slices.Equal(accesses, want) || final != (clients.Data{Version: 2, Value: "[7,8]"}) {
		t.Errorf("committed %q, %+v, want %q", accesses, final, want)
	}
	all, _, err := k.Committed(t.Context())
	wrote := clients.DataAccess{Write: true, Client: "w1", Op: 1, Element: 7, Base: 3, At: 5, Key: key, Grant: second.ID, Version: 2}
	if err != nil || !slices.Contains(all, wrote) {
		t.Errorf("%+v is not among %+v, %v", wrote, all, err)
	}
}

// dataWait: a question for what took effect waits for undecided accesses. Where each access is its own
// transaction there is nothing to wait for.
func dataWait(t *testing.T, lock string, cluster Cluster, transaction bool) {
	k, other := openDataLock(t, lock, cluster), openDataLock(t, lock, cluster)
	key := k.key("wait")
	grant := k.acquire(key, 0)
	k.done(grant, "[7]", clients.Data{Version: 1, Value: "[7]"})
	answer := make(chan []string, 1)
	go func() {
		accesses, _ := other.committed(key)
		answer <- accesses
	}()
	want := []string{grant.ID + " true 1"}
	if transaction {
		awaitWaiters(t, cluster.Servers()[0], 1)
	} else if got := <-answer; !slices.Equal(got, want) {
		t.Errorf("committed %q before the release, want %q", got, want)
	}
	k.released(grant, clients.Done)
	if transaction {
		if got := <-answer; !slices.Equal(got, want) {
			t.Errorf("committed %q, want %q", got, want)
		}
	}
}

// dataEnd: a holder without a connection reaches no data any more. What it wrote in its transaction is rolled
// back.
func dataEnd(t *testing.T, lock string, cluster Cluster, transaction bool) {
	k := openDataLock(t, lock, cluster)
	key := k.key("end")
	grant := k.acquire(key, 0)
	k.done(grant, "[7]", clients.Data{Version: 1, Value: "[7]"})
	endSessions(t, cluster.Servers()[0])
	// When a session ends, its last access may or may not have happened; a transaction has had no effect.
	_, err := k.access(grant, clients.DataAccess{}, "[8]")
	if outcome := clients.OutcomeOf(err); outcome != clients.NoEffect && (transaction || outcome != clients.Unknown) {
		t.Errorf("write without a connection: %v", err)
	}
	k.released(grant, clients.Unknown) // it has no connection
	accesses, final := k.committed(key)
	if transaction {
		if len(accesses) != 0 || final != (clients.Data{}) {
			t.Errorf("committed %q, %+v", accesses, final)
		}
		return
	}
	if want := []string{grant.ID + " true 1"}; !slices.Equal(accesses, want) || final.Value != "[7]" {
		t.Errorf("committed %q, %+v, want %q", accesses, final, want)
	}
}
