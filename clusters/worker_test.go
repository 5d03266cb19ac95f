package clusters

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"lockcheck/clients"
	"lockcheck/clusters/clustertest"
	"lockcheck/history"
)

// worker is one client of a lock. Its attempts have unique IDs.
type worker struct {
	*testing.T
	clients.Lock
	info     clients.Info
	name     string
	attempts int
	// kept: the client renews its lease, so that its grants do not expire.
	kept bool
}

// mustLock finds a lock by its name and options.
func mustLock(t *testing.T, name string) clients.Info {
	t.Helper()
	info, known := clients.ByName(name)
	if !known {
		t.Fatalf("no lock %s", name)
	}
	return info
}

// open opens a lock on the servers of a cluster, for a worker or another client.
func open(t *testing.T, lock, name string, cluster Cluster) *worker {
	t.Helper()
	return openWith(t, lock, clients.Config{Worker: name, Nodes: addresses(cluster)})
}

// openTwo opens a lock for two workers.
func openTwo(t *testing.T, lock string, cluster Cluster) (first, second *worker) {
	t.Helper()
	return open(t, lock, "w1", cluster), open(t, lock, "w2", cluster)
}

func openWith(t *testing.T, lock string, config clients.Config) *worker {
	t.Helper()
	info := mustLock(t, lock)
	opened, err := info.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	return &worker{T: t, Lock: opened, info: info, name: config.Worker, kept: info.Session && !config.NoKeepAlive}
}

// addresses are those of the servers that clients know.
func addresses(cluster Cluster) (all []string) {
	for _, node := range cluster.Servers() {
		if !node.Server.Hidden {
			all = append(all, node.Address)
		}
	}
	return all
}

// key returns a key that no other lock of the cluster uses.
func (w *worker) key(name string) string {
	lock, _, _ := strings.Cut(w.info.Name, "+") // a lock with and without options shares its keys
	return lock + ":" + name
}

// id is the ID of the last attempt.
func (w *worker) id() string { return fmt.Sprintf("%s-%d", w.name, w.attempts) }

// callLimit is how long a call to servers that answer may take.
const callLimit = 5 * time.Second

// try makes one attempt, which may wait in the queue for the given time.
func (w *worker) try(key string, ttl, wait time.Duration) (clients.Grant, error) {
	w.attempts++
	ctx, cancel := context.WithTimeout(w.Context(), wait)
	defer cancel()
	return w.Acquire(ctx, clients.Attempt{Key: key, ID: w.id(), TTL: ttl})
}

// acquire gets the lock. A client with a session waits in the queue and must not fail. Others retry: a lease
// may have to expire, a connection may be broken, and Redlock may miss its servers' answers.
func (w *worker) acquire(key string, ttl time.Duration) (grant clients.Grant) {
	w.Helper()
	if !w.info.Session {
		return w.acquireAtLast(key, ttl, callLimit)
	}
	grant, err := w.try(key, ttl, patience)
	if err != nil {
		w.Fatalf("%s acquires %s: %v", w.id(), key, err)
	}
	w.fits(grant, key, ttl)
	return grant
}

// acquireAtLast retries until it has the lock.
func (w *worker) acquireAtLast(key string, ttl, wait time.Duration) (grant clients.Grant) {
	w.Helper()
	clustertest.Eventually(w, patience, func() (err error) {
		grant, err = w.try(key, ttl, wait)
		return err
	})
	w.fits(grant, key, ttl)
	return grant
}

// acquireFresh uses another key for each attempt. What an attempt left behind on a slow server would block the
// next attempt.
func (w *worker) acquireFresh(key string, ttl time.Duration) (grant clients.Grant) {
	w.Helper()
	clustertest.Eventually(w, patience, func() (err error) {
		grant, err = w.try(fmt.Sprint(key, " ", w.attempts), ttl, callLimit)
		return err
	})
	return grant
}

