// Package clusters starts what a run needs, on Docker or embedded: the servers of a lock,
// with places for the workers next to them, one of them for the resource. One file
// describes the servers of a lock, and one table names them all.
package clusters

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"lockcheck/clusters/agent"
	"lockcheck/clusters/images"
)

// Spec describes the servers of a lock.
type Spec struct {
	Name  string
	Nodes int // how many servers there are unless a test asks for another number
	// Sizes lists the other numbers of servers that make sense; nil for none.
	Sizes []int
	// Embedded servers are lockcheck processes that serve a Unix socket; nil
	// for servers on Docker.
	Embedded func(ctx context.Context, socket string, input io.Reader) error
	// WallClock: the embedded servers go by their wall clocks, which can be moved.
	WallClock bool
	// FailsOver: a fault can change for good which of the servers does what.
	FailsOver bool
	// Image names the recipe that the servers are made by, and is the name under
	// which a user replaces it.
	Image string
	// Versions lists those that can be made, the usual one first. Each is a recipe
	// of its own, IMAGE-VERSION; nil for a recipe that knows one version only.
	Versions []string
	// Official: they can also run from the image that their makers publish, in the version
	// images.Official.
	Official bool
	// Server describes the n-th server, counted from 0.
	Server func(n int) Server

	own         []CustomServer // nil for servers that lockcheck knows
	replacement string
}

// Server is what runs on one node.
type Server struct {
	// Program is the name under which the version of the server is recorded.
	Program string
	// Recipe is that of its image, where it is not that of the others; "" for that of the Spec.
	Recipe string
	Port   int
	Probes agent.Probes
	// Command returns program and arguments; nil for those of the image.
	Command func(Place) []string
	// Environment is added to that of the image; nil for nothing.
	Environment func(Place) []string
	// Files are written into the folder of the server before its first start, by
	// name; nil for none. A shell that writes them would keep the server's clock
	// from being moved.
	Files func(Place) map[string]string
	// Sysctls are those of the network namespace of its node, by name; nil for those
	// of the engine.
	Sysctls map[string]string
	// ClockEnv prepares the server for libfaketime, where its image has it.
	ClockEnv []string
	// NoClock says why the server's wall clock cannot be moved, nil if it can, for
	// reasons that are its own.
	NoClock error
	// NoWipe says why the server cannot be started again with an empty disk; nil if it can.
	NoWipe error
	// Later servers start when the others are ready.
	Later bool
	// Hidden from clients, who reach it through the others.
	Hidden bool
}

// Place is where a server is started.
type Place struct {
	N       int      // which of the servers it is, from 0
	IPs     []string // addresses of all servers
	Folder  string   // for its data; it is there, and outlives the server
	Version string   // "" for a recipe without versions
}

// OnDocker says whether the servers need a Docker engine.
func (s Spec) OnDocker() bool { return s.Image != "" }

// Recipe names the recipe for a version; "" means the usual one.
func (s Spec) Recipe(version string) string {
	if version = s.Version(version); version == "" {
		return s.Image
	}
	return s.Image + "-" + version
}

// Version returns the version that is meant by one that a user may have left out.
func (s Spec) Version(version string) string {
	if version == "" && len(s.Versions) > 0 {
		return s.Versions[0]
	}
	return version
}

// HasVersion says whether servers of the version can be made.
func (s Spec) HasVersion(version string) bool {
	return version == "" && len(s.Versions) == 0 || slices.Contains(s.AllVersions(), version)
}

// AllVersions lists those that can be asked for, the usual one first if it has a name.
func (s Spec) AllVersions() []string {
	if !s.Official || slices.Contains(s.Versions, images.Official) {
		return s.Versions
	}
	return append(slices.Clone(s.Versions), images.Official)
}

// AllSizes lists the numbers of servers that make sense, the usual one first.
func (s Spec) AllSizes() []int { return append([]int{s.Nodes}, s.Sizes...) }

// HasSize says whether a number of servers makes sense.
func (s Spec) HasSize(nodes int) bool { return slices.Contains(s.AllSizes(), nodes) }

// Table lists the servers of all locks.
func Table() []Spec {
	return []Spec{
		memorySpec("memory", textbook), memory5Spec(), memorySpec("memory-semaphore", withoutTokens), queueSpec(), noneSpec(), redisSpec("redis", "redis", 1), redisSpec("redis5", "redis", 5, 3),
		redisAOFSpec(), redisFailoverSpec(), redisClusterSpec("redis"), redisSpec("valkey", "valkey", 1), redisClusterSpec("valkey"), etcdSpec(), zookeeperSpec(), consulSpec(),
		kubernetesSpec(), natsSpec(), postgresSpec(), pgBouncerSpec(), mariaSpec(), galeraSpec(), memcachedSpec(),
	}
}

