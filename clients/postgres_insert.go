//go:build !embedded

package clients

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"lockcheck/history"
)

// SQL of a lock that is the existence of a row. Of concurrent INSERTs, the primary key lets one succeed.
const (
	insertTable = `lockcheck_inserts (key text PRIMARY KEY, owner text NOT NULL, until timestamptz NOT NULL)`

	insertTake = `INSERT INTO lockcheck_inserts VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`

	insertTakeOver = `INSERT INTO lockcheck_inserts AS l VALUES ($1, $2, $3)
ON CONFLICT (key) DO UPDATE SET owner = excluded.owner, until = excluded.until WHERE l.until <= $4`

	insertHolder = `SELECT owner FROM lockcheck_inserts WHERE key = $1`

	insertRelease = `DELETE FROM lockcheck_inserts WHERE key = $1 AND owner = $2`
)

// clockDistance is the difference between the clocks of two successive workers with clocksApart.
const clockDistance = 10 * time.Second

// pgInsert is a row that exists while the lock is held.
type pgInsert struct {
	pgTable
	takesOver bool
	ahead     time.Duration // how far this client's wall clock is ahead of true time
}

func openPostgresInsert(c Config) (Lock, error) {
	table, err := openTable(c, insertTable)
	if err != nil {
		return nil, err
	}
	lock := &pgInsert{pgTable: table, takesOver: c.options.has(takeOver)}
	if c.options.has(clocksApart) {
		lock.ahead = time.Duration(c.number()) * clockDistance
	}
	return lock, nil
}

func (l *pgInsert) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	grant := Grant{Key: a.Key, ID: a.ID}
	if l.takesOver {
		grant.Until = history.Now() + a.TTL.Nanoseconds()
	}
	now := time.Now().Add(l.ahead)
	err := l.change(ctx, insertTake, a.Key, a.ID, now.Add(a.TTL))
	if l.takesOver && errors.Is(err, ErrNotHeld) {
		err = l.change(ctx, insertTakeOver, a.Key, a.ID, now.Add(a.TTL), now)
	}
	if errors.Is(err, ErrNotHeld) {
		err = l.busy(ctx, a.Key)
	}
	if err != nil {
		return Grant{}, err
	}
	return grant, nil
}

// busy names the holder, unless the holder has released the lock in the meantime. If the query fails, the
// attempt still had no effect.
func (l *pgInsert) busy(ctx context.Context, key string) error {
	var holder string
	err := l.with(ctx, func(conn *pgConn) error { return conn.QueryRow(ctx, insertHolder, key).Scan(&holder) })
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return &NoEffectError{Err: err}
	}
	return &BusyError{Holder: holder}
}

func (l *pgInsert) Release(ctx context.Context, g Grant) error {
	return l.change(ctx, insertRelease, g.Key, g.ID)
}
