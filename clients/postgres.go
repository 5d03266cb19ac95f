//go:build !embedded

package clients

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// An SQLSTATE code, from appendix A of PostgreSQL's documentation.
const pgUndefinedTable = "42P01"

// errConnectionLost is the outcome of a release on a connection that is gone:
// the server ends the lock when it sees that, and nobody can say when that is.
var errConnectionLost = errors.New("the connection that held the lock was lost")

// openPostgres makes a pool of connections to one PostgreSQL, with the settings that pgx has
// by itself but for those named, as in "&default_query_exec_mode=exec".
func openPostgres(c Config, settings string) (*pgxpool.Pool, error) {
	if len(c.Nodes) != 1 {
		return nil, fmt.Errorf("this lock needs one PostgreSQL, not %d", len(c.Nodes))
	}
	config, err := pgxpool.ParseConfig(fmt.Sprintf(
		"postgres://postgres@%s/postgres?sslmode=disable&application_name=%s%s", c.Nodes[0], c.Worker, settings))
	if err != nil {
		return nil, err
	}
	if c.options.has(KeepAlives) {
		config.ConnConfig.DialFunc = sqlDialer().DialContext
	}
	return pgxpool.NewWithConfig(context.Background(), config)
}

// pgConn is a connection that belongs to one attempt until it is released to its pool, which
// keeps only those that are as good as new.
type pgConn struct {
	*pgxpool.Conn
	// lost is closed when the connection was, while somebody watched it; nil if nobody does.
	lost chan struct{}
	stop func() // ends the watch; nil if there is none
}

// takePostgres returns a connection for one attempt. After its error the server was
// asked for nothing.
func takePostgres(ctx context.Context, pool *pgxpool.Pool) (*pgConn, error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, &NoEffectError{Err: err}
	}
	return &pgConn{Conn: conn}, nil
}

// watch begins to watch over a connection on which nothing is going on. A read that is
// pending is the only way to see that it was closed before the next statement fails.
func (c *pgConn) watch() {
	if c.lost == nil {
		c.lost = make(chan struct{})
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	c.stop = func() { cancel(); <-done }
	go func() {
		defer close(done)
		var err error
		for err == nil { // whatever else the server may have to say
			_, err = c.Conn.Conn().WaitForNotification(ctx)
		}
		if ctx.Err() == nil {
			close(c.lost)
		}
	}()
}

// wake ends the watch and says whether the connection is still there, as far as it was seen.
func (c *pgConn) wake() bool {
	if c.stop != nil {
		c.stop()
		c.stop = nil
	}
	return !closed(c.lost)
}

// drop closes the connection, and with it the transaction and the session locks
// as soon as the server sees it.
func (c *pgConn) drop() {
	c.wake()
	ctx, cancel := context.WithTimeout(context.Background(), withdrawal)
	defer cancel()
	_ = c.Conn.Conn().Close(ctx)
	c.Release()
}

// withTable does something for which a table is needed, and makes the table if
// it is not there. Makers wait for each other: CREATE TABLE IF NOT EXISTS fails
// for one of two that do it at once.
func (c *pgConn) withTable(ctx context.Context, create string, do func() error) error {
	err := do()
	if pgCode(err) != pgUndefinedTable {
		return err
	}
	// One message is one transaction. Locks of two numbers are none of one.
	made := c.Conn.Conn().PgConn().Exec(ctx, "SELECT pg_advisory_xact_lock(0, 0); CREATE TABLE IF NOT EXISTS "+create)
	if _, err := made.ReadAll(); err != nil {
		return err
	}
	return do()
}

// pgCode returns the SQLSTATE of an error that the server answered with; "" for
// another error.
func pgCode(err error) string {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		return answer.Code
	}
	return ""
}

// pgOutcome marks the errors after which nothing can have happened: the server
// gave the statement up, or never got it. An answer that ends the session as well
// may come after it is done.
func pgOutcome(err error) error {
	var answer *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &answer) && answer.SeverityUnlocalized == "ERROR", pgconn.SafeToRetry(err):
		return &NoEffectError{Err: err}
	}
	return err
}
