package lockfile

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v3"

	"lockcheck/clusters"
	"lockcheck/clusters/engine"
	"lockcheck/internal/composefile"
	"lockcheck/internal/spelling"
	"lockcheck/internal/yamlfile"
)

// servers names a cluster that lockcheck knows, a user's own image, or a Compose file.
type servers struct {
	Cluster string `yaml:"cluster"`
	Version string `yaml:"version"`

	// Compose is the path of a Compose file. Services lists its services that clients use.
	Compose  string   `yaml:"compose"`
	Services []string `yaml:"services,flow"`

	Image       string             `yaml:"image"`
	Build       string             `yaml:"build"`
	Count       int                `yaml:"count"`
	Port        int                `yaml:"port"`
	Command     []string           `yaml:"command,flow"`
	Environment map[string]*string `yaml:"environment"`
	Files       map[string]string  `yaml:"files"`
	Ready       ready              `yaml:"ready"`
	Leader      check              `yaml:"leader"`
	Clock       check              `yaml:"clock"`
	Limits      limits             `yaml:"limits"`
}

// limits bounds the resources of each container of a user's image. Docs: docs/own-lock.md.
type limits struct {
	Memory        bytes   `yaml:"memory"`
	PIDs          int64   `yaml:"pids"`
	CPUs          float64 `yaml:"cpus"`
	NewPrivileges bool    `yaml:"new_privileges"`
}

// bytes is an amount of memory, such as 512m.
type bytes int64

// UnmarshalYAML accepts the notation of Compose files.
func (b *bytes) UnmarshalYAML(node *yaml.Node) error {
	text, err := yamlfile.Text(node, "512m")
	if err != nil {
		return err
	}
	var amount types.UnitBytes
	if err := amount.DecodeMapstructure(text); err != nil {
		return yamlfile.Wrong(node, fmt.Errorf("%q is no amount of memory: write 512m or 2g", text))
	}
	*b = bytes(amount)
	return nil
}

// imageWith returns a user's own image, given by its reference or by the folder that builds it.
func imageWith(ref, build, folder string, l limits) clusters.ProgramImage {
	image := clusters.ProgramImage{Limits: engine.Limits{Memory: int64(l.Memory), PIDs: l.PIDs, CPUs: l.CPUs, NewPrivileges: l.NewPrivileges}}
	switch {
	case ref == imageOfServers:
		image.OfServers = true
	case build != "":
		image.Build = filepath.Join(folder, build)
	default:
		image.Ref = ref
	}
	return image
}

// ready says how lockcheck finds out that a server is ready. The zero value: the server accepts a connection to
// its port.
type ready struct {
	HTTP    string   `yaml:"http"` // path
	Command []string `yaml:"command,flow"`
}

// check asks a server something, with a command in its container.
type check struct {
	Command []string `yaml:"command,flow"`
}

// noServers is the value of servers for a lock that needs none.
const noServers = "none"

// UnmarshalYAML accepts the name of a cluster, or a mapping that describes the servers.
func (s *servers) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		return node.Decode(&s.Cluster)
	}
	type plain servers
	return node.Decode((*plain)(s))
}

func (s servers) spec(name, folder string) (clusters.Spec, error) {
	switch {
	case s.Compose != "":
		return s.composed(name, folder)
	case s.Services != nil:
		return clusters.Spec{}, fieldError("services", "they are those of a Compose file; add compose: and its path, or leave services out")
	case s.Image == "" && s.Build == "" || s.Cluster != "":
		return s.knownCluster()
	}
	if err := s.check(); err != nil {
		return clusters.Spec{}, err
	}
	server := clusters.CustomServer{
		Program: name, Image: imageWith(s.Image, s.Build, folder, s.Limits), Port: s.Port, Command: s.Command,
		Environment: Environment(s.Environment), Files: s.Files,
		ReadyHTTP: s.Ready.HTTP, ReadyCommand: s.Ready.Command, LeaderCommand: s.Leader.Command, ClockCommand: s.Clock.Command,
	}
	return clusters.Custom(name, slices.Repeat([]clusters.CustomServer{server}, max(1, s.Count))), nil
}

