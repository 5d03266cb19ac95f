// Package clusters starts what a run needs, on Docker or embedded: the servers of a lock, the workers and the
// resource. Each kind of servers has a file, and Table lists them all.
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
	Nodes int // default number of servers
	// Sizes lists the other sensible numbers of servers; nil for none.
	Sizes []int
	// Embedded runs an embedded server: a lockcheck process that serves a Unix socket. nil for servers on
	// Docker.
	Embedded func(ctx context.Context, socket string, input io.Reader) error
	// WallClock: the embedded servers use their wall clocks, which can be moved.
	WallClock bool
	// FailsOver: a fault can change the roles of the servers for good.
	FailsOver bool
	// Image names the recipe of the servers' image, and is the name under which a user replaces the image.
	Image string
	// Versions lists the versions that can be built, the default first. Each has a recipe IMAGE-VERSION; nil
	// for a single recipe without versions.
	Versions []string
	// Official: the servers can also run from the upstream image, as version images.Official.
	Official bool
	// Server describes the n-th server, counted from 0.
	Server func(n int) Server

	own         []CustomServer // nil for servers that lockcheck knows
	replacement string
}

// Server is the server process of one node.
type Server struct {
	// Program is the name under which the server's version is recorded.
	Program string
	// Recipe of the server's image; "" for the Spec's.
	Recipe string
	Port   int
	Probes agent.Probes
	// Command returns program and arguments; nil for the image's default.
	Command func(Place) []string
	// Environment is added to the image's; nil for none.
	Environment func(Place) []string
	// Files, by name, are written into the server's folder before its first start; nil for none. A shell script
	// that writes them would keep the server's clock from being moved.
	Files func(Place) map[string]string
	// Sysctls are set in the network namespace of the server's node, by name; nil for the engine's defaults.
	Sysctls map[string]string
	// ClockEnv prepares the server for libfaketime, if its image has it.
	ClockEnv []string
	// NoClock says why the wall clock of this kind of server cannot be moved; nil if it can.
	NoClock error
	// EndSignal asks the server to end gracefully; "" for agent.Terminate.
	EndSignal agent.Signal
	// NoWipe says why the server cannot be restarted with an empty disk; nil if it can.
	NoWipe error
	// Data returns the folder of the server's data; nil for Place.Folder.
	Data func(Place) string
	// Later servers start when the others are ready.
	Later bool
	// Hidden servers are not given to clients, which reach them through the other servers.
	Hidden bool
}

// Place describes where a server is started.
type Place struct {
	N       int      // index of the server, from 0
	Name    string   // of the node
	IPs     []string // addresses of all servers
	Folder  string   // for the server's data; exists, and outlives the server
	Version string   // "" for a recipe without versions
	// Joining: the other servers have added this one to their cluster anew.
	Joining bool
}

// OnDocker says whether the servers need a Docker engine.
func (s Spec) OnDocker() bool { return s.Image != "" }

// Recipe names the recipe of a version; "" for the default version.
func (s Spec) Recipe(version string) string {
	if version = s.Version(version); version == "" {
		return s.Image
	}
	return s.Image + "-" + version
}

// Version returns the version that a user named, or the default for "".
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

// AllVersions lists the versions that can be asked for, the default first if it has a name.
func (s Spec) AllVersions() []string {
	if !s.Official || slices.Contains(s.Versions, images.Official) {
		return s.Versions
	}
	return append(slices.Clone(s.Versions), images.Official)
}

// AllSizes lists the sensible numbers of servers, the default first.
func (s Spec) AllSizes() []int { return append([]int{s.Nodes}, s.Sizes...) }

// HasSize says whether a number of servers is sensible.
func (s Spec) HasSize(nodes int) bool { return slices.Contains(s.AllSizes(), nodes) }

// Table lists the servers of all locks.
func Table() []Spec {
	return []Spec{
		memorySpec("memory", textbook), memory5Spec(), memorySpec("memory-semaphore", withoutTokens), queueSpec(), noneSpec(), redisSpec("redis", "redis", 1), redisSpec("redis5", "redis", 5, 3),
		redisAOFSpec("redis-aof", "always"), redisAOFSpec("redis-aof-everysec", "everysec"), redisFailoverSpec(), redisClusterSpec("redis"), redisSpec("valkey", "valkey", 1), redisClusterSpec("valkey"), etcdSpec(), zookeeperSpec(), consulSpec(),
		kubernetesSpec(), natsSpec(), postgresSpec(), pgBouncerSpec(), mariaSpec(), galeraSpec(), memcachedSpec(), s3Spec(),
	}
}

// ByName finds servers in Table, or the servers of a mutant.
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

