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

// errConnectionLost is the outcome of a release on a lost connection. The server ends the lock when it notices
// the loss, at an unknown time.
var errConnectionLost = errors.New("the connection that held the lock was lost")

// openPostgres opens a pool of connections to one PostgreSQL. The settings are pgx's defaults, except those in
// settings, as in "&default_query_exec_mode=exec".
func openPostgres(c Config, settings string) (*pgxpool.Pool, error) {
	if len(c.Nodes) != 1 {
		return nil, fmt.Errorf("this lock needs one PostgreSQL, not %d", len(c.Nodes))
	}
	if c.options.has(asyncCommit) {
		settings += "&synchronous_commit=off"
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

// pgConn is a connection that belongs to one attempt until it is returned to its pool. The pool keeps only
// connections without an open transaction or error.
type pgConn struct {
	*pgxpool.Conn
	// lost is closed when the connection was closed while it was watched; nil if it was never watched.
	lost chan struct{}
	stop func() // ends the watch; nil if there is none
}

// takePostgres returns a connection for one attempt. If it fails, nothing was sent to the server.
func takePostgres(ctx context.Context, pool *pgxpool.Pool) (*pgConn, error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, &NoEffectError{Err: err}
	}
	return &pgConn{Conn: conn}, nil
}

// watch starts to watch an idle connection. Only a pending read can detect that the connection was closed
// before the next statement fails.
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
		for err == nil { // other messages of the server do not matter
			_, err = c.Conn.Conn().WaitForNotification(ctx)
		}
		if ctx.Err() == nil {
			close(c.lost)
		}
	}()
}

// stopWatching ends the watch, and reports whether the connection is still open as far as the watch has seen.
func (c *pgConn) stopWatching() bool {
	if c.stop != nil {
		c.stop()
		c.stop = nil
	}
	return !closed(c.lost)
}

// closeForGood closes the connection. When the server notices, it ends the transaction and the session's locks.
func (c *pgConn) closeForGood() {
	c.stopWatching()
	ctx, cancel := context.WithTimeout(context.Background(), withdrawal)
	defer cancel()
	_ = c.Conn.Conn().Close(ctx)
	c.Release()
}

// withTable runs do, which needs a table, and creates the table if it does not exist. Processes that create it
// wait for each other: if two run CREATE TABLE IF NOT EXISTS at once, one of them fails.
func (c *pgConn) withTable(ctx context.Context, create string, do func() error) error {
	err := do()
	if pgCode(err) != pgUndefinedTable {
		return err
	}
	// One message is one transaction. Advisory locks with two numbers and with one number are distinct, so this
	// one does not collide with the locks under test.
	made := c.Conn.Conn().PgConn().Exec(ctx, "SELECT pg_advisory_xact_lock(0, 0); CREATE TABLE IF NOT EXISTS "+create)
	if _, err := made.ReadAll(); err != nil {
		return err
	}
	return do()
}

// pgCode returns the SQLSTATE of a server's answer; "" for any other error.
func pgCode(err error) string {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		return answer.Code
	}
	return ""
}

// pgOutcome marks the errors after which nothing could have happened: the server aborted the statement or never
// received it. A FATAL answer is excluded, because the server may send it after the statement has taken effect.
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
