// Package lockfile finds a lock by its name, or reads the lock file in which a user describes their own lock.
package lockfile

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"lockcheck/clients"
	"lockcheck/clients/protocol"
	"lockcheck/clusters"
	"lockcheck/internal/spelling"
	"lockcheck/internal/yamlfile"
)

// Lock is a lock with everything that a run must know about it.
type Lock struct {
	Info    clients.Info
	Servers clusters.Spec
	// Definition is what workers must know about a user's own lock, and Image is the image in which its client
	// runs. Both are zero for one of lockcheck's own locks.
	Definition *clients.Definition
	Image      clusters.ProgramImage
	// Path is that of the lock file; "" for one of lockcheck's own locks.
	Path string
}

// optionSign precedes each option in the name of a lock, as in the names of lockcheck's own locks.
const optionSign = "+"

// IsPath reports whether a lock's name is the path of a lock file.
func IsPath(name string) bool {
	path, _ := cutOptions(name)
	return strings.ContainsRune(path, filepath.Separator) || slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(path))
}

// cutOptions separates a path from its options. A folder on the path may have a + in its own name.
func cutOptions(name string) (path, options string) {
	folder, base := filepath.Split(name)
	base, options, _ = strings.Cut(base, optionSign)
	return folder + base, options
}

// Find finds a lock by its name or path. The error is a *spelling.UnknownError if no lock has the name.
// Otherwise it says what is wrong with the lock file, or that a version has a flag of its own.
func Find(name string) (Lock, error) {
	if IsPath(name) {
		return read(name)
	}
	info, known := clients.ByName(name)
	if lock, version := CutVersion(strings.Replace(name, ":", "@", 1)); !known && version != "" {
		if _, known := clients.ByName(lock); known {
			return Lock{}, fmt.Errorf("lock %q: write the version with its own flag: --lock %s --version %s", name, lock, version)
		}
	}
	if !known {
		return Lock{}, &spelling.UnknownError{What: "lock", Name: name, Known: clients.NamesLike(name)}
	}
	servers, known := clusters.ByName(info.Servers)
	if !known {
		return Lock{}, fmt.Errorf("lock %s: no servers called %q", name, info.Servers)
	}
	return Lock{Info: info, Servers: servers}, nil
}

// CutVersion splits the name of a lock, as in NAME@VERSION, into the lock and the version of its servers; "" if it has
// none. Options may stand before or after the version.
func CutVersion(name string) (lock, version string) {
	i := strings.Index(name, "@")
	if i < 0 {
		return name, ""
	}
	version, options, _ := strings.Cut(name[i+1:], optionSign)
	if options != "" {
		options = optionSign + options
	}
	return name[:i] + options, version
}

// file is the content of a lock file. Docs: docs/own-lock.md.
type file struct {
	Name    string  `yaml:"name"`
	Client  client  `yaml:"client"`
	Servers servers `yaml:"servers"`

	Lease   time.Duration `yaml:"lease"`
	Grace   time.Duration `yaml:"grace"`
	Tokens  bool          `yaml:"tokens"`
	Renew   bool          `yaml:"renew"`
	Holds   bool          `yaml:"holds"`
	Queues  bool          `yaml:"queues"`
	Shared  bool          `yaml:"shared"`
	Session bool          `yaml:"session"`
}

type client struct {
	Command []string `yaml:"command,flow"`
	Image   string   `yaml:"image"`
	Build   string   `yaml:"build"`
	// Environment: a variable without a value has its value in lockcheck's own environment, as in a Compose
	// file.
	Environment map[string]*string `yaml:"environment"`
	Work        bool               `yaml:"work"`
	// Wrap: the command runs a child under the lock. BusyStatus is its exit status when another client holds
	// the lock; 0: it has no such status.
	Wrap       bool `yaml:"wrap"`
	BusyStatus int  `yaml:"busy_status"`

	Limits limits `yaml:"limits"`
}

// imageOfServers is the value of client.image that means: the image on which the servers run.
const imageOfServers = "servers"

// defaultGrace is how long after the end of its lease a lock may remain taken if the file does not say. It
// covers a waiter's retry.
const defaultGrace = time.Second

func read(name string) (Lock, error) {
	path, options := cutOptions(name)
	lock, err := readFile(path)
	if err != nil {
		return Lock{}, fmt.Errorf("%s: %w", path, err)
	}
	info, known := lock.Info.With(options)
	if !known {
		return Lock{}, fmt.Errorf("%s: there is no option %q; write the path alone, or options that clients of lock files have (lockcheck list locks)", path, options)
	}
	lock.Info = info
	return lock, nil
}

func readFile(path string) (Lock, error) {
	source, err := os.Open(path)
	if err != nil {
		var where *os.PathError
		if errors.As(err, &where) {
			err = where.Err // the caller adds the path
		}
		return Lock{}, err
	}
	defer source.Close()
	folder, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return Lock{}, err
	}
	f := file{Name: nameOf(folder, path), Grace: defaultGrace}
	parsed, err := yamlfile.Parse(source, &f)
	if err != nil {
		return Lock{}, err
	}
	if err := f.check(); err != nil {
		return Lock{}, parsed.At(err)
	}
	spec, err := f.Servers.spec(f.Name, folder)
	if err != nil {
		return Lock{}, parsed.At(err, "servers")
	}
	lock := Lock{Servers: spec, Path: path, Definition: f.definition(folder), Image: f.Client.image(folder)}
	if err := f.Client.check(folder, spec.OnDocker()); err != nil {
		return Lock{}, parsed.At(err, "client")
	}
	if err := f.Client.checkWrap(spec.Nodes > 0); err != nil {
		return Lock{}, parsed.At(err, "client")
	}
	lock.Info = lock.Definition.Info()
	lock.Info.Servers = spec.Name
	return lock, nil
}

