//go:build !embedded

package clients

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/go-sql-driver/mysql"
)

// mariaMargin is how much earlier than the client the server stops waiting, so that its answer arrives in time.
const mariaMargin = 100 * time.Millisecond

// mariaLock is a lock that belongs to a connection, or to a transaction on it. Each attempt has a connection of
// its own, on which database/sql retries nothing.
type mariaLock struct {
	db    *sql.DB
	holds handles[*sql.Conn] // nil for an attempt whose outcome is in doubt
	// wait returns when the connection has the lock.
	wait func(ctx context.Context, conn *sql.Conn, key string) error
	// release reports whether the lock was held until now.
	release func(ctx context.Context, conn *sql.Conn, key string) (bool, error)
}

// openMariaDB is GET_LOCK: the lock belongs to the connection.
func openMariaDB(c Config) (Lock, error) {
	if len(c.Nodes) != 1 {
		return nil, fmt.Errorf("this lock needs one MariaDB, not %d", len(c.Nodes))
	}
	return openGetLock(c)
}

func openGetLock(c Config) (Lock, error) {
	db, err := mariaPool(c)
	if err != nil {
		return nil, err
	}
	return &mariaLock{db: db, wait: getLock, release: releaseLock}, nil
}

// mariaPool uses the driver's defaults and the settings of its README.
func mariaPool(c Config) (*sql.DB, error) {
	if len(c.Nodes) == 0 {
		return nil, errNoServers
	}
	config := mysql.NewConfig()
	config.User, config.DBName = "lockcheck", "lockcheck"
	config.Net, config.Addr = "tcp", c.Nodes[0]
	dialer := new(net.Dialer)
	if c.options.has(KeepAlives) {
		dialer = sqlDialer()
	}
	config.DialFunc = firstThatAccepts(dialer, serversOf(c))
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetConnMaxLifetime(3 * time.Minute)
	db.SetMaxOpenConns(10)
	db.SetMaxIdleConns(10)
	return db, nil
}

func (l *mariaLock) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	l.holds.put(a.ID, nil) // the outcome is in doubt
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

// acquire returns a connection that has the lock. The server normally ends the wait by itself. If ctx ends
// first, the driver closes the connection, and the outcome is unknown.
func (l *mariaLock) acquire(ctx context.Context, key string) (*sql.Conn, error) {
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return nil, &NoEffectError{Err: err} // nothing was sent to the server
	}
	if err := l.wait(ctx, conn, key); err != nil {
		_ = conn.Close() // returns it to the pool, unless the driver has closed it
		return nil, err
	}
	return conn, nil
}

func getLock(ctx context.Context, conn *sql.Conn, key string) error {
	var got sql.NullInt64 // 0: timeout; NULL: the wait was killed
	err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, ?)", key, mariaWait(ctx).Seconds()).Scan(&got)
	switch {
	case err != nil:
		return mariaOutcome(err)
	case got.Int64 != 1:
		return &BusyError{}
	}
	return nil
}

func releaseLock(ctx context.Context, conn *sql.Conn, key string) (bool, error) {
	var released sql.NullInt64 // 0: another connection has the lock; NULL: no connection has it
	err := conn.QueryRowContext(ctx, "SELECT RELEASE_LOCK(?)", key).Scan(&released)
	return released.Int64 == 1, err
}

// mariaWait returns how long the server should wait. GET_LOCK accepts fractions of a second.
func mariaWait(ctx context.Context) time.Duration {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return time.Hour
	}
	return max(0, time.Until(deadline)-mariaMargin)
}

// mariaOutcome marks the errors after which nothing could have happened because the server aborted the statement.
func mariaOutcome(err error) error {
	var answer *mysql.MySQLError
	if errors.As(err, &answer) {
		return &NoEffectError{Err: err}
	}
	return err
}

// Release of an attempt whose outcome is in doubt is not possible, because its connection was closed.
func (l *mariaLock) Release(ctx context.Context, g Grant) error {
	conn, known := l.holds.take(g.ID)
	switch {
	case !known:
		return ErrNotHeld
	case conn == nil:
		return errConnectionLost
	}
	defer conn.Close()
	held, err := l.release(ctx, conn, g.Key)
	if err != nil {
		discard(conn) // it may still hold the lock even if nothing was sent, and the pool would keep it
		return err
	}
	if !held {
		return ErrNotHeld
	}
	return nil
}

// discard closes a connection instead of returning it to the pool.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
}

// Close ends the locks that are still held by closing their connections.
func (l *mariaLock) Close() error {
	for _, conn := range l.holds.takeAll() {
		if conn != nil {
			_ = conn.Close()
		}
	}
	return l.db.Close()
}