// fits checks that a grant matches the attempt and the table's entry of the lock.
func (w *worker) fits(grant clients.Grant, key string, ttl time.Duration) {
	w.Helper()
	if grant.Key != key || grant.ID != w.id() || (grant.Token != 0) != (w.info.Token != "") || grant.Expired {
		w.Fatalf("%s granted %+v", w.info.Name, grant)
	}
	now, ends := history.Now(), w.info.TTL != 0 && !w.kept
	if (grant.Until != 0) != ends || ends && grant.Until > now+w.info.Lease(ttl).Nanoseconds() || ends && ttl >= time.Minute && grant.Until <= now {
		w.Fatalf("%s: valid until %d, now %d, with a lease of %s", w.info.Name, grant.Until, now, ttl)
	}
}

// answer is the result of an attempt.
type answer struct {
	grant clients.Grant
	err   error
}

// queue makes an attempt in the background.
func (w *worker) queue(key string, ttl time.Duration) <-chan answer {
	return w.queueFor(key, ttl, patience)
}

func (w *worker) queueFor(key string, ttl, wait time.Duration) <-chan answer {
	answers := make(chan answer, 1)
	go func() {
		grant, err := w.try(key, ttl, wait)
		answers <- answer{grant, err}
	}()
	return answers
}

// granted waits for the grant of an attempt in the background.
func (w *worker) granted(answers <-chan answer) clients.Grant {
	w.Helper()
	select {
	case a := <-answers:
		if a.err != nil {
			w.Fatalf("%s waited: %v", w.id(), a.err)
		}
		return a.grant
	case <-time.After(patience + callLimit):
		w.Fatalf("%s waits in vain", w.id())
	}
	return clients.Grant{}
}

// shortWait bounds an attempt that must not be granted the lock.
const shortWait = 300 * time.Millisecond

// refused checks that the lock is held, by the given grant. On a busy machine the time of an attempt may be
// over before it has a session.
func (w *worker) refused(when string, by clients.Grant) {
	w.Helper()
	wait := callLimit
	if w.info.Queues {
		wait = shortWait
	}
	clustertest.Eventually(w, patience, func() error {
		_, err := w.try(by.Key, time.Minute, wait)
		var busy *clients.BusyError
		switch {
		case err == nil:
			w.Fatalf("%s: %s is granted to %s, although %s holds it", when, by.Key, w.id(), by.ID)
		case errors.As(err, &busy) && (busy.Holder == by.ID || busy.Holder == "" && !w.namesHolder()):
			return nil
		case w.onConnection() && clients.OutcomeOf(err) == clients.Unknown: // the server may give the attempt up later
			return nil
		}
		return fmt.Errorf("%s: %w, want busy for %s", when, err, by.ID)
	})
}

// namesHolder says whether a busy answer names the holder. A library may not, and a server of NATS or Galera
// may have an old record. Of the queueing locks only ZooKeeper's own recipe names it.
func (w *worker) namesHolder() bool {
	switch w.info.Servers {
	case "nats", "galera":
		return false
	case "zookeeper":
		return w.info.Library == ""
	}
	return w.info.Library == "" && !w.info.Queues
}

// onConnection says whether the lock lasts as long as a connection to a database.
func (w *worker) onConnection() bool { return w.info.Queues && !w.info.Session && w.info.TTL == 0 }

func (w *worker) release(grant clients.Grant) error {
	ctx, cancel := context.WithTimeout(w.Context(), callLimit)
	defer cancel()
	return w.Release(ctx, grant)
}

// released releases a grant and checks the outcome.
func (w *worker) released(grant clients.Grant, want clients.Outcome) {
	w.Helper()
	err := w.release(grant)
	// A busy server answers too late for Redlock. What is unknown is asked for again, and may be done by then.
	for end := time.Now().Add(patience); want == clients.Done && clients.OutcomeOf(err) == clients.Unknown && time.Now().Before(end); {
		if err = w.release(grant); clients.OutcomeOf(err) == clients.NotHeld {
			return
		}
	}
	if clients.OutcomeOf(err) != want {
		w.Errorf("%s releases %s: outcome %d (%v), want %d", w.name, grant.ID, clients.OutcomeOf(err), err, want)
	}
}

