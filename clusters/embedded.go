package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"lockcheck/clusters/agent"
	"lockcheck/clusters/vdso"
	"lockcheck/internal/folders"
)

// errEmbeddedClock is why the wall clock of most embedded servers is not moved.
var errEmbeddedClock = errors.New("an embedded server does not use the wall clock")

// embedded is a cluster of child processes that share a temporary folder.
type embedded struct {
	request Request
	folder  string
	servers []*Node

	mu       sync.Mutex
	commands []*exec.Cmd
	lasting  []*lives
	closed   bool
	closing  chan struct{} // closed when the cluster is closed
	ended    sync.WaitGroup
}

func startEmbedded(ctx context.Context, r Request) (Cluster, error) {
	folder, err := folders.Temporary()
	if err != nil {
		return nil, err
	}
	c := &embedded{request: r, folder: folder, closing: make(chan struct{})}
	if err := c.start(ctx); err != nil {
		r.failed(c)
		return nil, errors.Join(err, c.Close(ctx))
	}
	return c, nil
}

func (c *embedded) start(ctx context.Context) error {
	if c.request.RegisterFolder != nil {
		if err := c.request.RegisterFolder(c.folder); err != nil {
			return err
		}
	}
	if err := c.request.before(ctx, c); err != nil {
		return err
	}
	for i := range c.request.nodes() {
		if err := c.startServer(ctx, i); err != nil {
			return err
		}
	}
	return c.request.meanwhile(ctx, c)
}

func (c *embedded) startServer(ctx context.Context, n int) error {
	name := fmt.Sprintf("n%d", n+1)
	socket := filepath.Join(c.folder, name+".sock")
	command := []string{c.request.Binary, "server", "--servers", c.request.Spec.Name, "--socket", socket}
	clock, err := c.clock(ctx, name)
	fixed := err
	switch {
	case err == nil:
		command = append(vdso.Launcher(c.request.Binary, clock.ClockFile), command...)
	case !errors.Is(err, agent.ErrClock) && !errors.Is(err, errEmbeddedClock):
		return err
	}
	node, host, err := c.run(name, command[0], command[1:])
	if err != nil {
		return err
	}
	node.Address, node.Server = socket, c.request.Spec.Server(n)
	host.ClockFile, host.ClockDriver = clock.ClockFile, clock.ClockDriver
	host.Probes, host.Address = node.Server.Probes, socket
	node.Host, node.Clock = host, fixed
	c.servers = append(c.servers, node)
	return awaitReady(ctx, node)
}

// clock returns the driver of a server's wall clock, set to true time. The error is ErrClock if the clock
// cannot be moved, and errEmbeddedClock for a server that does not use the wall clock.
func (c *embedded) clock(ctx context.Context, server string) (agent.Local, error) {
	if !c.request.Spec.WallClock {
		return agent.Local{}, errEmbeddedClock
	}
	return c.movable(ctx, server)
}

// movable returns the driver of a process' wall clock, set to true time. The error is ErrClock if the clock cannot be
// moved.
func (c *embedded) movable(ctx context.Context, process string) (agent.Local, error) {
	clock := agent.Local{ClockFile: filepath.Join(c.folder, process+".clock"), ClockDriver: agent.VDSO}
	clock.PrepareClock(ctx, c.request.Binary)
	_, err := clock.SetClock(ctx, 0)
	return clock, err
}

func (c *embedded) Start(ctx context.Context, p Program) (*Node, error) {
	if p.Restarts {
		return c.startLasting(ctx, p)
	}
	planned, clock := Node{}, agent.Local{}
	if p.Clock {
		clock, planned.Clock = c.movable(ctx, p.Name)
	}
	node, host, err := c.run(p.Name, cmp.Or(p.Binary, c.request.Binary), planned.clocked(p, clock.ClockFile))
	if err != nil {
		return nil, err
	}
	if p.Clock {
		host.ClockFile, host.ClockDriver, node.Clock = clock.ClockFile, clock.ClockDriver, planned.Clock
		host.Probes, host.Address = ProgramProbes{}, ClockSocket(c.folder, p.Name)
	}
	node.Host = host
	return node, nil
}

