// Package appfile reads the file in which users describe an application of their own and what must be true of its
// data.
package appfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"

	"lockcheck/clusters"
	"lockcheck/history"
	"lockcheck/internal/application/ask"
	"lockcheck/internal/spelling"
	"lockcheck/internal/yamlfile"
)

// App is an application with everything that a run must know of it.
type App struct {
	Name   string
	Path   string // of the file
	Folder string // of the file, absolute

	// Servers are the replicas and what they use, on Docker; nil for an application that runs on this machine.
	Servers []Server
	// Command, Environment and Replicas describe an application on this machine. Of one on Docker, Replicas are the
	// names of nodes among the Servers.
	Command     []string
	Environment []string
	Replicas    []string
	// MayHit lists the names that faults may target: replicas, servers and services.
	MayHit []string

	Says    map[history.Function][]string
	Restart string
	// Lease is after which time the lock of a dead holder is free again, as far as the user knows: faults outlast it.
	Lease time.Duration
	// LeaseKnown: the file says it. Else Lease is a guess, and only faults go by it.
	LeaseKnown bool
	Load       *Load
	// Resource: the application may keep data in lockcheck's resource.
	Resource bool

	Every     time.Duration
	Questions []ask.Question
}

// Server is one server of an application, or one of its replicas.
type Server struct {
	clusters.CustomServer
	Name    string // of its node
	Service string
	Replica bool
}

// Load is the program that gives the application something to do.
type Load struct {
	Command     []string
	Environment []string
	Image       clusters.ProgramImage // the zero value for this machine
}

// file is what an app file says. Docs: docs/own-application.md.
type file struct {
	Name        string            `yaml:"name"`
	App         app               `yaml:"app"`
	Faults      faults            `yaml:"faults"`
	Load        *load             `yaml:"load"`
	Connections map[string]string `yaml:"connections"`
	Every       time.Duration     `yaml:"every"`
	Invariants  []invariant       `yaml:"invariants"`
	Work        *question         `yaml:"work"`
}

type app struct {
	Compose     string             `yaml:"compose"`
	Service     string             `yaml:"service"`
	Image       string             `yaml:"image"`
	Build       string             `yaml:"build"`
	Command     []string           `yaml:"command,flow"`
	Environment map[string]*string `yaml:"environment"`
	Port        int                `yaml:"port"`
	Replicas    int                `yaml:"replicas"`
	Restart     string             `yaml:"restart"`
	Lease       time.Duration      `yaml:"lease"`
	Leader      *question          `yaml:"leader"`
	Resource    bool               `yaml:"resource"`
	Clock       clocks             `yaml:"clock"`
	Says        says               `yaml:"says"`
}

// says are regular expressions for lines of replicas.
type says struct {
	Holding   patterns `yaml:"holding"`
	Releasing patterns `yaml:"releasing"`
	Released  patterns `yaml:"released"`
	Did       patterns `yaml:"did"`
}

// patterns are one or several.
type patterns []string

// UnmarshalYAML reads one pattern or a list of them.
func (p *patterns) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*p = patterns{node.Value}
		return nil
	}
	return node.Decode((*[]string)(p))
}

type faults struct {
	MayHit []string `yaml:"may hit,flow"`
}

type load struct {
	Command     []string           `yaml:"command,flow"`
	Environment map[string]*string `yaml:"environment"`
	Accepted    patterns           `yaml:"accepted"`
}

type invariant struct {
	Once       string        `yaml:"once"`
	Kept       string        `yaml:"kept"`
	Never      string        `yaml:"never"`
	Always     string        `yaml:"always"`
	Eventually string        `yaml:"eventually"`
	On         string        `yaml:"on"`
	Name       string        `yaml:"name"`
	Within     time.Duration `yaml:"within"`
}

// question is a question that is no invariant.
type question struct {
	Ask string `yaml:"ask"`
	On  string `yaml:"on"`
}

const (
	defaultReplicas = 2
	defaultLease    = 5 * time.Second
	maxReplicas     = 9
	defaultEvery    = 250 * time.Millisecond
	leastEvery      = 10 * time.Millisecond
	defaultWithin   = 30 * time.Second
	defaultAccepted = `^accepted (?P<id>\S+)$`
	maxServers      = 20
)

