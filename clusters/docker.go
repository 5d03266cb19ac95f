package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"lockcheck/clusters/agent"
	"lockcheck/clusters/engine"
	"lockcheck/clusters/images"
)

const (
	// sharedFolder is where every container of a run sees its volume.
	sharedFolder = "/lockcheck"
	// Host parts of addresses: servers from the first, programs from the second.
	firstServer  = 11
	firstProgram = 101
	// closeTimeout bounds the removal of a cluster that did not start.
	closeTimeout = time.Minute
)

// StartAtOnce bounds how many servers or programs are started at a time.
const StartAtOnce = 4

// docker is a cluster of containers. Each node is an agent that owns the
// network and process namespaces, and the server or program within them. They start
// by the ID of their image: its name may be that of another one by then, and the ID is
// what the history says.
type docker struct {
	request Request
	engine  *engine.Engine
	maker   images.Maker
	self    engine.Image
	images  []engine.Image // of each server
	// official is that of the servers; the zero value if they run from another one.
	official images.OfficialImage
	network  engine.Network
	servers  []*Node
	// programs counts those with an address. Programs may start side by side.
	programs atomic.Int32
	agents   atomic.Int32

	making sync.Mutex
	others map[string]engine.Image // of programs with a binary of their own
	stages map[string]*staged      // of a lasting cluster, by the names of their programs
}

func startDocker(ctx context.Context, r Request) (Cluster, error) {
	docker := &docker{request: r}
	if err := docker.start(ctx); err != nil {
		r.failed(docker)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		return nil, errors.Join(err, docker.Close(ctx))
	}
	return docker, nil
}

func (c *docker) start(ctx context.Context) (err error) {
	if c.engine, err = engine.Connect(ctx); err != nil {
		return err
	}
	if err := c.makeImages(ctx); err != nil {
		return err
	}
	c.request.Progress("starting %d × %s", c.request.nodes(), c.request.Spec.Recipe(c.request.Version))
	if c.network, err = c.engine.CreateNetwork(ctx, c.name(""), c.request.Labels); err != nil {
		return err
	}
	if err := c.engine.CreateVolume(ctx, c.name(""), c.request.Labels); err != nil {
		return err
	}
	return c.startServers(ctx)
}

func (c *docker) makeImages(ctx context.Context) (err error) {
	c.maker = images.Maker{
		Engine: c.engine, Progress: c.request.Progress, Status: c.request.Status,
		Launch: c.request.Launch, RegisterFolder: c.request.RegisterFolder,
	}
	if c.self, err = c.maker.EnsureSelf(ctx, c.request.Binary); err != nil {
		return err
	}
	if err := c.checkClock(ctx); err != nil {
		return err
	}
	for n := range c.request.nodes() {
		image, err := c.serverImage(ctx, n)
		if err != nil {
			return err
		}
		c.images = append(c.images, image)
	}
	return nil
}

// serverImage returns the image of the n-th server, made if need be.
func (c *docker) serverImage(ctx context.Context, n int) (engine.Image, error) {
	switch spec := c.request.Spec; {
	case spec.Server(n).Recipe != "":
		return c.known(ctx, spec.Server(n).Recipe)
	case c.request.Image != "":
		return c.maker.Foreign(ctx, c.request.Image)
	case spec.own != nil:
		return c.own(ctx, spec.own[n].Image)
	default:
		return c.known(ctx, spec.Recipe(c.request.Version))
	}
}

// known returns the image of a recipe.
func (c *docker) known(ctx context.Context, recipe string) (engine.Image, error) {
	image, err := c.maker.Ensure(ctx, recipe)
	if err == nil && images.IsOfficial(recipe) {
		c.official, err = images.OfficialNamed(recipe)
	}
	return image, err
}

// own returns an image that a user brings.
func (c *docker) own(ctx context.Context, image ProgramImage) (engine.Image, error) {
	switch {
	case image.OfServers:
		return c.images[0], nil
	case image.Build != "":
		return c.maker.EnsureFolder(ctx, image.Build)
	}
	return c.maker.Foreign(ctx, image.Ref)
}

// checkClock refuses an engine on another machine before images are made there, which takes
// minutes. Only a container on it can tell: its address may be that of another container on
// this machine. Of one behind a socket the agents of the run tell as much later.
func (c *docker) checkClock(ctx context.Context) error {
	if c.engine.BySocket() {
		return nil
	}
	process, err := c.engine.Start(ctx, engine.Spec{
		Name: c.name("clock"), Image: c.self.ID, Labels: c.request.Labels,
		Command: []string{"agent"}, Network: "none", Attach: true,
	})
	if err != nil {
		return err
	}
	_, err = agent.Connect(process.Input, process.Output, follow(process.Errors).All).Processes(ctx)
	return errors.Join(err, process.Input.Close())
}