// startLasting starts a program that can be restarted.
func (c *embedded) startLasting(ctx context.Context, p Program) (*Node, error) {
	node, exits := &Node{Name: p.Name}, make(chan Exit, 1)
	node.lives, node.Exited = newLives(node), exits
	var present atomic.Pointer[os.Process]
	host := familyOf(present.Load)
	host.Probes = portProbes{NoPort: true}
	node.Host = host
	node.Again = func(context.Context) error {
		child, err := c.spawn(p.Name, cmp.Or(p.Binary, c.request.Binary), p.Args)
		if err != nil {
			return err
		}
		present.Store(child.command.Process)
		node.lives.begin(child.input, child.output, child.errors)
		node.ended = c.await(node, child.command, exits)
		return nil
	}
	c.mu.Lock()
	c.lasting = append(c.lasting, node.lives)
	c.mu.Unlock()
	return node, node.Again(ctx)
}

// run starts a child process that is not restarted.
func (c *embedded) run(name, binary string, args []string) (node *Node, host family, err error) {
	child, err := c.spawn(name, binary, args)
	if err != nil {
		return nil, host, err
	}
	exits := make(chan Exit, 1)
	node = &Node{Name: name, Input: child.input, Output: child.output, Errors: follow(child.errors), Exited: exits}
	c.await(node, child.command, exits)
	return node, familyOf(func() *os.Process { return child.command.Process }), nil
}

// child is a process with its streams.
type child struct {
	command        *exec.Cmd
	input          io.WriteCloser
	output, errors io.Reader
}

// spawn starts a child process in its own process group, so that Ctrl-C on the terminal reaches only the
// harness. The caller awaits the child's end.
func (c *embedded) spawn(name, binary string, args []string) (child, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return child{}, fmt.Errorf("%s: the cluster is closed", name) // nothing would end the child
	}
	command := exec.Command(binary, args...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := command.StdinPipe()
	if err != nil {
		return child{}, err
	}
	output, outputEnd, err := os.Pipe()
	if err != nil {
		return child{}, err
	}
	errorOutput, errorsEnd, err := os.Pipe()
	if err != nil {
		return child{}, errors.Join(err, output.Close(), outputEnd.Close())
	}
	command.Stdout, command.Stderr = outputEnd, errorsEnd
	err = c.request.launch(command)
	// The child has its own ends. While ours are open the pipes never end.
	err = errors.Join(err, outputEnd.Close(), errorsEnd.Close())
	if err != nil {
		return child{}, errors.Join(fmt.Errorf("%s: %w", name, err), output.Close(), errorOutput.Close())
	}
	c.commands = append(c.commands, command)
	c.ended.Add(1)
	return child{command, input, output, errorOutput}, nil
}

// await waits for the end of a child. The returned channel is closed when it is known how the child ended.
func (c *embedded) await(node *Node, command *exec.Cmd, exits chan<- Exit) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer c.ended.Done()
		err := command.Wait()
		exit := Exit{Clean: err == nil, Killed: node.killed.Load(), Reason: "exit status 0"}
		if err != nil {
			exit.Reason = err.Error()
		}
		close(ended)
		select {
		case exits <- exit:
			return
		default: // the previous exit has not been taken yet
		}
		select {
		case exits <- exit:
		case <-c.closing:
		}
	}()
	return ended
}

func (c *embedded) Servers() []*Node          { return c.servers }
func (c *embedded) Folder() string            { return c.folder }
func (c *embedded) Images() map[string]string { return nil }
func (c *embedded) Source() string            { return "" }

// Clean refuses: a new cluster costs only one to five processes, and what an embedded server keeps is unknown.
func (c *embedded) Clean(context.Context) error { return errEmbeddedServed }

var errEmbeddedServed = errors.New("embedded servers serve one run")

func (c *embedded) Log(_ context.Context, server string, _ LogPart) (string, error) {
	for _, node := range c.servers {
		if node.Name == server {
			return node.Errors.String(), nil
		}
	}
	return "", fmt.Errorf("no server %q", server)
}

// Close kills what still runs. SIGKILL ends a stopped process, too.
func (c *embedded) Close(ctx context.Context) error {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.closing)
	}
	for _, command := range c.commands {
		// A process that has already ended is no error.
		_, _ = familyOf(func() *os.Process { return command.Process }).Signal(ctx, agent.Kill)
	}
	for _, l := range c.lasting {
		l.end()
	}
	c.mu.Unlock()
	c.ended.Wait()
	return os.RemoveAll(c.folder)
}

// ServeEmbedded runs an embedded server in this process.
func ServeEmbedded(ctx context.Context, servers, socket string, input io.Reader) error {
	spec, known := ByName(servers)
	if !known || spec.Embedded == nil {
		return fmt.Errorf("no embedded server %q", servers)
	}
	return spec.Embedded(ctx, socket, input)
}
