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
	// sharedFolder is the path of the run's volume in every container.
	sharedFolder = "/lockcheck"
	// Last bytes of addresses: servers count from the first, programs from the second.
	firstServer  = 11
	firstProgram = 101
	// closeTimeout bounds the removal of a cluster that did not start.
	closeTimeout = time.Minute
)

// StartAtOnce bounds how many servers or programs start at the same time.
const StartAtOnce = 4

// docker is a cluster of containers. Each node is an agent, which owns the network and process namespaces, and
// the server or program within them. Containers start from the ID of an image, because its name may move to
// another image meanwhile. The history records the ID, too.
type docker struct {
	request Request
	engine  *engine.Engine
	maker   images.Maker
	self    engine.Image
	images  []engine.Image // one for each server
	// official is the official image of the servers; the zero value if they run from another image.
	official images.OfficialImage
	network  engine.Network
	servers  []*Node
	// programs counts programs with an address. Programs may start concurrently.
	programs atomic.Int32
	agents   atomic.Int32

	making sync.Mutex
	others map[string]engine.Image // images of programs with a binary of their own, and of users
	stages map[string]*staged      // of a lasting cluster, by program name
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
	if c.request.Disks {
		if err := c.engine.CanMount(); err != nil {
			return err
		}
	}
	if err := c.makeImages(ctx); err != nil {
		return err
	}
	c.request.Progress("starting %s", c.starting())
	if c.network, err = c.engine.CreateNetwork(ctx, c.name(""), c.request.Labels); err != nil {
		return err
	}
	if err := c.engine.CreateVolume(ctx, c.name(""), c.request.Labels); err != nil {
		return err
	}
	return c.startServers(ctx)
}

// starting says which servers are started: those of the user by their names, of which several are copies of one.
func (c *docker) starting() string {
	spec := c.request.Spec
	if spec.own == nil {
		return fmt.Sprintf("%d × %s", c.request.nodes(), spec.Recipe(c.request.Version))
	}
	copies := make(map[string]int)
	var names, parts []string
	for _, server := range spec.own {
		if copies[server.Program]++; copies[server.Program] == 1 {
			names = append(names, server.Program)
		}
	}
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%d × %s", copies[name], name))
	}
	return strings.Join(parts, ", ")
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
	for _, version := range c.request.Versions {
		recipe := c.request.Spec.Recipe(version)
		image, err := c.known(ctx, recipe)
		if err != nil {
			return err
		}
		c.keep(recipe, image)
	}
	return nil
}

// serverImage returns the image of the n-th server, made if missing.
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

// own returns a user's image. It makes each image once, so that several copies of a server report its making once.
func (c *docker) own(ctx context.Context, image ProgramImage) (made engine.Image, err error) {
	if image.OfServers {
		return c.images[0], nil
	}
	if known, is := c.others[image.name()]; is {
		return known, nil
	}
	if image.Build != "" {
		made, err = c.maker.EnsureFolder(ctx, image.Build)
	} else {
		made, err = c.maker.Foreign(ctx, image.Ref)
	}
	if err == nil {
		c.keep(image.name(), made)
	}
	return made, err
}

// keep notes an image that was made.
func (c *docker) keep(name string, image engine.Image) {
	if c.others == nil {
		c.others = make(map[string]engine.Image)
	}
	c.others[name] = image
}

// checkClock refuses an engine on another machine before images are made there, which takes minutes. Only a
// container on the engine can tell, because the engine's address may be a container's on this machine. For an
// engine behind a socket the agents of the run find out later.
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
	c.keep(which, image)
	return image, nil
}

