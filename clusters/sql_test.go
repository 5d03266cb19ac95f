package clusters

import (
	"context"
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
	"lockcheck/history"
)

// TestConnectionLocks holds the locks that last as long as a connection to the
// contract of clients.Lock, on real servers.
func TestConnectionLocks(t *testing.T) {
	for _, servers := range []string{"postgres", "mariadb"} {
		t.Run(servers, func(t *testing.T) {
			t.Parallel()
			cluster := started(t, servers)
			for _, info := range clients.Table() {
				if info.Servers != servers || !info.Queues {
					continue
				}
				for name, contract := range map[string]func(a, b *locker){
					"queue": contractQueue, "release": contractReleaseOnce, "end": contractEnd,
				} {
					t.Run(info.Name+" "+name, func(t *testing.T) {
						contract(open(t, info.Name, cluster), open(t, info.Name, cluster))
					})
				}
				t.Run(info.Name+" doubt", func(t *testing.T) { inDoubt(t, info, cluster.Servers()[0]) })
			}
		})
	}
}

// TestInsert: a row is a lock that stays when its holder is gone. Taken over at the end of
// its lease it is none at all if clocks differ by more than that.
func TestInsert(t *testing.T) {
	t.Parallel()
	cluster := started(t, "postgres")
	naive := open(t, "postgres-insert", cluster)
	orphan := naive.acquire("orphan", time.Millisecond)
	if orphan.Until != 0 || orphan.Token != 0 {
		t.Errorf("valid until %d, token %d", orphan.Until, orphan.Token)
	}
	naive.refused("release by another", func() error { return naive.release(clients.Grant{Key: orphan.Key, ID: "w2-1"}) })
	naive.held("for ever", orphan)
	if err := naive.release(orphan); err != nil {
		t.Errorf("release: %v", err)
	}
	naive.refused("second release", func() error { return naive.release(orphan) })
	naive.acquire("orphan", 0)

	leased := open(t, "postgres-insert+take-over", cluster)
	contractRelease(leased, leased.info)
	contractLease(leased, leased.info)
	contractKeys(leased, leased.info)

	info := mustLock(t, "postgres-insert+take-over+clocks-apart")
	first := &locker{t: t, lock: openLock(t, info, cluster, "w1"), info: info}
	second := &locker{t: t, lock: openLock(t, info, cluster, "w2"), info: info}
	held := second.acquire("apart", 5*time.Second)
	first.held("by a clock that is behind", held)
	behind := first.acquire("apart too", 5*time.Second)
	if grant, err := second.try("apart too", 5*time.Second); err != nil || grant.Until <= history.Now() || behind.Until <= history.Now() {
		t.Errorf("by a clock that is ahead: %+v, %v: want it granted twice", grant, err)
	}
}

func mustLock(t *testing.T, name string) clients.Info {
	t.Helper()
	info, known := clients.ByName(name)
	if !known {
		t.Fatalf("no lock %s", name)
	}
	return info
}

// tryFor makes one attempt that waits as long as it is told.
func (l *locker) tryFor(key string, limit time.Duration) (clients.Grant, error) {
	l.attempt++
	ctx, cancel := context.WithTimeout(l.t.Context(), limit)
	defer cancel()
	return l.lock.Acquire(ctx, clients.Attempt{Key: l.key(key), ID: fmt.Sprintf("w1-%d", l.attempt)})
}

// waits makes sure that an attempt has to wait, and that nobody can take back one of which
// nobody knows whether the server gave it up in time.
func (l *locker) waits(when, key string) {
	l.t.Helper()
	clustertest.Eventually(l.t, patience, func() error {
		_, err := l.tryFor(key, 300*time.Millisecond)
		if err == nil {
			l.t.Fatalf("%s: granted", when)
		}
		outcome := clients.OutcomeOf(err)
		want := clients.NotHeld
		if outcome == clients.Unknown {
			want = clients.Unknown
		}
		if released := l.release(clients.Grant{Key: key, ID: fmt.Sprintf("w1-%d", l.attempt)}); clients.OutcomeOf(released) != want {
			l.t.Fatalf("%s: release of an attempt that only waited, %v: %v", when, err, released)
		}
		if outcome == clients.NoEffect {
			return fmt.Errorf("%s: %w, want one that waited", when, err)
		}
		return nil
	})
}

