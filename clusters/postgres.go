package clusters

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"lockcheck/clients"
	"lockcheck/clusters/agent"
	"lockcheck/clusters/images"
)

const (
	postgresPort  = 5432
	pgBouncerPort = 6432
	// postgresData is where the image has a cluster that is ready to start.
	postgresData = "/var/lib/postgresql/data"
	// pgBouncerPool is how many sessions of the server all clients share.
	pgBouncerPool = 2
	// sqlIdle is the time without a word after which a database asks, each sqlProbe,
	// whether the client is still there.
	sqlIdle  = 2 * time.Second
	sqlProbe = time.Second
)

// postgresSpec is one PostgreSQL with its default durability.
func postgresSpec() Spec {
	return Spec{
		Name: "postgres", Nodes: 1, Image: "postgres", Official: true,
		Server: func(int) Server { return postgresServer() },
	}
}

// pgBouncerSpec is PostgreSQL behind PgBouncer, which clients reach it through.
func pgBouncerSpec() Spec {
	return Spec{
		Name: "postgres-pgbouncer", Nodes: 2, Image: "postgres",
		Server: func(n int) Server {
			if n == 1 {
				return pgBouncerServer()
			}
			server := postgresServer()
			server.Hidden = true
			return server
		},
	}
}

func postgresServer() Server {
	return Server{
		Program: "postgres", Port: postgresPort, Probes: postgresProbes{}, NoWipe: errOtherDatabase,
		Command: func(p Place) []string {
			return []string{
				"postgres", "-D", p.database(postgresData), "-c", "listen_addresses=*",
				// A client that is cut off keeps its locks until TCP gives it up. A
				// session that waits for a lock reads nothing, and has to look.
				"-c", "tcp_keepalives_idle=" + seconds(sqlIdle), "-c", "tcp_keepalives_interval=" + seconds(sqlProbe),
				"-c", "tcp_user_timeout=" + milliseconds(clients.SQLServerSilence),
				"-c", "client_connection_check_interval=500ms",
			}
		},
	}
}

// officialData is where the recipes of official images have a database that is ready to start.
const officialData = "/lockcheck-data"

// database is where the image has a database, which is the folder unless the image is official.
func (p Place) database(folder string) string {
	if p.Version == images.Official {
		return officialData
	}
	return folder
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

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
