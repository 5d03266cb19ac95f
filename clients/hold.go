package clients

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
)

// HoldVariable names the socket of the worker in the environment of Hold.
const HoldVariable = "LOCKCHECK_HOLD"

// What is said between a worker and its Hold. That it has connected says that it runs, and so
// that the command has the lock. It writes one byte when it is told to end by a signal. The
// worker writes holdRelease when it has done its work. Either may end at any time, which the
// other sees as the end of the connection.
const (
	holdRelease = "r"
	holdLost    = "l"
)

// errAlone is the end of a Hold that nobody has told to end.
var errAlone = errors.New("the worker does not wait for this child (any more)")

// Hold is the child of a command that runs it under a lock: as long as it runs, the worker
// that listens on the socket does its work. It returns nil when the work is done, an error if
// there is no worker, or none any more. A signal does not end it: what a program does that is
// told to end is up to the worker.
func Hold(socket string, signals <-chan os.Signal) error {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return fmt.Errorf("%w: %w", errAlone, err)
	}
	defer conn.Close()
	go func() {
		for range signals {
			_, _ = io.WriteString(conn, holdLost) // a worker that is gone ends the loop below
		}
	}()
	if _, err := io.ReadFull(conn, make([]byte, len(holdRelease))); err != nil {
		return fmt.Errorf("%w: %w", errAlone, err)
	}
	return nil
}
