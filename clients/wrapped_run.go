package clients

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"lockcheck/clients/child"
)

// wrappedRun is the running command of one attempt.
type wrappedRun struct {
	command  *child.Process
	listener net.Listener
	output   *lastLine
	// settled is closed when the child has connected, or when it cannot connect any more.
	settled chan struct{}
	conn    net.Conn // to the child; nil if the child cannot connect any more; valid once settled is closed
	// lost is closed when somebody other than the worker told the child to end, or when the child has ended
	// (childEnded).
	lost       chan struct{}
	childEnded bool // valid once lost is closed
}

// start starts the command of an attempt as the leader of a process group, so that the whole group can be
// killed.
func (w *wrapped) start(a Attempt) (*wrappedRun, error) {
	socket := filepath.Join(w.config.Folder, "hold-"+a.ID)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	fill := w.placeholders(a)
	args := w.withChild(fill)
	command := exec.Command(args[0], args[1:]...)
	command.Dir, command.Env = w.Program.Folder, append(w.Program.Inherited(), fillAll(fill, w.Program.Env)...)
	command.Env = append(command.Env, HoldVariable+"="+socket)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	run := &wrappedRun{listener: listener, settled: make(chan struct{}), lost: make(chan struct{})}
	if run.output, err = readLastLine(command); err == nil {
		run.command, err = child.Start(command)
		run.output.begun()
	}
	if err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("the command cannot be started: %w", err)
	}
	go run.accept()
	return run, nil
}

// accept waits for the child to connect. A second child cannot connect.
func (r *wrappedRun) accept() {
	defer close(r.settled)
	conn, err := r.listener.Accept()
	_ = r.listener.Close() // fails if refuse has closed it already
	if err != nil {
		return
	}
	r.conn = conn
	go r.watch()
}

// watch waits for the child's message or its end.
func (r *wrappedRun) watch() {
	defer close(r.lost)
	n, _ := r.conn.Read(make([]byte, len(holdLost)))
	r.childEnded = n == 0
}

func (r *wrappedRun) childHasEnded() bool {
	select {
	case <-r.lost:
		return r.childEnded
	default:
		return false
	}
}

// refuse makes sure that no child can connect any more, and reports whether one has. It may be called
// repeatedly.
func (r *wrappedRun) refuse() (begun bool) {
	_ = r.listener.Close()
	<-r.settled
	return r.conn != nil
}

// end ends the command with SIGTERM, which lets it clean up. If that takes too long, it kills the command and
// its group. It kills both because the command may have left its group.
func (r *wrappedRun) end() {
	defer r.hangUp()
	if r.command.HasEnded() {
		return
	}
	_ = r.command.Handle.Signal(syscall.SIGTERM) // it may have ended by now
	patience := time.NewTimer(withdrawal)
	defer patience.Stop()
	select {
	case <-r.command.Ended:
	case <-patience.C:
		_ = syscall.Kill(-r.command.Handle.Pid, syscall.SIGKILL)
		_ = r.command.Handle.Kill()
		<-r.command.Ended
	}
}

// hangUp ends a child that outlives its command.
func (r *wrappedRun) hangUp() {
	if r.conn != nil {
		_ = r.conn.Close()
	}
}

// release tells the child to end, and waits for the end of the child and of the command.
func (r *wrappedRun) release() {
	_, _ = io.WriteString(r.conn, holdRelease) // a failed write means that the child has ended
	<-r.lost
	<-r.command.Ended
	r.hangUp()
}

// exit describes how the command ended, with its last line of output.
func (r *wrappedRun) exit() string {
	if said := r.output.String(); said != "" {
		return r.command.Exit() + ": " + said
	}
	return r.command.Exit()
}

// lastLine keeps the last line that a command has written to its standard output or error.
type lastLine struct {
	from, to *os.File
	mu       sync.Mutex
	text     string
	done     chan struct{}
}

// readLastLine connects the command's outputs to a pipe. The caller calls begun after the start. The pipe is an
// *os.File of our own: with a pipe made by exec.Cmd, Wait would wait for its end, and a child keeps it open.
func readLastLine(command *exec.Cmd) (*lastLine, error) {
	from, to, err := os.Pipe()
	command.Stdout, command.Stderr = to, to
	return &lastLine{from: from, to: to, done: make(chan struct{})}, err
}

func (l *lastLine) begun() {
	_ = l.to.Close() // the command has a copy
	go l.read()
}

func (l *lastLine) read() {
	defer l.from.Close()
	defer close(l.done)
	all := io.TeeReader(l.from, os.Stderr)
	for lines := bufio.NewScanner(all); lines.Scan(); {
		if text := lines.Text(); text != "" {
			l.mu.Lock()
			l.text = text
			l.mu.Unlock()
		}
	}
	_, _ = io.Copy(io.Discard, all) // after a line that is too long for the scanner
}

// String waits for the end of the output, for at most the duration withdrawal.
func (l *lastLine) String() string {
	patience := time.NewTimer(withdrawal)
	defer patience.Stop()
	select {
	case <-l.done:
	case <-patience.C:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text
}
