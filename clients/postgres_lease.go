//go:build !embedded

package clients

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"lockcheck/history"
)

// SQL of a lease that lives in a table. Only the database's clock counts, and it is read with
// clock_timestamp(), because now() is the time at which the transaction began. A row is never removed, because
// it counts the tokens.
const (
	leaseTable = `lockcheck_leases (key text PRIMARY KEY, owner text NOT NULL, until timestamptz NOT NULL, token bigint NOT NULL)`

	leaseTake = `INSERT INTO lockcheck_leases AS l VALUES ($1, $2, clock_timestamp() + $3 * interval '1 ms', 1)
ON CONFLICT (key) DO UPDATE
SET owner = excluded.owner, until = clock_timestamp() + $3 * interval '1 ms', token = l.token + 1
WHERE l.until <= clock_timestamp()
RETURNING token`

	leaseHolder = `SELECT owner FROM lockcheck_leases WHERE key = $1 AND until > clock_timestamp()`

	leaseRenew = `UPDATE lockcheck_leases SET until = clock_timestamp() + $3 * interval '1 ms'
WHERE key = $1 AND owner = $2 AND until > clock_timestamp()`

	// leaseUpsert is the one statement with which Vault and OpenBao take and renew their lock for high
	// availability in PostgreSQL. It also takes back a lease that is over.
	leaseUpsert = `INSERT INTO lockcheck_leases AS l VALUES ($1, $2, clock_timestamp() + $3 * interval '1 ms', 1)
ON CONFLICT (key) DO UPDATE SET owner = excluded.owner, until = excluded.until
WHERE l.owner = excluded.owner OR l.until <= clock_timestamp()`

	leaseRelease = `UPDATE lockcheck_leases SET until = '-infinity'
WHERE key = $1 AND owner = $2 AND until > clock_timestamp()`
)

// pgTable is a table in which a row stands for a lock. No connection is needed while the lock is held.
type pgTable struct {
	pool   *pgxpool.Pool
	create string // table name and columns for CREATE TABLE
}

func openTable(c Config, create string) (pgTable, error) {
	pool, err := openPostgres(c, "")
	return pgTable{pool, create}, err
}

// with passes a connection to do, and creates the table if it does not exist.
func (t pgTable) with(ctx context.Context, do func(*pgConn) error) error {
	conn, err := takePostgres(ctx, t.pool)
	if err != nil {
		return err
	}
	defer conn.Release()
	return pgOutcome(conn.withTable(ctx, t.create, func() error { return do(conn) }))
}

func (t pgTable) Close() error {
	t.pool.Close()
	return nil
}

// change executes a statement that changes the row of a holder; ErrNotHeld if it changed none.
func (t pgTable) change(ctx context.Context, statement string, args ...any) error {
	rows := int64(0)
	err := t.with(ctx, func(conn *pgConn) error {
		done, err := conn.Exec(ctx, statement, args...)
		rows = done.RowsAffected()
		return err
	})
	if err == nil && rows == 0 {
		return ErrNotHeld
	}
	return err
}

// pgLease is a row with an owner, an expiry and a counter.
type pgLease struct {
	pgTable
	renewal string // the statement that renews
}

func openPostgresLease(c Config) (Lock, error)  { return openLease(c, leaseRenew) }
func openPostgresUpsert(c Config) (Lock, error) { return openLease(c, leaseUpsert) }

func openLease(c Config, renewal string) (Lock, error) {
	table, err := openTable(c, leaseTable)
	if err != nil {
		return nil, err
	}
	return &pgLease{table, renewal}, nil
}

func (l *pgLease) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	grant := Grant{Key: a.Key, ID: a.ID}
	var holder string
	err := l.with(ctx, func(conn *pgConn) (err error) {
		grant.Until = history.Now() + a.TTL.Nanoseconds()
		grant.Token, holder, err = conn.takeLease(ctx, a)
		return err
	})
	switch {
	case err != nil:
		return Grant{}, err
	case grant.Token == 0:
		return Grant{}, &BusyError{Holder: holder}
	}
	return grant, nil
}

// takeLease returns the token, or 0 and the current holder. The holder is read in a statement of its own. The
// statement that failed saw the table as it was at its start, and might name a holder that was already gone.
// The holder may be "" if the lease has ended since.
func (c *pgConn) takeLease(ctx context.Context, a Attempt) (token uint64, holder string, err error) {
	err = c.QueryRow(ctx, leaseTake, a.Key, a.ID, a.TTL.Milliseconds()).Scan(&token)
	if !errors.Is(err, pgx.ErrNoRows) {
		return token, "", err
	}
	if holder, err = c.leaseHolder(ctx, a.Key); err != nil {
		return 0, "", &NoEffectError{Err: err} // the lease was refused already
	}
	return 0, holder, nil
}

// leaseHolder returns the holder of the lease; "" for none.
func (c *pgConn) leaseHolder(ctx context.Context, key string) (holder string, err error) {
	err = c.QueryRow(ctx, leaseHolder, key).Scan(&holder)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return holder, err
}

// Holds implements Asker.
func (l *pgLease) Holds(ctx context.Context, g Grant) (bool, error) {
	var holder string
	err := l.with(ctx, func(conn *pgConn) (err error) {
		holder, err = conn.leaseHolder(ctx, g.Key)
		return err
	})
	return err == nil && holder == g.ID, err
}

func (l *pgLease) Renew(ctx context.Context, g Grant, ttl time.Duration) (int64, error) {
	start := history.Now()
	if err := l.change(ctx, l.renewal, g.Key, g.ID, ttl.Milliseconds()); err != nil {
		return 0, err
	}
	return start + ttl.Nanoseconds(), nil
}

func (l *pgLease) Release(ctx context.Context, g Grant) error {
	return l.change(ctx, leaseRelease, g.Key, g.ID)
}