// contractQueue: who waits is served when the holder is done, and who has given
// up waiting is not.
func contractQueue(a, b *locker) {
	const key = "queue"
	first := a.acquire(key, 0)
	if first.Until != 0 || first.Token != 0 {
		a.t.Errorf("valid until %d, token %d", first.Until, first.Token)
	}
	b.waits("while another holds it", key)
	other := b.acquire("another key", 0)
	served := make(chan error)
	go func() {
		_, err := b.tryFor(key, patience)
		served <- err
	}()
	if err := a.release(first); err != nil {
		a.t.Errorf("release: %v", err)
	}
	if err := <-served; err != nil {
		a.t.Errorf("the waiter: %v", err)
	}
	a.waits("after the waiter was served", key)
	if err := b.release(other); err != nil {
		a.t.Errorf("release of another key: %v", err)
	}
}

func contractReleaseOnce(a, b *locker) {
	const key = "release"
	first := a.acquire(key, 0)
	b.outcome("release by another", clients.NotHeld, func() error { return b.release(first) })
	b.waits("after another one released it", key)
	if err := a.release(first); err != nil {
		a.t.Fatalf("release: %v", err)
	}
	a.outcome("second release", clients.NotHeld, func() error { return a.release(first) })
	second := b.acquire(key, 0)
	a.outcome("release by the former holder", clients.NotHeld, func() error { return a.release(first) })
	a.waits("after the former holder released it", key)
	if err := b.release(second); err != nil {
		a.t.Fatalf("release: %v", err)
	}
}

// inDoubt: nobody can say of an attempt that was not answered whether it was
// granted the lock.
func inDoubt(t *testing.T, info clients.Info, server *Node) {
	proxy := startProxy(t, server.Address)
	lock, err := info.Open(clients.Config{Worker: "w1", Nodes: []string{proxy.address}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Close() })
	holder, err := info.Open(clients.Config{Worker: "w2", Nodes: []string{server.Address}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = holder.Close() })
	a, b := &locker{t: t, lock: holder, info: info}, &locker{t: t, lock: lock, info: info}
	grant := a.acquire("doubt", 0)
	awaitWaiters(t, server, 0)
	attempt := make(chan error)
	go func() {
		_, err := b.tryFor("doubt", 3*time.Second)
		attempt <- err
	}()
	awaitWaiters(t, server, 1)
	proxy.freeze(true, true)
	if err := <-attempt; clients.OutcomeOf(err) != clients.Unknown {
		t.Fatalf("an attempt that was not answered: %v", err)
	}
	unknown := clients.Grant{Key: "doubt", ID: fmt.Sprintf("w1-%d", b.attempt)}
	if err := b.release(unknown); clients.OutcomeOf(err) != clients.Unknown {
		t.Errorf("release of it: %v", err)
	}
	proxy.renew()
	if err := a.release(grant); err != nil {
		t.Errorf("release: %v", err)
	}
	b.acquire("doubt", 0)
}

// awaitWaiters waits until so many sessions of a server wait for a lock.
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
func contractEnd(a, b *locker) {
	const key = "end"
	a.acquire(key, 0)
	b.waits("while the connection lasts", key)
	if err := a.lock.Close(); err != nil {
		a.t.Errorf("Close: %v", err)
	}
	b.acquire(key, 0)
}

// notified says whether the client library has said that the lock is gone.
func notified(grant clients.Grant) bool {
	select {
	case <-grant.Lost:
		return true
	default:
		return false
	}
}

// awaitTold waits for it, and for the next holder.
func awaitTold(a, b *locker, grant clients.Grant) {
	a.t.Helper()
	select {
	case <-grant.Lost:
	case <-time.After(patience):
		a.t.Fatal("never notified")
	}
	if err := a.release(grant); clients.OutcomeOf(err) != clients.Unknown {
		a.t.Errorf("release without a connection: outcome %d: %v", clients.OutcomeOf(err), err)
	}
	b.acquire(grant.Key, 0)
}

