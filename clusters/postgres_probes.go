//go:build !embedded

package clusters

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"lockcheck/clusters/agent"
)

// postgresProbes asks PostgreSQL.
type postgresProbes struct{}

var _ agent.Probes = postgresProbes{}

// askPostgres makes one connection for one question with one answer.
func askPostgres(ctx context.Context, address, database, question string, answer any) error {
	config, err := pgx.ParseConfig(fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable&client_encoding=UTF8", address, database))
	if err != nil {
		return err
	}
	// The console of PgBouncer knows nothing else.
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	return errors.Join(conn.QueryRow(ctx, question).Scan(answer), conn.Close(ctx))
}

func (postgresProbes) Ready(ctx context.Context, address string) error {
	var one int
	return askPostgres(ctx, address, "postgres", "SELECT 1", &one)
}

func (postgresProbes) Clock(ctx context.Context, address string) (now time.Time, err error) {
	err = askPostgres(ctx, address, "postgres", "SELECT clock_timestamp()", &now)
	return now, err
}

func (postgresProbes) Version(ctx context.Context, address string) (version string, err error) {
	err = askPostgres(ctx, address, "postgres", "SHOW server_version", &version)
	return version, err
}
