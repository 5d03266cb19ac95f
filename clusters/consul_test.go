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

// consulOpen opens the lock as its users run it, consulWithdrawing with attempts that are
// taken back.
func consulOpen(t *testing.T, config clients.Config) *sessionUser {
	return openSession(t, "consul", config)
}

func consulWithdrawing(t *testing.T, config clients.Config) *sessionUser {
	return openSession(t, "consul+withdraw", config)
}

// consulAdmin looks at a server from outside, where no fault is felt.
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

// session returns the session that an attempt made.
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
	config := func(worker string) clients.Config {
		c := clients.Config{Worker: worker}
		for _, node := range cluster.Servers() {
			c.Nodes = append(c.Nodes, node.Address)
		}
		return c
	}
	admin := consulAdmin(t, cluster.Servers()[0])
	t.Run("probes", func(t *testing.T) { consulAnswers(t, cluster) })
	t.Run("release", func(t *testing.T) { consulRelease(t, config) })
	t.Run("queue", func(t *testing.T) { consulQueue(t, config, admin) })
	t.Run("session", func(t *testing.T) { consulLease(t, config, admin) })
	t.Run("delay", func(t *testing.T) { consulDelay(t, config, admin) })
	t.Run("stopped", func(t *testing.T) { consulStopped(t, cluster) })
}

// consulAnswers: one of the servers leads, each tells version and time.
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

func consulRelease(t *testing.T, config func(string) clients.Config) {
	one, two := consulOpen(t, config("w1")), consulOpen(t, config("w2"))
	first := one.held("release", time.Minute)
	if first.Until != 0 || first.Token == 0 || first.Expired {
		t.Errorf("granted %+v", first)
	}
	two.refused("release")
	two.released(first, clients.Unknown) // it has no handle of it
	two.refused("release")
	one.kept(first)
	one.released(first, clients.Done)
	second := two.held("release", time.Minute)
	if second.Token <= first.Token {
		t.Errorf("token %d after %d", second.Token, first.Token)
	}
	one.released(first, clients.Unknown)
	one.refused("release")
	two.kept(second)
	// Another name is another lock.
	one.held("another", time.Minute)
}

// consulWatched puts the servers of a client behind proxies, and fails until the client
// waits for the lock: from outside it looks before as it does after, and one that is
// stopped before has no attempt to take back.
func consulWatched(t *testing.T, key string, config clients.Config) (watched clients.Config, waits func() error) {
	var asked atomic.Bool
	watched, watched.Nodes = config, nil
	for _, address := range config.Nodes {
		server := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address})
		server.ErrorLog = log.New(io.Discard, "", 0) // of requests that the client broke off
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

// consulQueue: who waits is granted the lock when it is free, and who stopped to
// wait is not.
func consulQueue(t *testing.T, config func(string) clients.Config, admin *api.Client) {
	one := consulOpen(t, config("w1"))
	first := one.held("queue", time.Minute)
	waiting, stop := context.WithTimeout(t.Context(), 5*time.Second) // the library looks at nothing else
	defer stop()
	type result struct {
		grant clients.Grant
		err   error
	}
	wait := func(ctx context.Context, name string) (*sessionUser, <-chan result) {
		watched, waits := consulWatched(t, "queue", config(name))
		u := consulOpen(t, watched)
		done := make(chan result, 1)
		go func() {
			grant, err := u.acquire(ctx, "queue", time.Minute)
			done <- result{grant, err}
		}()
		clustertest.Eventually(t, patience, waits)
		return u, done
	}
	_, leaves := wait(waiting, "w2")
	three, stays := wait(t.Context(), "w3")
	if consulSession(t, admin, "w3-1") == nil {
		t.Error("w3 waits without a session")
	}
	if r := <-leaves; clients.OutcomeOf(r.err) != clients.Busy {
		t.Errorf("who stopped to wait: %+v", r)
	}
	// The library ends it in the background.
	clustertest.Eventually(t, patience, func() error {
		if session := consulSession(t, admin, "w2-1"); session != nil {
			return fmt.Errorf("who stopped to wait left %+v behind", session)
		}
		return nil
	})
	one.released(first, clients.Done)
	r := <-stays
	if r.err != nil {
		t.Fatalf("who waited: %v", r.err)
	}
	three.kept(r.grant)
	three.released(r.grant, clients.Done)
}

// consulLease: a session that is ended is lost at once, and its holder notified; one that is
// kept alive outlasts its lease.
func consulLease(t *testing.T, config func(string) clients.Config, admin *api.Client) {
	one, two, three := consulOpen(t, config("w1")), consulOpen(t, config("w2")), consulOpen(t, config("w3"))
	kept := two.held("renewed", time.Second)
	ends := time.After(3 * time.Second) // a session ends after at most twice its lease
	lost := one.held("ended", time.Minute)
	if kept.Until != 0 || lost.Until != 0 {
		t.Errorf("valid until %d and %d by sessions that are kept alive", kept.Until, lost.Until)
	}
	if _, err := admin.Session().Destroy(consulSession(t, admin, lost.ID).ID, nil); err != nil {
		t.Fatal(err)
	}
	next := three.held("ended", time.Minute)
	one.notified(lost)
	one.released(lost, clients.NotHeld)
	three.kept(next)
	<-ends
	three.refused("renewed")
	two.kept(kept)
	two.released(kept, clients.Done)
}

// consulDelay: the lock of a session that ended is withheld as long as its
// holder asked for, and not at all if it asked for none.
func consulDelay(t *testing.T, config func(string) clients.Config, admin *api.Client) {
	for _, delay := range []time.Duration{0, 50 * time.Second} {
		withDelay := config("w1")
		withDelay.LockDelay = &delay
		one, two := consulOpen(t, withDelay), consulOpen(t, config("w2"))
		key := "delay " + delay.String()
		lost := one.held(key, time.Minute)
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
			two.held(key, time.Minute)
		} else {
			two.refused(key)
		}
		one.released(lost, clients.NotHeld)
	}
}

// consulStopped: with that option an attempt whose server does not answer any more ends
// with its context, and the next one asks another server.
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
	one := consulOpen(t, clients.Config{Worker: "w1", Nodes: []string{leader.Address}})
	first := one.held("stopped", time.Minute)

	config, waits := consulWatched(t, "stopped", clients.Config{Nodes: []string{follower.Address, leader.Address}})
	two := consulWithdrawing(t, config)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := two.acquire(ctx, "stopped", time.Minute)
		done <- err
	}()
	clustertest.Eventually(t, patience, waits)
	if consulSession(t, admin, "-1") == nil {
		t.Error("it waits without a session")
	}
	signal(t, follower, agent.Stop)
	cancel()
	if err := <-done; clients.OutcomeOf(err) != clients.Busy {
		t.Errorf("stopped to wait at a stopped server: %v", err)
	}
	one.kept(first)
	one.released(first, clients.Done)
	two.held("stopped", time.Minute)
	signal(t, follower, agent.Continue)
}

// TestConsulAlone: one server is a cluster too, and leads itself.
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
	one := consulOpen(t, clients.Config{Worker: "w1", Nodes: []string{node.Address}})
	one.released(one.held("alone", time.Minute), clients.Done)
}
