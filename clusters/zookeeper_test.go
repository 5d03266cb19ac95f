package clusters

import (
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

// TestZooKeeper checks the locks on ZooKeeper against their contract, on one ensemble.
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
	// These two disturb the servers.
	t.Run("clock", func(t *testing.T) { zkClock(t, e) })
	t.Run("majority", func(t *testing.T) { zkMajority(t, e) })
}

// TestZooKeeperAlone: a single server has no leader, and serves the lock, too.
func TestZooKeeperAlone(t *testing.T) {
	t.Parallel()
	r := request(t, "zookeeper")
	r.Nodes = 1
	e := ensemble{Cluster: startedWith(t, r)}
	if _, err := e.Servers()[0].Host.Leads(t.Context()); !errors.Is(err, agent.ErrNoLeader) {
		t.Errorf("leads: %v", err)
	}
	w := open(t, "zookeeper", "w1", e)
	w.released(w.acquire("alone", 0), clients.Done)
}

// ensemble is a cluster of ZooKeeper servers.
type ensemble struct{ Cluster }

// queued begins an attempt and waits until it is in the queue.
func (e ensemble) queued(w *worker, key string, length int) <-chan answer {
	w.Helper()
	answers := w.queue(key, 0)
	e.awaitQueue(w.T, key, length)
	return answers
}