// programImage returns the image of a program, made on first use.
func (c *docker) programImage(ctx context.Context, p Program) (engine.Image, error) {
	which := cmp.Or(p.Binary, p.Image.name())
	if which == "" {
		return c.self, nil
	}
	c.making.Lock()
	defer c.making.Unlock()
	if image, made := c.others[which]; made {
		return image, nil
	}
	var image engine.Image
	var err error
	if p.Binary != "" {
		image, err = c.maker.EnsureSelf(ctx, p.Binary)
	} else {
		image, err = c.own(ctx, p.Image)
	}
	if err != nil {
		return image, err
	}
	if c.others == nil {
		c.others = make(map[string]engine.Image)
	}
	c.others[which] = image
	return image, nil
}

// startServers starts all agents before the first server, so that servers which
// look for each other find addresses that refuse instead of none that answer,
// and all servers before it waits for one: some are ready only together. Those
// that need the others to be ready come later. Meanwhile the programs start.
func (c *docker) startServers(ctx context.Context) error {
	c.layOut()
	if err := eachServer(ctx, c.servers, c.startServerAgent); err != nil {
		return err
	}
	later := func(n *Node) bool { return n.Server.Later }
	first := slices.DeleteFunc(slices.Clone(c.servers), later)
	if err := eachServer(ctx, first, c.startServer); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.request.meanwhile(ctx, c) })
	group.Go(func() error {
		if err := eachServer(ctx, first, c.awaitServer); err != nil {
			return err
		}
		second := slices.DeleteFunc(slices.Clone(c.servers), func(n *Node) bool { return !later(n) })
		if err := eachServer(ctx, second, c.startServer); err != nil {
			return err
		}
		return eachServer(ctx, second, c.awaitServer)
	})
	return group.Wait()
}

// layOut gives each server its name and its address.
func (c *docker) layOut() {
	for i := range c.request.nodes() {
		server := c.request.Spec.Server(i)
		ip := c.network.Address(byte(firstServer + i))
		node := &Node{
			Name: c.request.Spec.nodeName(i), IP: ip, Server: server,
			Address: net.JoinHostPort(ip, strconv.Itoa(server.Port)),
		}
		node.folder = nodeFolder(i)
		node.write = func(ctx context.Context, files map[string]string) error {
			return c.engine.Write(ctx, c.name(node.Name), node.folder, files)
		}
		c.servers = append(c.servers, node)
	}
}

// eachServer does something for several servers at a time.
func eachServer(ctx context.Context, servers []*Node, do func(context.Context, *Node) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(StartAtOnce)
	for _, node := range servers {
		group.Go(func() error { return do(ctx, node) })
	}
	return group.Wait()
}

// place describes where a server is, to its command.
func (c *docker) place(node *Node) Place {
	place := Place{Name: node.Name, Folder: node.folder, Version: c.request.Spec.Version(c.request.Version)}
	for i, other := range c.servers {
		place.IPs = append(place.IPs, other.IP)
		if other == node {
			place.N = i
		}
	}
	return place
}

// nodeFolder is the folder of the n-th server in the shared one: not by the name of its node, which may be that of
// another folder there.
func nodeFolder(n int) string { return fmt.Sprintf("%s/n%d", sharedFolder, n+1) }

func (c *docker) startServerAgent(ctx context.Context, node *Node) error {
	n := c.place(node).N
	args := append(c.request.Spec.probesFlag(n), "--address", "127.0.0.1:"+strconv.Itoa(node.Server.Port))
	if c.request.Spec.launched(n) {
		args = append(args, "--install", launcherPath)
	}
	if err := c.startAgent(ctx, node, append(args, clockFlags(node, driverOf(c.images[n]))...)...); err != nil {
		return err
	}
	return startClock(ctx, node)
}

