package appfile

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"lockcheck/clusters"
	"lockcheck/internal/application/replica"
	"lockcheck/internal/composefile"
	"lockcheck/internal/lockfile"
)

// into says what is started, and which of it are the replicas.
func (p app) into(a *App) error {
	switch {
	case p.Replicas < 1 || p.Replicas > maxReplicas:
		return fieldError("replicas", "use 1 to %d replicas", maxReplicas)
	case p.Lease < 0:
		return fieldError("lease", "it must not be negative; leave it out if you do not know it")
	case !slices.Contains([]string{"", replica.RestartNo, replica.RestartOnFailure, replica.RestartAlways}, p.Restart):
		return fieldError("restart", "write %s, %s or %s", replica.RestartNo, replica.RestartOnFailure, replica.RestartAlways)
	}
	if err := p.Says.check(); err != nil {
		return &atError{err, []any{"app", "says"}}
	}
	a.Says, a.Restart, a.Lease = p.Says.byFunction(), cmp.Or(p.Restart, replica.RestartNo), cmp.Or(p.Lease, defaultLease)
	a.LeaseKnown, a.Resource = p.Lease != 0, p.Resource
	switch {
	case p.Compose != "":
		return p.composed(a)
	case p.Service != "":
		return fieldError("service", "it is one of a Compose file; add compose: and its path, or leave service out")
	case p.Image != "" && p.Build != "":
		return fieldError("build", "image and build exclude each other; leave one out")
	case p.Image != "" || p.Build != "":
		return p.alone(a)
	case len(p.Command) == 0:
		return fieldError("command", "name what is to be tested: compose, image, build or command")
	case p.Clock != nil:
		return fieldError("clock", "an application on this machine has the clock of the machine, which is left alone")
	case p.Port != 0:
		return fieldError("port", "an application on this machine chooses its ports itself; leave port out")
	}
	a.Command, a.Environment = p.Command, variables(p.Environment)
	for n := range p.Replicas {
		a.Replicas = append(a.Replicas, replicaName(a.Name, n))
	}
	return nil
}

func replicaName(application string, n int) string { return application + "-" + strconv.Itoa(n+1) }

// alone makes servers of an application that brings no others.
func (p app) alone(a *App) error {
	if err := p.Clock.check([]string{a.Name}); err != nil {
		return err
	}
	server := clusters.CustomServer{
		Program: a.Name, Literal: true, Port: p.Port, Image: clusters.ProgramImage{Ref: p.Image},
		Command: p.Command, Environment: variables(p.Environment), ClockCommand: p.Clock.of(a.Name, a.Name),
	}
	if p.Build != "" {
		server.Image = clusters.ProgramImage{Build: filepath.Join(a.Folder, p.Build)}
		if _, err := os.Stat(filepath.Join(server.Image.Build, "Dockerfile")); err != nil {
			return fieldError("build", "there is no Dockerfile in %s; build names a folder with one", server.Image.Build)
		}
	}
	for n := range p.Replicas {
		server.Names = []string{replicaName(a.Name, n), a.Name}
		a.add(server, a.Name, replicaName(a.Name, n), true)
	}
	return nil
}

func (a *App) add(server clusters.CustomServer, service, name string, replica bool) {
	a.Servers = append(a.Servers, Server{CustomServer: server, Service: service, Name: name, Replica: replica})
	if replica {
		a.Replicas = append(a.Replicas, name)
	}
}

// composed makes servers of the services of a Compose file.
func (p app) composed(a *App) error {
	if p.Image != "" || p.Build != "" || p.Command != nil || p.Environment != nil || p.Port != 0 {
		return fieldError("compose", "the Compose file says what is started; beside it only service, replicas, restart, lease, leader, clock, resource and says are allowed; leave the others out")
	}
	services, err := composefile.Read(filepath.Join(a.Folder, p.Compose), a.Folder)
	if err != nil {
		return fieldError("compose", "%w", err)
	}
	var names []string
	for _, s := range services {
		names = append(names, s.Name)
	}
	switch {
	case p.Service == "":
		return fieldError("service", "it is missing: which service of %s is the application: %s", p.Compose, oneOf(names))
	case !slices.Contains(names, p.Service):
		return fieldError("service", "%s has no service %q; it has %s", p.Compose, p.Service, oneOf(names))
	}
	if err := p.Clock.check(names); err != nil {
		return err
	}
	for _, s := range services {
		p.addService(a, s)
	}
	if len(a.Servers) > maxServers {
		return fieldError("compose", "%d containers, and at most %d are possible; lower replicas or scale", len(a.Servers), maxServers)
	}
	return nil
}

func (p app) addService(a *App, s composefile.Service) {
	s.Server.ClockCommand = p.Clock.of(s.Name, p.Service)
	if s.Name == p.Service {
		// The name of the service is that of all replicas, as in a network of Compose.
		a.Restart = cmp.Or(p.Restart, policyOf(s.Restart))
		// What replicas use is there first: a replica that gave up while its database started would end the run.
		s.Server.Later = true
		for n, server := range s.Copies(s.Server, p.Replicas) {
			if n > 0 {
				server.Names = append(server.Names, s.Name)
			}
			a.add(server, s.Name, replicaName(s.Name, n), true)
		}
		return
	}
	for n, server := range s.Copies(s.Server, s.Scale) {
		name := s.Name
		if s.Scale > 1 {
			name = replicaName(s.Name, n)
		}
		a.add(server, s.Name, name, false)
	}
}

// policyOf is the policy of a Compose file in our words.
func policyOf(compose string) string {
	switch policy, _, _ := strings.Cut(compose, ":"); policy { // on-failure may have a number of times behind it
	case "always", "unless-stopped":
		return replica.RestartAlways
	case "on-failure":
		return replica.RestartOnFailure
	}
	return replica.RestartNo
}

func oneOf(names []string) string {
	slices.Sort(names)
	return fmt.Sprintf("%q", names)
}

// variables are those of a program; one without a value has that of lockcheck's own environment.
func variables(environment map[string]*string) []string { return lockfile.Environment(environment) }