// awaitQueue waits until a lock's queue has the given number of nodes, as a separate session sees it.
func (e ensemble) awaitQueue(t *testing.T, key string, length int) {
	t.Helper()
	conn, _, err := zk.Connect(addresses(e), 10*time.Second, zk.WithLogger(clients.SilentZooKeeper{}), zk.WithLogInfo(false))
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

// awaitWatches waits until the given number of watches is set on a lock's queue. A worker is in the queue
// before it watches.
func (e ensemble) awaitWatches(t *testing.T, key string, count int) {
	t.Helper()
	clustertest.Eventually(t, patience, func() error {
		set := 0
		for _, address := range addresses(e) {
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

// watchesOn counts the sessions that watch a folder or its children in the answer to wchp, which lists paths,
// each followed by its sessions, indented.
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

// zkTimeout: the servers grant the requested session timeout.
func zkTimeout(t *testing.T, e ensemble) {
	for i, ttl := range []time.Duration{clients.ZooKeeperMinTTL + 12*time.Millisecond, 12345 * time.Millisecond} {
		openWith(t, "zookeeper", clients.Config{Worker: fmt.Sprint("w", i), Nodes: addresses(e), TTL: ttl})
		clustertest.Eventually(t, patience, func() error {
			for _, address := range addresses(e) {
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

// zkQueue: the lock is granted in the order of arrival.
func zkQueue(t *testing.T, e ensemble) {
	for _, lock := range []string{"zookeeper", "zookeeper-herd"} {
		var workers []*worker
		for i := range 3 {
			workers = append(workers, open(t, lock, fmt.Sprint("w", i+1), e))
		}
		grant := workers[0].acquire(lock, 0)
		workers[0].released(clients.Grant{Key: lock, ID: "stranger-1"}, clients.NotHeld)
		var waiting []<-chan answer
		for i, w := range workers[1:] {
			waiting = append(waiting, e.queued(w, lock, i+2))
		}
		for i, turn := range waiting {
			for _, later := range waiting[i:] {
				if len(later) > 0 {
					t.Fatalf("%s: granted before its turn", lock)
				}
			}
			workers[i].released(grant, clients.Done)
			next := workers[i+1].granted(turn)
			if next.Token <= grant.Token {
				t.Errorf("%s: token %d after %d", lock, next.Token, grant.Token)
			}
			workers[i+1].keeps(next)
			workers[i].released(grant, clients.NotHeld)
			grant = next
		}
		e.awaitQueue(t, lock, 1)
		workers[2].released(grant, clients.Done)
	}
}

// zkWithdrawal: an attempt that gave up leaves nothing behind.
func zkWithdrawal(t *testing.T, e ensemble) {
	for lock, want := range map[string]clients.Outcome{"zookeeper": clients.Busy, "zookeeper-lib+new-session-on-error+watch-connection": clients.Unknown} {
		holder, waiter := openTwo(t, lock, e)
		grant := holder.acquire("withdrawal-"+lock, 0)
		_, err := waiter.try(grant.Key, 0, 2*time.Second)
		var busy *clients.BusyError
		if clients.OutcomeOf(err) != want || errors.As(err, &busy) && busy.Holder != grant.ID {
			t.Errorf("%s: %v, while %s holds it", lock, err, grant.ID)
		}
		if want == clients.Busy {
			waiter.released(clients.Grant{Key: grant.Key, ID: waiter.id()}, clients.NotHeld)
		}
		e.awaitQueue(t, grant.Key, 1)
		holder.released(grant, clients.Done)
		waiter.released(waiter.acquire(grant.Key, 0), clients.Done)
	}
}

// zkHerd: with a watch on the whole queue, waiters wake up for each node that comes or goes. With a watch on
// the preceding node each waiter wakes up once, when it is its turn.
func zkHerd(t *testing.T, e ensemble) {
	for lock, herd := range map[string]bool{"zookeeper": false, "zookeeper-herd": true} {
		key := "herd-" + lock
		holder := open(t, lock, "w0", e)
		grant := holder.acquire(key, 0)
		var workers []*worker
		var waiting []<-chan answer
		for i := range 3 {
			w := open(t, lock, fmt.Sprint("w", i+1), e)
			workers, waiting = append(workers, w), append(waiting, e.queued(w, key, i+2))
		}
		if !herd { // the servers do not list watches on the children of a node
			e.awaitWatches(t, key, len(workers))
		}
		holder.released(grant, clients.Done)
		var wakes []int64 // by waiter, in queue order
		for i, turn := range waiting {
			grant := workers[i].granted(turn)
			workers[i].released(grant, clients.Done)
			wakes = append(wakes, grant.Wakes)
		}
		if most := slices.Max(wakes); !herd && slices.Min(wakes) == 0 || (most > 1) != herd {
			t.Errorf("%s: woken up %v times", lock, wakes)
		}
	}
}

// zkLibrary: what the library's lock can report, and what it cannot.
func zkLibrary(t *testing.T, e ensemble) {
	first, second := openTwo(t, "zookeeper-lib", e)
	grant := first.acquire("library", 0)
	if grant.Lost != nil {
		t.Error("notified of a loss without that option")
	}
	turn := e.queued(second, "library", 2)
	second.released(clients.Grant{Key: "library", ID: "stranger-1"}, clients.Unknown)
	if len(turn) > 0 {
		t.Error("granted twice")
	}
	first.released(grant, clients.Done)
	second.released(second.granted(turn), clients.Done)
}

// zkExpiry: a holder that is cut off is notified, and the lock is granted to the next one.
func zkExpiry(t *testing.T, e ensemble) {
	for _, lock := range []string{"zookeeper", "zookeeper-lib+watch-connection"} {
		key := "expiry-" + lock
		proxy := startProxy(t, addresses(e)[0])
		cut, next := openWith(t, lock, clients.Config{Worker: "w1", Nodes: []string{proxy.address}}), open(t, lock, "w2", e)
		lost := cut.acquire(key, 0)
		turn := e.queued(next, key, 2)
		cut.keeps(lost)
		if len(turn) > 0 {
			t.Errorf("%s: lost without a reason", lock)
		}
		proxy.freeze(true, true)
		grant := next.granted(turn)
		cut.notified(lost)
		proxy.renew()
		if err := cut.release(lost); err == nil {
			t.Errorf("%s: the former holder released it", lock)
		}
		e.awaitQueue(t, key, 1) // the next holder's node
		next.released(grant, clients.Done)
	}
}

// zkLostAnswer: the request to queue is executed and its answer is lost. The client finds its node and makes no
// second one.
func zkLostAnswer(t *testing.T, e ensemble) {
	proxy := startProxy(t, addresses(e)[0])
	w := openWith(t, "zookeeper", clients.Config{Worker: "w1", Nodes: []string{proxy.address}})
	w.released(w.acquire("answer", 0), clients.Done) // now the session and the folder exist
	proxy.freeze(false, true)
	turn := e.queued(w, "answer", 1)
	if len(turn) > 0 {
		t.Fatal("granted without an answer")
	}
	proxy.renew()
	grant := w.granted(turn)
	e.awaitQueue(t, "answer", 1)
	w.released(grant, clients.Done)
	e.awaitQueue(t, "answer", 0)
}

// zkContender: the request to queue is executed and its answer is lost. The library's Lock fails and its node
// remains, unless the session is closed.
func zkContender(t *testing.T, e ensemble) {
	for lock, left := range map[string]int{"zookeeper-lib": 1, "zookeeper-lib+new-session-on-error+watch-connection": 0} {
		key := "contender-" + lock
		proxy := startProxy(t, addresses(e)[0])
		// The library fails after two thirds of the timeout. With a shorter timeout the node would go with the
		// session.
		w := openWith(t, lock, clients.Config{Worker: "w1", Nodes: []string{proxy.address}, TTL: 6 * time.Second})
		w.released(w.acquire(key, 0), clients.Done) // now the session and the folder exist
		proxy.freeze(false, true)
		if grant, err := w.try(key, 0, patience); clients.OutcomeOf(err) != clients.Unknown {
			t.Fatalf("%s: without an answer: %+v, %v", lock, grant, err)
		}
		proxy.renew()
		e.awaitQueue(t, key, left)
	}
}

// zkClock: the clock is the asked server's, not the leader's.
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

// zkMajority: the lock can be acquired without one of three servers, not without two, and again with all.
func zkMajority(t *testing.T, e ensemble) {
	w := open(t, "zookeeper", "w1", e)
	try := func(wait time.Duration) (clients.Grant, error) {
		grant, err := w.try("majority", 0, wait)
		if clients.OutcomeOf(err) == clients.Unknown {
			_ = w.release(clients.Grant{Key: "majority", ID: w.id()}) // the attempt continues in the background
		}
		return grant, err
	}
	again := func(when string) {
		clustertest.Eventually(t, patience, func() error {
			grant, err := try(callLimit)
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
	if grant, err := try(time.Second); err == nil {
		t.Errorf("without a majority: %+v", grant)
	}
	for _, node := range e.Servers()[:2] {
		signal(t, node, agent.Continue)
	}
	again("with all")
}
