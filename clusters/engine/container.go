package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
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
	// Network and IP attach the container to a network. With Network "none" it has no network.
	Network string
	IP      string
	// Hostname is the name of the container for itself, and for those within it; "" lets the engine choose.
	Hostname string
	// Within is the name of a container whose network, shared memory and processes this container shares.
	// Network and IP are then unused.
	Within string
	// Hosts maps host names that the container resolves to their addresses.
	Hosts map[string][]string
	// Sysctls are set in the container's own namespaces, by name.
	Sysctls map[string]string
	// Capabilities on top of Docker's default set.
	Capabilities []string
	// Mounting lets the container mount FUSE file systems. Its programs then start as root.
	Mounting bool
	Volumes  map[string]string // volume name to path in the container
	// Mounts are paths of this machine, mounted read-only, as "source:target".
	Mounts []string
	// Limits bounds a user's container; nil for no limits.
	Limits *Limits
	// Attach connects the container's standard streams. Without it the engine keeps the output as a log.
	Attach bool
}

// Limits bounds the resources and the privileges of a container.
type Limits struct {
	// Memory is in bytes, PIDs counts processes and threads. For 0 they are half of the machine's memory and
	// DefaultPIDs; -1 means no limit.
	Memory, PIDs int64
	// CPUs is how many processors the container may keep busy, such as 1.5; 0 for all of them.
	CPUs float64
	// NewPrivileges lets programs gain privileges that their parents lack, as sudo does.
	NewPrivileges bool
}

// fuseDevice is where a machine has FUSE.
const fuseDevice = "/dev/fuse"

// CanMount says why containers with Spec.Mounting cannot start; nil if they can, or if the engine is on another
// machine, where only the start of a container shows it.
func (e *Engine) CanMount() error {
	if !e.BySocket() {
		return nil
	}
	return hasDevice(fuseDevice)
}

func hasDevice(path string) error {
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("faults of disks need FUSE, and %w; load the kernel's module (modprobe fuse)", err)
	}
	return nil
}

// DefaultPIDs stops a program that forks without end, and is out of reach of servers that people run.
const DefaultPIDs = 4096

// limited returns the limits with zero values replaced by the defaults.
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
	// Input, Output and Errors are the container's streams if it was attached. Closing Input ends the container's
	// standard input.
	Input  io.WriteCloser
	Output io.Reader
	Errors io.Reader
	// Exited yields one value when the container has ended.
	Exited <-chan Exit
}

// Exit is how a container ended.
type Exit struct {
	Code int64
	Err  error // why the engine could not report the exit code
}

func (x Exit) String() string {
	if x.Err != nil {
		return x.Err.Error()
	}
	return "exit status " + strconv.FormatInt(x.Code, 10)
}

// ofContainer adds the container's name to an error.
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
	making, cancel, err := e.creationContext(ctx)
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

// run starts a container that is not running, and attaches its streams if asked to.
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

// Copy copies a file of an image to the same path in a container, which need not run. The labels are for the
// container that gives access to the image, which is removed.
func (e *Engine) Copy(ctx context.Context, image, file, to string, labels map[string]string) error {
	ctx, cancel, err := e.creationContext(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	from, err := e.api.ContainerCreate(ctx, &container.Config{Image: image, Labels: labels}, nil, nil, nil, "")
	if err != nil {
		return err
	}
	content, _, err := e.api.CopyFromContainer(ctx, from.ID, file)
	if err == nil {
		err = errors.Join(e.api.CopyToContainer(ctx, to, path.Dir(file), content, container.CopyToContainerOptions{}), content.Close())
	}
	_, removed := e.removeContainer(ctx, from.ID)
	return ofContainer(to+": "+file, errors.Join(err, removed))
}

// Write puts files into a folder of a running container. Everybody may read and write them, because some
// servers save state in their configuration files.
func (e *Engine) Write(ctx context.Context, name, folder string, files map[string]string) error {
	ctx, cancel := e.answerContext(ctx)
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

// Restart waits until a container has ended and starts it again on the same file system. attached must be as at
// its first start.
func (e *Engine) Restart(ctx context.Context, name string, attached bool) (*Container, error) {
	ended, failed := e.api.ContainerWait(ctx, name, container.WaitConditionNotRunning)
	select {
	case <-ended:
	case err := <-failed:
		return nil, ofContainer(name, err)
	}
	making, cancel, err := e.creationContext(ctx)
	if err != nil {
		return nil, ofContainer(name, err)
	}
	defer cancel()
	started, err := e.run(making, name, attached)
	return started, ofContainer(name, err)
}

func (s Spec) config() *container.Config {
	user := "" // the image's
	if s.Mounting {
		user = "0"
	}
	return &container.Config{
		User: user, Hostname: s.Hostname, Image: s.Image, Entrypoint: s.Entrypoint, Cmd: s.Command, Env: s.Env, Labels: s.Labels,
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
		host.PidsLimit, host.Memory = &s.Limits.PIDs, max(0, s.Limits.Memory) // 0 means no limit to the engine
		host.NanoCPUs = int64(s.Limits.CPUs * 1e9)
		if !s.Limits.NewPrivileges {
			host.SecurityOpt = []string{"no-new-privileges"}
		}
	}
	if s.Mounting {
		host.CapAdd = append(slices.Clone(host.CapAdd), "SYS_ADMIN")
		host.Devices = []container.DeviceMapping{{PathOnHost: fuseDevice, PathInContainer: fuseDevice, CgroupPermissions: "rwm"}}
		host.SecurityOpt = append(host.SecurityOpt, "apparmor=unconfined") // Docker's profile forbids every mount
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

// attach connects the streams before the container starts, so that no output is missed.
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

// attached returns when its context ends, which the Docker client's own call does not.
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

// stdin is the input of an attached container. Close closes only the writing half of the stream.
type stdin struct{ stream types.HijackedResponse }

func (s stdin) Write(p []byte) (int, error) { return s.stream.Conn.Write(p) }
func (s stdin) Close() error                { return s.stream.CloseWrite() }

func (e *Engine) wait(ctx context.Context, id string) <-chan Exit {
	// The wait lasts as long as the container, not as long as the call that started it. The watchdog covers
	// only the engine's first answer, which comes at once.
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

// Logs returns the output of a container since a time, from its start for the zero time. It returns the last
// tail lines, or all of them for tail 0.
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
