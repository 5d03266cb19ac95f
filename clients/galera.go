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

// SQL of the locks on Galera. The tables exist before the servers start.
const (
	galeraRow     = "SELECT grants FROM lockcheck_rows WHERE name = ?"
	galeraNewRow  = "INSERT IGNORE INTO lockcheck_rows VALUES (?, 0)"
	galeraGrant   = "UPDATE lockcheck_rows SET grants = grants + 1 WHERE name = ?"
	galeraTake    = "INSERT INTO lockcheck_inserts VALUES (?, ?)"
	galeraRelease = "DELETE FROM lockcheck_inserts WHERE name = ? AND owner = ?"
)

// MariaDB error codes, from the list in its documentation.
const (
	mariaUnknownCommand = 1047 // also the answer of a server without a majority to every statement
	mariaDuplicate      = 1062
	mariaLockWait       = 1205
	mariaDeadlock       = 1213 // also if the cluster has refused or aborted a transaction
)

// serversOf returns the servers in the order in which a worker tries them. Each worker begins with a different
// server, like a balancer that assigns connections in turn.
func serversOf(c Config) []string {
	first := 0
	if !c.options.has(OneServer) {
		first = max(0, c.number()-1)
	}
	return rotated(c.Nodes, first)
}

// openGaleraForUpdate is SELECT … FOR UPDATE of a row that stands for the lock. The holder changes the row at
// the end: a transaction that only reads is not replicated to the other servers.
func openGaleraForUpdate(c Config) (Lock, error) {
	db, err := mariaPool(c)
	if err != nil {
		return nil, err
	}
	return &mariaLock{db: db, wait: lockRow, release: commitRow}, nil
}

// lockRow begins a transaction and locks the row of the key.
func lockRow(ctx context.Context, conn *sql.Conn, key string) error {
	err := makeRow(ctx, conn, key)
	if err == nil {
		_, err = conn.ExecContext(ctx, "BEGIN")
	}
	if err != nil {
		return &NoEffectError{Err: err} // the lock itself was not requested yet
	}
	// MariaDB accepts whole seconds.
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

// makeRow inserts the row of the key if it does not exist, because locking no row excludes no one. It reads
// first, because an INSERT would wait for a transaction that has locked the row.
func makeRow(ctx context.Context, conn *sql.Conn, key string) error {
	var grants int64
	err := conn.QueryRowContext(ctx, galeraRow, key).Scan(&grants)
	if errors.Is(err, sql.ErrNoRows) {
		_, err = conn.ExecContext(ctx, galeraNewRow, key)
	}
	return err
}

// commitRow changes the row and commits the transaction. If a transaction on another server has changed the
// row, this one was aborted before or is aborted now.
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

// rollBack rolls back a connection's transaction. If that fails, it closes the connection.
func rollBack(ctx context.Context, conn *sql.Conn) {
	if _, err := conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		discard(conn)
	}
}

// mariaCode returns the error number of a server's answer; 0 for any other error.
func mariaCode(err error) uint16 {
	var answer *mysql.MySQLError
	if errors.As(err, &answer) {
		return answer.Number
	}
	return 0
}

// galeraInsert is a row that exists while the lock is held.
type galeraInsert struct{ db *sql.DB }

func openGaleraInsert(c Config) (Lock, error) {
	db, err := mariaPool(c)
	if err != nil {
		return nil, err
	}
	return &galeraInsert{db: db}, nil
}

// Acquire implements Lock. If two rows are inserted on two servers at once, the cluster refuses the later one.
// The error does not name the holder, because a server may lag behind.
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

// change executes a statement on a connection of its own, on which database/sql retries nothing. ErrNotHeld
// means that the statement changed no row. An error at the commit leaves the outcome unknown: the change may
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