// Read reads an app file. Its errors name the line.
func Read(path string) (App, error) {
	a, err := read(path)
	if err != nil {
		return App{}, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

func read(path string) (App, error) {
	source, err := os.Open(path)
	var where *os.PathError
	if errors.As(err, &where) {
		return App{}, where.Err
	}
	if err != nil {
		return App{}, err
	}
	defer source.Close()
	folder, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return App{}, err
	}
	f := file{Name: filepath.Base(folder), Every: defaultEvery, App: app{Replicas: defaultReplicas}}
	parsed, err := yamlfile.Parse(source, &f)
	if err != nil {
		return App{}, err
	}
	a := App{Name: f.Name, Path: path, Folder: folder, Every: f.Every}
	for _, part := range []struct {
		key  string
		read func(*App) error
	}{
		{"", f.checkName}, {"app", f.App.into}, {"app", f.checkResource}, {"faults", f.Faults.into}, {"load", f.loadInto}, {"", f.invariantsInto}, {"work", f.workInto},
		{"app", f.leaderInto},
	} {
		if err := part.read(&a); err != nil {
			var at *atError
			switch {
			case errors.As(err, &at):
				return App{}, parsed.At(at.Err, at.path...)
			case part.key == "":
				return App{}, parsed.At(err)
			}
			return App{}, parsed.At(err, part.key)
		}
	}
	return a, nil
}

// atError is about what a path of keys leads to.
type atError struct {
	Err  error
	path []any
}

func (e *atError) Error() string { return e.Err.Error() }
func (e *atError) Unwrap() error { return e.Err }

func fieldError(field, format string, args ...any) error {
	return &yamlfile.FieldError{Field: field, Err: fmt.Errorf(format, args...)}
}

func (f file) checkName(*App) error {
	switch {
	case f.Name == "" || strings.ContainsFunc(f.Name, func(c rune) bool { return c == '/' || c == '\\' || !unicode.IsPrint(c) }):
		return fieldError("name", "%q must be one word of printable characters without /, as in billing", f.Name)
	case f.Every < leastEvery:
		return fieldError("every", "it must be at least %s, as in every: 250ms", leastEvery)
	case len(f.Invariants) == 0 && !f.App.Resource:
		return fieldError("invariants", "the file has none: say what must be true of the data of the application, as in - once: SELECT job FROM bills GROUP BY job HAVING count(*) > 1")
	}
	return nil
}

// checkResource refuses other things with the name of the resource.
func (f file) checkResource(a *App) error {
	_, connection := f.Connections[history.Resource]
	service := slices.ContainsFunc(a.Servers, func(s Server) bool { return s.Service == history.Resource })
	if a.Resource && (connection || service || a.Name == history.Resource) {
		return fieldError("resource", "lockcheck's resource would have the name of another service, connection or application: rename that")
	}
	return nil
}

func (f faults) into(a *App) error {
	known := slices.Clone(a.Replicas)
	if a.Resource {
		known = append(known, history.Resource)
	}
	for _, s := range a.Servers {
		known = append(known, s.Name)
		if !slices.Contains(known, s.Service) {
			known = append(known, s.Service)
		}
	}
	for _, name := range f.MayHit {
		if !slices.Contains(known, name) {
			return fieldError("may hit", "there is no service %q%s", name, spelling.Hint(name, known))
		}
	}
	a.MayHit = f.MayHit
	return nil
}

// ResourceHittable reports whether faults may target lockcheck's resource. They may only if the file names it, because the
// resource keeps the record.
func (a App) ResourceHittable() bool { return slices.Contains(a.MayHit, history.Resource) }

// Hittable says whether faults may target a server.
func (a App) Hittable(s Server) bool {
	return len(a.MayHit) == 0 || slices.Contains(a.MayHit, s.Name) || slices.Contains(a.MayHit, s.Service)
}

// With returns the application with more variables for its replicas, in the form of app.environment. They replace variables
// of the same name, because a program that gets a name twice may use either value.
func (a App) With(environment map[string]*string) App {
	more := variables(environment)
	if len(a.Servers) == 0 {
		a.Environment = replaced(a.Environment, more)
	}
	a.Servers = slices.Clone(a.Servers)
	for i, s := range a.Servers {
		if s.Replica {
			a.Servers[i].Environment = replaced(s.Environment, more)
		}
	}
	return a
}

func replaced(old, more []string) []string {
	kept := slices.DeleteFunc(slices.Clone(old), func(assignment string) bool {
		name, _, _ := strings.Cut(assignment, "=")
		return slices.ContainsFunc(more, func(other string) bool { return strings.HasPrefix(other, name+"=") })
	})
	return append(kept, more...)
}

// check finds what is wrong with patterns: they do not compile, or lack a group.
func (p patterns) check(field, group string) error {
	for _, text := range p {
		pattern, err := regexp.Compile(text)
		if err != nil {
			return fieldError(field, "%w", err)
		}
		if group != "" && pattern.SubexpIndex(group) < 0 {
			return fieldError(field, "%q has no group %s; put (?P<%s>\\S+) where the line has it", text, group, group)
		}
		for _, name := range pattern.SubexpNames() {
			if name != "" && !slices.Contains([]string{"key", "token", "id", "who"}, name) {
				return fieldError(field, "%q has a group %q; there are key, token, id and who", text, name)
			}
		}
	}
	return nil
}

// check refuses what the checkers could make nothing of.
func (s says) check() error {
	for _, c := range []struct {
		field, group string
		patterns     patterns
	}{{"holding", "", s.Holding}, {"releasing", "", s.Releasing}, {"released", "", s.Released}, {"did", "id", s.Did}} {
		if err := c.patterns.check(c.field, c.group); err != nil {
			return err
		}
	}
	switch ends := len(s.Releasing) + len(s.Released); {
	case len(s.Holding) > 0 && ends == 0:
		return fieldError("holding", "nothing says when a hold ends: give releasing (printed before the lock is given back) or released (printed afterwards)")
	case len(s.Holding) == 0 && ends > 0:
		return fieldError("releasing", "nothing says when a hold begins: give holding")
	}
	return nil
}

func (s says) byFunction() map[history.Function][]string {
	all := make(map[history.Function][]string)
	for f, p := range map[history.Function]patterns{
		history.Holding: s.Holding, history.Releasing: s.Releasing, history.Released: s.Released, history.Did: s.Did,
	} {
		if len(p) > 0 {
			all[f] = p
		}
	}
	return all
}

func (f file) loadInto(a *App) error {
	if f.Load == nil {
		return nil
	}
	l := *f.Load
	if len(l.Command) == 0 {
		return fieldError("command", "it is missing: a program that prints \"accepted ID\" for each piece of work that the application confirmed")
	}
	if len(l.Accepted) == 0 {
		l.Accepted = patterns{defaultAccepted}
	}
	if err := l.Accepted.check("accepted", "id"); err != nil {
		return err
	}
	a.Load = &Load{Command: l.Command, Environment: variables(l.Environment)}
	if i := slices.IndexFunc(a.Servers, func(s Server) bool { return s.Replica }); i >= 0 {
		a.Load.Image = a.Servers[i].Image
	}
	a.Says[history.Accepted] = l.Accepted
	return nil
}