// TestPostgresTellsTheHolder: that its session was ended, or that it was cut off, if it
// watches its connection. Without that it learns it at its release.
func TestPostgresTellsTheHolder(t *testing.T) {
	t.Parallel()
	cluster := started(t, "postgres")
	server := cluster.Servers()[0]
	for _, lock := range []string{"postgres-session", "postgres-xact", "postgres-row"} {
		t.Run(lock, func(t *testing.T) {
			a, b := open(t, lock, cluster), open(t, lock, cluster)
			grant := a.acquire(lock, 0)
			endSessions(t, server)
			if err := a.release(grant); grant.Lost != nil || clients.OutcomeOf(err) != clients.Unknown {
				t.Errorf("release without a connection: outcome %d: %v", clients.OutcomeOf(err), err)
			}
			b.acquire(lock, 0)
		})
		watching := lock + "+watch-connection"
		t.Run(watching, func(t *testing.T) {
			a, b := open(t, watching, cluster), open(t, lock, cluster)
			grant := a.acquire(watching, 0)
			b.waits("while the session lasts", watching)
			if notified(grant) {
				t.Fatal("notified while all is well")
			}
			endSessions(t, server)
			awaitTold(a, b, grant)
		})
	}
	t.Run("cut off", func(t *testing.T) {
		a, b := open(t, "postgres-session+keep-alives+watch-connection", cluster), open(t, "postgres-session", cluster)
		grant := a.acquire("cut", 0)
		granted := waitDetached(t, server, grant.Key)
		if _, err := server.Host.Cut(t.Context(), agent.Cut{ID: "cut", Peers: []string{ownAddress(t, server)}}); err != nil {
			t.Fatal(err)
		}
		if notified(grant) {
			t.Error("notified at once, although nobody can know")
		}
		select {
		case <-grant.Lost:
		case <-time.After(patience):
			t.Error("never notified")
		}
		notifiedAt := time.Now()
		if _, _, err := server.Host.Heal(t.Context(), "cut"); err != nil {
			t.Fatal(err)
		}
		if at := granted(); at.Before(notifiedAt) {
			t.Errorf("another was granted the lock %s before its holder was notified", notifiedAt.Sub(at))
		}
		awaitTold(a, b, grant)
	})
}

// waitDetached queues a session that the server keeps although it is cut off, and
// returns what tells when it was granted the lock, by the server's clock, and ends it.
func waitDetached(t *testing.T, server *Node, key string) func() time.Time {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), "postgres://postgres@"+server.Address+"/postgres?sslmode=disable&default_query_exec_mode=simple_protocol")
	if err != nil {
		t.Fatal(err)
	}
	// One message is one transaction, whose table is there before it waits.
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

// TestMariaDBCut: a holder that is cut off finds out when it releases, and the lock
// is the next one's once its server has found out.
func TestMariaDBCut(t *testing.T) {
	t.Parallel()
	cluster := started(t, "mariadb")
	server := cluster.Servers()[0]
	for name, want := range mariaSysctls() {
		if got := sysctl(t, cluster, server, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	a, b := open(t, "mariadb", cluster), open(t, "mariadb", cluster)
	grant := a.acquire("cut", 0)
	b.waits("while the connection lasts", "cut")
	if _, err := server.Host.Cut(t.Context(), agent.Cut{ID: "cut", Peers: []string{ownAddress(t, server)}}); err != nil {
		t.Fatal(err)
	}
	if err := a.release(grant); clients.OutcomeOf(err) != clients.Unknown {
		t.Errorf("release by a holder that is cut off: outcome %d: %v", clients.OutcomeOf(err), err)
	}
	if _, _, err := server.Host.Heal(t.Context(), "cut"); err != nil {
		t.Fatal(err)
	}
	b.acquire("cut", 0)
}

// sysctl reads a setting of the network namespace of a server.
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
	_, value, _ := strings.Cut(strings.TrimSpace(log), " ") // after the time
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
	if _, err := conn.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'w1'"); err != nil {
		t.Fatal(err)
	}
}

// ownAddress is the one under which a server sees this process.
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

// TestPgBouncerSharesSessions: through the pooler two clients hold the lock at
// once, as both are served by one session; compared with it without the pooler.
func TestPgBouncerSharesSessions(t *testing.T) {
	t.Parallel()
	pooled := started(t, "postgres-pgbouncer")
	first, second := open(t, "postgres-pgbouncer", pooled), open(t, "postgres-pgbouncer", pooled)
	first.acquire("shared", 0)
	second.acquire("shared", 0)

	direct := started(t, "postgres")
	control, other := open(t, "postgres-session", direct), open(t, "postgres-session", direct)
	control.acquire("shared", 0)
	other.waits("without the pooler", "shared")
}
