//go:build !embedded

package clients

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"lockcheck/history"
)

// SQL of a lock that is the existence of a row. Of concurrent INSERTs, the primary key lets one succeed. Each
// statement returns whether the new lease is over already by the clock of the database.
const (
	insertTable = `lockcheck_inserts (key text PRIMARY KEY, owner text NOT NULL, until timestamptz NOT NULL)`

	insertTake = `INSERT INTO lockcheck_inserts VALUES ($1, $2, $3) ON CONFLICT DO NOTHING RETURNING until <= clock_timestamp()`

	insertTakeOver = `INSERT INTO lockcheck_inserts AS l VALUES ($1, $2, $3)
ON CONFLICT (key) DO UPDATE SET owner = excluded.owner, until = excluded.until WHERE l.until <= $4
RETURNING l.until <= clock_timestamp()`

	insertHolder = `SELECT owner FROM lockcheck_inserts WHERE key = $1`

	insertRelease = `DELETE FROM lockcheck_inserts WHERE key = $1 AND owner = $2`
)

// pgInsert is a row that exists while the lock is held.
type pgInsert struct {
	pgTable
	takesOver bool
}

func openPostgresInsert(c Config) (Lock, error) {
	table, err := openTable(c, insertTable)
	if err != nil {
		return nil, err
	}
	return &pgInsert{pgTable: table, takesOver: c.options.has(takeOver)}, nil
}

func (l *pgInsert) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	grant := Grant{Key: a.Key, ID: a.ID}
	if l.takesOver {
		grant.Until = history.Now() + a.TTL.Nanoseconds()
	}
	now := time.Now()
	ended, err := l.take(ctx, insertTake, a.Key, a.ID, now.Add(a.TTL))
	if l.takesOver && errors.Is(err, pgx.ErrNoRows) {
		ended, err = l.take(ctx, insertTakeOver, a.Key, a.ID, now.Add(a.TTL), now)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		err = l.busy(ctx, a.Key)
	}
	if err != nil {
		return Grant{}, err
	}
	// The clock of the database may have been moved, so the client's own clock must agree.
	grant.Expired = l.takesOver && ended && history.Now() >= grant.Until
	return grant, nil
}

// take inserts or takes over the row; pgx.ErrNoRows if another owner has it. ended: the new lease is over already.
func (l *pgInsert) take(ctx context.Context, statement string, args ...any) (ended bool, err error) {
	err = l.with(ctx, func(conn *pgConn) error { return conn.QueryRow(ctx, statement, args...).Scan(&ended) })
	return ended, err
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
