//go:build !embedded

package clients

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// pgLock is a lock that lasts as long as a connection to PostgreSQL, or as a transaction on it. Waiters wait in
// the server's own queue.
type pgLock struct {
	pool    *pgxpool.Pool
	watches bool             // watch the connections that hold locks
	holds   handles[*pgConn] // nil for an attempt whose outcome is in doubt
	// before prepares a connection for the wait; nil: nothing to prepare.
	before func(ctx context.Context, conn *pgConn, key string) error
	// wait is the statement that returns when the lock is acquired; $1 is the lock's name. share is that
	// statement for a reader; "" if readers cannot share the lock.
	wait, share string
	// release reports whether the lock was held until now.
	release func(ctx context.Context, conn *pgConn, g Grant) (bool, error)
	// transaction: a transaction holds the lock and contains the holder's accesses, and release commits it.
	transaction bool
}

// open opens the lock's pool of connections.
func (l *pgLock) open(c Config, settings string) (Lock, error) {
	pool, err := openPostgres(c, settings)
	if err != nil {
		return nil, err
	}
	l.pool, l.watches = pool, c.options.has(WatchConnection)
	return l, nil
}

// openPostgresSession is pg_advisory_lock: the lock belongs to the session.
func openPostgresSession(c Config) (Lock, error) { return pgSessionLock().open(c, "") }

// openPostgresPooled is pg_advisory_lock through a pooler, which may change the session between two
// transactions, and with it the prepared statements. pgx's documentation advises this mode for poolers.
func openPostgresPooled(c Config) (Lock, error) {
	return pgSessionLock().open(c, "&default_query_exec_mode=exec")
}

func pgSessionLock() *pgLock {
	return &pgLock{
		wait:  "SELECT pg_advisory_lock(hashtextextended($1, 0))",
		share: "SELECT pg_advisory_lock_shared(hashtextextended($1, 0))", release: unlockAdvisory,
	}
}

// unlockAdvisory releases the lock. If this session does not hold it, the server answers false, with a warning
// that drivers do not show.
func unlockAdvisory(ctx context.Context, conn *pgConn, g Grant) (held bool, err error) {
	unlock := "SELECT pg_advisory_unlock(hashtextextended($1, 0))"
	if g.Shared {
		unlock = "SELECT pg_advisory_unlock_shared(hashtextextended($1, 0))"
	}
	err = conn.QueryRow(ctx, unlock, g.Key).Scan(&held)
	return held, err
}

// openPostgresXact is pg_advisory_xact_lock: the lock ends with the transaction.
func openPostgresXact(c Config) (Lock, error) {
	lock := &pgLock{
		before: func(ctx context.Context, conn *pgConn, _ string) error { return conn.begin(ctx) },
		wait:   "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))",
		share:  "SELECT pg_advisory_xact_lock_shared(hashtextextended($1, 0))", release: commit, transaction: true,
	}
	return lock.open(c, "")
}

// openPostgresRow is SELECT … FOR UPDATE of a row that stands for the lock.
func openPostgresRow(c Config) (Lock, error) {
	lock := &pgLock{
		before: prepareRow, wait: "SELECT FROM lockcheck_rows WHERE key = $1 FOR UPDATE",
		share: "SELECT FROM lockcheck_rows WHERE key = $1 FOR SHARE", release: commit, transaction: true,
	}
	return lock.open(c, "")
}

// prepareRow makes sure that the row exists, because FOR UPDATE of no row waits for no one. The insertion is
// committed first, because other sessions cannot see the row before.
func prepareRow(ctx context.Context, conn *pgConn, key string) error {
	err := conn.withTable(ctx, "lockcheck_rows (key text PRIMARY KEY)", func() error {
		_, err := conn.Exec(ctx, "INSERT INTO lockcheck_rows VALUES ($1) ON CONFLICT DO NOTHING", key)
		return err
	})
	if err != nil {
		return err
	}
	return conn.begin(ctx)
}

func (c *pgConn) begin(ctx context.Context) error {
	_, err := c.Exec(ctx, "BEGIN")
	return err
}

// commit reports whether the transaction was committed. If it had failed, the server answers ROLLBACK.
func commit(ctx context.Context, conn *pgConn, _ Grant) (bool, error) {
	done, err := conn.Exec(ctx, "COMMIT")
	return done.String() == "COMMIT", err
}

func (l *pgLock) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	l.holds.put(a.ID, nil) // the outcome is in doubt
	conn, err := l.acquire(ctx, a)
	if err != nil {
		if OutcomeOf(err) != Unknown {
			l.holds.take(a.ID)
		}
		return Grant{}, err
	}
	l.holds.put(a.ID, conn)
	return Grant{Key: a.Key, ID: a.ID, Lost: conn.lost}, nil
}

// acquire returns a connection that has the lock. When ctx ends, pgx asks the server to cancel the wait and
// closes the connection, without waiting for an answer.
func (l *pgLock) acquire(ctx context.Context, a Attempt) (*pgConn, error) {
	conn, err := takePostgres(ctx, l.pool)
	if err != nil {
		return nil, err
	}
	if err := l.lock(ctx, conn, a); err != nil {
		conn.Release()
		return nil, err
	}
	l.rest(conn)
	return conn, nil
}

func (l *pgLock) lock(ctx context.Context, conn *pgConn, a Attempt) error {
	if l.before != nil {
		if err := l.before(ctx, conn, a.Key); err != nil {
			// The lock itself was not requested yet.
			return &NoEffectError{Err: err}
		}
	}
	wait := l.wait
	if a.Shared {
		wait = l.share
	}
	_, err := conn.Exec(ctx, wait, a.Key)
	return pgOutcome(err)
}

// rest starts the watch on an idle connection that holds a lock, if the option is in force.
func (l *pgLock) rest(conn *pgConn) {
	if l.watches {
		conn.watch()
	}
}

// Release of an attempt whose outcome is in doubt is not possible, because its connection was closed.
func (l *pgLock) Release(ctx context.Context, g Grant) error {
	conn, known := l.holds.take(g.ID)
	switch {
	case !known:
		return ErrNotHeld
	case conn == nil:
		return errConnectionLost
	}
	if !conn.stopWatching() {
		conn.Release()
		return errConnectionLost
	}
	held, err := l.release(ctx, conn, g)
	if err != nil {
		conn.closeForGood() // it may still hold the lock even if nothing was sent, and the pool would keep it
		return err
	}
	conn.Release()
	if !held {
		return ErrNotHeld
	}
	return nil
}

// Close ends the locks that are still held by closing their connections.
func (l *pgLock) Close() error {
	for _, conn := range l.holds.takeAll() {
		if conn != nil {
			conn.closeForGood()
		}
	}
	l.pool.Close()
	return nil
}
