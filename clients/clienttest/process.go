package clienttest

import (
	"context"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"lockcheck/clients/unixrpc"
	"lockcheck/history"
)

// host is the environment of a client: a process, or a goroutine of a test.
type host interface {
	stdin() io.ReadCloser
	stdout() io.WriteCloser
	stderr() io.Writer
	// now returns the time, in ns, on the clock that the client shares with its parent.
	now() int64
	sleep(time.Duration)
	connect(socket string) service
	// ignoreSignals ignores the signals that ask the client to end.
	ignoreSignals()
	// leave starts a process that inherits all open files of the client and outlives it.
	leave()

	// These end or stop the client, and do not return.
	exit(status int)
	kill() // by SIGKILL
	stop() // by SIGSTOP
}

// service is the lock service. Its methods are acquire, renew, release and holder.
type service interface {
	ask(method, key, id string, ttl time.Duration) (reply, error)
}

// process is a client that is an own process.
type process struct{}

func (process) stdin() io.ReadCloser   { return os.Stdin }
func (process) stdout() io.WriteCloser { return os.Stdout }
func (process) stderr() io.Writer      { return os.Stderr }
func (process) now() int64             { return history.Now() }
func (process) sleep(d time.Duration)  { time.Sleep(d) }
func (process) ignoreSignals()         { signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT) }
func (process) exit(status int)        { os.Exit(status) }
func (process) kill()                  { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }
func (process) stop()                  { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }

// leave starts a process that ends by itself if nothing else ends it.
func (process) leave() {
	command := exec.Command("sleep", "300")
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		panic(err)
	}
}

func (process) connect(socket string) service { return remote{unixrpc.NewClient(socket)} }

// remote is the embedded lock service (docs/protocol.md).
type remote struct{ client *unixrpc.Client }

func (r remote) ask(method, key, id string, ttl time.Duration) (reply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var answer reply
	err := r.client.Call(ctx, method, map[string]any{"key": key, "id": id, "ttl_ns": ttl.Nanoseconds()}, &answer)
	return answer, err
}
