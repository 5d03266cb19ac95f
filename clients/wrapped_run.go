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

// wrappedRun is the command of one attempt.
type wrappedRun struct {
	command  *child.Process
	listener net.Listener
	output   *lastLine
	// settled is closed when the child has connected, or never will.
	settled chan struct{}
	conn    net.Conn // to the child, nil if there will be none; valid once settled is closed
	// lost is closed when the child was told to end by somebody else, or has ended (gone).
	lost chan struct{}
	gone bool // valid once lost is closed
}

// start starts the command of an attempt. It leads a process group, so that all of it can be
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

// accept waits for the child. A second one finds nobody.
func (r *wrappedRun) accept() {
	defer close(r.settled)
	conn, err := r.listener.Accept()
	_ = r.listener.Close() // which fails if refuse was first
	if err != nil {
		return
	}
	r.conn = conn
	go r.watch()
}

// watch waits for what the child has to say.
func (r *wrappedRun) watch() {
	defer close(r.lost)
	n, _ := r.conn.Read(make([]byte, len(holdLost)))
	r.gone = n == 0
}

func (r *wrappedRun) childHasEnded() bool {
	select {
	case <-r.lost:
		return r.gone
	default:
		return false
	}
}

// refuse lets no child begin any more, and says whether one has. It may be called again.
func (r *wrappedRun) refuse() (begun bool) {
	_ = r.listener.Close()
	<-r.settled
	return r.conn != nil
}

// end ends the command: by SIGTERM, which lets it clean up, and with all of its group if that
// takes too long. It may have left its group.
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

// release tells the child to end, and waits until it and the command have.
func (r *wrappedRun) release() {
	_, _ = io.WriteString(r.conn, holdRelease) // one that has ended needs no telling
	<-r.lost
	<-r.command.Ended
	r.hangUp()
}

// exit says how the command ended and what it said last.
func (r *wrappedRun) exit() string {
	if said := r.output.String(); said != "" {
		return r.command.Exit() + ": " + said
	}
	return r.command.Exit()
}

// lastLine is what a command has said last, on either of its outputs.
type lastLine struct {
	from, to *os.File
	mu       sync.Mutex
	text     string
	done     chan struct{}
}

// readLastLine is to be told of the start of the command. It is given a pipe of its own: one
// of the command would be waited for, and a child keeps it open.
func readLastLine(command *exec.Cmd) (*lastLine, error) {
	from, to, err := os.Pipe()
	command.Stdout, command.Stderr = to, to
	return &lastLine{from: from, to: to, done: make(chan struct{})}, err
}

func (l *lastLine) begun() {
	_ = l.to.Close() // the command has its own
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
	_, _ = io.Copy(io.Discard, all) // after a line that is too long
}

// String waits a moment for what is still to be read.
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
