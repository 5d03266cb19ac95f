//go:build !embedded

package clients

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"
)

// The data are stored next to the lock, with a record of each access. A single statement accesses the data and
// writes the record, so it does both or neither. If the lock is held by a transaction, that transaction commits
// or aborts both.
//
// A write waits for the end of any transaction that has written the same key. So versions are in the order in
// which writes took effect, whatever the lock did.
const (
	pgDataTables = `CREATE TABLE IF NOT EXISTS lockcheck_data (key text PRIMARY KEY, version bigint NOT NULL, value text NOT NULL);
CREATE TABLE IF NOT EXISTS lockcheck_accesses (number bigserial PRIMARY KEY, write boolean NOT NULL, key text NOT NULL,
client text NOT NULL, op bigint NOT NULL, holder text NOT NULL, element bigint NOT NULL, base bigint NOT NULL,
version bigint NOT NULL, at bigint NOT NULL)`

	pgDataRead = `WITH data AS (SELECT version, value FROM lockcheck_data WHERE key = $1),
record AS (INSERT INTO lockcheck_accesses (write, key, client, op, holder, element, base, at, version)
	SELECT false, $1, $2, $3, $4, $5, $6, $7, coalesce((SELECT version FROM data), 0))
SELECT version, value FROM data`

	pgDataWrite = `WITH data AS (INSERT INTO lockcheck_data AS d VALUES ($1, 1, $8)
	ON CONFLICT (key) DO UPDATE SET version = d.version + 1, value = excluded.value RETURNING version, value),
record AS (INSERT INTO lockcheck_accesses (write, key, client, op, holder, element, base, at, version)
	SELECT true, $1, $2, $3, $4, $5, $6, $7, version FROM data)
SELECT version, value FROM data`

	// Waits for every transaction that has made an access and is not finished.
	pgDataSettle = `LOCK TABLE lockcheck_accesses IN SHARE MODE`

	pgDataAccesses = `SELECT write, key, client, op, holder, element, base, version, at FROM lockcheck_accesses
ORDER BY key, version, write DESC, number`

	pgDataFinal = `SELECT key, version, value FROM lockcheck_data ORDER BY key`
)

// PrepareData implements DataStore.
func (l *pgLock) PrepareData(ctx context.Context) error {
	conn, err := takePostgres(ctx, l.pool)
	if err != nil {
		return err
	}
	defer conn.Release()
	_, err = conn.Conn.Conn().PgConn().Exec(ctx, pgDataTables).ReadAll()
	return err
}

// Access implements DataStore.
func (l *pgLock) Access(ctx context.Context, g Grant, a DataAccess, value json.RawMessage) (Data, error) {
	conn, known := l.holds.get(g.ID)
	if !known || conn == nil {
		return Data{}, &NoEffectError{Err: errConnectionLost}
	}
	data, err := conn.access(ctx, g, a, value)
	if err == nil {
		l.rest(conn)
		return data, nil
	}
	l.holds.put(g.ID, nil)
	conn.closeForGood()
	if l.transaction { // the dropped transaction will never be committed
		err = &NoEffectError{Err: err}
	}
	return Data{}, err
}

func (c *pgConn) access(ctx context.Context, g Grant, a DataAccess, value json.RawMessage) (data Data, err error) {
	if !c.stopWatching() {
		return Data{}, &NoEffectError{Err: errConnectionLost}
	}
	statement, args := pgDataRead, []any{g.Key, a.Client, a.Op, g.ID, a.Element, a.Base, a.At}
	if a.Write {
		statement, args = pgDataWrite, append(args, string(value))
	}
	err = c.QueryRow(ctx, statement, args...).Scan(&data.Version, &data.Value)
	if errors.Is(err, pgx.ErrNoRows) && !a.Write {
		return Data{}, nil // the key was never written
	}
	return data, pgOutcome(err)
}

// Committed implements DataStore.
func (l *pgLock) Committed(ctx context.Context) (accesses []DataAccess, final map[string]Data, err error) {
	conn, err := takePostgres(ctx, l.pool)
	if err != nil {
		return nil, nil, err
	}
	defer conn.Release() // the pool closes a connection with an open transaction
	for _, statement := range []string{"BEGIN", pgDataSettle} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return nil, nil, err
		}
	}
	if accesses, err = conn.accesses(ctx); err != nil {
		return nil, nil, err
	}
	final, err = conn.finalData(ctx)
	return accesses, final, err
}

func (c *pgConn) accesses(ctx context.Context) ([]DataAccess, error) {
	rows, err := c.Query(ctx, pgDataAccesses)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (a DataAccess, err error) {
		err = row.Scan(&a.Write, &a.Key, &a.Client, &a.Op, &a.Grant, &a.Element, &a.Base, &a.Version, &a.At)
		return a, err
	})
}

func (c *pgConn) finalData(ctx context.Context) (map[string]Data, error) {
	rows, err := c.Query(ctx, pgDataFinal)
	if err != nil {
		return nil, err
	}
	final := make(map[string]Data)
	var key string
	var data Data
	_, err = pgx.ForEachRow(rows, []any{&key, &data.Version, &data.Value}, func() error {
		final[key] = data
		return nil
	})
	return final, err
}
