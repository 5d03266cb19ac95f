package clusters

import (
	"strconv"
	"time"

	"lockcheck/clients"
	"lockcheck/clusters/agent"
	"lockcheck/clusters/images"
)

const (
	postgresPort  = 5432
	pgBouncerPort = 6432
	// postgresData is where the image has an initialized database.
	postgresData = "/var/lib/postgresql/data"
	// pgBouncerPool is how many sessions of the server all clients share.
	pgBouncerPool = 2
	// sqlIdle is how long a client may be silent before the database checks that it is still there, each
	// sqlProbe.
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

// pgBouncerSpec is PostgreSQL behind PgBouncer. Clients know PgBouncer only.
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
		EndSignal: agent.Interrupt, // after SIGTERM it waits until all clients have left
		Data:      func(p Place) string { return p.database(postgresData) },
		Command: func(p Place) []string {
			return []string{
				"postgres", "-D", p.database(postgresData), "-c", "listen_addresses=*",
				// A client that is cut off keeps its locks until TCP gives up. A session that waits for a lock
				// reads nothing, so it has to check the connection itself.
				"-c", "tcp_keepalives_idle=" + seconds(sqlIdle), "-c", "tcp_keepalives_interval=" + seconds(sqlProbe),
				"-c", "tcp_user_timeout=" + milliseconds(clients.SQLServerSilence),
				"-c", "client_connection_check_interval=500ms",
			}
		},
	}
}

// officialData is where the recipes of official images have an initialized database.
const officialData = "/lockcheck-data"

// database returns the image's data folder, which is the given one unless the image is official.
func (p Place) database(folder string) string {
	if p.Version == images.Official {
		return officialData
	}
	return folder
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }
