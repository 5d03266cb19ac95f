package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"lockcheck/clusters/engine"
)

// baseLabel marks a base image that lockcheck has made.
const baseLabel = "lockcheck.base"

// suite is a Debian release that images are based on.
type suite struct{ name, image string }

var (
	// trixie is the release of lockcheck's servers.
	trixie = suite{name: "trixie", image: "debian:trixie-slim"}
	// bookworm is only for users' Dockerfiles.
	bookworm = suite{name: "bookworm", image: "debian:bookworm-slim"}
)

// pullTimeout is how long a pull may take before the base is made on this machine instead.
const pullTimeout = 2 * time.Minute

// mirrorVariable is the environment variable that names the mirror of Debian packages.
const mirrorVariable = "DEBIAN_MIRROR"

// base returns the base image of a suite. It takes an existing image, else pulls one, else makes one with
// debootstrap.
func (m Maker) base(ctx context.Context, s suite) (engine.Image, error) {
	own := namespace + "base:" + s.name
	look := func() (found engine.Image, ok bool, err error) {
		for _, ref := range []string{s.image, own} {
			if found, ok, err = m.Engine.Image(ctx, ref); err != nil || ok {
				break
			}
		}
		return found, ok, err
	}
	return m.made(ctx, "base-"+s.name, look, func() error { return m.makeBase(ctx, s, own) })
}

func (m Maker) makeBase(ctx context.Context, s suite, own string) error {
	err := m.pull(ctx, s.image)
	if err == nil {
		return nil
	}
	m.Progress("%s cannot be pulled; making a base image with debootstrap (once, about half a minute)", s.image)
	if bootstrapErr := m.bootstrap(ctx, s, own); bootstrapErr != nil {
		return fmt.Errorf("no base image: pull: %w; debootstrap: %w", err, bootstrapErr)
	}
	return nil
}

func (m Maker) pull(ctx context.Context, ref string) error {
	m.Progress("pulling %s", ref)
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	return m.Engine.Pull(ctx, ref)
}

// bootstrap makes a Debian system in a temporary folder and imports it.
func (m Maker) bootstrap(ctx context.Context, s suite, ref string) (err error) {
	if os.Geteuid() != 0 {
		return fmt.Errorf("needs root: run lockcheck images as root once, or load %s with docker load", s.image)
	}
	folder, err := m.temporaryFolder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	command, err := debootstrap(ctx, folder)
	if err != nil {
		return err
	}
	root := filepath.Join(folder, "root")
	command.Args = append(command.Args, "--variant=minbase", s.name, root)
	// Without an argument debootstrap uses the public mirror.
	if mirror := os.Getenv(mirrorVariable); mirror != "" {
		command.Args = append(command.Args, mirror)
	}
	ownMounts(command)
	if err := m.runGroup(command); err != nil {
		return err
	}
	// Another user may have been faster. A second base would be another image, and all images based on it would
	// be made again.
	if _, there, err := m.Engine.Image(ctx, ref); err != nil || there {
		return err
	}
	return m.importRoot(ctx, root, ref)
}

// ownMounts runs a command in its own mount namespace, so that its mounts disappear with its processes even if
// they are killed. Otherwise the removal of its folder would reach into what is mounted there. It takes root.
func ownMounts(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
}

// runGroup runs a command as the leader of a process group, which is killed with the command.
func (m Maker) runGroup(command *exec.Cmd) error {
	if command.SysProcAttr == nil {
		command.SysProcAttr = new(syscall.SysProcAttr)
	}
	command.SysProcAttr.Setpgid = true
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	output := &lines{each: m.status}
	command.Stdout, command.Stderr = output, output
	launch := (*exec.Cmd).Start
	if m.Launch != nil {
		launch = m.Launch
	}
	if err := launch(command); err != nil {
		return err
	}
	return explained(command, output.all, command.Wait())
}

// lines keeps everything that is written to it and passes on each complete line. The last part goes into the
// command's error.
type lines struct {
	each func(line string)
	all  []byte
	open int // where the last, incomplete line begins
}

func (l *lines) Write(p []byte) (int, error) {
	l.all = append(l.all, p...)
	for {
		end := bytes.IndexByte(l.all[l.open:], '\n')
		if end < 0 {
			return len(p), nil
		}
		l.each(string(l.all[l.open : l.open+end]))
		l.open += end + 1
	}
}

func (m Maker) importRoot(ctx context.Context, root, ref string) error {
	archive := exec.CommandContext(ctx, "tar", "--create", "--directory", root, "--exclude", "./var/cache/apt/archives/*.deb", ".")
	output, err := archive.StdoutPipe()
	if err != nil {
		return err
	}
	if err := archive.Start(); err != nil {
		return err
	}
	importErr := m.Engine.Import(ctx, ref, output, "LABEL "+baseLabel+"=debootstrap")
	return errors.Join(importErr, archive.Wait())
}

// debootstrap returns the command of that name. If it is not installed, its package is unpacked into the
// folder, so that the machine stays unchanged.
func debootstrap(ctx context.Context, folder string) (*exec.Cmd, error) {
	if path, err := exec.LookPath("debootstrap"); err == nil {
		return exec.CommandContext(ctx, path), nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return nil, errors.New("neither debootstrap nor apt-get is on this machine")
	}
	if err := fetchPackage(ctx, folder); err != nil {
		return nil, fmt.Errorf("fetch debootstrap: %w", err)
	}
	packages, err := filepath.Glob(filepath.Join(folder, "debootstrap_*.deb"))
	if err != nil || len(packages) != 1 {
		return nil, errors.Join(errors.New("apt-get download left no package"), err)
	}
	unpacked := filepath.Join(folder, "tool")
	if err := run(exec.CommandContext(ctx, "dpkg-deb", "--extract", packages[0], unpacked)); err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, "sh", filepath.Join(unpacked, "usr/sbin/debootstrap"))
	command.Env = append(os.Environ(), "DEBOOTSTRAP_DIR="+filepath.Join(unpacked, "usr/share/debootstrap"))
	return command, nil
}

// fetchPackage downloads debootstrap's package into the folder. It uses package lists of its own, because the
// machine's lists may be old or missing.
func fetchPackage(ctx context.Context, folder string) error {
	state, cache := filepath.Join(folder, "lists"), filepath.Join(folder, "cache")
	for _, path := range []string{filepath.Join(state, "partial"), filepath.Join(cache, "archives", "partial")} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	}
	for _, action := range [][]string{{"update"}, {"download", "debootstrap"}} {
		options := []string{"-qq", "-o", "Dir::State::lists=" + state, "-o", "Dir::Cache=" + cache, "-o", "APT::Sandbox::User=root"}
		command := exec.CommandContext(ctx, "apt-get", append(options, action...)...)
		command.Dir = folder
		if err := run(command); err != nil {
			return err
		}
	}
	return nil
}

// run runs a command; its error has the end of the output.
func run(command *exec.Cmd) error {
	output, err := command.CombinedOutput()
	return explained(command, output, err)
}

// explained adds the end of a command's output to its error.
func explained(command *exec.Cmd, output []byte, err error) error {
	if err == nil {
		return nil
	}
	const tail = 2000
	return fmt.Errorf("%s: %w\n%s", filepath.Base(command.Path), err, output[max(0, len(output)-tail):])
}
