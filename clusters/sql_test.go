package clusters

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"lockcheck/clients"
	"lockcheck/clusters/agent"
	"lockcheck/clusters/clustertest"
	"lockcheck/clusters/engine"
)

// TestConnectionLocks checks the locks that last as long as a connection against the contract of clients.Lock,
// on real servers.
func TestConnectionLocks(t *testing.T) {
	for _, servers := range []string{"postgres", "mariadb"} {
		t.Run(servers, func(t *testing.T) {
			t.Parallel()
			cluster := started(t, servers)
			for _, info := range clients.Table() {
				if info.Servers != servers || !info.Queues {
					continue
				}
				for name, contract := range connectionContracts() {
					t.Run(info.Name+" "+name, func(t *testing.T) { contract(openTwo(t, info.Name, cluster)) })
				}
				t.Run(info.Name+" doubt", func(t *testing.T) { inDoubt(t, info, cluster.Servers()[0]) })
			}
		})
	}
}

// connectionContracts are the contracts of locks that last as long as a connection.
func connectionContracts() map[string]func(a, b *worker) {
	return map[string]func(a, b *worker){"queue": contractQueue, "release": contractRelease, "end": contractEnd}
}

// TestInsert: a row is a lock that remains when its holder is gone, unless it is taken over at the end of its lease.
func TestInsert(t *testing.T) {
	t.Parallel()
	cluster := started(t, "postgres")
	contractRelease(openTwo(t, "postgres-insert", cluster))
	naive := open(t, "postgres-insert", "w1", cluster)
	orphan := naive.acquire("orphan", time.Millisecond)
	naive.refused("for ever", orphan)

	a, b := openTwo(t, "postgres-insert+take-over", cluster)
	contractRelease(a, b)
	contractLease(a, b)
}

// waits checks that an attempt has to wait. An attempt that gave up cannot be withdrawn if it is unknown
// whether the server gave it up in time.
func (w *worker) waits(when string, by clients.Grant) {
	w.Helper()
	clustertest.Eventually(w, patience, func() error {
		_, err := w.try(by.Key, 0, shortWait)
		if err == nil {
			w.Fatalf("%s: granted", when)
		}
		outcome := clients.OutcomeOf(err)
		want := clients.NotHeld
		if outcome == clients.Unknown {
			want = clients.Unknown
		}
		w.released(clients.Grant{Key: by.Key, ID: w.id()}, want)
		if outcome == clients.NoEffect {
			return fmt.Errorf("%s: %w, want one that waited", when, err)
		}
		return nil
	})
}

// contractQueue: a waiter is granted the lock when the holder releases it, and a waiter that gave up is not.
func contractQueue(a, b *worker) {
	first := a.acquire(a.key("queue"), 0)
	b.waits("while another holds it", first)
	waiting := b.queue(first.Key, 0)
	a.released(first, clients.Done)
	second := b.granted(waiting)
	a.waits("after the waiter was served", second)
	b.released(second, clients.Done)
}

// inDoubt: of an unanswered attempt it is unknown whether it was granted the lock.
func inDoubt(t *testing.T, info clients.Info, server *Node) {
	proxy := startProxy(t, server.Address)
	a := openWith(t, info.Name, clients.Config{Worker: "w1", Nodes: []string{server.Address}})
	b := openWith(t, info.Name, clients.Config{Worker: "w2", Nodes: []string{proxy.address}})
	grant := a.acquire("doubt", 0)
	awaitWaiters(t, server, 0)
	attempt := make(chan error)
	go func() {
		_, err := b.try("doubt", 0, 3*time.Second)
		attempt <- err
	}()
	awaitWaiters(t, server, 1)
	proxy.freeze(true, true)
	if err := <-attempt; clients.OutcomeOf(err) != clients.Unknown {
		t.Fatalf("an attempt that was not answered: %v", err)
	}
	b.released(clients.Grant{Key: "doubt", ID: b.id()}, clients.Unknown)
	proxy.renew()
	a.released(grant, clients.Done)
	b.acquire("doubt", 0)
}

// awaitWaiters waits until the given number of sessions of a server wait for a lock.
func awaitWaiters(t *testing.T, server *Node, want int) {
	t.Helper()
	clustertest.Eventually(t, patience, func() (err error) {
		n := 0
		if server.Server.Program == "mariadb" {
			err = askMaria(t.Context(), server.Address, "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User lock'", &n)
		} else {
			err = askPostgres(t.Context(), server.Address, "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'", &n)
		}
		if err == nil && n != want {
			err = fmt.Errorf("%d sessions wait, want %d", n, want)
		}
		return err
	})
}

// contractEnd: the lock ends with the connection.
func contractEnd(a, b *worker) {
	grant := a.acquire(a.key("end"), 0)
	b.waits("while the connection lasts", grant)
	if err := a.Lock.Close(); err != nil {
		a.Errorf("Close: %v", err)
	}
	b.acquire(grant.Key, 0)
}

// lostTo waits until a holder is notified, and until the next one is granted the lock.
func (w *worker) lostTo(next *worker, grant clients.Grant) {
	w.Helper()
	w.notified(grant)
	w.released(grant, clients.Unknown)
	next.acquire(grant.Key, 0)
}

