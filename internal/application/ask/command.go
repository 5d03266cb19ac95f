package ask

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lockcheck/clients/child"
	"lockcheck/history"
	"lockcheck/internal/processes"
)

// endLimit is how long a command may take to end that was killed, and how long the rest of its output may take once
// it has ended.
const endLimit = time.Second

var errLeftBehind = errors.New("the command has ended, and something that it left behind keeps its output open")

// command asks by a shell command. Exit status 0 means that the invariant holds, 1 that it does not; the lines of
// its output are the rows.
type command struct {
	question Question
	mark     processes.Mark // of everything that it starts
}

func openCommand(q Question) *command {
	return &command{question: q, mark: processes.Mark(fmt.Sprintf("LOCKCHECK_ASKED=%d-%d", os.Getpid(), history.Now()))}
}

func (c *command) ready(context.Context) error { return nil }

func (c *command) settle(context.Context, bool) {} // nothing outlasts ask

func (c *command) cut() {}

func (c *command) ask(ctx context.Context, a *answer) error {
	run, err := c.start(a)
	if err != nil {
		return err
	}
	err = run.await(ctx)
	var others map[int]bool
	if err != nil {
		// A tool such as timeout(1) leads a process group of its own.
		others, _ = c.mark.Kill()
	}
	run.close(others)
	if err != nil {
		return err
	}
	return conclude(a, run.process, run.complaint)
}

// conclude decides by the exit status.
//
// Status 1 with a message on the error output and no row is unknown: interpreters end so after an exception, for
// example when their check could not reach a database.
func conclude(a *answer, process *child.Process, complaint string) error {
	failed := errors.New(strings.TrimSuffix(process.Exit()+": "+complaint, ": "))
	switch status := process.Status(); {
	case status != 0 && status != 1:
		return failed
	case status == 1 && !firstRowDecides(a.kind):
		return failed
	case status == 1 && a.Count == 0 && complaint != "":
		return failed
	default:
		a.byStatus, a.fails = true, status == 1
		return nil
	}
}

// running is a command that was started.
type running struct {
	process            *child.Process
	output, complaints *os.File
	// failed delivers why the output cannot be read; read is closed when both outputs have ended.
	failed    chan error
	read      chan struct{}
	complaint string // the last line of the error output; valid once read is closed
}

// start starts the command as the leader of a process group.
func (c *command) start(a *answer) (*running, error) {
	r := &running{failed: make(chan error, 1), read: make(chan struct{})}
	shell := exec.Command("/bin/sh", "-c", c.question.Text)
	shell.Dir = c.question.Folder
	shell.Env = append(append(os.Environ(), c.question.Env...), string(c.mark))
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	output, toOutput, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer toOutput.Close()
	r.output = output
	complaints, toErrors, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, output.Close())
	}
	defer toErrors.Close()
	r.complaints = complaints
	shell.Stdout, shell.Stderr = toOutput, toErrors
	if r.process, err = child.Start(shell); err != nil {
		return nil, errors.Join(err, output.Close(), complaints.Close())
	}
	go r.readAll(a)
	return r, nil
}

// readAll reads both outputs at a time: a command that waits for the reader of one does not end.
func (r *running) readAll(a *answer) {
	defer close(r.read)
	complaint := make(chan string)
	go func() { complaint <- lastLine(r.complaints) }()
	if err := a.readLines(r.output); err != nil {
		r.failed <- err
	}
	r.complaint = <-complaint
}

// lastLine is the last line of a text that is not blank.
func lastLine(from io.ReadCloser) (last string) {
	defer from.Close() // a flood ends here
	lines := bufio.NewScanner(io.LimitReader(from, maxSize))
	lines.Buffer(nil, maxSize+1)
	for lines.Scan() {
		if text := strings.TrimSpace(lines.Text()); text != "" {
			last = shortened(text)
		}
	}
	return last
}

// await waits until the command has ended and all that it wrote is read. What it left behind in its process group is
// killed, for it may keep the output open.
func (r *running) await(ctx context.Context) error {
	select {
	case <-r.process.Ended:
	case err := <-r.failed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
	r.killGroup()
	rest := time.NewTimer(endLimit)
	defer rest.Stop()
	select {
	case <-r.read:
	case <-rest.C:
		return errLeftBehind
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-r.failed:
		return err
	default:
		return nil
	}
}

func (r *running) killGroup() { _ = syscall.Kill(-r.process.Handle.Pid, syscall.SIGKILL) }

// close ends the command, what is left of its process group, and whoever writes the answer. Others are processes that
// were killed outside the group.
func (r *running) close(others map[int]bool) {
	r.killGroup()
	_ = r.output.Close()
	_ = r.complaints.Close()
	<-r.read
	go r.reap(others)
	select {
	case <-r.process.Ended:
	case <-time.After(endLimit): // the kernel keeps it, and the next asking does not depend on it
	}
}

// reap waits for what was killed. It became a child of this process when its parents ended, and would stay as a
// zombie: four a second for a command that forks.
func (r *running) reap(others map[int]bool) {
	<-r.process.Ended // that one has somebody who waits for it
	leader := r.process.Handle.Pid
	delete(others, leader)
	for reaped := true; reaped; { // the end of one can make another one a child of this process
		reaped = false
		for pid := range others {
			reaped = waited(pid) || reaped
		}
		reaped = waited(-leader) || reaped
	}
}

// waited waits for the end of a child, or of one of a process group, and says whether there was one.
func waited(pid int) bool {
	for {
		ended, err := unix.Wait4(pid, nil, 0, nil)
		if err != unix.EINTR {
			return err == nil && ended > 0
		}
	}
}
