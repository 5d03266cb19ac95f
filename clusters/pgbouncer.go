package clusters

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// pgBouncerServer is a pooler that gives each transaction whichever session of
// the server is free, the mode that is chosen for many clients.
func pgBouncerServer() Server {
	return Server{
		Program: "pgbouncer", Port: pgBouncerPort, Probes: pgBouncerProbes{postgresProbes()}, Later: true,
		NoClock: errNoTime, NoWipe: errNothingOnDisk,
		Files:   func(p Place) map[string]string { return map[string]string{pgBouncerFile: pgBouncerSettings(p)} },
		Command: func(p Place) []string { return []string{"pgbouncer", p.Folder + "/" + pgBouncerFile} },
	}
}

const pgBouncerFile = "pgbouncer.ini"

// pgBouncerSettings are in a file because PgBouncer takes them from nowhere else.
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

// pgBouncerProbes asks PgBouncer: the server behind it whether a client is
// served, its own console for what is its own.
type pgBouncerProbes struct{ sqlProbes }

const pgBouncerConsole = "pgbouncer"

// errNoTime is why the clock of PgBouncer cannot be moved with proof: to ask
// through it would be to ask the server behind it.
var errNoTime = errors.New("PgBouncer does not tell the time")

func (pgBouncerProbes) Clock(context.Context, string) (time.Time, error) {
	return time.Time{}, errNoTime
}

func (pgBouncerProbes) Version(ctx context.Context, address string) (version string, err error) {
	err = askDatabase(ctx, address, pgBouncerConsole, "SHOW VERSION", &version)
	return strings.TrimPrefix(version, "PgBouncer "), err
}
