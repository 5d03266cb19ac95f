package clients

import (
	"errors"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// KeepAlives is an option of the locks that last as long as a connection.
const KeepAlives = "keep-alives"

func sqlKeepAlives() Option {
	return Option{Name: KeepAlives, Adds: "a connection on which nothing comes back is given up after 3 s, before the server ends its session"}
}

// asyncCommit is the option of a client of PostgreSQL that does not wait for the disk.
const asyncCommit = "async-commit"

func leaseOptions() []Option {
	return []Option{{
		Name: asyncCommit, Adds: "synchronous_commit is off: the server answers before the commit is on its disk, which takes up to 0.6 s",
	}}
}

// pgOptions returns the options of the locks that PostgreSQL ends with a connection.
func pgOptions() []Option {
	return []Option{sqlKeepAlives(), {
		Name: WatchConnection, Adds: "a read is pending on the connection that holds the lock: who holds it is notified when the connection is seen to close",
		changes: func(i *Info) {
			i.LossNotification = "when its connection is seen to close: at once if the server ends it; if it is cut off after 2.5 minutes, or after 3 s with keep-alives"
		},
	}}
}

const (
	// SQLClientSilence is how long a client with KeepAlives keeps a connection on which nothing arrives. It is
	// shorter than SQLServerSilence, so a holder that is cut off knows it before the server grants its lock to
	// another client.
	SQLClientSilence = 3 * time.Second
	// SQLServerSilence is how long our servers keep the session of a silent client, and with it the client's
	// locks. The default of the servers is more than two hours.
	SQLServerSilence = 5 * time.Second

	// sqlProbe is the time between two keep-alives.
	sqlProbe = time.Second
)

// sqlDialer dials connections that fail if nothing arrives from the server for SQLClientSilence. Without that,
// a client that is cut off would not notice for minutes, because a holder of a connection's lock has nothing to
// send.
func sqlDialer() *net.Dialer {
	return &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: sqlProbe, Interval: sqlProbe, Count: int(SQLClientSilence/sqlProbe) - 1,
		},
		Control: limitSilence(SQLClientSilence),
	}
}

// limitSilence bounds how long data may stay unacknowledged. TCP sends keep-alives only if there are no such
// data.
func limitSilence(limit time.Duration) func(network, address string, raw syscall.RawConn) error {
	return func(_, _ string, raw syscall.RawConn) (err error) {
		controlErr := raw.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit.Milliseconds()))
		})
		return errors.Join(controlErr, err)
	}
}
