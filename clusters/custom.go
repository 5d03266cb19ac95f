package clusters

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockcheck/clusters/agent"
	"lockcheck/clusters/engine"
	"lockcheck/history"
)

// ProgramImage is an image that a user brings: one that there is, or a folder with a
// Dockerfile to make it of. The zero value is none.
type ProgramImage struct {
	Ref   string // its name; pulled if it is not there
	Build string // the folder
	// OfServers: it is that of the first server, for clients that come with it.
	OfServers bool
	// Limits are those of its containers.
	Limits engine.Limits
}

func (i ProgramImage) name() string {
	switch {
	case i.OfServers:
		return "that of the servers"
	case i.Build != "":
		return i.Build
	}
	return i.Ref
}

// CustomServer is a server of which lockcheck knows what a user says.
type CustomServer struct {
	Program string // under which it is shown
	// Node is the name of its node, which no other has; "" for n1, n2 and so on.
	Node  string
	Image ProgramImage
	Port  int
	// Entrypoint and Command replace those of the image; nil for these. In all commands, in
	// Environment and in the texts of Files {name}, {n}, {ip}, {ips} and {folder} stand for
	// what is true of a server: the name of its node, 1, its address, those of all with commas,
	// and its folder for data. Literal: these texts are taken as they are.
	Literal     bool
	Entrypoint  []string
	Command     []string
	Environment []string
	Files       map[string]string // by name, in {folder}
	// Mounts are files and folders of this machine that it may read, as "source:target".
	Mounts []string
	// Names under which others reach it, besides that of its node. Several servers may share one.
	Names []string
	// Launched, unless it is nil, has lockcheck run in the server's container and start the server as its child. It
	// is told the server's own program and arguments, and returns the arguments of lockcheck, and files that
	// lockcheck finds in the server's folder, by name. The streams of lockcheck are those of the node, also when
	// the server is started again.
	Launched func(place Place, command []string) (args []string, files map[string]string)
	// ReadyHTTP is a path that is answered with a status below 400, ReadyCommand a command
	// in the server's container that succeeds, once it can serve. Without either it is
	// enough that it accepts connections on its port, if it has one.
	ReadyHTTP    string
	ReadyCommand []string
	// LeaderCommand succeeds on the server that leads, ClockCommand prints the wall clock
	// of the server in seconds since 1970; nil where there is none.
	LeaderCommand []string
	ClockCommand  []string
	// Later and Hidden are as in Server.
	Later, Hidden bool
}

// errNoClockCommand is why the wall clock of such a server is left alone.
var errNoClockCommand = errors.New("nothing says how to ask this server for its wall clock, so that a step could not be proven (servers.clock in the lock file)")

// errLaunchedClock is why the wall clock of a server that lockcheck starts as its child is left alone.
var errLaunchedClock = errors.New("nothing says how to ask a replica for its wall clock, so that a step could not be proven")

// errNoFolder is why such a server cannot lose its disk.
var errNoFolder = errors.New("it keeps its data in places of its image ({folder} in its command, environment or files would be lockcheck's)")

// OfUser says whether the servers are of a user's own, as Custom describes them.
func (s Spec) OfUser() bool { return s.own != nil }

// nodeName is the name of the node of the n-th server, counted from 0.
func (s Spec) nodeName(n int) string {
	usual := fmt.Sprintf("n%d", n+1)
	if s.own == nil {
		return usual
	}
	return cmp.Or(s.own[n].Node, usual)
}

// launched says whether lockcheck starts the n-th server as its child.
func (s Spec) launched(n int) bool { return s.own != nil && s.own[n].Launched != nil }

// Limits are those of the containers of the n-th server, if it is of a user's own.
func (s Spec) Limits(n int) *engine.Limits {
	if s.own == nil {
		return nil
	}
	return &s.own[n].Image.Limits
}

// Custom describes the servers of a user, at least one.
func Custom(name string, servers []CustomServer) Spec {
	return Spec{
		Name: name, Nodes: len(servers), Image: servers[0].Image.name(), own: servers,
		Server: func(n int) Server { return servers[n].server() },
	}
}

func (c *CustomServer) server() Server {
	s := Server{
		Program: c.Program, Port: c.Port, Probes: c.probes(), Later: c.Later, Hidden: c.Hidden,
		Command:     func(p Place) []string { return c.filled(p, c.Command) },
		Environment: func(p Place) []string { return c.filled(p, c.Environment) },
		Files:       c.files,
	}
	switch {
	case c.Launched != nil:
		s.NoClock = errLaunchedClock
	case c.ClockCommand == nil:
		s.NoClock = errNoClockCommand
	}
	if !c.usesFolder() {
		s.NoWipe = errNoFolder
	}
	return s
}

// usesFolder says whether its data can be in its folder.
func (c *CustomServer) usesFolder() bool {
	if c.Literal {
		return false
	}
	texts := slices.Concat(c.Command, c.Environment, slices.Collect(maps.Values(c.Files)))
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, "{folder}") })
}

func (c *CustomServer) files(p Place) map[string]string {
	files := make(map[string]string, len(c.Files))
	for name, text := range c.Files {
		files[name] = p.fill(text)
	}
	return files
}

