package clients

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
)

// mariaMargin is how much earlier than the client the server gives up a wait,
// so that its answer arrives in time.
const mariaMargin = 100 * time.Millisecond

// mariaLock is GET_LOCK of MariaDB: the lock belongs to the connection. The pool
// keeps one connection for the next attempt; each attempt has one for itself, on
// which database/sql repeats nothing.
type mariaLock struct {
	db    *sql.DB
	holds handles[*sql.Conn] // nil for an attempt that is in doubt
}

func openMariaDB(c Config) (Lock, error) {
	if len(c.Nodes) != 1 {
		return nil, fmt.Errorf("this lock needs one MariaDB, not %d", len(c.Nodes))
	}
	config := mysql.NewConfig()
	config.User, config.DBName = "lockcheck", "lockcheck"
	config.Net, config.Addr = "tcp", c.Nodes[0]
	config.DialFunc = sqlDialer().DialContext
	config.InterpolateParams = true // one round trip, no prepared statement
	config.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxIdleConns(1)
	return &mariaLock{db: db}, nil
}

// take returns a connection for one attempt. After its error the server was
// asked for nothing.
func (l *mariaLock) take(ctx context.Context) (*sql.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, sqlDialTimeout)
	defer cancel()
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return nil, &NoEffectError{Err: err}
	}
	return conn, nil
}

func (l *mariaLock) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	l.holds.put(a.ID, nil) // in doubt
	conn, err := l.acquire(ctx, a.Key)
	if err != nil {
		if OutcomeOf(err) != Unknown {
			l.holds.take(a.ID)
		}
		return Grant{}, err
	}
	l.holds.put(a.ID, conn)
	return Grant{Key: a.Key, ID: a.ID}, nil
}

// acquire returns a connection that has the lock.
func (l *mariaLock) acquire(ctx context.Context, key string) (*sql.Conn, error) {
	conn, err := l.take(ctx)
	if err != nil {
		return nil, err
	}
	err = l.await(ctx, conn, key)
	switch {
	case err == nil:
		return conn, nil
	case OutcomeOf(err) == Busy && ctx.Err() == nil:
		_ = conn.Close() // back to the pool
	default:
		dropMaria(conn)
	}
	return nil, err
}

// await waits in the queue of the server until ctx ends.
func (l *mariaLock) await(ctx context.Context, conn *sql.Conn, key string) error {
	var id int64
	if err := conn.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id); err != nil {
		return &NoEffectError{Err: err} // the lock was not asked for yet
	}
	patient, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	inTime := context.AfterFunc(ctx, func() {
		limited, cancel := context.WithTimeout(patient, withdrawal)
		defer cancel()
		_, _ = l.db.ExecContext(limited, "KILL QUERY ?", id) // if it fails nothing is known, as below
		<-limited.Done()
		giveUp()
	})
	var got sql.NullInt64
	err := conn.QueryRowContext(patient, "SELECT GET_LOCK(?, ?)", key, mariaWait(ctx).Seconds()).Scan(&got)
	switch over := !inTime(); {
	case err != nil:
		return mariaOutcome(err, over)
	case got.Int64 != 1: // 0: the time was up; NULL: the wait was killed
		return &BusyError{}
	case over:
		return fmt.Errorf("granted too late: %w", ctx.Err())
	}
	return nil
}

// mariaWait is how long the server is to wait: GET_LOCK takes it with fractions.
func mariaWait(ctx context.Context) time.Duration {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return time.Hour
	}
	return max(0, time.Until(deadline)-mariaMargin)
}

// mariaInterrupted is ER_QUERY_INTERRUPTED.
const mariaInterrupted = 1317

// mariaOutcome marks the errors after which nothing can have happened: the
// server gave the statement up.
func mariaOutcome(err error, withdrawn bool) error {
	var answer *mysql.MySQLError
	switch {
	case !errors.As(err, &answer):
		return err
	case withdrawn && answer.Number == mariaInterrupted:
		return &BusyError{}
	}
	return &NoEffectError{Err: err}
}

// Release of an attempt that is in doubt has nobody to ask: its connection was
// dropped.
func (l *mariaLock) Release(ctx context.Context, g Grant) error {
	conn, known := l.holds.take(g.ID)
	switch {
	case !known:
		return ErrNotHeld
	case conn == nil:
		return errConnectionLost
	}
	var released sql.NullInt64 // 0: another has it; NULL: nobody has
	if err := conn.QueryRowContext(ctx, "SELECT RELEASE_LOCK(?)", g.Key).Scan(&released); err != nil {
		// Whether it was released or not, the end of the session does it.
		dropMaria(conn)
		return err
	}
	_ = conn.Close() // back to the pool
	if released.Int64 != 1 {
		return ErrNotHeld
	}
	return nil
}

// dropMaria closes a connection, and with it the locks as soon as the server takes
// notice. The pool of database/sql does so when it is told that it is bad.
func dropMaria(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = conn.Close()
}

// Close ends what is still held: it belongs to connections.
func (l *mariaLock) Close() error {
	for _, conn := range l.holds.takeAll() {
		if conn != nil {
			dropMaria(conn)
		}
	}
	return l.db.Close()
}