// startServers starts all agents before the first server, so that servers that look for each other find
// addresses that refuse, instead of none that answer. It starts all servers before it waits for one, because
// some become ready only together. Servers marked Later start after that. Programs start meanwhile.
func (c *docker) startServers(ctx context.Context) error {
	c.layOut()
	if err := eachServer(ctx, c.servers, c.startServerAgent); err != nil {
		return err
	}
	if err := c.request.before(ctx, c); err != nil {
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

// layOut gives each server its name and address.
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

// eachServer calls do for all servers, a few at a time.
func eachServer(ctx context.Context, servers []*Node, do func(context.Context, *Node) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(StartAtOnce)
	for _, node := range servers {
		group.Go(func() error { return do(ctx, node) })
	}
	return group.Wait()
}

// place describes the location of a server to its command.
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

// nodeFolder is the folder of the n-th server in the shared folder. It is not named after the node, because
// another folder there may have that name.
func nodeFolder(n int) string { return fmt.Sprintf("%s/n%d", sharedFolder, n+1) }

func (c *docker) startServerAgent(ctx context.Context, node *Node) error {
	n := c.place(node).N
	args := append(c.request.Spec.probesFlag(n), "--address", "127.0.0.1:"+strconv.Itoa(node.Server.Port))
	if c.request.Spec.launched(n) || c.request.Disks {
		args = append(args, "--install", launcherPath)
	}
	if c.onDisk(node) {
		args = append(args, "--disk", string(diskSwitch(node)))
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
		joining := place
		joining.Joining = true
		node.joins = node.Server.Files(joining)
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
	command, env := withClock(node, driverOf(image), command, node.Server.ClockEnv)
	launched := c.request.Spec.launched(place.N)
	if launched { // the clock is that of the program, and not of its parent, which stamps what the program prints
		command = node.launch(place, command, c.request.Spec.own[place.N])
	}
	if c.onDisk(node) {
		command = append(c.disk(node).Launcher(launcherPath), command...)
	}
	if _, err := node.Wipe(ctx); err != nil {
		return err
	}
	if node.Server.Environment != nil {
		env = append(env, node.Server.Environment(place)...)
	}
	server, err := c.engine.Start(ctx, engine.Spec{
		Name: c.serverName(node.Name), Image: image.ID, Labels: c.request.Labels,
		Entrypoint: command[:1], Command: command[1:],
		Env: env, Mounts: mounts, Mounting: c.onDisk(node), Limits: c.request.Spec.Limits(place.N),
		Within: c.name(node.Name), Volumes: c.volumes(), Attach: launched,
	})
	if err != nil {
		return err
	}
	if own := c.request.Spec.own; own != nil {
		node.Host = commanded{Host: node.Host, server: own[place.N], engine: c.engine, container: c.serverName(node.Name), place: place}
	}
	node.freezer = &freezer{engine: c.engine, container: c.serverName(node.Name)}
	if node.Versions = c.request.Spec.versionsOf(place.N); len(c.request.Versions) > 0 {
		node.upgrade = func(ctx context.Context, version string) error {
			return c.engine.Copy(ctx, c.others[c.request.Spec.Recipe(version)].ID, images.Program(node.Server.Program), c.serverName(node.Name), c.request.Labels)
		}
	}
	exits := make(chan Exit, 1)
	node.Exited, node.Again = exits, func(ctx context.Context) error { return c.restart(ctx, node, exits) }
	node.followLife(server, exits)
	return nil
}

// launch prepares lockcheck to start a server as its child, and returns the command that does so.
func (n *Node) launch(place Place, command []string, own CustomServer) []string {
	args, files := own.Launched(place, command)
	maps.Copy(n.files, files)
	n.lives = newLives(n)
	return append([]string{launcherPath}, args...)
}

// followLife follows one life of a server, from a start to its end.
func (n *Node) followLife(container *engine.Container, exits chan<- Exit) {
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
	node.followLife(again, exits)
	return nil
}

func (c *docker) awaitServer(ctx context.Context, node *Node) error {
	if err := awaitReady(ctx, node); err != nil {
		return c.withLog(ctx, err, node.Name)
	}
	return nil
}

// startAgent starts the agent of a node, whose address must be set.
func (c *docker) startAgent(ctx context.Context, node *Node, args ...string) error {
	agentProcess, err := c.engine.Start(ctx, engine.Spec{
		Name: c.name(node.Name), Image: c.self.ID, Labels: c.request.Labels,
		Command: append([]string{"agent", "--stay", c.stay().String()}, args...),
		Network: c.network.Name, IP: node.IP, Hostname: c.request.Spec.hostname(c.place(node).N),
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

// stay is how long the next agent outlives the process that started it. An agent's container keeps the node in
// the network, and containers must leave a network one after another (see engine.RemoveRun). The inputs of all
// agents end at once, but within their stay a reaper removes them one by one. Without a reaper they end by
// themselves, a second apart.
func (c *docker) stay() time.Duration {
	return agentStays + time.Duration(c.agents.Add(1))*time.Second
}

// agentStays is longer than a reaper works.
const agentStays = 2 * time.Minute

// hosts maps host names to servers' addresses, for users' programs.
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

// startProgram starts a program on a new node.
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
		// Nothing is known about the image except that it can run a static binary.
		spec.Entrypoint = []string{launcherPath}
		spec.Limits = &p.Image.Limits
	}
	if p.Networked {
		node.IP = c.network.Address(byte(firstProgram + c.programs.Add(1) - 1))
		if err := c.startProgramAgent(ctx, node, p); err != nil {
			return nil, nil, err
		}
		spec.Command = node.clocked(p, clockFile(node))
		spec.Name, spec.Within = c.serverName(p.Name), c.name(p.Name)
		node.freezer = &freezer{engine: c.engine, container: spec.Name}
	}
	process, err := c.engine.Start(ctx, spec)
	return node, process, err
}

// startProgramAgent starts the agent of a program, and returns once it has installed the program's launcher.
func (c *docker) startProgramAgent(ctx context.Context, node *Node, p Program) error {
	args := []string{"--install", launcherPath}
	if p.Clock {
		args = append(args, "--clock-socket", ClockSocket(sharedFolder, p.Name))
		args = append(args, clockFlags(node, agent.VDSO)...)
	}
	if err := c.startAgent(ctx, node, args...); err != nil {
		return err
	}
	if p.Clock {
		return startClock(ctx, node)
	}
	_, err := node.Host.Processes(ctx)
	return err
}

// relay passes on how one life of a node's process ended.
func (n *Node) relay(exited <-chan engine.Exit, exits chan<- Exit) {
	ended := make(chan struct{})
	n.ended = ended
	go func() {
		exit := <-exited
		if n.mayEnd.Load() {
			n.killed.Store(true)
		}
		killed := n.killed.Load()
		close(ended)
		exits <- Exit{Clean: exit.Err == nil && exit.Code == 0, Killed: killed, Reason: exit.String()}
	}()
}

// name returns the name of a node's first container, the agent's if there is one, or of the run's network and
// volume for "".
func (c *docker) name(node string) string {
	if node == "" {
		return "lockcheck-" + c.request.Run
	}
	return "lockcheck-" + c.request.Run + "-" + node
}

// serverName returns the name of the container of a node's server or program.
func (c *docker) serverName(node string) string { return c.name(node) + "-main" }

func (c *docker) volumes() map[string]string { return map[string]string{c.name(""): sharedFolder} }

const (
	// logTail is how many lines of a server's log are added to an error.
	logTail = 10
	// logTimeout bounds the wait for these lines, because the engine may be why the server is not ready.
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
			return node.Errors.String(), nil // the engine keeps no log of a container whose streams are attached
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