// nameOf names a lock after its file, or after the folder if the file is called lock.yaml.
func nameOf(folder, path string) string {
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	if name == "lock" {
		return filepath.Base(folder)
	}
	return name
}

func fieldError(field, format string, args ...any) error {
	return &yamlfile.FieldError{Field: field, Err: fmt.Errorf(format, args...)}
}

func (f file) check() error {
	switch {
	case strings.ContainsAny(f.Name, "/\\"+optionSign) || f.Name == "":
		return fieldError("name", "%q must be one word without / and %s, as in billing-lock", f.Name, optionSign)
	case strings.ContainsFunc(f.Name, func(c rune) bool { return !unicode.IsPrint(c) }):
		// The name becomes part of folder names, which a terminal shows as they are.
		return fieldError("name", "%q has a character that cannot be printed; leave it out", f.Name)
	case slices.Contains(clients.Names(), f.Name):
		return fieldError("name", "%q is the name of one of lockcheck's own locks; choose another one", f.Name)
	case f.Lease < 0:
		return fieldError("lease", "it must not be negative; 0 is for a lock that never ends by itself")
	case f.Grace < 0:
		return fieldError("grace", "it must not be negative")
	case f.Lease == 0 && f.Renew:
		return fieldError("renew", "a lock without a lease has nothing to renew; add lease, or leave renew out")
	case f.Lease == 0 && f.Session:
		return fieldError("session", "a session has a lease that the client keeps alive; add it, as in lease: 10s")
	case f.Session && f.Renew:
		return fieldError("renew", "the client renews a session by itself; leave renew or session out")
	case f.Client.Wrap:
		return f.checkWrapped()
	}
	return nil
}

// checkWrapped refuses fields for which lockcheck would have to ask the client, which a command that only runs
// its child under the lock cannot answer.
func (f file) checkWrapped() error {
	for _, key := range []struct {
		name  string
		there bool
	}{{"tokens", f.Tokens}, {"renew", f.Renew}, {"holds", f.Holds}} {
		if key.there {
			return fieldError(key.name, "a command that wraps its child (client.wrap) has no such thing; leave %s out", key.name)
		}
	}
	return nil
}

// maxStatus is the highest exit status of a program.
const maxStatus = 255

// checkWrap checks the fields that a command which wraps its child must have or must not have.
func (c client) checkWrap(servers bool) error {
	switch {
	case !c.Wrap && c.BusyStatus != 0:
		return fieldError("busy_status", "it is for a command that wraps its child; add wrap: true, or leave busy_status out")
	case !c.Wrap:
		return nil
	case c.Work:
		return fieldError("work", "the child of a command is lockcheck's, and does no work of yours; leave work out")
	case c.BusyStatus < 0 || c.BusyStatus > maxStatus:
		return fieldError("busy_status", "%d: an exit status is from 1 to %d", c.BusyStatus, maxStatus)
	}
	if err := clients.CheckWrapped(c.Command, servers); err != nil {
		return fieldError("command", "%w", err)
	}
	if err := clients.CheckWrapped(Environment(c.Environment), servers); err != nil {
		return fieldError("environment", "%w", err)
	}
	return nil
}

// check checks that the client fits the place where it is to run: a container or this machine.
func (c client) check(folder string, onDocker bool) error {
	switch inImage := c.Image != "" || c.Build != ""; {
	case len(c.Command) == 0:
		return fieldError("command", "it is missing: the program that speaks the protocol, and its arguments, as in command: [python3, client.py]")
	case c.Image != "" && c.Build != "":
		return fieldError("build", "image and build exclude each other; leave one out")
	case onDocker && !inImage:
		return fieldError("command", "with servers on Docker the client needs an image; add build: . for the Dockerfile of this folder, or image: NAME")
	case !onDocker && c.Image != "":
		return fieldError("image", "without servers on Docker the client runs on this machine; leave image out")
	case !onDocker && c.Build != "":
		return fieldError("build", "without servers on Docker the client runs on this machine; leave build out")
	case !inImage && c.Limits != (limits{}):
		return fieldError("limits", "limits are for containers, and this client runs on this machine; leave them out")
	case c.Build != "":
		if _, err := os.Stat(filepath.Join(folder, c.Build, "Dockerfile")); err != nil {
			return fieldError("build", "there is no Dockerfile in %s; build names a folder with one", filepath.Join(folder, c.Build))
		}
	}
	return nil
}

func (c client) image(folder string) clusters.ProgramImage {
	return imageWith(c.Image, c.Build, folder, c.Limits)
}

func (f file) definition(folder string) *clients.Definition {
	d := &clients.Definition{
		Name: f.Name, TTL: f.Lease, Grace: f.Grace,
		Session: f.Session, Queues: f.Queues, Shared: f.Shared, Renew: f.Renew, Ask: f.Holds, Tokens: f.Tokens, Works: f.Client.Work,
		Wraps: f.Client.Wrap, BusyStatus: f.Client.BusyStatus,
		Program: protocol.Command{Args: f.Client.Command, Env: Environment(f.Client.Environment)},
	}
	if f.Client.Image == "" && f.Client.Build == "" {
		d.Program.Folder, d.Program.OnHost = folder, true // an image has a working folder of its own
	}
	return d
}

// Environment lists variables as NAME=value. A variable without a value gets its value in this process's
// environment, and is left out if it is not set there.
func Environment(variables map[string]*string) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		if value := variables[name]; value != nil {
			list = append(list, name+"="+*value)
		} else if value, set := os.LookupEnv(name); set {
			list = append(list, name+"="+value)
		}
	}
	return list
}
