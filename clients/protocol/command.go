package protocol

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"lockcheck/clients/child"
)

// Command is the program of a client.
type Command struct {
	Args []string `json:"args"` // program and arguments
	// Folder in which it is started; "" for that of this process.
	Folder string `json:"folder,omitempty"`
	// Env is added to the environment of this process, as "NAME=value".
	Env []string `json:"env,omitempty"`
	// Log gets what the program writes on standard error, and the lines on standard output
	// that are none of the protocol; nil for nowhere.
	Log io.Writer `json:"-"`
}

// exitTime is how long a client may take to end after the end of its input.
const exitTime = time.Second

// errNoProgram is a Command without Args.
var errNoProgram = errors.New("no program is named")

// program is a running Command.
type program struct {
	*child.Process
	input  io.WriteCloser
	output io.ReadCloser
}

// start starts the program. It ends with this process at the latest, even if that is killed.
func (c Command) start() (*program, error) {
	if len(c.Args) == 0 {
		return nil, errNoProgram
	}
	command := exec.Command(c.Args[0], c.Args[1:]...)
	command.Dir, command.Env = c.Folder, append(os.Environ(), c.Env...)
	command.Stderr = c.Log
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, outputEnd, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	command.Stdout = outputEnd
	process, err := child.Start(command)
	_ = outputEnd.Close() // the child has its own
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the client cannot be started: %w", err), output.Close())
	}
	return &program{Process: process, input: input, output: output}, nil
}

// close ends the input, waits for the program to end, and kills it if it does not. late says
// that it had to.
func (p *program) close(ctx context.Context) (late bool, err error) {
	var once sync.Once
	kill := func() { once.Do(func() { late = true; _ = p.Handle.Kill() }) }
	_ = p.input.Close() // it may have closed its end already
	timer := time.NewTimer(exitTime)
	defer timer.Stop()
	select {
	case <-p.Ended:
	case <-ctx.Done():
		kill()
	case <-timer.C:
		kill()
	}
	<-p.Ended
	return late, p.output.Close()
}
