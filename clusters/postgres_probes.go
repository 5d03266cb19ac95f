//go:build !embedded

package clusters

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// askPostgres asks PostgreSQL a question with a single value as its answer.
func askPostgres(ctx context.Context, address, question string, answer any) error {
	return askDatabase(ctx, address, "postgres", question, answer)
}

// askDatabase asks a database of a server, or the console of PgBouncer.
func askDatabase(ctx context.Context, address, database, question string, answer any) error {
	config, err := pgx.ParseConfig(fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable&client_encoding=UTF8", address, database))
	if err != nil {
		return err
	}
	// PgBouncer's console supports only the simple protocol.
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	return errors.Join(conn.QueryRow(ctx, question).Scan(answer), conn.Close(ctx))
}
