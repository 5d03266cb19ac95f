package engine

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/pkg/stdcopy"
)

// Spec describes a container.
type Spec struct {
	Name       string
	Image      string
	Entrypoint []string
	Command    []string
	Env        []string
	Labels     map[string]string
	// Network and IP attach it to a network; with Network "none" it has none.
	Network string
	IP      string
	// Within is the name of a container whose network, shared memory and processes it
	// shares; Network and IP are then unused.
	Within string
	// Hosts are addresses by the names under which it knows them.
	Hosts map[string][]string
	// Sysctls are those of its own namespaces, by name.
	Sysctls map[string]string
	// Capabilities on top of Docker's default set.
	Capabilities []string
	Volumes      map[string]string // name to path
	// Mounts are paths of this machine that it may read, as "source:target".
	Mounts []string
	// Limits is what a container of a user may take; nil for no limits.
	Limits *Limits
	// Attach connects its standard streams; without it the engine keeps its
	// output as log.
	Attach bool
}

// Limits is what a container may take of this machine, and of more rights.
type Limits struct {
	// Memory is in bytes and PIDs in processes and threads; 0 for DefaultPIDs and half of the
	// machine's memory, -1 for no limit.
	Memory, PIDs int64
	// CPUs is how many processors it may keep busy, as in 1.5; 0 for all of them.
	CPUs float64
	// NewPrivileges lets programs get rights that their parents do not have, as sudo does.
	NewPrivileges bool
}

// DefaultPIDs bounds a program that forks without end, and no server that people run.
const DefaultPIDs = 4096

// limited returns the limits with the values that 0 stands for.
func (e *Engine) limited(ctx context.Context, l *Limits) (*Limits, error) {
	if l == nil {
		return nil, nil
	}
	limited := *l
	limited.PIDs = cmp.Or(l.PIDs, DefaultPIDs)
	if l.Memory == 0 {
		info, err := e.api.Info(ctx)
		if err != nil {
			return nil, err
		}
		limited.Memory = info.MemTotal / 2
	}
	return &limited, nil
}

// Container is a running container.
type Container struct {
	// Input, Output and Errors are its streams if it was attached. Input ends
	// when it is closed.
	Input  io.WriteCloser
	Output io.Reader
	Errors io.Reader
	// Exited yields one value when it has ended.
	Exited <-chan Exit
}

// Exit is how a container ended.
type Exit struct {
	Code int64
	Err  error // the engine could not tell
}

func (x Exit) String() string {
	if x.Err != nil {
		return x.Err.Error()
	}
	return "exit status " + strconv.FormatInt(x.Code, 10)
}

// ofContainer says which container an error is about.
func ofContainer(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("container %s: %w", name, err)
}

// Start creates and starts a container.
func (e *Engine) Start(ctx context.Context, spec Spec) (*Container, error) {
	started, err := e.start(ctx, spec)
	return started, ofContainer(spec.Name, err)
}

func (e *Engine) start(ctx context.Context, spec Spec) (*Container, error) {
	making, cancel, err := e.making(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	if spec.Limits, err = e.limited(making, spec.Limits); err != nil {
		return nil, err
	}
	created, err := e.api.ContainerCreate(making, spec.config(), spec.hostConfig(), spec.networking(), nil, spec.Name)
	if err != nil {
		return nil, err
	}
	return e.run(making, created.ID, spec.Attach)
}

// run starts a container that does not run, with its streams if it has any that are ours.
func (e *Engine) run(making context.Context, id string, attached bool) (*Container, error) {
	started := new(Container)
	if attached {
		if err := e.attach(making, id, started); err != nil {
			return nil, err
		}
	}
	started.Exited = e.wait(making, id)
	if err := e.api.ContainerStart(making, id, container.StartOptions{}); err != nil {
		return nil, err
	}
	return started, nil
}

// Write puts files into a folder of a running container. Everybody can read and write
// them: there are servers that keep what they learn in their settings.
func (e *Engine) Write(ctx context.Context, name, folder string, files map[string]string) error {
	ctx, cancel := e.answering(ctx)
	defer cancel()
	var written []File
	for _, file := range slices.Sorted(maps.Keys(files)) {
		written = append(written, File{Name: file, Mode: 0o666, Content: []byte(files[file])})
	}
	archive, err := Archive(written...)
	if err != nil {
		return err
	}
	return ofContainer(name+": "+folder, e.api.CopyToContainer(ctx, name, folder, archive, container.CopyToContainerOptions{}))
}

// Restart starts a container again that is ending or has ended, with its file
// system as it left it; attached as it was at first.
func (e *Engine) Restart(ctx context.Context, name string, attached bool) (*Container, error) {
	ended, failed := e.api.ContainerWait(ctx, name, container.WaitConditionNotRunning)
	select {
	case <-ended:
	case err := <-failed:
		return nil, ofContainer(name, err)
	}
	making, cancel, err := e.making(ctx)
	if err != nil {
		return nil, ofContainer(name, err)
	}
	defer cancel()
	started, err := e.run(making, name, attached)
	return started, ofContainer(name, err)
}

func (s Spec) config() *container.Config {
	return &container.Config{
		Image: s.Image, Entrypoint: s.Entrypoint, Cmd: s.Command, Env: s.Env, Labels: s.Labels,
		OpenStdin: s.Attach, StdinOnce: s.Attach,
		AttachStdin: s.Attach, AttachStdout: s.Attach, AttachStderr: s.Attach,
		StopSignal: "SIGKILL",
	}
}

func (s Spec) hostConfig() *container.HostConfig {
	host := &container.HostConfig{
		NetworkMode: container.NetworkMode(s.Network),
		IpcMode:     container.IPCModeShareable,
		CapAdd:      s.Capabilities,
		Sysctls:     s.Sysctls,
		LogConfig:   container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "10m"}},
	}
	if s.Attach {
		host.LogConfig = container.LogConfig{Type: "none"}
	}
	if s.Within != "" {
		host.NetworkMode = container.NetworkMode("container:" + s.Within)
		host.PidMode = container.PidMode("container:" + s.Within)
		host.IpcMode = container.IpcMode("container:" + s.Within)
	}
	if s.Limits != nil {
		host.PidsLimit, host.Memory = &s.Limits.PIDs, max(0, s.Limits.Memory) // the engine's 0 is no limit
		host.NanoCPUs = int64(s.Limits.CPUs * 1e9)
		if !s.Limits.NewPrivileges {
			host.SecurityOpt = []string{"no-new-privileges"}
		}
	}
	for name, addresses := range s.Hosts {
		for _, address := range addresses {
			host.ExtraHosts = append(host.ExtraHosts, name+":"+address)
		}
	}
	for _, m := range s.Mounts {
		source, target, _ := strings.Cut(m, ":")
		host.Mounts = append(host.Mounts, mount.Mount{Type: mount.TypeBind, Source: source, Target: target, ReadOnly: true})
	}
	for name, path := range s.Volumes {
		host.Mounts = append(host.Mounts, mount.Mount{Type: mount.TypeVolume, Source: name, Target: path})
	}
	return host
}

