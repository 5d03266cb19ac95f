// Package stage runs programs one after another in one process, for containers that outlive a run.
package stage

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
)

// Command is the hidden command whose process runs Serve.
const Command = "stage"

// order is one line on the input of a stage. It starts a program, or is about the running one.
type order struct {
	Args  []string `json:"args,omitempty"`  // starts a program
	Mark  Mark     `json:"mark,omitempty"`  // ends that program's outputs
	Input string   `json:"input,omitempty"` // is written to its input
	End   bool     `json:"end,omitempty"`   // closes its input
}

// Ending says how a program ended.
type Ending struct {
	Clean  bool   `json:"clean"` // exit status 0
	Reason string `json:"reason"`
}

// Mark marks the end of a program's outputs. It begins with a byte that text does not contain, followed by a
// random text that no program can know. On standard output an Ending and a newline follow it.
type Mark string

func newMark() Mark { return "\x00" + Mark(rand.Text()) }

// Serve runs programs one after another, each as the binary with its own arguments, until the input ends. They
// write directly to the outputs.
func Serve(binary string, input io.Reader, output, errorOutput io.Writer) error {
	orders := json.NewDecoder(input)
	var program *exec.Cmd
	var programInput io.WriteCloser
	ended := make(chan error, 1)
	for {
		var o order
		if err := orders.Decode(&o); err != nil {
			if program != nil { // the harness is gone
				_ = programInput.Close()
				<-ended
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		switch {
		case o.Args != nil:
			if program != nil {
				<-ended // the program has ended, because two never run at once
			}
			program = exec.Command(binary, o.Args...)
			program.Stdout, program.Stderr = output, errorOutput
			var err error
			if programInput, err = program.StdinPipe(); err != nil {
				return err
			}
			if err := program.Start(); err != nil {
				return err
			}
			go func() { ended <- writeEnding(program, o.Mark, output, errorOutput) }()
		case program == nil:
			return fmt.Errorf("stage: no program for %+v", o)
		case o.End:
			_ = programInput.Close()
		default:
			_, _ = io.WriteString(programInput, o.Input) // an error means that the program has ended, which is reported anyway
		}
	}
}

// writeEnding waits for the end of a program and writes its mark to both outputs.
func writeEnding(program *exec.Cmd, mark Mark, output, errorOutput io.Writer) error {
	e := Ending{Clean: true, Reason: "exit status 0"}
	if err := program.Wait(); err != nil {
		e = Ending{Reason: err.Error()}
	}
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = io.WriteString(errorOutput, string(mark)+"\n")
	_, outputErr := fmt.Fprintf(output, "%s%s\n", mark, text)
	return errors.Join(err, outputErr)
}

// Input is the input of a program, passed on by the stage that runs it. Close ends it.
type Input struct {
	mu     sync.Mutex
	orders *json.Encoder
	closed bool
}

// Start orders a stage to start a program, through the input of the stage. The mark ends the program's outputs.
func Start(input io.Writer, args []string) (*Input, Mark, error) {
	i, mark := &Input{orders: json.NewEncoder(input)}, newMark()
	return i, mark, i.order(order{Args: args, Mark: mark})
}

func (i *Input) order(o order) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return io.ErrClosedPipe
	}
	i.closed = o.End
	return i.orders.Encode(o)
}

// Write implements io.Writer. Its error is io.ErrClosedPipe after Close.
func (i *Input) Write(p []byte) (int, error) { return len(p), i.order(order{Input: string(p)}) }

// Close implements io.Closer.
func (i *Input) Close() error { return i.order(order{End: true}) }

// Output copies a program's standard output from its stage's, and returns how the program ended. Its error is
// io.EOF if the stage ended before the program.
func Output(stream *bufio.Reader, mark Mark, to io.Writer) (Ending, error) {
	text, err := untilMark(stream, mark, to)
	if err != nil {
		return Ending{}, err
	}
	var e Ending
	if err := json.Unmarshal(text, &e); err != nil {
		return Ending{Reason: fmt.Sprintf("it wrote what only its end may be: %.200q", text)}, nil
	}
	return e, nil
}

// Errors copies a program's error output from its stage's, up to its end. Its error is io.EOF if the stage
// ended before the program.
func Errors(stream *bufio.Reader, mark Mark, to io.Writer) error {
	_, err := untilMark(stream, mark, to)
	return err
}

// untilMark copies a stream up to the mark, and returns the rest of its line.
func untilMark(stream *bufio.Reader, mark Mark, to io.Writer) ([]byte, error) {
	for {
		if _, err := stream.Peek(1); err != nil {
			return nil, err
		}
		part, _ := stream.Peek(stream.Buffered())
		switch at := bytes.IndexByte(part, mark[0]); {
		case at > 0:
			part = part[:at]
		case at == 0:
			// The mark follows everything that the program wrote, so this many bytes will always come.
			begin, _ := stream.Peek(len(mark))
			if string(begin) == string(mark) {
				_, _ = stream.Discard(len(mark))
				return stream.ReadBytes('\n')
			}
			part = begin[:1]
		}
		// An empty write to a pipe would also block until a reader takes it.
		if _, err := to.Write(part); err != nil {
			return nil, err
		}
		_, _ = stream.Discard(len(part))
	}
}
