// Package clusters starts what a run needs, on Docker or embedded: the servers of a lock, the workers
// and the resource. Each kind of servers has a file, and Table names them all.
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
	// Image names the recipe of the servers' image, and is the name under
	// which a user replaces it.
	Image string
	// Versions lists the versions that can be made, the usual one first. Each is a recipe
	// of its own, IMAGE-VERSION; nil for a recipe that has one version only.
	Versions []string
	// Official: the servers can also run from the upstream image, as version images.Official.
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
	// Recipe of its image, where it differs from that of the other servers; "" for that of the Spec.
	Recipe string
	Port   int
	Probes agent.Probes
	// Command returns program and arguments; nil for the image's own.
	Command func(Place) []string
	// Environment is added to the image's own; nil for none.
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
	// NoClock says why the wall clock of this kind of server cannot be moved; nil if it can.
	NoClock error
	// NoWipe says why the server cannot be started again with an empty disk; nil if it can.
	NoWipe error
	// Later servers start when the others are ready.
	Later bool
	// Hidden from clients, which reach it through the other servers.
	Hidden bool
}

// Place is where a server is started.
type Place struct {
	N       int      // which of the servers it is, from 0
	Name    string   // of its node
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

// Version returns the version that a user named, or the usual one for "".
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

// AllVersions lists the versions that can be asked for, the usual one first if it has a name.
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

// ByName finds servers in Table, or a mutant.
func ByName(name string) (Spec, bool) {
	for _, spec := range Table() {
		if spec.Name == name {
			return spec, true
		}
	}
	if spec, known := mutantByName(name); known {
		return spec, true
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
	// Progress reports long steps, and Status what is happening at the moment.
	Progress func(format string, args ...any)
	Status   func(format string, args ...any)
	// Launch starts each process as the leader of its group, and RegisterFolder records each
	// temporary folder, so that both can be removed even if this process dies. Either may be
	// nil.
	Launch         func(*exec.Cmd) error
	RegisterFolder func(path string) error
	// Meanwhile starts programs while the servers become ready; nil for nothing. If it fails,
	// the cluster is closed.
	Meanwhile func(context.Context, Cluster) error
	// Failed is called with a cluster that did not start, before it is removed; nil for nothing.
	Failed func(Cluster)
	// Lasting: a program that has ended is started again under its name, in the same container.
	// Only on Docker.
	Lasting bool
}

// meanwhile calls Meanwhile, if there is one.
func (r Request) meanwhile(ctx context.Context, c Cluster) error {
	if r.Meanwhile == nil {
		return nil
	}
	return r.Meanwhile(ctx, c)
}

// launch starts a process by Launch, if there is one.
func (r Request) launch(command *exec.Cmd) error {
	if r.Launch == nil {
		return command.Start()
	}
	return r.Launch(command)
}

// failed calls Failed, if there is one.
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
	// Clean says why another run must not use a Lasting cluster. It is nil if each server answers,
	// has the time of this machine and knows a leader, no fault is in force, and no program runs.
	Clean(ctx context.Context) error
	// Close removes everything. It may be called more than once.
	Close(ctx context.Context) error
}

// LogPart is a part of a log; all of it for the zero value.
type LogPart struct {
	Tail  int       // how many lines at its end; 0 for all
	Since time.Time // zero for the start; ignored for logs without times
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
	// Mounts are folders of this machine that it may read, as "source:target". Only on Docker.
	Mounts []string
	// Restarts: once it was killed it can be started again, with the same arguments, and the streams of its node
	// go on. Only of embedded servers.
	Restarts bool
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

	// Of a program: its streams and how it ended. Those of a program that can be started again, or of a server
	// that lockcheck has started as its child, are those of all its lives: Output ends with the cluster.
	Input  io.WriteCloser
	Output io.Reader
	Errors *Tail
	// Exited yields a value each time the process ends.
	Exited <-chan Exit

	// Again starts a server or program that was killed; nil for what stays dead.
	Again func(context.Context) error

	folder string            // of a server, for its data
	files  map[string]string // that are in it before the first start
	write  func(ctx context.Context, files map[string]string) error

	lives   *lives      // of what is started again with its streams; nil for others
	freezer *freezer    // nil where it cannot be frozen
	killed  atomic.Bool // since the last start
	// ended is closed when it is known how the process ended, this time; nil for a node that is
	// never started again.
	ended <-chan struct{}
}

// lastWords is the error output of an ended process, if this process reads it.
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
