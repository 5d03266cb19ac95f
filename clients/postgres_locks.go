//go:build !embedded

package clients

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// pgLock is a lock that lasts as long as a connection to PostgreSQL, or as a
// transaction on it. Who waits does so in the server's own queue.
type pgLock struct {
	pool    *pgxpool.Pool
	watches bool             // over connections that hold locks
	holds   handles[*pgConn] // nil for an attempt that is in doubt
	// before prepares a connection for the wait; nil for nothing to do.
	before func(ctx context.Context, conn *pgConn, key string) error
	// wait is the statement that ends when the lock is there, and share that of a reader, "" where
	// readers cannot share it; $1 is its name.
	wait, share string
	// release says whether the lock was held until now.
	release func(ctx context.Context, conn *pgConn, g Grant) (bool, error)
	// transaction: what the holder does is part of one, which the release commits.
	transaction bool
}

// open gives the lock its connections.
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

// openPostgresPooled is the same where a pooler may change the session between two
// transactions, and prepared statements with it: the documentation of pgx advises this mode.
func openPostgresPooled(c Config) (Lock, error) {
	return pgSessionLock().open(c, "&default_query_exec_mode=exec")
}

func pgSessionLock() *pgLock {
	return &pgLock{
		wait:  "SELECT pg_advisory_lock(hashtextextended($1, 0))",
		share: "SELECT pg_advisory_lock_shared(hashtextextended($1, 0))", release: unlockAdvisory,
	}
}

// unlockAdvisory is answered with false, and a warning that drivers do not show,
// if this session does not have the lock.
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

// prepareRow makes sure that there is a row to lock: FOR UPDATE of none waits for
// nobody. The row is committed first, for others cannot see it before.
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

// commit is answered with ROLLBACK if the transaction had failed.
func commit(ctx context.Context, conn *pgConn, _ Grant) (bool, error) {
	done, err := conn.Exec(ctx, "COMMIT")
	return done.String() == "COMMIT", err
}

func (l *pgLock) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	l.holds.put(a.ID, nil) // in doubt
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

// acquire returns a connection that has the lock. When ctx ends pgx asks the server to give
// the wait up and closes the connection, but waits for no answer.
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
			// The lock itself was not asked for yet.
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

// rest leaves a connection that holds a lock alone.
func (l *pgLock) rest(conn *pgConn) {
	if l.watches {
		conn.watch()
	}
}

// Release of an attempt that is in doubt has nobody to ask: its connection was
// closed.
func (l *pgLock) Release(ctx context.Context, g Grant) error {
	conn, known := l.holds.take(g.ID)
	switch {
	case !known:
		return ErrNotHeld
	case conn == nil:
		return errConnectionLost
	}
	if !conn.wake() {
		conn.Release()
		return errConnectionLost
	}
	held, err := l.release(ctx, conn, g)
	if err != nil {
		conn.drop() // it may still have the lock, and nothing may have been sent: the pool would keep it
		return err
	}
	conn.Release()
	if !held {
		return ErrNotHeld
	}
	return nil
}

// Close ends what is still held: it belongs to connections.
func (l *pgLock) Close() error {
	for _, conn := range l.holds.takeAll() {
		if conn != nil {
			conn.drop()
		}
	}
	l.pool.Close()
	return nil
}
