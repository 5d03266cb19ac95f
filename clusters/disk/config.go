package disk

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Command is the hidden command whose process runs Run.
const Command = "disk"

// Config says where a disk is.
type Config struct {
	// Folder is the server's data folder, over which the disk is mounted.
	Folder string
	// User is whom the server runs as, as in a Dockerfile's USER; "" for root.
	User string
	// Switch is where the disk takes orders.
	Switch Switch
}

// Launcher returns the beginning of a command line that runs a server on a disk. The server's own program and
// arguments follow.
func (c Config) Launcher(binary string) []string {
	return []string{binary, Command, "--folder", c.Folder, "--user", c.User, "--switch", string(c.Switch), "--"}
}

// Switch is the beginning of the paths of three files: a Unix socket at which the disk takes orders, its report of what
// it has lost, and its condition. They are not on the disk.
type Switch string

func (s Switch) socket() string    { return string(s) + ".sock" }
func (s Switch) report() string    { return string(s) + ".lost" }
func (s Switch) condition() string { return string(s) + ".condition" }

// An order to a disk is one line on a connection of its own. The disk answers with the same line.
const (
	orderOff   = "off"
	orderOn    = "on"
	orderSync  = "sync"
	orderFault = "fault " // the Fault follows as JSON
	orderCheck = "check"
)

// orderLimit bounds how long either side waits for the other. A probe of a slow disk takes some seconds.
const orderLimit = 10 * time.Second

// Off makes the disk lose what is not durable as soon as its server has ended.
func (s Switch) Off(ctx context.Context) error {
	if err := remove(s.report()); err != nil {
		return err
	}
	return s.order(ctx, orderOff)
}

// On takes Off back.
func (s Switch) On(ctx context.Context) error { return s.order(ctx, orderOn) }

// Sync makes everything durable that has been written so far.
func (s Switch) Sync(ctx context.Context) error { return s.order(ctx, orderSync) }

// Set puts a fault in force; the zero value ends the present one.
func (s Switch) Set(ctx context.Context, fault Fault) error {
	text, err := json.Marshal(fault)
	if err != nil {
		return err
	}
	return s.order(ctx, orderFault+string(text))
}

// Check probes the disk. If the disk has ended with its server, it returns what was known at that time.
func (s Switch) Check(ctx context.Context) (condition Condition, err error) {
	unanswered := s.order(ctx, orderCheck)
	if err := read(s.condition(), &condition); err != nil {
		return condition, errors.Join(unanswered, err)
	}
	if !condition.Ended {
		err = unanswered
	}
	return condition, err
}

func (s Switch) order(ctx context.Context, order string) error {
	ctx, cancel := context.WithTimeout(ctx, orderLimit)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", s.socket())
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, set := ctx.Deadline(); set {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintln(conn, order); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && answer != order+"\n" {
		err = fmt.Errorf("the disk answered %q to %q", answer, order)
	}
	return err
}

// serve lets do carry out the orders to the disk, until the listener is closed. An order that do does not know gets
// no answer.
func (s Switch) serve(listener net.Listener, do func(order string) (known bool)) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_ = conn.SetDeadline(time.Now().Add(orderLimit))
		if order, err := bufio.NewReader(conn).ReadString('\n'); err == nil && do(strings.TrimSuffix(order, "\n")) {
			_, _ = io.WriteString(conn, order) // a caller that is gone needs no answer
		}
		_ = conn.Close()
	}
}

// listen opens the socket.
func (s Switch) listen() (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(s.socket()), 0o755); err != nil {
		return nil, err
	}
	if err := errors.Join(remove(s.socket()), remove(s.condition())); err != nil { // left by the server's previous start
		return nil, err
	}
	return net.Listen("unix", s.socket())
}

// Report reads what was lost when the power was last off. The error is os.ErrNotExist until that is known.
func (s Switch) Report() (report Report, err error) {
	err = read(s.report(), &report)
	return report, err
}

func (s Switch) writeReport(report Report) error          { return write(s.report(), report) }
func (s Switch) writeCondition(condition Condition) error { return write(s.condition(), condition) }

func read(path string, value any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(content, value)
}

func write(path string, value any) error {
	content, err := json.Marshal(value)
	if err != nil {
		return err
	}
	next := path + ".next" // the file appears whole
	if err := os.WriteFile(next, content, 0o644); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// remove removes a file, if it exists.
func remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// ProcessName is the name of a disk's own process, as in /proc/PID/comm.
const ProcessName = "lockcheck-disk"

// nameProcess gives this process its name. The kernel uses the main thread's name as the process name.
func nameProcess() error {
	return os.WriteFile(fmt.Sprintf("/proc/self/task/%d/comm", unix.Getpid()), []byte(ProcessName), 0)
}

// IsProcess says whether a process is a disk's own. Pauses and kills of the server leave that process alone.
func IsProcess(pid int) bool {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return err == nil && strings.TrimSpace(string(name)) == ProcessName
}
