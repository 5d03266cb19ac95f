package clusters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"lockcheck/clients"
	"lockcheck/clusters/agent"
	"lockcheck/clusters/clustertest"
)

// TestZooKeeper holds the locks on ZooKeeper to their contract, on one ensemble.
func TestZooKeeper(t *testing.T) {
	t.Parallel()
	e := ensemble{Cluster: started(t, "zookeeper")}
	for name, test := range map[string]func(*testing.T, ensemble){
		"leader": zkLeader, "timeout": zkTimeout, "queue": zkQueue, "withdrawal": zkWithdrawal,
		"herd": zkHerd, "library": zkLibrary, "expiry": zkExpiry, "lost answer": zkLostAnswer,
		"contender": zkContender,
	} {
		t.Run(name, func(t *testing.T) { test(t, e) })
	}
	// These disturb the servers.
	t.Run("clock", func(t *testing.T) { zkClock(t, e) })
	t.Run("majority", func(t *testing.T) { zkMajority(t, e) })
}

// TestZooKeeperAlone: one server has no leader, and serves the lock as well.
func TestZooKeeperAlone(t *testing.T) {
	t.Parallel()
	r := request(t, "zookeeper")
	r.Nodes = 1
	e := ensemble{Cluster: startedWith(t, r)}
	if _, err := e.Servers()[0].Host.Leads(t.Context()); !errors.Is(err, agent.ErrNoLeader) {
		t.Errorf("leads: %v", err)
	}
	w := e.worker(t, "w1", "zookeeper")
	w.done(w.release(w.acquire("alone")))
}

// ensemble is a cluster of ZooKeeper servers.
type ensemble struct{ Cluster }

func (e ensemble) addresses() (all []string) {
	for _, node := range e.Servers() {
		all = append(all, node.Address)
	}
	return all
}

// zkWorker has a lock, and a session, of its own.
type zkWorker struct {
	clients.Lock
	t        *testing.T
	name     string
	attempts int
	notified bool // of a loss of the connection
}

func (e ensemble) worker(t *testing.T, name, lock string, nodes ...string) *zkWorker {
	t.Helper()
	if nodes == nil {
		nodes = e.addresses()
	}
	return e.workerWith(t, lock, clients.Config{Worker: name, Nodes: nodes, TTL: 2 * time.Second})
}

func (e ensemble) workerWith(t *testing.T, lock string, config clients.Config) *zkWorker {
	t.Helper()
	info, _ := clients.ByName(lock)
	opened, err := info.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	return &zkWorker{Lock: opened, t: t, name: config.Worker, notified: lock != "zookeeper-lib"}
}

// try waits in the queue for a time.
func (w *zkWorker) try(key string, wait time.Duration) (clients.Grant, error) {
	w.attempts++
	ctx, cancel := context.WithTimeout(w.t.Context(), wait)
	defer cancel()
	return w.Acquire(ctx, clients.Attempt{Key: key, ID: w.id()})
}

// tryAndLeave is try, and takes back an attempt of unknown outcome.
func (w *zkWorker) tryAndLeave(key string, wait time.Duration) (clients.Grant, error) {
	grant, err := w.try(key, wait)
	if clients.OutcomeOf(err) == clients.Unknown {
		_ = w.release(clients.Grant{Key: key, ID: w.id()}) // it goes on in the background
	}
	return grant, err
}

func (w *zkWorker) id() string { return fmt.Sprintf("%s-%d", w.name, w.attempts) }

func (w *zkWorker) acquire(key string) clients.Grant {
	w.t.Helper()
	grant, err := w.try(key, patience)
	if err != nil || grant.Key != key || grant.ID != w.id() || (grant.Lost != nil) != w.notified || grant.Until != 0 {
		w.t.Fatalf("%s: %+v, %v", w.name, grant, err)
	}
	return grant
}

// queued begins an attempt and waits until it is in the queue.
func (w *zkWorker) queued(e ensemble, key string, length int) <-chan clients.Grant {
	granted := make(chan clients.Grant, 1)
	go func() {
		if grant, err := w.try(key, patience); err == nil {
			granted <- grant
		}
	}()
	e.awaitQueue(w.t, key, length)
	return granted
}

func (w *zkWorker) release(grant clients.Grant) error {
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
	defer cancel()
	return w.Release(ctx, grant)
}

func (w *zkWorker) done(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Errorf("%s: %v", w.name, err)
	}
}

