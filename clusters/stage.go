package clusters

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"sync/atomic"

	"lockcheck/clusters/engine"
)

// StageCommand is the hidden command of the process that ServeStage is.
const StageCommand = "stage"

// order is a line on the input of a stage: one of its fields.
type order struct {
	Args  []string `json:"args,omitempty"`  // starts a program
	Input string   `json:"input,omitempty"` // goes to its input
	End   bool     `json:"end,omitempty"`   // ends its input
}

// ending is what a stage writes after the output of a program, behind a mark.
type ending struct {
	Clean  bool   `json:"clean"`
	Reason string `json:"reason"`
}

// endMark is a byte that no program of ours writes. Between it and the end of its line is the
// ending of a program; nothing on the error output.
const endMark = 0

// ServeStage runs programs one after another, each with the binary and its own arguments, until
// the input ends. They write to the outputs themselves.
func ServeStage(binary string, input io.Reader, output, errorOutput io.Writer) error {
	orders := json.NewDecoder(input)
	var program *exec.Cmd
	var programInput io.WriteCloser
	ended := make(chan error, 1)
	for {
		var o order
		if err := orders.Decode(&o); err != nil {
			if program != nil { // whoever gave the orders is gone
				_ = programInput.Close()
				<-ended
			}
			return ignoreEOF(err)
		}
		switch {
		case o.Args != nil:
			if program != nil {
				<-ended // it has: nobody starts two at once
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
			go func() { ended <- writeEnding(program, output, errorOutput) }()
		case program == nil:
			return fmt.Errorf("stage: no program for %+v", o)
		case o.End:
			_ = programInput.Close()
		default:
			_, _ = io.WriteString(programInput, o.Input) // one that has ended is told of anyhow
		}
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// writeEnding waits for the end of a program and marks it in its outputs.
func writeEnding(program *exec.Cmd, output, errorOutput io.Writer) error {
	e := ending{Clean: true, Reason: "exit status 0"}
	if err := program.Wait(); err != nil {
		e = ending{Reason: err.Error()}
	}
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = errorOutput.Write([]byte{endMark, '\n'})
	_, outputErr := fmt.Fprintf(output, "%c%s\n", endMark, text)
	return errors.Join(err, outputErr)
}

// stage is a container in which programs run one after another.
type stage struct {
	node    Node // what outlasts the programs: name, address, host
	program Program

	container           *engine.Container
	output, errorOutput *bufio.Reader
	busy                atomic.Bool // a program runs in it
	gone                atomic.Bool // its process has ended
}

// perform starts a program in the container of the one that had its name before, if there was one.
func (c *docker) perform(ctx context.Context, p Program) (*Node, error) {
	s, err := c.stageOf(ctx, p)
	if err != nil {
		return nil, err
	}
	return s.start(p.Args)
}

func (c *docker) stageOf(ctx context.Context, p Program) (*stage, error) {
	c.making.Lock()
	s := c.stages[p.Name]
	c.making.Unlock()
	switch {
	case s == nil:
		return c.newStage(ctx, p)
	case s.program.Networked != p.Networked || s.program.Binary != p.Binary || s.program.Image != p.Image:
		return nil, fmt.Errorf("%s was another kind of program before", p.Name)
	case s.busy.Load():
		return nil, fmt.Errorf("%s still runs", p.Name)
	case s.gone.Load():
		container, err := c.engine.Restart(ctx, c.serverName(p.Name), true)
		if err != nil {
			return nil, err
		}
		s.open(container)
	}
	return s, nil
}

func (c *docker) newStage(ctx context.Context, p Program) (*stage, error) {
	if p.Image != (ProgramImage{}) {
		return nil, errors.New("a program in an image of the user's own has a cluster of its own")
	}
	s := &stage{program: p}
	p.Args = []string{StageCommand}
	node, container, err := c.startProgram(ctx, p)
	if err != nil {
		return nil, err
	}
	s.node.Name, s.node.IP, s.node.Host, s.node.freezer = node.Name, node.IP, node.Host, node.freezer
	s.open(container)
	c.making.Lock()
	defer c.making.Unlock()
	if c.stages == nil {
		c.stages = make(map[string]*stage)
	}
	c.stages[p.Name] = s
	return s, nil
}

func (s *stage) open(container *engine.Container) {
	s.container = container
	s.output, s.errorOutput = bufio.NewReader(container.Output), bufio.NewReader(container.Errors)
	s.gone.Store(false)
}

// start starts a program, of which the node tells as of one with a container of its own.
func (s *stage) start(args []string) (*Node, error) {
	s.busy.Store(true)
	input := &stageInput{orders: json.NewEncoder(s.container.Input)}
	if err := input.order(order{Args: args}); err != nil {
		return nil, fmt.Errorf("%s: %w", s.node.Name, err)
	}
	output, outputEnd := io.Pipe()
	errorOutput, errorsEnd := io.Pipe()
	ended := make(chan struct{})
	exits := make(chan Exit, 1)
	node := &Node{
		Name: s.node.Name, IP: s.node.IP, Host: s.node.Host, freezer: s.node.freezer,
		Input: input, Output: output, Errors: follow(errorOutput), Exited: exits, ended: ended,
	}
	errorsRead := make(chan struct{})
	go func() {
		defer close(errorsRead)
		_, err := untilMark(s.errorOutput, errorsEnd)
		_ = errorsEnd.CloseWithError(ignoreEOF(err))
	}()
	go func() {
		text, err := untilMark(s.output, outputEnd)
		<-errorsRead // the next program reads on where both have stopped
		exit := s.exit(text, err)
		exit.Killed = node.killed.Load()
		s.busy.Store(false)
		close(ended)
		exits <- exit
		_ = outputEnd.CloseWithError(ignoreEOF(err))
	}()
	return node, nil
}

// exit is how a program has ended: with its container, or before that.
func (s *stage) exit(text []byte, err error) Exit {
	if err != nil {
		s.gone.Store(true)
		exit := <-s.container.Exited
		return Exit{Reason: exit.String()}
	}
	var e ending
	if err := json.Unmarshal(text, &e); err != nil {
		return Exit{Reason: fmt.Sprintf("it wrote what only its end may be: %.200q", text)}
	}
	return Exit{Clean: e.Clean, Reason: e.Reason}
}

// untilMark copies a stream up to the mark, and returns the rest of its line.
func untilMark(stream *bufio.Reader, to io.Writer) ([]byte, error) {
	for {
		if _, err := stream.Peek(1); err != nil {
			return nil, err
		}
		read, _ := stream.Peek(stream.Buffered())
		at := bytes.IndexByte(read, endMark)
		part := read
		if at >= 0 {
			part = read[:at]
		}
		if len(part) > 0 { // a pipe would wait with nothing, too, for somebody to take it
			if _, err := to.Write(part); err != nil {
				return nil, err
			}
		}
		if at >= 0 {
			_, _ = stream.Discard(at + 1)
			return stream.ReadBytes('\n')
		}
		_, _ = stream.Discard(len(read))
	}
}

// stageInput is the input of a program in a stage.
type stageInput struct {
	mu     sync.Mutex
	orders *json.Encoder
	closed bool
}

func (i *stageInput) order(o order) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return io.ErrClosedPipe
	}
	i.closed = o.End
	return i.orders.Encode(o)
}

func (i *stageInput) Write(p []byte) (int, error) { return len(p), i.order(order{Input: string(p)}) }

func (i *stageInput) Close() error { return i.order(order{End: true}) }
