package clients

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// SQLSTATE codes, from appendix A of PostgreSQL's documentation.
const (
	pgUndefinedTable = "42P01"
	pgQueryCanceled  = "57014"
)

// errConnectionLost is the outcome of a release on a connection that is gone:
// the server ends the lock when it notices, and nobody can say when that is.
var errConnectionLost = errors.New("the connection that held the lock was lost")

// pgPool makes connections to one PostgreSQL. It keeps one of them for the next
// attempt, as the pools of users do: a connection costs the server a process,
// and a worker makes one attempt at a time. A connection belongs to one attempt
// until it is known to be as good as new; after any failure it is closed.
type pgPool struct {
	config *pgx.ConnConfig
	spare  chan *pgConn
}

func openPostgres(c Config) (*pgPool, error) {
	if len(c.Nodes) != 1 {
		return nil, fmt.Errorf("this lock needs one PostgreSQL, not %d", len(c.Nodes))
	}
	config, err := pgx.ParseConfig(fmt.Sprintf(
		"postgres://postgres@%s/postgres?sslmode=disable&application_name=%s", c.Nodes[0], c.Worker))
	if err != nil {
		return nil, err
	}
	config.ConnectTimeout = sqlDialTimeout
	config.DialFunc = sqlDialer().DialContext
	// No prepared statements: they would belong to a connection that a pooler may
	// change between two transactions.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	return &pgPool{config: config, spare: make(chan *pgConn, 1)}, nil
}

// take returns a connection for one attempt. After its error the server was
// asked for nothing.
func (p *pgPool) take(ctx context.Context) (*pgConn, error) {
	select {
	case conn := <-p.spare:
		if conn.wake() {
			return conn, nil
		}
		conn.drop()
	default:
	}
	conn, err := pgx.ConnectConfig(ctx, p.config)
	if err != nil {
		return nil, &NoEffectError{Err: err}
	}
	return &pgConn{Conn: conn, lost: make(chan struct{})}, nil
}

// put keeps a connection for the next attempt.
func (p *pgPool) put(conn *pgConn) {
	conn.rest()
	select {
	case p.spare <- conn:
	default:
		conn.drop()
	}
}

func (p *pgPool) Close() error {
	select {
	case conn := <-p.spare:
		conn.drop()
	default:
	}
	return nil
}

// pgConn is a connection. While it rests a read is pending on it, which is the
// only way to see that it was closed before the next statement fails.
type pgConn struct {
	*pgx.Conn
	lost chan struct{} // closed when the connection was, while it rested
	stop func()        // ends the rest; nil if it does not rest
}

// rest begins to watch over a connection on which nothing is going on.
func (c *pgConn) rest() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	c.stop = func() { cancel(); <-done }
	go func() {
		defer close(done)
		var err error
		for err == nil { // whatever else the server may have to say
			_, err = c.WaitForNotification(ctx)
		}
		if ctx.Err() == nil {
			close(c.lost)
		}
	}()
}

// wake ends the rest and says whether the connection is still there.
func (c *pgConn) wake() bool {
	if c.stop != nil {
		c.stop()
		c.stop = nil
	}
	return !closed(c.lost)
}

// drop closes the connection, and with it the transaction and the session locks
// as soon as the server takes notice.
func (c *pgConn) drop() {
	c.wake()
	ctx, cancel := context.WithTimeout(context.Background(), withdrawal)
	defer cancel()
	_ = c.Close(ctx)
}

// await executes a statement that may have to wait for the turn of this client.
// When ctx ends the server is asked to give the wait up, and if it says that it
// did the error is a BusyError. After an error the connection must be dropped: a
// request to cancel that came too late would hit the next statement.
func (c *pgConn) await(ctx context.Context, statement string, args ...any) error {
	patient, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	inTime := context.AfterFunc(ctx, func() {
		// Not cut short when the answer is there: a pooler passes the request on.
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawal)
		defer cancel()
		_ = c.PgConn().CancelRequest(limited) // if it fails nothing is known, as below
		select {
		case <-limited.Done():
			giveUp()
		case <-patient.Done():
		}
	})
	_, err := c.Exec(patient, statement, args...)
	switch {
	case inTime():
		return pgOutcome(err)
	case pgCode(err) == pgQueryCanceled:
		return &BusyError{}
	case err == nil:
		return fmt.Errorf("granted too late: %w", ctx.Err())
	}
	return err
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
	made := c.PgConn().Exec(ctx, "SELECT pg_advisory_xact_lock(0, 0); CREATE TABLE IF NOT EXISTS "+create)
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
// may come after the deed.
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