func (w *zkWorker) refused(err error) {
	w.t.Helper()
	if !errors.Is(err, clients.ErrNotHeld) {
		w.t.Errorf("%s: %v, want not held", w.name, err)
	}
}

// awaitQueue waits until there are so many nodes in the queue for a lock, by the
// word of a session of its own.
func (e ensemble) awaitQueue(t *testing.T, key string, length int) {
	t.Helper()
	conn, _, err := zk.Connect(e.addresses(), 10*time.Second, zk.WithLogger(clients.SilentZooKeeper{}), zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	clustertest.Eventually(t, patience, func() error {
		_, _ = conn.Sync("/lock-" + key)
		queue, _, err := conn.Children("/lock-" + key)
		if err != nil || len(queue) != length {
			return fmt.Errorf("queue %v, want %d: %w", queue, length, err)
		}
		return nil
	})
}

// awaitWatches waits until so many watches are set on the queue of a lock: a worker is in
// the queue before it watches.
func (e ensemble) awaitWatches(t *testing.T, key string, count int) {
	t.Helper()
	clustertest.Eventually(t, patience, func() error {
		set := 0
		for _, address := range e.addresses() {
			answer, err := fourLetters(t.Context(), address, "wchp")
			if err != nil {
				return err
			}
			set += watchesOn("/lock-"+key, answer)
		}
		if set != count {
			return fmt.Errorf("%d watches on %s, want %d", set, key, count)
		}
		return nil
	})
}

// watchesOn counts the sessions that watch a folder or what is in it, in the answer to
// wchp: paths, each followed by the sessions that watch it, indented.
func watchesOn(folder, answer string) (count int) {
	within := false
	for line := range strings.Lines(answer) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "/"):
			within = line == folder || strings.HasPrefix(line, folder+"/")
		case within && strings.HasPrefix(line, "\t"):
			count++
		}
	}
	return count
}

func got(t *testing.T, what string, granted <-chan clients.Grant) clients.Grant {
	t.Helper()
	select {
	case grant := <-granted:
		return grant
	case <-time.After(patience):
		t.Fatalf("%s: not granted", what)
	}
	return clients.Grant{}
}

