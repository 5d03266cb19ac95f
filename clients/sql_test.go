package clients

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestSQLWithoutLogin: whatever a server does instead of letting the client in,
// it was not asked for a lock yet.
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

// TestSQLSilence: a holder with keep-alives that is cut off knows it before its server gives
// the lock away, and the table tells who is notified, and when.
func TestSQLSilence(t *testing.T) {
	if SQLClientSilence >= SQLServerSilence {
		t.Errorf("the client is silent for %s, the server for %s", SQLClientSilence, SQLServerSilence)
	}
	for _, lock := range []string{"postgres-session", "postgres-xact", "postgres-row", "mariadb", "galera-getlock", "galera-forupdate"} {
		if how := mustInfo(t, lock).LossNotification; how != notifiedByQuery {
			t.Errorf("%s: %q", lock, how)
		}
		info := mustInfo(t, lock+"+"+keepAlives)
		if want := "after 3 s,"; !strings.Contains(info.Options[0].Adds, want) || SQLClientSilence != 3*time.Second {
			t.Errorf("%q, want %q", info.Options[0].Adds, want)
		}
	}
	if how := mustInfo(t, "postgres-row+"+watchConnection).LossNotification; !strings.Contains(how, "seen to close") {
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

// TestGaleraServers: workers begin with different servers, unless all are to use one.
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
