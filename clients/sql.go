package clients

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	sqlDialTimeout = time.Second
	// sqlSilence is how long the client of a database keeps a connection on which
	// nothing comes back. It is shorter than that of the servers (see
	// clusters.SQLSilence), so that a holder who is cut off knows it before the
	// server gives its lock to somebody else.
	sqlSilence = 3 * time.Second
)

// sqlDialer dials connections that end when the server is not heard of for
// sqlSilence. Without that a client that is cut off would not know for minutes:
// who holds a lock by a connection has nothing to send.
func sqlDialer() *net.Dialer {
	return &net.Dialer{
		Timeout:         sqlDialTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 2},
		Control:         limitSilence,
	}
}

// limitSilence bounds the time that data may stay unacknowledged; keep-alives
// are only sent when there are none.
func limitSilence(_, _ string, raw syscall.RawConn) error {
	var err error
	controlErr := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(sqlSilence.Milliseconds()))
	})
	if controlErr != nil {
		return controlErr
	}
	return err
}
