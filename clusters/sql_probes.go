package clusters

import (
	"context"
	"time"
)

// sqlProbes asks a database, on a new connection each time.
type sqlProbes struct {
	ask func(ctx context.Context, address, question string, answer any) error
	// clock and version are queries. The clock must be read when it answers, not when the statement or its
	// transaction began.
	clock, version string
}

func postgresProbes() sqlProbes {
	return sqlProbes{ask: askPostgres, clock: "SELECT clock_timestamp()", version: "SHOW server_version"}
}

func mariaProbes() sqlProbes {
	return sqlProbes{ask: askMaria, clock: "SELECT SYSDATE(6)", version: "SELECT VERSION()"}
}

func (p sqlProbes) Ready(ctx context.Context, address string) error {
	var one int
	return p.ask(ctx, address, "SELECT 1", &one)
}

func (p sqlProbes) Clock(ctx context.Context, address string) (now time.Time, err error) {
	err = p.ask(ctx, address, p.clock, &now)
	return now, err
}

func (p sqlProbes) Version(ctx context.Context, address string) (version string, err error) {
	err = p.ask(ctx, address, p.version, &version)
	return version, err
}
