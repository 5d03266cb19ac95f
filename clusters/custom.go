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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockcheck/clusters/agent"
	"lockcheck/clusters/engine"
	"lockcheck/history"
)

// ProgramImage is a user's image: an existing image, or a folder with a Dockerfile. The zero value is none.
type ProgramImage struct {
	Ref   string // image name; pulled if missing
	Build string // folder with the Dockerfile
	// OfServers: the image of the first server, for clients that come with it.
	OfServers bool
	// Limits bound the image's containers.
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

// CustomServer is a server that a user describes.
type CustomServer struct {
	Program string // name under which the server is shown
	// Node is the name of the server's node, unique in the cluster; "" for n1, n2 and so on.
	Node  string
	Image ProgramImage
	Port  int
	// Entrypoint and Command replace the image's; nil for the image's own. All commands, Environment and the
	// texts of Files may contain placeholders. {name} is the name of the server's node, {n} its number from 1,
	// {ip} its address, {ips} all addresses, separated by commas, and {folder} its data folder. With Literal,
	// texts are used unchanged.
	Literal     bool
	Entrypoint  []string
	Command     []string
	Environment []string
	Files       map[string]string // by name, relative to {folder}
	// Mounts are files and folders of this machine, mounted read-only, as "source:target".
	Mounts []string
	// Names under which other nodes reach the server, besides its node's name. Several servers may share a
	// name.
	Names []string
	// Launched, unless nil, runs lockcheck in the server's container, and lockcheck starts the server as its
	// child. Launched gets the server's program and arguments. It returns the arguments of lockcheck, and
	// files, by name, that lockcheck finds in the server's folder. The node's streams are lockcheck's, also
	// after the server is restarted.
	Launched func(place Place, command []string) (args []string, files map[string]string)
	// ReadyHTTP is a path that is answered with a status below 400 once the server can serve. ReadyCommand is a
	// command in the server's container that succeeds then. Without either, the server is ready once it accepts
	// connections on its port, or at once if it has no port.
	ReadyHTTP    string
	ReadyCommand []string
	// LeaderCommand succeeds on the leader. ClockCommand prints the server's wall clock in seconds since 1970.
	// Either is nil if there is none.
	LeaderCommand []string
	ClockCommand  []string
	// Later and Hidden are as in Server.
	Later, Hidden bool
}

// errNoClockCommand is why the wall clock of a server without a ClockCommand is not moved.
var errNoClockCommand = errors.New("nothing says how to ask this server for its wall clock, so that a step could not be proven (servers.clock in a lock file, app.clock in an app file)")

// errNoFolder is why a server that does not use {folder} cannot lose its disk.
var errNoFolder = errors.New("it keeps its data in places of its image ({folder} in its command, environment or files would be lockcheck's)")

// OfUser says whether the servers are a user's own, described by Custom.
func (s Spec) OfUser() bool { return s.own != nil }

// nodeName is the node name of the n-th server, counted from 0.
func (s Spec) nodeName(n int) string {
	usual := fmt.Sprintf("n%d", n+1)
	if s.own == nil {
		return usual
	}
	return cmp.Or(s.own[n].Node, usual)
}

// hostPattern is what a name must look like that a machine can have (RFC 1123).
var hostPattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)

// hostname is the name that the n-th server has for itself where its user has named it: a program that tells others its
// host name tells them the name of its node. "" leaves it to the engine.
func (s Spec) hostname(n int) string {
	if s.own == nil || !hostPattern.MatchString(s.own[n].Node) {
		return ""
	}
	return s.own[n].Node
}

// launched says whether lockcheck starts the n-th server as its child.
func (s Spec) launched(n int) bool { return s.own != nil && s.own[n].Launched != nil }

// Limits bound the container of the n-th server if the servers are a user's own; nil otherwise.
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
	if c.ClockCommand == nil {
		s.NoClock = errNoClockCommand
	}
	if !c.usesFolder() {
		s.NoWipe = errNoFolder
	}
	return s
}

// usesFolder says whether any text of the server names {folder}, so that its data can be there.
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

// fill replaces the placeholders in a text.
func (p Place) fill(text string) string {
	return strings.NewReplacer(
		"{name}", p.Name, "{n}", strconv.Itoa(p.N+1), "{ip}", p.IPs[p.N], "{ips}", strings.Join(p.IPs, ","), "{folder}", p.Folder,
	).Replace(text)
}

// filled replaces the placeholders in texts, unless they are literal.
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

// probes returns the questions that the agent asks: HTTP and connections. Commands run in the server's
// container, see commanded.
func (c *CustomServer) probes() agent.Probes {
	plain := portProbes{HTTP: c.ReadyHTTP, NoPort: c.Port == 0}
	if c.LeaderCommand != nil {
		return leaderProbes{plain}
	}
	return plain
}

// portProbes ask a server of which only the port, and perhaps an HTTP path, is known.
type portProbes struct {
	HTTP string `json:"http,omitempty"`
	// NoPort: the server accepts no connections, and counts as ready once it runs.
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

// leaderProbes are for servers with a leader, which commanded finds with a command.
type leaderProbes struct{ portProbes }

var _ agent.LeaderProbe = leaderProbes{}

func (leaderProbes) Leads(context.Context, string) (bool, error) { return false, agent.ErrNoLeader }

// probesFlag passes the probes of the n-th server to its agent.
func (s Spec) probesFlag(n int) []string {
	if s.own == nil {
		return []string{"--servers", s.Name, "--server", strconv.Itoa(n)}
	}
	text, err := json.Marshal(portProbes{HTTP: s.own[n].ReadyHTTP, NoPort: s.own[n].Port == 0})
	if err != nil {
		panic(err) // a struct of a string and a bool
	}
	return []string{"--probes", string(text)}
}

// ParseProbes reads the probes that probesFlag passes to an agent.
func ParseProbes(text string) (agent.Probes, error) {
	var probes portProbes
	err := json.Unmarshal([]byte(text), &probes)
	return probes, err
}

// commanded is the host of a server that answers commands in its container.
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

// cannotRun is the lowest exit status that a shell uses for a command that it did not find or could not run.
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

// Fixed fixes the version, the number of servers and the image. Zero values keep the defaults.
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

// Replacement is the image that a lock file has set in place of the recipe's; "" for none.
func (s Spec) Replacement() string { return s.replacement }
