package clusters

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"lockcheck/clusters/engine"
	"lockcheck/clusters/stage"
)

// staged is a container in which programs run one after another.
type staged struct {
	node    Node // what outlasts the programs: name, address, host, freezer
	program Program

	container           *engine.Container
	output, errorOutput *bufio.Reader
	busy                atomic.Bool // a program runs in the container
	gone                atomic.Bool // the container's process has ended
}

// perform starts a program in the container of the previous program of its name, if there was one.
func (c *docker) perform(ctx context.Context, p Program) (*Node, error) {
	s, err := c.stageOf(ctx, p)
	if err != nil {
		return nil, err
	}
	return s.start(s.node.clocked(p, clockFile(&s.node)))
}

func (c *docker) stageOf(ctx context.Context, p Program) (*staged, error) {
	c.making.Lock()
	s := c.stages[p.Name]
	c.making.Unlock()
	switch {
	case s == nil:
		return c.newStage(ctx, p)
	case s.program.Networked != p.Networked || s.program.Clock != p.Clock || s.program.Binary != p.Binary || s.program.Image != p.Image:
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

func (c *docker) newStage(ctx context.Context, p Program) (*staged, error) {
	s := &staged{program: p}
	p.Args = []string{stage.Command}
	node, container, err := c.startProgram(ctx, p)
	if err != nil {
		return nil, err
	}
	s.node.Name, s.node.IP, s.node.Host, s.node.freezer, s.node.Clock = node.Name, node.IP, node.Host, node.freezer, node.Clock
	s.open(container)
	c.making.Lock()
	defer c.making.Unlock()
	if c.stages == nil {
		c.stages = make(map[string]*staged)
	}
	c.stages[p.Name] = s
	return s, nil
}

func (s *staged) open(container *engine.Container) {
	s.container = container
	s.output, s.errorOutput = bufio.NewReader(container.Output), bufio.NewReader(container.Errors)
	s.gone.Store(false)
}

// start starts a program. Its node looks like that of a program with its own container.
func (s *staged) start(args []string) (*Node, error) {
	s.busy.Store(true)
	input, mark, err := stage.Start(s.container.Input, args)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.node.Name, err)
	}
	output, outputEnd := io.Pipe()
	errorOutput, errorsEnd := io.Pipe()
	ended := make(chan struct{})
	exits := make(chan Exit, 1)
	node := &Node{
		Name: s.node.Name, IP: s.node.IP, Host: s.node.Host, freezer: s.node.freezer, Clock: s.node.Clock,
		Input: input, Output: output, Errors: follow(errorOutput), Exited: exits, ended: ended,
	}
	errorsRead := make(chan struct{})
	go func() {
		defer close(errorsRead)
		err := stage.Errors(s.errorOutput, mark, errorsEnd)
		_ = errorsEnd.CloseWithError(ignoreEOF(err))
	}()
	go func() {
		ending, err := stage.Output(s.output, mark, outputEnd)
		<-errorsRead // the next program reads on where both streams have stopped
		exit := s.exit(ending, err)
		exit.Killed = node.killed.Load()
		s.busy.Store(false)
		close(ended)
		exits <- exit
		_ = outputEnd.CloseWithError(ignoreEOF(err))
	}()
	return node, nil
}

// exit is how a program ended: together with its container, or by itself.
func (s *staged) exit(ending stage.Ending, err error) Exit {
	if err != nil {
		s.gone.Store(true)
		exit := <-s.container.Exited
		return Exit{Reason: exit.String()}
	}
	return Exit{Clean: ending.Clean, Reason: ending.Reason}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
