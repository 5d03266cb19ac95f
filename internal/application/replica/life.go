package replica

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lockcheck/clients/child"
	"lockcheck/history"
	"lockcheck/internal/processes"
)

const (
	// pollInterval is how long the program is waited for: brackets are about as wide.
	pollInterval = 5 * time.Millisecond
	// reapInterval is how often ended processes are collected that the program has left behind.
	reapInterval = time.Second
)

// life is one process of a program.
type life struct {
	*launcher
	process *child.Process
	pidfd   int   // -1 where the kernel has none
	alive   int64 // before an instant at which it ran
	streams []*stream

	told   int64 // when it was told to end; 0 before
	reaped time.Time
}

// live starts the program and waits for its end, and says whether it has failed. The error says why it could not be
// started.
func (l *launcher) live() (failed bool, err error) {
	p := &life{launcher: l, pidfd: -1, alive: history.Now(), reaped: time.Now()}
	if err := p.start(); err != nil {
		return false, err
	}
	defer p.close()
	l.say(history.Event{F: history.Started, From: p.alive})
	for !p.hasEnded() {
		p.read()
		p.write()
		p.control()
		p.reap()
		p.wait()
	}
	p.read() // what it has left behind may take long to end
	err = processes.EndDescendants()
	<-p.process.Ended
	for p.read() {
	}
	if p.process.Status() >= 0 { // else a signal may have cut it in two
		for _, s := range p.streams {
			p.look(s.last())
		}
	}
	if p.told == 0 {
		e := history.Event{F: history.Ended, From: p.alive, Note: p.process.Exit()}
		if p.process.Status() != 0 && p.lastWords != "" {
			e.Note += ": " + p.lastWords
		}
		if err != nil {
			e.Error = err.Error()
		}
		l.say(e)
	}
	l.write()
	return p.process.Status() != 0, nil
}

// start starts the program with pipes as its outputs.
func (p *life) start() error {
	command := exec.Command(p.config.Command[0], p.config.Command[1:]...)
	command.Dir, command.Env = p.config.Folder, p.config.environment(os.Environ())
	command.SysProcAttr = &syscall.SysProcAttr{PidFD: &p.pidfd}
	if command.Dir != "" {
		if _, err := os.Stat(command.Dir); err != nil {
			return err // that of the start would say that there is no such program
		}
	}
	output, err := p.pipe()
	if err != nil {
		return err
	}
	errorOutput, err := p.pipe()
	if err == nil {
		command.Stdout, command.Stderr = output, errorOutput
		p.process, err = child.Start(command)
		err = errors.Join(err, errorOutput.Close())
	}
	// The program has its own ends; with ours open, the pipes would never end.
	if err = errors.Join(err, output.Close()); err != nil {
		p.close()
	}
	return err
}

// pipe adds a stream, and returns the end that is the program's.
func (p *life) pipe() (*os.File, error) {
	s, end, err := newStream()
	if err == nil {
		p.streams = append(p.streams, s)
	}
	return end, err
}

func (p *life) close() {
	for _, s := range p.streams {
		_ = s.file.Close() // nothing was written
	}
	if p.pidfd >= 0 {
		_ = unix.Close(p.pidfd)
	}
}

// hasEnded says whether the program has ended.
func (p *life) hasEnded() bool {
	if p.pidfd < 0 {
		return p.process.HasEnded()
	}
	asked := history.Now()
	switch n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.pidfd), Events: unix.POLLIN}}, 0); {
	case errors.Is(err, unix.EINTR):
		return false
	case err != nil || n > 0:
		return true
	}
	p.alive = asked
	return false
}

// read reads what the program has written, and says whether there was anything.
func (p *life) read() (any bool) {
	for _, s := range p.streams {
		output, lines := s.read()
		if len(output) == 0 {
			continue
		}
		any = true
		if _, err := p.raw.Write(output); err != nil {
			p.gone = true
		}
		p.look(lines)
	}
	return any
}

// control hands on signals, and ends the program once it is to end.
func (p *life) control() {
	select {
	case s := <-p.signals:
		_ = p.process.Handle.Signal(s) // it may have ended, which is seen anyhow
	default:
	}
	switch now := history.Now(); {
	case p.told == 0 && p.stops():
		p.told = now
		_ = p.process.Handle.Signal(syscall.SIGTERM)
	case p.told != 0 && now-p.told > patience.Nanoseconds():
		_ = p.process.Handle.Kill()
	}
}

// wait waits until there may be something to do.
func (p *life) wait() {
	var polled []unix.PollFd
	for _, s := range p.streams {
		if !s.closed {
			polled = append(polled, unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN})
		}
	}
	if p.pidfd >= 0 {
		polled = append(polled, unix.PollFd{Fd: int32(p.pidfd), Events: unix.POLLIN})
	}
	_, _ = unix.Poll(polled, int(pollInterval.Milliseconds())) // a signal ends it as well as its time
}

// reap collects ended processes whose parents have ended: this process is their parent then, and they count among what
// the container may have.
func (p *life) reap() {
	if time.Since(p.reaped) < reapInterval {
		return
	}
	p.reaped = time.Now()
	pids, err := processes.All()
	if err != nil {
		return // it is tried again
	}
	own := strconv.Itoa(os.Getpid())
	for _, pid := range pids {
		fields, err := processes.Stat(pid)
		if err == nil && fields[processes.Parent] == own && fields[processes.State] == "Z" && pid != p.process.Handle.Pid {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}