func (c *docker) startServer(ctx context.Context, node *Node) error {
	place := c.place(node)
	if node.Server.Files != nil {
		node.files = node.Server.Files(place)
	}
	image := c.images[place.N]
	command := node.Server.Command(place)
	var mounts []string
	if own := c.request.Spec.own; own != nil {
		command, mounts = image.CommandWith(own[place.N].Entrypoint, command), own[place.N].Mounts
		if len(command) == 0 {
			return fmt.Errorf("%s: image %s has neither an entry point nor a command, and none is given", node.Name, image.Ref)
		}
	}
	launched := c.request.Spec.launched(place.N)
	if launched {
		command = node.launch(place, command, c.request.Spec.own[place.N])
	}
	if _, err := node.Wipe(ctx); err != nil {
		return err
	}
	command, env := withClock(node, driverOf(image), command, node.Server.ClockEnv)
	if node.Server.Environment != nil {
		env = append(env, node.Server.Environment(place)...)
	}
	server, err := c.engine.Start(ctx, engine.Spec{
		Name: c.serverName(node.Name), Image: image.ID, Labels: c.request.Labels,
		Entrypoint: command[:1], Command: command[1:],
		Env: env, Mounts: mounts, Limits: c.request.Spec.Limits(place.N),
		Within: c.name(node.Name), Volumes: c.volumes(), Attach: launched,
	})
	if err != nil {
		return err
	}
	if own := c.request.Spec.own; own != nil {
		node.Host = commanded{Host: node.Host, server: own[place.N], engine: c.engine, container: c.serverName(node.Name), place: place}
	}
	node.freezer = &freezer{engine: c.engine, container: c.serverName(node.Name)}
	exits := make(chan Exit, 1)
	node.Exited, node.Again = exits, func(ctx context.Context) error { return c.restart(ctx, node, exits) }
	node.lived(server, exits)
	return nil
}

// launch gives a server what lockcheck needs to start it as its child, and returns the command that does so.
func (n *Node) launch(place Place, command []string, own CustomServer) []string {
	args, files := own.Launched(place, command)
	maps.Copy(n.files, files)
	n.lives = newLives(n)
	return append([]string{launcherPath}, args...)
}

// lived follows one life of a server.
func (n *Node) lived(container *engine.Container, exits chan<- Exit) {
	if n.lives != nil {
		n.lives.begin(container.Input, container.Output, container.Errors)
	}
	n.relay(container.Exited, exits)
}

// restart starts the container of a killed server again.
func (c *docker) restart(ctx context.Context, node *Node, exits chan<- Exit) error {
	again, err := c.engine.Restart(ctx, c.serverName(node.Name), node.lives != nil)
	if err != nil {
		return err
	}
	node.lived(again, exits)
	return nil
}

func (c *docker) awaitServer(ctx context.Context, node *Node) error {
	if err := awaitReady(ctx, node); err != nil {
		return c.withLog(ctx, err, node.Name)
	}
	return nil
}

// startAgent starts the agent of a node, which must have its address.
func (c *docker) startAgent(ctx context.Context, node *Node, args ...string) error {
	agentProcess, err := c.engine.Start(ctx, engine.Spec{
		Name: c.name(node.Name), Image: c.self.ID, Labels: c.request.Labels,
		Command: append([]string{"agent", "--stay", c.stay().String()}, args...),
		Network: c.network.Name, IP: node.IP,
		Hosts:        c.hosts(),
		Sysctls:      node.Server.Sysctls,
		Capabilities: []string{"NET_ADMIN"}, Volumes: c.volumes(), Attach: true,
	})
	if err != nil {
		return err
	}
	node.Host = agent.Connect(agentProcess.Input, agentProcess.Output, follow(agentProcess.Errors).All)
	return nil
}

// stay is how long the next agent outlives whoever started it. By its agents a cluster is in its
// network, which containers must leave one after another (see engine.RemoveRun): the inputs of all
// end at once, but within that time a reaper removes them in turn. Without a reaper they end by
// themselves, apart from each other.
func (c *docker) stay() time.Duration {
	return agentStays + time.Duration(c.agents.Add(1))*time.Second
}

// agentStays is longer than a reaper works.
const agentStays = 2 * time.Minute

// hosts names the servers, for the programs of users.
func (c *docker) hosts() map[string][]string {
	hosts := make(map[string][]string, len(c.servers))
	for n, server := range c.request.Spec.own {
		for _, name := range server.Names {
			if !slices.Contains(hosts[name], c.servers[n].IP) {
				hosts[name] = append(hosts[name], c.servers[n].IP)
			}
		}
	}
	for _, node := range c.servers {
		if _, taken := hosts[node.Name]; !taken {
			hosts[node.Name] = []string{node.IP}
		}
	}
	return hosts
}

func (c *docker) Start(ctx context.Context, p Program) (*Node, error) {
	if c.request.Lasting {
		return c.perform(ctx, p)
	}
	node, process, err := c.startProgram(ctx, p)
	if err != nil {
		return nil, err
	}
	node.Input, node.Output, node.Errors = process.Input, process.Output, follow(process.Errors)
	exits := make(chan Exit, 1)
	node.Exited = exits
	node.relay(process.Exited, exits)
	return node, nil
}

