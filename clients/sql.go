package clients

import (
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

// pgOptions are those of the locks that PostgreSQL ends with a connection.
func pgOptions() []Option {
	return []Option{sqlKeepAlives(), {
		Name: WatchConnection, Adds: "a read is pending on the connection that holds the lock: who holds it is notified when the connection is seen to close",
		changes: func(i *Info) {
			i.LossNotification = "when its connection is seen to close: at once if the server ends it; if it is cut off after 2.5 minutes, or after 3 s with keep-alives"
		},
	}}
}

const (
	// SQLClientSilence is how long a client with KeepAlives keeps a connection on which
	// nothing comes back. It is shorter than SQLServerSilence, so that a holder
	// who is cut off knows it before the server gives its lock to somebody else.
	SQLClientSilence = 3 * time.Second
	// SQLServerSilence is how long our servers keep the session of a client that is
	// not heard of, and with it the client's locks. By default that is more than two
	// hours.
	SQLServerSilence = 5 * time.Second

	// sqlProbe is the time between two keep-alives.
	sqlProbe = time.Second
)

// sqlDialer dials connections that end when the server is not heard of for
// SQLClientSilence. Without that a client that is cut off would not know for minutes:
// who holds a lock by a connection has nothing to send.
func sqlDialer() *net.Dialer {
	return &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: sqlProbe, Interval: sqlProbe, Count: int(SQLClientSilence/sqlProbe) - 1,
		},
		Control: limitSilence,
	}
}

// limitSilence bounds the time that data may stay unacknowledged; keep-alives
// are only sent when there are none.
func limitSilence(_, _ string, raw syscall.RawConn) error {
	var err error
	controlErr := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(SQLClientSilence.Milliseconds()))
	})
	if controlErr != nil {
		return controlErr
	}
	return err
}