func gone(t *testing.T, what string, lost <-chan struct{}) {
	t.Helper()
	select {
	case <-lost:
	case <-time.After(patience):
		t.Errorf("%s: not notified", what)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func zkLeader(t *testing.T, e ensemble) {
	leaders := 0
	for _, node := range e.Servers() {
		leads, err := node.Host.Leads(t.Context())
		if err != nil {
			t.Errorf("%s: %v", node.Name, err)
		}
		if leads {
			leaders++
		}
		if version, err := node.Host.Version(t.Context()); err != nil || !strings.HasPrefix(version, "3.") {
			t.Errorf("%s: version %q, %v", node.Name, version, err)
		}
		reading, err := node.Host.Clock(t.Context())
		if low, high := reading.Offset(); err != nil || low > time.Millisecond || high < -time.Millisecond {
			t.Errorf("%s: clock is %s to %s ahead, %v", node.Name, low, high, err)
		}
	}
	if leaders != 1 {
		t.Errorf("%d leaders", leaders)
	}
}

// zkTimeout: the servers grant the session timeout that was asked for.
func zkTimeout(t *testing.T, e ensemble) {
	for i, ttl := range []time.Duration{clients.ZooKeeperMinTTL + 12*time.Millisecond, 12345 * time.Millisecond} {
		e.workerWith(t, "zookeeper", clients.Config{Worker: fmt.Sprint("w", i), Nodes: e.addresses(), TTL: ttl})
		clustertest.Eventually(t, patience, func() error {
			for _, address := range e.addresses() {
				answer, err := fourLetters(t.Context(), address, "cons")
				if err != nil {
					return err
				}
				if strings.Contains(answer, fmt.Sprintf(",to=%d,", ttl.Milliseconds())) {
					return nil
				}
			}
			return fmt.Errorf("no session with a timeout of %s", ttl)
		})
	}
}

// zkQueue: one after the other, in the order in which they came.
func zkQueue(t *testing.T, e ensemble) {
	for _, lock := range []string{"zookeeper", "zookeeper-herd"} {
		var workers []*zkWorker
		for i := range 3 {
			workers = append(workers, e.worker(t, fmt.Sprint("w", i+1), lock))
		}
		grant := workers[0].acquire(lock)
		workers[0].refused(workers[0].release(clients.Grant{Key: lock, ID: "stranger-1"}))
		var waiting []<-chan clients.Grant
		for i, w := range workers[1:] {
			waiting = append(waiting, w.queued(e, lock, i+2))
		}
		for i, turn := range waiting {
			for _, later := range waiting[i:] {
				if len(later) > 0 {
					t.Fatalf("%s: granted before its turn", lock)
				}
			}
			workers[i].done(workers[i].release(grant))
			next := got(t, lock, turn)
			if next.Token <= grant.Token || isClosed(next.Lost) {
				t.Errorf("%s: token %d after %d, lost %v", lock, next.Token, grant.Token, isClosed(next.Lost))
			}
			workers[i].refused(workers[i].release(grant))
			grant = next
		}
		e.awaitQueue(t, lock, 1)
		workers[2].done(workers[2].release(grant))
	}
}

// zkWithdrawal: who stops waiting leaves nothing behind.
func zkWithdrawal(t *testing.T, e ensemble) {
	const careful = "zookeeper-lib+new-session-on-error+watch-connection"
	for _, lock := range []string{"zookeeper", careful} {
		holder, waiter := e.worker(t, "w1", lock), e.worker(t, "w2", lock)
		grant := holder.acquire("withdrawal-" + lock)
		_, err := waiter.try(grant.Key, 2*time.Second)
		var busy *clients.BusyError
		switch {
		case lock == careful:
			if clients.OutcomeOf(err) != clients.Unknown {
				t.Errorf("%s: %v", lock, err)
			}
		case !errors.As(err, &busy) || busy.Holder != grant.ID:
			t.Errorf("%s: %v, want busy for %s", lock, err, grant.ID)
		default:
			waiter.refused(waiter.release(clients.Grant{Key: grant.Key, ID: waiter.id()}))
		}
		e.awaitQueue(t, grant.Key, 1)
		holder.done(holder.release(grant))
		waiter.done(waiter.release(waiter.acquire(grant.Key)))
	}
}

// zkHerd: with a watch on the whole queue waiters wake up for each node that comes or
// goes, with one on the node before them once, when it is their turn.
func zkHerd(t *testing.T, e ensemble) {
	for lock, herd := range map[string]bool{"zookeeper": false, "zookeeper-herd": true} {
		key := "herd-" + lock
		holder := e.worker(t, "w0", lock)
		grant := holder.acquire(key)
		var workers []*zkWorker
		var waiting []<-chan clients.Grant
		for i := range 3 {
			w := e.worker(t, fmt.Sprint("w", i+1), lock)
			workers, waiting = append(workers, w), append(waiting, w.queued(e, key, i+2))
		}
		if !herd { // the servers do not tell of watches on the children of a node
			e.awaitWatches(t, key, len(workers))
		}
		holder.done(holder.release(grant))
		var wakes []int64 // by waiter, in the order of the queue
		for i, turn := range waiting {
			grant := got(t, key, turn)
			workers[i].done(workers[i].release(grant))
			wakes = append(wakes, grant.Wakes)
		}
		if most := slices.Max(wakes); !herd && slices.Min(wakes) == 0 || (most > 1) != herd {
			t.Errorf("%s: woken up %v times", lock, wakes)
		}
	}
}

// zkLibrary: what its lock can tell, and what it cannot.
func zkLibrary(t *testing.T, e ensemble) {
	first, second := e.worker(t, "w1", "zookeeper-lib"), e.worker(t, "w2", "zookeeper-lib")
	grant := first.acquire("library")
	turn := second.queued(e, "library", 2)
	if err := second.release(clients.Grant{Key: "library", ID: "stranger-1"}); clients.OutcomeOf(err) != clients.Unknown {
		t.Errorf("release of what it never had: %v", err)
	}
	if len(turn) > 0 || grant.Token != 0 {
		t.Errorf("granted twice, or with token %d", grant.Token)
	}
	first.done(first.release(grant))
	next := got(t, "library", turn)
	second.done(second.release(next))
}

// zkExpiry: a holder that is cut off is notified, and loses the lock to the next.
func zkExpiry(t *testing.T, e ensemble) {
	for _, lock := range []string{"zookeeper", "zookeeper-lib+watch-connection"} {
		key := "expiry-" + lock
		proxy := startProxy(t, e.addresses()[0])
		cut, next := e.worker(t, "w1", lock, proxy.address), e.worker(t, "w2", lock)
		lost := cut.acquire(key)
		turn := next.queued(e, key, 2)
		if isClosed(lost.Lost) || len(turn) > 0 {
			t.Errorf("%s: lost without a reason", lock)
		}
		proxy.freeze(true, true)
		grant := got(t, key, turn)
		gone(t, key, lost.Lost)
		proxy.renew()
		if err := cut.release(lost); err == nil {
			t.Errorf("%s: the former holder released it", lock)
		}
		e.awaitQueue(t, key, 1) // that of the next holder
		next.done(next.release(grant))
	}
}

// zkLostAnswer: the request to queue is carried out, and its answer lost. The
// client finds its node, and makes no second one.
func zkLostAnswer(t *testing.T, e ensemble) {
	proxy := startProxy(t, e.addresses()[0])
	w := e.worker(t, "w1", "zookeeper", proxy.address)
	w.done(w.release(w.acquire("answer"))) // now there is a session, and a folder
	proxy.freeze(false, true)
	granted := w.queued(e, "answer", 1)
	if len(granted) > 0 {
		t.Fatal("granted without an answer")
	}
	proxy.renew()
	grant := got(t, "answer", granted)
	e.awaitQueue(t, "answer", 1)
	w.done(w.release(grant))
	e.awaitQueue(t, "answer", 0)
}

// zkContender: the request to queue is carried out, and its answer lost. The library's
// Lock fails, and its node stays, unless the session is closed.
func zkContender(t *testing.T, e ensemble) {
	for lock, left := range map[string]int{"zookeeper-lib": 1, "zookeeper-lib+new-session-on-error+watch-connection": 0} {
		key := "contender-" + lock
		proxy := startProxy(t, e.addresses()[0])
		// The library fails after two thirds of the timeout; the node would go with it.
		w := e.workerWith(t, lock, clients.Config{Worker: "w1", Nodes: []string{proxy.address}, TTL: 6 * time.Second})
		w.done(w.release(w.acquire(key))) // now there is a session, and a folder
		proxy.freeze(false, true)
		if grant, err := w.try(key, patience); clients.OutcomeOf(err) != clients.Unknown {
			t.Fatalf("%s: without an answer: %+v, %v", lock, grant, err)
		}
		proxy.renew()
		e.awaitQueue(t, key, left)
	}
}

// zkClock: the clock that is read is that of the server which was asked, not
// that of the leader.
func zkClock(t *testing.T, e ensemble) {
	i := slices.IndexFunc(e.Servers(), func(n *Node) bool {
		leads, err := n.Host.Leads(t.Context())
		return err == nil && !leads
	})
	if i < 0 {
		t.Fatal("no follower")
	}
	if reason := e.Servers()[i].Clock; reason != nil {
		t.Fatal(reason)
	}
	for _, step := range []time.Duration{time.Hour, 0} {
		if _, err := e.Servers()[i].Host.SetClock(t.Context(), step); err != nil {
			t.Fatal(err)
		}
		for j, node := range e.Servers() {
			want := step
			if i != j {
				want = 0
			}
			clustertest.Eventually(t, patience, func() error {
				reading, err := node.Host.Clock(t.Context())
				if low, high := reading.Offset(); err != nil || low > want+time.Second || high < want-time.Second {
					return fmt.Errorf("%s is %s to %s ahead, want %s: %w", node.Name, low, high, want, err)
				}
				return nil
			})
		}
	}
}

// zkMajority: the lock can be taken without one of three servers, not without two,
// and with them again.
func zkMajority(t *testing.T, e ensemble) {
	w := e.worker(t, "w1", "zookeeper")
	again := func(when string) {
		clustertest.Eventually(t, patience, func() error {
			grant, err := w.tryAndLeave("majority", 5*time.Second)
			if err != nil {
				return fmt.Errorf("%s: %w", when, err)
			}
			return w.release(grant)
		})
	}
	again("at first")
	for i, node := range e.Servers()[:2] {
		signal(t, node, agent.Stop)
		if i == 0 {
			again("without one")
		}
	}
	if grant, err := w.tryAndLeave("majority", time.Second); err == nil {
		t.Errorf("without a majority: %+v", grant)
	}
	for _, node := range e.Servers()[:2] {
		signal(t, node, agent.Continue)
	}
	again("with all")
}
