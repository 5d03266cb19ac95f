package clusters

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"lockcheck/clients"
	"lockcheck/clusters/agent"
	"lockcheck/clusters/clustertest"
)

// consulAdmin is a client in this process, which no fault touches.
func consulAdmin(t *testing.T, node *Node) *api.Client {
	t.Helper()
	config := api.DefaultNonPooledConfig()
	config.Address = node.Address
	client, err := api.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// consulSession returns the session of an attempt; nil if there is none.
func consulSession(t *testing.T, admin *api.Client, id string) *api.SessionEntry {
	t.Helper()
	all, _, err := admin.Session().List(&api.QueryOptions{RequireConsistent: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, session := range all {
		if session.Name == id {
			return session
		}
	}
	return nil
}

func TestConsul(t *testing.T) {
	t.Parallel()
	cluster := started(t, "consul")
	admin := consulAdmin(t, cluster.Servers()[0])
	t.Run("probes", func(t *testing.T) { consulAnswers(t, cluster) })
	t.Run("release", func(t *testing.T) { contractRelease(openTwo(t, "consul", cluster)) })
	t.Run("queue", func(t *testing.T) { consulQueue(t, cluster, admin) })
	t.Run("session", func(t *testing.T) { consulLease(t, cluster, admin) })
	t.Run("delay", func(t *testing.T) { consulDelay(t, cluster, admin) })
	t.Run("stopped", func(t *testing.T) { consulStopped(t, cluster) })
}

// consulAnswers: exactly one server is the leader, and each reports its version and time.
func consulAnswers(t *testing.T, cluster Cluster) {
	clustertest.Eventually(t, patience, func() error {
		leaders := 0
		for _, node := range cluster.Servers() {
			leads, err := node.Host.Leads(t.Context())
			if err != nil {
				return err
			}
			if leads {
				leaders++
			}
		}
		if leaders != 1 {
			return fmt.Errorf("%d servers lead", leaders)
		}
		return nil
	})
	for _, node := range cluster.Servers() {
		if version, err := node.Host.Version(t.Context()); err != nil || version == "" {
			t.Errorf("%s: version %q, %v", node.Name, version, err)
		}
		reading, err := node.Host.Clock(t.Context())
		if low, high := reading.Offset(); err != nil || low > 500*time.Millisecond || high < -500*time.Millisecond {
			t.Errorf("%s is between %s and %s ahead, %v", node.Name, low, high, err)
		}
	}
}

// consulWatched puts a client's servers behind proxies. waits fails until the client waits for the lock. From
// outside the client looks the same before and after. If it stopped before, it would have no attempt to
// withdraw.
func consulWatched(t *testing.T, key string, config clients.Config) (watched clients.Config, waits func() error) {
	var asked atomic.Bool
	watched, watched.Nodes = config, nil
	for _, address := range config.Nodes {
		server := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address})
		server.ErrorLog = log.New(io.Discard, "", 0) // requests that the client broke off
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && r.URL.Path == "/v1/kv/"+key {
				asked.Store(true)
			}
			server.ServeHTTP(w, r)
		}))
		t.Cleanup(proxy.Close)
		watched.Nodes = append(watched.Nodes, proxy.Listener.Addr().String())
	}
	return watched, func() error {
		if !asked.Load() {
			return errors.New("it does not wait yet")
		}
		return nil
	}
}

// consulQueue: a waiter is granted the lock when it is free, and a waiter that gave up is not.
func consulQueue(t *testing.T, cluster Cluster, admin *api.Client) {
	one := open(t, "consul", "w1", cluster)
	first := one.acquire("queue", time.Minute)
	wait := func(name string, limit time.Duration) (*worker, <-chan answer) {
		watched, waits := consulWatched(t, "queue", clients.Config{Worker: name, Nodes: addresses(cluster)})
		w := openWith(t, "consul", watched)
		answers := w.queueFor("queue", time.Minute, limit)
		clustertest.Eventually(t, patience, waits)
		return w, answers
	}
	_, leaves := wait("w2", callLimit) // the library reads no other key
	three, stays := wait("w3", patience)
	if consulSession(t, admin, "w3-1") == nil {
		t.Error("w3 waits without a session")
	}
	if a := <-leaves; clients.OutcomeOf(a.err) != clients.Busy {
		t.Errorf("who stopped to wait: %+v", a)
	}
	// The library destroys the session in the background.
	clustertest.Eventually(t, patience, func() error {
		if session := consulSession(t, admin, "w2-1"); session != nil {
			return fmt.Errorf("who stopped to wait left %+v behind", session)
		}
		return nil
	})
	one.released(first, clients.Done)
	next := three.granted(stays)
	three.keeps(next)
	three.released(next, clients.Done)
}

