package clients

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// TestSQLWithoutLogin: a server that fails before the client is logged in has received no request for a lock.
func TestSQLWithoutLogin(t *testing.T) {
	for _, lock := range []string{"postgres-session", "postgres-lease", "mariadb", "galera-forupdate", "galera-insert"} {
		for _, c := range failing {
			t.Run(lock+" "+c.name, func(t *testing.T) {
				l := mustOpen(t, lock, c.listen(t, "tcp", "127.0.0.1:0"))
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				_, err := l.Acquire(ctx, Attempt{Key: "k0", ID: "w1-1", TTL: time.Second})
				if OutcomeOf(err) != NoEffect {
					t.Errorf("%v is outcome %d, want no effect", err, OutcomeOf(err))
				}
			})
		}
	}
}

// TestSQLSilence: a holder with keep-alives that is cut off learns it before its server gives the lock away.
// The table states who is notified, and when.
func TestSQLSilence(t *testing.T) {
	if SQLClientSilence >= SQLServerSilence {
		t.Errorf("the client is silent for %s, the server for %s", SQLClientSilence, SQLServerSilence)
	}
	for _, lock := range []string{"postgres-session", "postgres-xact", "postgres-row", "mariadb", "galera-getlock", "galera-forupdate"} {
		if how := mustInfo(t, lock).LossNotification; how != notifiedByQuery {
			t.Errorf("%s: %q", lock, how)
		}
		info := mustInfo(t, lock+"+"+KeepAlives)
		if want := "after 3 s,"; !strings.Contains(info.Options[0].Adds, want) || SQLClientSilence != 3*time.Second {
			t.Errorf("%q, want %q", info.Options[0].Adds, want)
		}
	}
	if how := mustInfo(t, "postgres-row+"+WatchConnection).LossNotification; !strings.Contains(how, "seen to close") {
		t.Errorf("with a watch: %q", how)
	}
}

// TestSQLOutcome: only an answer that leaves the session alive is certain.
func TestSQLOutcome(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want Outcome
	}{
		{"PostgreSQL gave it up", pgOutcome(&pgconn.PgError{SeverityUnlocalized: "ERROR", Code: "40P01"}), NoEffect},
		{"PostgreSQL ends the session", pgOutcome(&pgconn.PgError{SeverityUnlocalized: "FATAL", Code: "57P01"}), Unknown},
		{"no answer of PostgreSQL", pgOutcome(errors.New("reset")), Unknown},
		{"PostgreSQL did it", pgOutcome(nil), Done},
		{"MariaDB gave it up", mariaOutcome(&mysql.MySQLError{Number: 1064}), NoEffect},
		{"no answer of MariaDB", mariaOutcome(errors.New("reset")), Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := OutcomeOf(c.err); got != c.want {
				t.Errorf("%v is outcome %d, want %d", c.err, got, c.want)
			}
		})
	}
}

// fakeMaria is a connector whose connections do nothing.
type fakeMaria struct{ driver.Conn }

func (f fakeMaria) Connect(context.Context) (driver.Conn, error) { return f, nil }
func (fakeMaria) Driver() driver.Driver                          { return nil }
func (fakeMaria) Close() error                                   { return nil }

// TestMariaReleaseFailed: the pool keeps no connection that may still have the lock.
func TestMariaReleaseFailed(t *testing.T) {
	for name, c := range map[string]struct {
		held bool
		err  error
		want Outcome
		kept int
	}{
		"released": {held: true, want: Done, kept: 1},
		"not held": {want: NotHeld, kept: 1},
		"not sent": {err: context.Canceled, want: Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			lock := &mariaLock{
				db:      sql.OpenDB(fakeMaria{}),
				wait:    func(context.Context, *sql.Conn, string) error { return nil },
				release: func(context.Context, *sql.Conn, string) (bool, error) { return c.held, c.err },
			}
			defer lock.Close()
			grant, err := lock.Acquire(t.Context(), Attempt{Key: "k0", ID: "w1-1"})
			if err != nil {
				t.Fatal(err)
			}
			if err := lock.Release(t.Context(), grant); OutcomeOf(err) != c.want {
				t.Errorf("%v is outcome %d, want %d", err, OutcomeOf(err), c.want)
			}
			if kept := lock.db.Stats().OpenConnections; kept != c.kept {
				t.Errorf("%d connections are kept, want %d", kept, c.kept)
			}
		})
	}
}

// greets is a PostgreSQL that accepts every login and answers nothing else.
func greets(conn net.Conn) {
	defer conn.Close()
	server := pgproto3.NewBackend(conn, conn)
	_, err := server.ReceiveStartupMessage()
	server.Send(&pgproto3.AuthenticationOk{})
	server.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	for err = errors.Join(err, server.Flush()); err == nil; {
		_, err = server.Receive()
	}
}

// TestPostgresReleaseFailed: the pool keeps no connection that may still have the lock. With a cancelled
// context nothing is sent.
func TestPostgresReleaseFailed(t *testing.T) {
	for name, c := range map[string]struct {
		release func(context.Context, *pgConn, Grant) (bool, error)
		want    Outcome
		kept    int32
	}{
		"released": {release: func(context.Context, *pgConn, Grant) (bool, error) { return true, nil }, want: Done, kept: 1},
		"not held": {release: func(context.Context, *pgConn, Grant) (bool, error) { return false, nil }, want: NotHeld, kept: 1},
		"not sent": {release: unlockAdvisory, want: Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			pool, err := openPostgres(Config{Worker: "w1", Nodes: []string{listen(t, "tcp", "127.0.0.1:0", greets)}}, "")
			if err != nil {
				t.Fatal(err)
			}
			lock := &pgLock{pool: pool, release: c.release}
			defer lock.Close()
			conn, err := takePostgres(t.Context(), pool)
			if err != nil {
				t.Fatal(err)
			}
			lock.holds.put("w1-1", conn)
			ctx, end := context.WithCancel(t.Context())
			end()
			if err := lock.Release(ctx, Grant{Key: "k0", ID: "w1-1"}); OutcomeOf(err) != c.want {
				t.Errorf("%v is outcome %d, want %d", err, OutcomeOf(err), c.want)
			}
			if kept := pool.Stat().IdleConns(); kept != c.kept {
				t.Errorf("%d connections are kept, want %d", kept, c.kept)
			}
		})
	}
}

// TestGaleraServers: workers begin with different servers, unless the option one-server is set.
func TestGaleraServers(t *testing.T) {
	for _, c := range []struct{ lock, worker, want string }{
		{"galera-insert", "w1", "[n1 n2 n3]"}, {"galera-insert", "w3", "[n3 n1 n2]"}, {"galera-insert", "w5", "[n2 n3 n1]"},
		{"galera-insert", "reader", "[n1 n2 n3]"}, {"galera-insert+one-server", "w3", "[n1 n2 n3]"},
	} {
		config := Config{Worker: c.worker, Nodes: []string{"n1", "n2", "n3"}, options: mustInfo(t, c.lock).options}
		if got := fmt.Sprint(serversOf(config)); got != c.want {
			t.Errorf("%s of %s: %s, want %s", c.lock, c.worker, got, c.want)
		}
	}
}