func (s Spec) networking() *network.NetworkingConfig {
	if s.Within != "" || s.IP == "" {
		return nil
	}
	return &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{
		s.Network: {IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: s.IP}},
	}}
}

// attach connects the streams before the container starts: nothing is missed.
func (e *Engine) attach(ctx context.Context, id string, c *Container) error {
	stream, err := e.attached(ctx, id)
	if err != nil {
		return err
	}
	output, outputEnd := io.Pipe()
	errors, errorsEnd := io.Pipe()
	c.Input, c.Output, c.Errors = stdin{stream}, output, errors
	go func() {
		_, err := stdcopy.StdCopy(outputEnd, errorsEnd, stream.Reader)
		_ = outputEnd.CloseWithError(err)
		_ = errorsEnd.CloseWithError(err)
		stream.Close()
	}()
	return nil
}

// attached gives up with its context, which the client's own call does not.
func (e *Engine) attached(ctx context.Context, id string) (types.HijackedResponse, error) {
	type answer struct {
		stream types.HijackedResponse
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		stream, err := e.api.ContainerAttach(ctx, id, container.AttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
		answered <- answer{stream, err}
	}()
	select {
	case a := <-answered:
		return a.stream, a.err
	case <-ctx.Done():
		return types.HijackedResponse{}, context.Cause(ctx)
	}
}

// stdin closes only the writing half of an attached stream.
type stdin struct{ stream types.HijackedResponse }

func (s stdin) Write(p []byte) (int, error) { return s.stream.Conn.Write(p) }
func (s stdin) Close() error                { return s.stream.CloseWrite() }

func (e *Engine) wait(ctx context.Context, id string) <-chan Exit {
	// The wait ends with the container, not with the call that started it; that it has
	// begun the engine says at once.
	ctx, watchdog := watched(context.WithoutCancel(ctx), e.limits.answer)
	status, failed := e.api.ContainerWait(ctx, id, container.WaitConditionNextExit)
	watchdog.timer.Stop()
	exited := make(chan Exit, 1)
	go func() {
		select {
		case s := <-status:
			exited <- Exit{Code: s.StatusCode}
		case err := <-failed:
			exited <- Exit{Err: err}
		}
	}()
	return exited
}

// Logs returns the last lines of a container's output since a time: all of them for tail 0, from
// its start for the zero time.
func (e *Engine) Logs(ctx context.Context, name string, tail int, since time.Time) (string, error) {
	options := container.LogsOptions{ShowStdout: true, ShowStderr: true, Timestamps: true}
	if !since.IsZero() {
		options.Since = since.UTC().Format(time.RFC3339Nano)
	}
	if tail > 0 {
		options.Tail = strconv.Itoa(tail)
	}
	stream, err := e.api.ContainerLogs(ctx, name, options)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	var text bytes.Buffer
	if _, err := stdcopy.StdCopy(&text, &text, stream); err != nil {
		return "", err
	}
	return strings.ToValidUTF8(text.String(), "?"), nil
}
