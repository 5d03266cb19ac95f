package clients

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
)

// HoldVariable is the environment variable that passes the path of the worker's socket to Hold.
const HoldVariable = "LOCKCHECK_HOLD"

// Messages between a worker and its Hold. The connection itself tells the worker that Hold runs, and so that
// the command has the lock. Hold writes holdLost when a signal tells it to end. The worker writes holdRelease
// when it has done its work. Either process may end at any time, and the other one sees the end of the
// connection.
const (
	holdRelease = "r"
	holdLost    = "l"
)

// errAlone is the error of a Hold that did not get the worker's holdRelease.
var errAlone = errors.New("the worker does not wait for this child (any more)")

// Hold is the child that a command runs under a lock. While it runs, the worker that listens on the socket does
// its work. It returns nil when the work is done, and an error if the worker is gone or was never there. A
// signal does not end it: the worker decides how a program reacts to a request to end.
func Hold(socket string, signals <-chan os.Signal) error {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return fmt.Errorf("%w: %w", errAlone, err)
	}
	defer conn.Close()
	go func() {
		for range signals {
			_, _ = io.WriteString(conn, holdLost) // if the worker is gone, the read below fails
		}
	}()
	if _, err := io.ReadFull(conn, make([]byte, len(holdRelease))); err != nil {
		return fmt.Errorf("%w: %w", errAlone, err)
	}
	return nil
}
