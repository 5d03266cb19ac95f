//go:build !embedded

package clients

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
)

// The statements of the locks on Galera, whose tables are there before the servers start.
const (
	galeraRow     = "SELECT grants FROM lockcheck_rows WHERE name = ?"
	galeraNewRow  = "INSERT IGNORE INTO lockcheck_rows VALUES (?, 0)"
	galeraGrant   = "UPDATE lockcheck_rows SET grants = grants + 1 WHERE name = ?"
	galeraTake    = "INSERT INTO lockcheck_inserts VALUES (?, ?)"
	galeraRelease = "DELETE FROM lockcheck_inserts WHERE name = ? AND owner = ?"
)

// Errors of MariaDB, from the list in its documentation.
const (
	mariaUnknownCommand = 1047 // also of a server without a majority, to whatever it is asked
	mariaDuplicate      = 1062
	mariaLockWait       = 1205
	mariaDeadlock       = 1213 // also where the cluster has refused or ended a transaction
)

// serversOf returns the servers in the order in which a worker tries them. Each begins with
// another one, as a balancer spreads connections that ask for them in turn.
func serversOf(c Config) []string {
	first := 0
	if !c.options.has(OneServer) {
		first = max(0, c.number()-1)
	}
	return rotated(c.Nodes, first)
}

// openGaleraForUpdate is SELECT … FOR UPDATE of a row that stands for the lock. The holder
// changes the row at the end: what only reads is no business of the other servers.
func openGaleraForUpdate(c Config) (Lock, error) {
	db, err := mariaPool(c)
	if err != nil {
		return nil, err
	}
	return &mariaLock{db: db, wait: lockRow, release: commitRow}, nil
}

// lockRow begins a transaction that has locked the row of the key.
func lockRow(ctx context.Context, conn *sql.Conn, key string) error {
	err := makeRow(ctx, conn, key)
	if err == nil {
		_, err = conn.ExecContext(ctx, "BEGIN")
	}
	if err != nil {
		return &NoEffectError{Err: err} // the lock itself was not asked for yet
	}
	// MariaDB takes full seconds.
	question := fmt.Sprintf("%s FOR UPDATE WAIT %d", galeraRow, mariaWait(ctx)/time.Second)
	var grants int64
	err = conn.QueryRowContext(ctx, question, key).Scan(&grants)
	switch {
	case err == nil:
		return nil
	case mariaCode(err) == mariaLockWait:
		err = &BusyError{}
	default:
		err = mariaOutcome(err)
	}
	rollBack(ctx, conn)
	return err
}

// makeRow makes the row of the key if it is not there: to lock none excludes nobody. It looks
// first, for an INSERT would wait for whoever has locked the row.
func makeRow(ctx context.Context, conn *sql.Conn, key string) error {
	var grants int64
	err := conn.QueryRowContext(ctx, galeraRow, key).Scan(&grants)
	if errors.Is(err, sql.ErrNoRows) {
		_, err = conn.ExecContext(ctx, galeraNewRow, key)
	}
	return err
}

// commitRow ends the transaction. If another one has changed the row on another server, this
// one was undone before, or is now.
func commitRow(ctx context.Context, conn *sql.Conn, key string) (bool, error) {
	_, err := conn.ExecContext(ctx, galeraGrant, key)
	if err == nil {
		_, err = conn.ExecContext(ctx, "COMMIT")
	}
	switch {
	case err == nil:
		return true, nil
	case mariaCode(err) == mariaDeadlock:
		err = nil
	}
	rollBack(ctx, conn)
	return false, err
}

// rollBack ends the transaction of a connection, or the connection if it cannot.
func rollBack(ctx context.Context, conn *sql.Conn) {
	if _, err := conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		discard(conn)
	}
}

// mariaCode returns the number of an error that the server answered with; 0 for another error.
func mariaCode(err error) uint16 {
	var answer *mysql.MySQLError
	if errors.As(err, &answer) {
		return answer.Number
	}
	return 0
}

// galeraInsert is a row that is there while somebody holds the lock.
type galeraInsert struct{ db *sql.DB }

func openGaleraInsert(c Config) (Lock, error) {
	db, err := mariaPool(c)
	if err != nil {
		return nil, err
	}
	return &galeraInsert{db: db}, nil
}

// Acquire implements Lock. Of two rows that are inserted on two servers at once the cluster
// refuses the later one. Nobody names the holder: a server may be behind.
func (l *galeraInsert) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	err := l.change(ctx, galeraTake, a.Key, a.ID)
	switch mariaCode(err) {
	case mariaDuplicate, mariaDeadlock:
		return Grant{}, &BusyError{}
	}
	if err != nil {
		return Grant{}, err
	}
	return Grant{Key: a.Key, ID: a.ID}, nil
}

// Release implements Lock.
func (l *galeraInsert) Release(ctx context.Context, g Grant) error {
	return l.change(ctx, galeraRelease, g.Key, g.ID)
}

// change makes a statement on a connection of its own, on which database/sql repeats nothing.
// ErrNotHeld means that it changed no row. After an error at its commit nobody knows: it may
// have reached a majority that its server had just lost.
func (l *galeraInsert) change(ctx context.Context, statement string, args ...any) error {
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return &NoEffectError{Err: err}
	}
	defer conn.Close()
	done, err := conn.ExecContext(ctx, statement, args...)
	switch {
	case mariaCode(err) == mariaUnknownCommand:
		return &NoEffectError{Err: err}
	case err != nil:
		return err
	}
	changed, err := done.RowsAffected()
	if err == nil && changed == 0 {
		err = ErrNotHeld
	}
	return err
}

// Close implements Lock.
func (l *galeraInsert) Close() error { return l.db.Close() }