// fill puts what is true of a server into a text.
func (p Place) fill(text string) string {
	return strings.NewReplacer(
		"{name}", p.Name, "{n}", strconv.Itoa(p.N+1), "{ip}", p.IPs[p.N], "{ips}", strings.Join(p.IPs, ","), "{folder}", p.Folder,
	).Replace(text)
}

// filled are texts with what is true of a server.
func (c *CustomServer) filled(p Place, texts []string) []string {
	if c.Literal {
		return texts
	}
	var filled []string
	for _, text := range texts {
		filled = append(filled, p.fill(text))
	}
	return filled
}

// probes says what can be asked. The agent asks for HTTP and connections; commands run in the
// server's container, see commanded.
func (c *CustomServer) probes() agent.Probes {
	plain := portProbes{HTTP: c.ReadyHTTP, NoPort: c.Port == 0}
	if c.LeaderCommand != nil {
		return leaderProbes{plain}
	}
	return plain
}

// portProbes ask a server of which only its port is known.
type portProbes struct {
	HTTP string `json:"http,omitempty"`
	// NoPort: it serves nobody from outside, and is ready once it runs.
	NoPort bool `json:"no_port,omitempty"`
}

var _ agent.Probes = portProbes{}

func (p portProbes) Ready(ctx context.Context, address string) error {
	switch {
	case p.NoPort:
		return nil
	case p.HTTP == "":
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+p.HTTP, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s: %s", p.HTTP, answer.Status)
	}
	return nil
}

func (portProbes) Clock(context.Context, string) (time.Time, error) {
	return time.Time{}, errNoClockCommand
}

func (portProbes) Version(context.Context, string) (string, error) { return "", nil }

// leaderProbes are for servers one of which leads, as commanded knows.
type leaderProbes struct{ portProbes }

var _ agent.LeaderProbe = leaderProbes{}

func (leaderProbes) Leads(context.Context, string) (bool, error) { return false, agent.ErrNoLeader }

// probesFlag hands the probes of the n-th server to its agent.
func (s Spec) probesFlag(n int) []string {
	if s.own == nil {
		return []string{"--servers", s.Name, "--server", strconv.Itoa(n)}
	}
	text, err := json.Marshal(portProbes{HTTP: s.own[n].ReadyHTTP, NoPort: s.own[n].Port == 0})
	if err != nil {
		panic(err) // a struct of a text and a bool
	}
	return []string{"--probes", string(text)}
}

// ParseProbes reads what agents are told of the servers of a user.
func ParseProbes(text string) (agent.Probes, error) {
	var probes portProbes
	err := json.Unmarshal([]byte(text), &probes)
	return probes, err
}

// commanded is the host of a server that is asked by commands in its container.
type commanded struct {
	agent.Host
	server    CustomServer
	engine    *engine.Engine
	container string
	place     Place
}

func (c commanded) run(ctx context.Context, command []string) (string, error) {
	return c.engine.Exec(ctx, c.container, c.server.filled(c.place, command))
}

func (c commanded) Ready(ctx context.Context) error {
	if c.server.ReadyCommand == nil {
		return c.Host.Ready(ctx)
	}
	_, err := c.run(ctx, c.server.ReadyCommand)
	return err
}

// cannotRun is the first of the exit statuses by which a shell says that there is no such
// command, or that it could not be run.
const cannotRun = 126

func (c commanded) Leads(ctx context.Context) (bool, error) {
	if c.server.LeaderCommand == nil {
		return c.Host.Leads(ctx)
	}
	_, err := c.run(ctx, c.server.LeaderCommand)
	var status *engine.ExitError
	if errors.As(err, &status) && status.Code < cannotRun {
		return false, nil
	}
	return err == nil, err
}

func (c commanded) Clock(ctx context.Context) (agent.Reading, error) {
	if c.server.ClockCommand == nil {
		return c.Host.Clock(ctx)
	}
	reading := agent.Reading{Before: time.Now().UTC(), Asked: agent.Moment{From: history.Now()}}
	text, err := c.run(ctx, c.server.ClockCommand)
	reading.After, reading.Asked.To = time.Now().UTC(), history.Now()
	if err != nil {
		return reading, err
	}
	reading.Server, err = parseSeconds(text)
	return reading, err
}

// parseSeconds reads seconds since 1970, with or without a fraction.
func parseSeconds(text string) (time.Time, error) {
	whole, fraction, _ := strings.Cut(strings.TrimSpace(text), ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("seconds since 1970 were expected: %w", err)
	}
	const digits = 9
	fraction = (fraction + strings.Repeat("0", digits))[:digits]
	nanos, err := strconv.ParseInt(fraction, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("seconds since 1970 were expected: %w", err)
	}
	return time.Unix(seconds, nanos).UTC(), nil
}

// Fixed is the cluster in one version, number and image; zero values leave what is usual.
func (s Spec) Fixed(version string, count int, image string) Spec {
	if version != "" {
		s.Versions = append([]string{version}, slices.DeleteFunc(slices.Clone(s.Versions), func(v string) bool { return v == version })...)
	}
	if count != 0 {
		s.Sizes = append([]int{s.Nodes}, s.Sizes...)
		s.Nodes = count
	}
	s.replacement = image
	return s
}

// Replacement is the image that a lock file has put in the place of the recipe's; "" for none.
func (s Spec) Replacement() string { return s.replacement }