// consulLease: a destroyed session is lost at once, and its holder is notified. A session that is renewed
// outlasts its lease.
func consulLease(t *testing.T, cluster Cluster, admin *api.Client) {
	one, two := openTwo(t, "consul", cluster)
	three := open(t, "consul", "w3", cluster)
	kept := two.acquire("renewed", time.Second)
	ends := time.After(3 * time.Second) // a session ends after at most twice its lease
	lost := one.acquire("ended", time.Minute)
	if _, err := admin.Session().Destroy(consulSession(t, admin, lost.ID).ID, nil); err != nil {
		t.Fatal(err)
	}
	next := three.acquire("ended", time.Minute)
	one.notified(lost)
	one.released(lost, clients.NotHeld)
	three.keeps(next)
	<-ends
	three.refused("renewed", kept)
	two.keeps(kept)
	two.released(kept, clients.Done)
}

// consulDelay: the lock of a session that ended is withheld for the lock-delay that its holder asked for, and
// not at all for a delay of 0.
func consulDelay(t *testing.T, cluster Cluster, admin *api.Client) {
	for _, delay := range []time.Duration{0, 50 * time.Second} {
		one := openWith(t, "consul", clients.Config{Worker: "w1", Nodes: addresses(cluster), LockDelay: &delay})
		two := open(t, "consul", "w2", cluster)
		key := "delay " + delay.String()
		lost := one.acquire(key, time.Minute)
		session := consulSession(t, admin, lost.ID)
		// The library cannot ask for no delay at all.
		if session == nil || session.LockDelay != max(delay, time.Millisecond) {
			t.Fatalf("asked for a delay of %s: %+v", delay, session)
		}
		if _, err := admin.Session().Destroy(session.ID, nil); err != nil {
			t.Fatal(err)
		}
		one.notified(lost)
		if delay == 0 {
			two.acquire(key, time.Minute)
		} else {
			two.refused("within the delay", lost)
		}
		one.released(lost, clients.NotHeld)
	}
}

// consulStopped: with the option stop-aware, an attempt at a server that stopped answering ends with its
// context, and the next attempt asks another server.
func consulStopped(t *testing.T, cluster Cluster) {
	var follower, leader *Node
	clustertest.Eventually(t, patience, func() error {
		for _, node := range cluster.Servers() {
			switch leads, err := node.Host.Leads(t.Context()); {
			case err != nil:
				return err
			case leads:
				leader = node
			default:
				follower = node
			}
		}
		if leader == nil || follower == nil {
			return errors.New("nobody leads")
		}
		return nil
	})
	admin := consulAdmin(t, leader)
	one := openWith(t, "consul", clients.Config{Worker: "w1", Nodes: []string{leader.Address}})
	first := one.acquire("stopped", time.Minute)

	config, waits := consulWatched(t, "stopped", clients.Config{Nodes: []string{follower.Address, leader.Address}})
	two := openWith(t, "consul+withdraw", config)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := two.Acquire(ctx, clients.Attempt{Key: "stopped", ID: "w2-1", TTL: time.Minute})
		done <- err
	}()
	clustertest.Eventually(t, patience, waits)
	if consulSession(t, admin, "w2-1") == nil {
		t.Error("it waits without a session")
	}
	signal(t, follower, agent.Stop)
	cancel()
	if err := <-done; clients.OutcomeOf(err) != clients.Busy {
		t.Errorf("stopped to wait at a stopped server: %v", err)
	}
	one.keeps(first)
	one.released(first, clients.Done)
	two.acquire("stopped", time.Minute)
	signal(t, follower, agent.Continue)
}

// TestConsulAlone: a single server is a cluster, too, and its own leader.
func TestConsulAlone(t *testing.T) {
	t.Parallel()
	r := request(t, "consul")
	if !slices.Contains(r.Spec.Sizes, 1) {
		t.Fatal("the table does not offer one server")
	}
	r.Nodes = 1
	node := startedWith(t, r).Servers()[0]
	if leads, err := node.Host.Leads(t.Context()); err != nil || !leads {
		t.Errorf("leads: %v, %v", leads, err)
	}
	one := openWith(t, "consul", clients.Config{Worker: "w1", Nodes: []string{node.Address}})
	one.released(one.acquire("alone", time.Minute), clients.Done)
}
