package clusters

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// pgBouncerServer is a pooler in transaction mode, which gives each transaction any free session of the server.
// That mode is chosen for many clients.
func pgBouncerServer() Server {
	return Server{
		Program: "pgbouncer", Port: pgBouncerPort, Probes: pgBouncerProbes{postgresProbes()}, Later: true,
		NoClock: errNoTime, NoWipe: errNothingOnDisk,
		Files:   func(p Place) map[string]string { return map[string]string{pgBouncerFile: pgBouncerSettings(p)} },
		Command: func(p Place) []string { return []string{"pgbouncer", p.Folder + "/" + pgBouncerFile} },
	}
}

const pgBouncerFile = "pgbouncer.ini"

// pgBouncerSettings are in a file because PgBouncer accepts them in no other way.
func pgBouncerSettings(p Place) string {
	return strings.Join([]string{
		"[databases]",
		fmt.Sprintf("postgres = host=%s port=%d user=postgres", p.IPs[0], postgresPort),
		"[pgbouncer]",
		"listen_addr = 0.0.0.0",
		fmt.Sprintf("listen_port = %d", pgBouncerPort),
		"unix_socket_dir =",
		"auth_type = any",
		"admin_users = postgres",
		"pool_mode = transaction",
		fmt.Sprintf("default_pool_size = %d", pgBouncerPool),
	}, "\n") + "\n"
}

// pgBouncerProbes asks the server behind PgBouncer whether a client is served, and PgBouncer's own console for
// the version.
type pgBouncerProbes struct{ sqlProbes }

const pgBouncerConsole = "pgbouncer"

// errNoTime is why a step of PgBouncer's clock cannot be proven: a query through it would ask the server behind
// it.
var errNoTime = errors.New("PgBouncer does not tell the time")

func (pgBouncerProbes) Clock(context.Context, string) (time.Time, error) {
	return time.Time{}, errNoTime
}

func (pgBouncerProbes) Version(ctx context.Context, address string) (version string, err error) {
	err = askDatabase(ctx, address, pgBouncerConsole, "SHOW VERSION", &version)
	return strings.TrimPrefix(version, "PgBouncer "), err
}
