// Package clusters starts what a run needs: the servers of a lock, on Docker or
// embedded, and places for the workers and the resource beside them. One file
// describes the servers of a lock, and one table names them all.
package clusters

import (
	"context"
	"fmt"
	"io"
	"time"

	"lockcheck/clusters/agent"
)

// Spec describes the servers of a lock.
type Spec struct {
	Name  string
	Nodes int
	// Embedded servers are lockcheck processes that serve a Unix socket; nil
	// for servers on Docker.
	Embedded func(ctx context.Context, socket string, input io.Reader) error
	// Image is the recipe that the servers are made by, and the name under which
	// a user replaces it.
	Image string
	// Command returns program and arguments of the n-th server, counted from 0,
	// which may need the addresses of all.
	Command func(n int, ips []string) []string
	// ClockEnv prepares the server for libfaketime, where its image has it.
	ClockEnv []string
	Port     int
	Probes   agent.Probes
}

// OnDocker says whether the servers need a Docker engine.
func (s Spec) OnDocker() bool { return s.Image != "" }

// Table lists the servers of all locks.
func Table() []Spec {
	return []Spec{memorySpec(), noneSpec(), redisSpec("redis", 1), redisSpec("redis5", 5)}
}

// ByName finds servers in Table.
func ByName(name string) (Spec, bool) {
	for _, spec := range Table() {
		if spec.Name == name {
			return spec, true
		}
	}
	return Spec{}, false
}

// Request says what to start.
type Request struct {
	Run    string            // identity of the run
	Labels map[string]string // on everything that is made on Docker
	Spec   Spec
	Binary string // lockcheck itself, for embedded processes and for its image
	Image  string // replaces the image of the servers; "" for the recipe
	// Progress is told what takes its time, and Status how it is going.
	Progress func(format string, args ...any)
	Status   func(format string, args ...any)
	// Register is told each process that is started, the leader of its group, and
	// RegisterFolder each temporary folder, so that both can be removed even if
	// this process dies. Either may be nil.
	Register       func(pid int) error
	RegisterFolder func(path string) error
}

// Cluster is what was started.
type Cluster interface {
	// Servers lists the servers of the lock.
	Servers() []*Node
	// Start runs lockcheck with the arguments as a worker or the resource.
	Start(ctx context.Context, program Program) (*Node, error)
	// Folder is a folder that all programs share, as they see it.
	Folder() string
	// Images maps names of images to their digests.
	Images() map[string]string
	// Log returns what a server has written, its last lines if tail is not 0.
	Log(ctx context.Context, server string, tail int) (string, error)
	// Close removes everything. It may be called more than once.
	Close(ctx context.Context) error
}

// Program is a lockcheck process to be started in a cluster.
type Program struct {
	Name string   // of its node: "w1"…, "resource"
	Args []string // of lockcheck
	// Networked: it has an address of its own and can be cut off.
	Networked bool
}

// Node is a place where one server, worker or the resource runs.
type Node struct {
	Name    string
	Address string // where clients reach it: host:port or a socket; "" for a program
	IP      string // "" where it has no network of its own
	Host    agent.Host
	// Clock says why the wall clock of the server cannot be moved; nil if it can.
	Clock error

	// Of a program: its streams and how it ended.
	Input  io.WriteCloser
	Output io.Reader
	Errors *Tail
	Exited <-chan Exit
}

// lastWords is what an ended process wrote on its error output, if that is ours
// to read.
func (n *Node) lastWords() string {
	if n.Errors == nil {
		return ""
	}
	return "\n" + n.Errors.All()
}

// Exit is how a process ended.
type Exit struct {
	Clean  bool
	Reason string
}

// Start starts the servers and waits until each of them is ready.
func Start(ctx context.Context, r Request) (Cluster, error) {
	if r.Spec.OnDocker() {
		return startDocker(ctx, r)
	}
	return startEmbedded(ctx, r)
}

const (
	// readyTimeout is how long a server may take until it can serve.
	readyTimeout = 30 * time.Second
	readyPoll    = 20 * time.Millisecond
)

// awaitReady asks a server until it is ready, has ended, or took too long.
func awaitReady(ctx context.Context, node *Node) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		err := node.Host.Ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case exit := <-node.Exited:
			return fmt.Errorf("%s ended before it was ready: %s%s", node.Name, exit.Reason, node.lastWords())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w", node.Name, err)
		case <-time.After(readyPoll):
		}
	}
}