// knownCluster returns a cluster that lockcheck knows, with the size, version or image that the file asks for.
func (s servers) knownCluster() (clusters.Spec, error) {
	if s.Cluster == "" {
		return clusters.Spec{}, fieldError("servers", "name a cluster that lockcheck knows, an image, or %s: %s", noServers, strings.Join(names(), ", "))
	}
	spec, known := clusters.ByName(s.Cluster)
	if !known {
		return spec, &spelling.UnknownError{What: "cluster", Name: s.Cluster, Known: names()}
	}
	switch {
	case s.Build != "" || s.Port != 0 || s.Command != nil || s.Environment != nil || s.Files != nil || s.Ready.HTTP != "" || s.Ready.Command != nil ||
		s.Leader.Command != nil || s.Clock.Command != nil || s.Limits != (limits{}):
		return spec, errors.New("a cluster that lockcheck knows takes version, count and image, and nothing else; leave the other keys out, or name an image of your own instead of the cluster")
	case s.Version != "" && !spec.HasVersion(s.Version):
		return spec, fieldError("version", "of %s there is %s", s.Cluster, strings.Join(spec.AllVersions(), ", "))
	case s.Count != 0 && !spec.HasSize(s.Count):
		return spec, fieldError("count", "%s has %s servers", s.Cluster, strings.Trim(fmt.Sprint(spec.AllSizes()), "[]"))
	case s.Image != "" && !spec.OnDocker():
		return spec, fieldError("image", "%s needs none; leave image out", s.Cluster)
	}
	return spec.Fixed(s.Version, s.Count, s.Image), nil
}

func names() []string {
	var all []string
	for _, spec := range clusters.Table() {
		all = append(all, spec.Name)
	}
	return all
}

func (s servers) check() error {
	switch {
	case s.Image != "" && s.Build != "":
		return fieldError("build", "image and build exclude each other; leave one out")
	case s.Version != "":
		return fieldError("version", "it is for a cluster that lockcheck knows; leave it out, and name the version in image, as in image: redis:7")
	case s.Port < 1 || s.Port > 65535:
		return fieldError("port", "%d: name the port that clients use, as in port: 6379", s.Port)
	case s.Count < 0 || s.Count > maxServers:
		return fieldError("count", "%d: use 1 to %d servers", s.Count, maxServers)
	case s.Ready.HTTP != "" && s.Ready.Command != nil:
		return fieldError("ready", "http and command exclude each other; leave one out")
	case s.Ready.HTTP != "" && !strings.HasPrefix(s.Ready.HTTP, "/"):
		return fieldError("ready", "http: %q must be a path, as in /health", s.Ready.HTTP)
	}
	return nil
}

// maxServers is how many addresses a run's network has for servers.
const maxServers = 50

// composed turns the services of a Compose file into servers, one for each replica.
func (s servers) composed(name, folder string) (clusters.Spec, error) {
	if s.Cluster != "" || s.Version != "" || s.Image != "" || s.Build != "" || s.Count != 0 || s.Command != nil || s.Environment != nil || s.Files != nil || s.Limits != (limits{}) {
		return clusters.Spec{}, fieldError("compose", "the file says what is started; next to it are only services, port, ready, leader and clock")
	}
	services, err := composefile.Read(filepath.Join(folder, s.Compose), folder)
	if err != nil {
		return clusters.Spec{}, fieldError("compose", "%w", err)
	}
	var there []string
	for _, service := range services {
		there = append(there, service.Name)
	}
	for _, wanted := range s.Services {
		if !slices.Contains(there, wanted) {
			slices.Sort(there)
			return clusters.Spec{}, fieldError("services", "%s has no service %q; it has %s", s.Compose, wanted, strings.Join(there, ", "))
		}
	}
	var all []clusters.CustomServer
	for _, service := range services {
		server, err := s.asServer(service)
		if err != nil {
			return clusters.Spec{}, fieldError("compose", "service %s: %w", service.Name, err)
		}
		all = append(all, service.Copies(server, service.Scale)...)
	}
	switch visible := slices.ContainsFunc(all, func(s clusters.CustomServer) bool { return !s.Hidden }); {
	case len(all) > maxServers:
		return clusters.Spec{}, fieldError("compose", "%d servers, and at most %d are possible; lower scale", len(all), maxServers)
	case !visible:
		return clusters.Spec{}, fieldError("compose", "no service has a port: name those that clients use (services) and their port")
	}
	return clusters.Custom(name, all), nil
}

// asServer turns a service into a server. A server that clients of the lock do not use is hidden: only other
// servers reach it.
func (s servers) asServer(service composefile.Service) (clusters.CustomServer, error) {
	server := service.Server
	used := slices.Contains(s.Services, service.Name)
	if used {
		server.Port = cmp.Or(s.Port, server.Port)
	}
	if used && server.Port == 0 {
		return server, errors.New("it names no port; add expose to the service, or port to servers")
	}
	server.Hidden = server.Port == 0 || len(s.Services) > 0 && !used
	if !server.Hidden {
		server.ReadyHTTP, server.LeaderCommand, server.ClockCommand = s.Ready.HTTP, s.Leader.Command, s.Clock.Command
		if s.Ready.Command != nil {
			server.ReadyCommand = s.Ready.Command
		}
	}
	return server, nil
}