// outcome repeats a call until it has the outcome.
func (w *worker) outcome(what string, want clients.Outcome, call func() error) {
	w.Helper()
	clustertest.Eventually(w, patience, func() error {
		if err := call(); clients.OutcomeOf(err) != want {
			return fmt.Errorf("%s: outcome %d (%v), want %d", what, clients.OutcomeOf(err), err, want)
		}
		return nil
	})
}

// releasedInVain repeats the release of a lock that is not held until it is refused. Most libraries have no
// handle for it and cannot tell.
func (w *worker) releasedInVain(what string, grant clients.Grant) {
	w.Helper()
	want := clients.NotHeld
	if w.info.Library != "" && w.info.Servers != "etcd" && w.info.Servers != "kubernetes" {
		want = clients.Unknown
	}
	w.outcome("release "+what, want, func() error { return w.release(grant) })
}

// notified waits until the client reports that the lock is lost.
func (w *worker) notified(grant clients.Grant) {
	w.Helper()
	select {
	case <-grant.Lost:
	case <-time.After(patience):
		w.Errorf("%s was not notified that %s is gone", w.name, grant.ID)
	}
}

// keeps checks that the client still counts the lock as held.
func (w *worker) keeps(grant clients.Grant) {
	w.Helper()
	select {
	case <-grant.Lost:
		w.Errorf("%s was notified that %s is gone", w.name, grant.ID)
	default:
	}
}

// holds asks the service whether a grant is in force, and checks the answer.
func (w *worker) holds(when string, grant clients.Grant, want bool) {
	w.Helper()
	asker, can := w.Lock.(clients.Asker)
	if !can {
		w.Fatal("it cannot ask, and the table says otherwise")
	}
	clustertest.Eventually(w, patience, func() error {
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		got, err := asker.Holds(ctx, grant)
		if err == nil && got != want {
			w.Fatalf("%s: %s of %s holds it: %t", when, grant.ID, grant.Key, got)
		}
		return err
	})
}

// untilAnswered tries a part of a contract with one key after another until its release is answered. For a lock
// on several servers a majority may not answer in time. The state of the lock is unknown then, and the library
// may have dropped the handle.
func (w *worker) untilAnswered(part string, try func(key string) (answered bool)) {
	w.Helper()
	for n := 1; n <= 5; n++ {
		if try(w.key(fmt.Sprintf("%s-%d", part, n))) {
			return
		}
	}
	w.Fatalf("%s: no release was answered", part)
}

// releases says whether a release was answered, and fails the test if the outcome is not the wanted one.
func (w *worker) releases(grant clients.Grant, want clients.Outcome) bool {
	w.Helper()
	err := w.release(grant)
	if outcome := clients.OutcomeOf(err); outcome != want && outcome != clients.Unknown {
		w.Fatalf("release: outcome %d (%v), want %d", outcome, err, want)
	}
	return clients.OutcomeOf(err) == want
}

// contractRelease: a lock is its holder's until the holder releases it. No other client can release it, and the
// holder cannot release it twice.
func contractRelease(a, b *worker) {
	var first clients.Grant
	a.untilAnswered("release", func(key string) bool {
		first = a.acquire(key, time.Minute)
		b.refused("at first", first)
		b.releasedInVain("by another", clients.Grant{Key: key, ID: "stranger-1"})
		b.refused("after another one released it", first)
		a.keeps(first)
		return a.releases(first, clients.Done)
	})
	key := first.Key
	a.releasedInVain("a second time", first)
	second := b.acquire(key, time.Minute)
	if a.info.Token != "" && second.Token <= first.Token {
		a.Errorf("token %d after %d", second.Token, first.Token)
	}
	a.releasedInVain("by the former holder", first)
	a.acquire(a.key("another"), time.Minute)
	a.refused("after the former holder released it", second)
	b.keeps(second)
	b.released(second, clients.Done)
}