// Request says which cluster to start.
type Request struct {
	Run     string            // ID of the run
	Labels  map[string]string // on everything created on Docker
	Spec    Spec
	Nodes   int    // number of servers; 0 for the default
	Version string // of the servers; "" for the default
	Binary  string // lockcheck itself, for embedded processes and for its image
	Image   string // replaces the image of the servers; "" for the recipe's
	// Progress reports long steps, and Status what is happening at the moment.
	Progress func(format string, args ...any)
	Status   func(format string, args ...any)
	// Launch starts each process as the leader of its group. RegisterFolder records each temporary folder. With
	// them both can be removed even if this process is killed. Either may be nil.
	Launch         func(*exec.Cmd) error
	RegisterFolder func(path string) error
	// Before starts programs that the servers need, before any server; nil for none. If it fails, the cluster is
	// closed.
	Before func(context.Context, Cluster) error
	// Meanwhile starts programs while the servers become ready; nil for none. If it fails the cluster is
	// closed.
	Meanwhile func(context.Context, Cluster) error
	// Failed is called with a cluster that did not start, before it is removed; nil for nothing.
	Failed func(Cluster)
	// Versions are those, besides Version, in which servers may be started again.
	Versions []string
	// Disks: the servers run on disks that can have faults (see package disk). Only on Docker.
	Disks bool
	// Lasting: programs can be started one after another under one name, in the same container. Only on Docker.
	Lasting bool
}

// before calls Before, if there is one.
func (r Request) before(ctx context.Context, c Cluster) error {
	if r.Before == nil {
		return nil
	}
	return r.Before(ctx, c)
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

// nodes returns the number of servers to start.
func (r Request) nodes() int {
	if r.Nodes > 0 {
		return r.Nodes
	}
	return r.Spec.Nodes
}

// Cluster is a started cluster.
type Cluster interface {
	Servers() []*Node
	// Start runs lockcheck with the program's arguments, as a worker or the resource.
	Start(ctx context.Context, program Program) (*Node, error)
	// Folder is the path, inside the programs, of a folder that all programs share.
	Folder() string
	// Images maps image names to digests.
	Images() map[string]string
	// Source says where the servers come from; "" for embedded servers.
	Source() string
	// Log returns a part of a server's output.
	Log(ctx context.Context, server string, part LogPart) (string, error)
	// Clean returns why another run must not use a Lasting cluster. It is nil if no fault is in force, no
	// program runs, and each server answers, has this machine's time and knows a leader.
	Clean(ctx context.Context) error
	// Close removes everything. It may be called more than once.
	Close(ctx context.Context) error
}

// LogPart is a part of a log; the zero value is all of it.
type LogPart struct {
	Tail  int       // number of last lines; 0 for all
	Since time.Time // zero for the start; ignored for logs without times
}

// Program is a lockcheck process to start in a cluster.
type Program struct {
	Name string   // of the node: "w1"…, "resource"
	Args []string // arguments of lockcheck
	// Networked: the program has its own address, reaches the servers and can be cut off.
	Networked bool
	// Clock: the wall clock of the networked program can be moved. The program tells its time at ClockSocket.
	Clock bool
	// Binary is another build of lockcheck to run; "" for the request's.
	Binary string
	// Image is the image that lockcheck runs in; the zero value for lockcheck's own image. Only on Docker.
	Image ProgramImage
	// Mounts are folders of this machine, mounted read-only, as "source:target". Only on Docker.
	Mounts []string
	// Restarts: the killed program can be started again with the same arguments, and its node's streams
	// continue. Only for embedded servers.
	Restarts bool
}

// Node is where one server, worker or the resource runs.
type Node struct {
	Name    string
	Address string // for clients: host:port or a socket; "" for a program
	IP      string // "" if it has no network of its own
	Server  Server // the zero value for a program
	Host    agent.Host
	// Clock says why the wall clock cannot be moved; nil if it can.
	Clock error

	// Input, Output and Errors are a program's streams. A node that can be restarted with its streams (a
	// program, or a server that lockcheck started as its child) keeps them across restarts. Its Output ends
	// with the cluster.
	Input  io.WriteCloser
	Output io.Reader
	Errors *Tail
	// Exited yields a value each time the process ends.
	Exited <-chan Exit

	// Versions are those in which the server can be started again; nil for none.
	Versions []string

	// Again starts a killed server or program again; nil if it cannot be restarted.
	Again func(context.Context) error

	folder string            // a server's folder for its data
	files  map[string]string // in the folder before the first start
	joins  map[string]string // the same for a server that was removed from its cluster and added anew
	write  func(ctx context.Context, files map[string]string) error

	lives   *lives      // set for nodes that are restarted with their streams; nil for others
	freezer *freezer    // nil if the node cannot be frozen
	killed  atomic.Bool // since the last start
	faulty  atomic.Bool // a fault of its disk is in force
	// upgrade puts another version of the server's program in place of the present one; nil if no step needs it.
	upgrade func(ctx context.Context, version string) error
	mayEnd  atomic.Bool // from a fault of its disk until DiskSettled: the server may end because of the fault
	revived atomic.Bool // it was started again because of that fault
	// ended is closed when it is known how the process ended this time; nil for a node that is never restarted.
	ended <-chan struct{}
}

// lastWords is the error output of an ended process, if it is kept.
func (n *Node) lastWords() string {
	if n.Errors == nil {
		return ""
	}
	return "\n" + strings.TrimSpace(n.Errors.All())
}

// Exit is how a process ended.
type Exit struct {
	Clean  bool
	Killed bool // by Node.Kill, or by a fault of its disk
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
	// readyTimeout is how long a server may take to become ready. A Galera server waits for the others, for
	// more than half a minute on a busy machine.
	readyTimeout = 2 * time.Minute
	readyPoll    = 20 * time.Millisecond
)

// awaitReady polls a server until it is ready, has ended, or has taken too long.
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
