package clusters

import (
	"strconv"
	"time"

	"lockcheck/clients"
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
		Program: "postgres", Port: postgresPort, Probes: postgresProbes(), NoWipe: errOtherDatabase,
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