// ByName finds servers in Table, or those of a mutant.
func ByName(name string) (Spec, bool) {
	for _, spec := range Table() {
		if spec.Name == name {
			return spec, true
		}
	}
	if change, known := mutants()[name]; known {
		return memorySpec(name, change), true
	}
	return Spec{}, false
}

// Request says what to start.
type Request struct {
	Run     string            // identity of the run
	Labels  map[string]string // on everything that is made on Docker
	Spec    Spec
	Nodes   int    // number of servers; 0 for the usual one
	Version string // of the servers; "" for the usual one
	Binary  string // lockcheck itself, for embedded processes and for its image
	Image   string // replaces the image of the servers; "" for the recipe
	// Progress is told what takes its time, and Status how it is going.
	Progress func(format string, args ...any)
	Status   func(format string, args ...any)
	// Launch starts each process as the leader of its group, and RegisterFolder is told
	// each temporary folder, so that both can be removed even if this process dies. Either
	// may be nil.
	Launch         func(*exec.Cmd) error
	RegisterFolder func(path string) error
	// Meanwhile is called when the first servers were started, and starts programs
	// that can wait for them; nil for nothing. The cluster is closed if it fails.
	Meanwhile func(context.Context, Cluster) error
	// Failed is called with what was started when something could not be, before all of it
	// is removed; nil for nothing.
	Failed func(Cluster)
	// Lasting: programs are started under the same names again once they have ended, in the
	// containers of those before. Only on Docker.
	Lasting bool
}

// meanwhile does what is to be done while the servers become ready.
func (r Request) meanwhile(ctx context.Context, c Cluster) error {
	if r.Meanwhile == nil {
		return nil
	}
	return r.Meanwhile(ctx, c)
}

// launch starts a process.
func (r Request) launch(command *exec.Cmd) error {
	if r.Launch == nil {
		return command.Start()
	}
	return r.Launch(command)
}

// failed lets somebody look at a cluster that did not start.
func (r Request) failed(c Cluster) {
	if r.Failed != nil {
		r.Failed(c)
	}
}

// nodes returns how many servers there are to be.
func (r Request) nodes() int {
	if r.Nodes > 0 {
		return r.Nodes
	}
	return r.Spec.Nodes
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
	// Source says where the servers come from; "" for embedded ones.
	Source() string
	// Log returns a part of what a server has written.
	Log(ctx context.Context, server string, part LogPart) (string, error)
	// Clean says why another run must not use a Lasting cluster; nil if each server answers,
	// tells the time of this machine and has its leader, and nothing of the runs before is in
	// force or still runs.
	Clean(ctx context.Context) error
	// Close removes everything. It may be called more than once.
	Close(ctx context.Context) error
}

// LogPart is a part of a log; all of it for the zero value.
type LogPart struct {
	Tail  int       // how many lines at its end; 0 for all
	Since time.Time // zero for from the start; where lines have no times it is not looked at
}

// Program is a lockcheck process to be started in a cluster.
type Program struct {
	Name string   // of its node: "w1"…, "resource"
	Args []string // of lockcheck
	// Networked: it has an address of its own, reaches the servers and can be cut off.
	Networked bool
	// Binary is another build of lockcheck to run; "" for that of the request.
	Binary string
	// Image is where lockcheck runs; the zero value for an image of its own. Only on Docker.
	Image ProgramImage
}

// Node is a place where one server, worker or the resource runs.
type Node struct {
	Name    string
	Address string // where clients reach it: host:port or a socket; "" for a program
	IP      string // "" where it has no network of its own
	Server  Server // the zero value for a program
	Host    agent.Host
	// Clock says why the wall clock of the server cannot be moved; nil if it can.
	Clock error

	// Of a program: its streams and how it ended.
	Input  io.WriteCloser
	Output io.Reader
	Errors *Tail
	// Exited yields a value each time the process ends.
	Exited <-chan Exit

	// Again starts a server that was killed; nil for what stays dead.
	Again func(context.Context) error

	folder string            // of a server, for its data
	files  map[string]string // that are in it before the first start
	write  func(ctx context.Context, files map[string]string) error

	freezer *freezer    // nil where it cannot be frozen
	killed  atomic.Bool // since the last start
	// ended is closed when it is known how the present life ended; nil for what
	// lives once.
	ended <-chan struct{}
}

// lastWords is what an ended process wrote on its error output, if that is ours
// to read.
func (n *Node) lastWords() string {
	if n.Errors == nil {
		return ""
	}
	return "\n" + strings.TrimSpace(n.Errors.All())
}

// Exit is how a process ended.
type Exit struct {
	Clean  bool
	Killed bool // by Node.Kill
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
	// readyTimeout is how long a server may take until it can serve: one of Galera waits for the
	// others, for more than half a minute on a busy machine.
	readyTimeout = 2 * time.Minute
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