// TestPostgresTellsTheHolder: a holder that watches its connection is notified when its session was ended or
// cut off. Otherwise it learns that at its release.
func TestPostgresTellsTheHolder(t *testing.T) {
	t.Parallel()
	cluster := started(t, "postgres")
	server := cluster.Servers()[0]
	for _, lock := range []string{"postgres-session", "postgres-xact", "postgres-row"} {
		t.Run(lock, func(t *testing.T) {
			a, b := openTwo(t, lock, cluster)
			grant := a.acquire(lock, 0)
			if grant.Lost != nil {
				t.Error("notified of a loss without that option")
			}
			endSessions(t, server)
			a.released(grant, clients.Unknown)
			b.acquire(lock, 0)
		})
		watching := lock + "+watch-connection"
		t.Run(watching, func(t *testing.T) {
			a, b := open(t, watching, "w1", cluster), open(t, lock, "w2", cluster)
			grant := a.acquire(watching, 0)
			b.waits("while the session lasts", grant)
			a.keeps(grant)
			endSessions(t, server)
			a.lostTo(b, grant)
		})
	}
	t.Run("cut off", func(t *testing.T) {
		a, b := open(t, "postgres-session+keep-alives+watch-connection", "w1", cluster), open(t, "postgres-session", "w2", cluster)
		grant := a.acquire("cut", 0)
		granted := waitDetached(t, server, grant.Key)
		if _, err := server.Host.Cut(t.Context(), agent.Cut{ID: "cut", Peers: []string{ownAddress(t, server)}}); err != nil {
			t.Fatal(err)
		}
		a.keeps(grant) // the cut cannot be noticed at once
		a.notified(grant)
		notifiedAt := time.Now()
		if _, _, err := server.Host.Heal(t.Context(), "cut"); err != nil {
			t.Fatal(err)
		}
		if at := granted(); at.Before(notifiedAt) {
			t.Errorf("another was granted the lock %s before its holder was notified", notifiedAt.Sub(at))
		}
		a.lostTo(b, grant)
	})
}

// waitDetached queues a session that the server keeps although it is cut off. The returned function ends it and
// returns when it was granted the lock, by the server's clock.
func waitDetached(t *testing.T, server *Node, key string) func() time.Time {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), "postgres://postgres@"+server.Address+"/postgres?sslmode=disable&default_query_exec_mode=simple_protocol")
	if err != nil {
		t.Fatal(err)
	}
	// Each message is one transaction, so the table exists before the session waits.
	_, err = conn.Exec(t.Context(), "CREATE TABLE granted (at timestamptz); COMMIT;"+
		"SET tcp_user_timeout = 0; SET tcp_keepalives_idle = 3600; SET client_connection_check_interval = 0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		_, err := conn.Exec(t.Context(), "SELECT pg_advisory_lock(hashtextextended('"+key+"', 0)); INSERT INTO granted VALUES (clock_timestamp())")
		served <- err
	}()
	awaitWaiters(t, server, 1)
	return func() (at time.Time) {
		t.Helper()
		defer conn.Close(t.Context())
		if err := <-served; err != nil {
			t.Fatal(err)
		}
		if err := askPostgres(t.Context(), server.Address, "SELECT at FROM granted", &at); err != nil {
			t.Fatal(err)
		}
		return at
	}
}

// TestMariaDBCut: a holder that is cut off learns it at its release. The lock is granted to the next one once
// the server has noticed the cut.
func TestMariaDBCut(t *testing.T) {
	t.Parallel()
	cluster := started(t, "mariadb")
	server := cluster.Servers()[0]
	for name, want := range mariaSysctls() {
		if got := sysctl(t, cluster, server, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	a, b := openTwo(t, "mariadb", cluster)
	grant := a.acquire("cut", 0)
	b.waits("while the connection lasts", grant)
	if _, err := server.Host.Cut(t.Context(), agent.Cut{ID: "cut", Peers: []string{ownAddress(t, server)}}); err != nil {
		t.Fatal(err)
	}
	a.released(grant, clients.Unknown)
	if _, _, err := server.Host.Heal(t.Context(), "cut"); err != nil {
		t.Fatal(err)
	}
	b.acquire("cut", 0)
}

// sysctl reads a setting of a server's network namespace.
func sysctl(t *testing.T, cluster Cluster, server *Node, name string) string {
	t.Helper()
	c := cluster.(*docker)
	reader, err := c.engine.Start(t.Context(), engine.Spec{
		Name: c.name("sysctl"), Image: c.images[0].Ref, Labels: c.request.Labels, Within: c.name(server.Name),
		Entrypoint: []string{"cat"}, Command: []string{"/proc/sys/" + strings.ReplaceAll(name, ".", "/")},
	})
	if err != nil {
		t.Fatal(err)
	}
	<-reader.Exited
	log, err := c.engine.Logs(t.Context(), c.name("sysctl"), 0, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	_, value, _ := strings.Cut(strings.TrimSpace(log), " ") // behind the timestamp
	return value
}

// endSessions ends all sessions of workers.
func endSessions(t *testing.T, server *Node) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), "postgres://postgres@"+server.Address+"/postgres?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name IN ('w1', 'w2')"); err != nil {
		t.Fatal(err)
	}
}

// ownAddress is the address under which a server sees this process.
func ownAddress(t *testing.T, server *Node) string {
	t.Helper()
	conn, err := net.Dial("tcp", server.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	return host
}

// TestPgBouncerSharesSessions: through the pooler two clients hold the lock at once, because one session serves
// both. Without the pooler they do not.
func TestPgBouncerSharesSessions(t *testing.T) {
	t.Parallel()
	pooled := started(t, "postgres-pgbouncer")
	first, second := openTwo(t, "postgres-pgbouncer", pooled)
	first.acquire("shared", 0)
	second.acquire("shared", 0)

	direct := started(t, "postgres")
	control, other := openTwo(t, "postgres-session", direct)
	other.waits("without the pooler", control.acquire("shared", 0))
}