// startProgram starts a program on a node of its own.
func (c *docker) startProgram(ctx context.Context, p Program) (*Node, *engine.Container, error) {
	node := &Node{Name: p.Name}
	image, err := c.programImage(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	spec := engine.Spec{
		Name: c.name(p.Name), Image: image.ID, Command: p.Args, Labels: c.request.Labels,
		Network: "none", Volumes: c.volumes(), Attach: true,
	}
	spec.Mounts = p.Mounts
	if p.Image != (ProgramImage{}) {
		// Nothing is known of the image, but that it can run a static binary.
		spec.Entrypoint = []string{launcherPath}
		spec.Limits = &p.Image.Limits
	}
	if p.Networked {
		node.IP = c.network.Address(byte(firstProgram + c.programs.Add(1) - 1))
		if err := c.startAgent(ctx, node, "--install", launcherPath); err != nil {
			return nil, nil, err
		}
		// It answers once it has installed what the program's container begins with.
		if _, err := node.Host.Processes(ctx); err != nil {
			return nil, nil, err
		}
		spec.Name, spec.Within = c.serverName(p.Name), c.name(p.Name)
		node.freezer = &freezer{engine: c.engine, container: spec.Name}
	}
	process, err := c.engine.Start(ctx, spec)
	return node, process, err
}

// relay passes on how one life of a node's process ended.
func (n *Node) relay(exited <-chan engine.Exit, exits chan<- Exit) {
	ended := make(chan struct{})
	n.ended = ended
	go func() {
		exit := <-exited
		killed := n.killed.Load()
		close(ended)
		exits <- Exit{Clean: exit.Err == nil && exit.Code == 0, Killed: killed, Reason: exit.String()}
	}()
}

// name of a container: the agent's carries that of its node.
func (c *docker) name(node string) string {
	if node == "" {
		return "lockcheck-" + c.request.Run
	}
	return "lockcheck-" + c.request.Run + "-" + node
}

// serverName of the server or program on a node.
func (c *docker) serverName(node string) string { return c.name(node) + "-main" }

func (c *docker) volumes() map[string]string { return map[string]string{c.name(""): sharedFolder} }

const (
	// logTail is how many lines of a server's log go with an error.
	logTail = 10
	// logTimeout is how long they may take: the engine may be why the server is not ready.
	logTimeout = 5 * time.Second
)

func (c *docker) withLog(ctx context.Context, err error, server string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), logTimeout)
	defer cancel()
	log, logErr := c.Log(ctx, server, LogPart{Tail: logTail})
	if logErr != nil || log == "" {
		return err
	}
	return fmt.Errorf("%w\nlast lines of %s:\n%s", err, server, strings.TrimSpace(log))
}

func (c *docker) Servers() []*Node { return c.servers }
func (c *docker) Folder() string   { return sharedFolder }

func (c *docker) Images() map[string]string {
	c.making.Lock()
	defer c.making.Unlock()
	all := map[string]string{c.self.Ref: c.self.ID}
	for _, image := range c.images {
		all[image.Ref] = image.ID
	}
	if c.official.Digest != "" {
		all[c.official.Name] = c.official.Digest
	}
	for _, image := range c.others {
		all[image.Ref] = image.ID
	}
	return all
}

func (c *docker) Source() string {
	spec := c.request.Spec
	if c.request.Image != "" {
		return "image " + c.request.Image
	}
	if spec.own != nil {
		return "images of the lock file"
	}
	if digest := c.official.Digest; digest != "" {
		const shown = len("sha256:") + 12
		return fmt.Sprintf("official image %s (%s)", c.official.Name, digest[:min(shown, len(digest))])
	}
	if images.NeedsGo(spec.Recipe(c.request.Version)) {
		return "built from Go modules"
	}
	return "built from Debian packages"
}

func (c *docker) Log(ctx context.Context, server string, part LogPart) (string, error) {
	for _, node := range c.servers {
		if node.Name == server && node.lives != nil {
			return node.Errors.String(), nil // the engine keeps nothing of a container whose streams are ours
		}
	}
	return c.engine.Logs(ctx, c.serverName(server), part.Tail, part.Since)
}

func (c *docker) Close(ctx context.Context) error {
	if c.engine == nil {
		return nil
	}
	_, err := c.engine.RemoveRun(ctx, c.request.Run)
	for _, node := range c.servers {
		if node.lives != nil {
			node.lives.end()
		}
	}
	return errors.Join(err, c.engine.Close())
}
