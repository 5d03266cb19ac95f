// Package composefile turns the services of a Compose file into servers.
package composefile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"

	"lockcheck/clusters"
	"lockcheck/clusters/engine"
)

func loadProject(path string) (*types.Project, error) {
	details := types.ConfigDetails{
		WorkingDir: filepath.Dir(path), ConfigFiles: []types.ConfigFile{{Filename: path}},
		Environment: types.NewMapping(os.Environ()),
	}
	return loader.LoadWithContext(context.Background(), details, func(o *loader.Options) { o.SetProjectName("lockcheck", true) })
}

// inOrder lists the services so that each comes after its dependencies.
func inOrder(project *types.Project) (services []types.ServiceConfig) {
	var add func(name string)
	added := make(map[string]bool)
	add = func(name string) {
		service, there := project.Services[name]
		if added[name] || !there {
			return
		}
		added[name] = true
		for _, before := range slices.Sorted(slices.Values(service.GetDependencies())) {
			add(before)
		}
		services = append(services, service)
	}
	for _, name := range slices.Sorted(slices.Values(project.ServiceNames())) {
		add(name)
	}
	return services
}

// Service is a service of a Compose file, as a server that lockcheck can start.
type Service struct {
	Name string
	// Server is one copy of the service. It is not Hidden, and the file's health check is its ReadyCommand.
	Server clusters.CustomServer
	// Scale is the number of copies that the file asks for.
	Scale int
	// Environment of the service's containers, by name.
	Environment map[string]string
	// Restart is the restart policy; "" for none.
	Restart string

	config types.ServiceConfig
}

// Read turns the services of a Compose file into servers, ordered by their dependencies and then by name. They
// may only mount paths within the file's folder and the other folders.
func Read(path string, folders ...string) ([]Service, error) {
	project, err := loadProject(path)
	if err != nil {
		return nil, err
	}
	var services []Service
	for _, config := range inOrder(project) {
		service, err := newService(config, append(folders, project.WorkingDir))
		if err != nil {
			return nil, fmt.Errorf("service %s: %w", config.Name, err)
		}
		services = append(services, service)
	}
	return services, nil
}

func newService(config types.ServiceConfig, folders []string) (Service, error) {
	if err := supported(config); err != nil {
		return Service{}, err
	}
	mounts, err := mountsOf(config, folders)
	if err != nil {
		return Service{}, err
	}
	image, err := imageOf(config, folders)
	if err != nil {
		return Service{}, err
	}
	s := Service{Name: config.Name, Scale: config.GetScale(), Environment: make(map[string]string), Restart: config.Restart, config: config}
	for name, value := range config.Environment {
		if value != nil {
			s.Environment[name] = *value
		}
	}
	s.Server = clusters.CustomServer{
		Literal: true, Program: config.Name, Image: image, Port: portOf(config),
		Entrypoint: config.Entrypoint, Command: config.Command, Environment: assignments(s.Environment), Mounts: mounts,
		ReadyCommand: healthOf(config), Later: len(config.GetDependencies()) > 0,
	}
	return s, nil
}

// Uses lists the services that the service depends on.
func (s Service) Uses() []string { return s.config.GetDependencies() }

// Copies returns n copies of a server of the service, each with its own names.
func (s Service) Copies(server clusters.CustomServer, n int) []clusters.CustomServer {
	copies := slices.Repeat([]clusters.CustomServer{server}, n)
	for i := range copies {
		copies[i].Names = namesOf(s.config, i, n)
	}
	return copies
}

// namesOf are the host names of a copy. With several copies the name of the service means the first.
func namesOf(service types.ServiceConfig, i, of int) []string {
	var names []string
	if i == 0 {
		names = []string{service.Name}
		for _, other := range []string{service.ContainerName, service.Hostname} {
			if other != "" && !slices.Contains(names, other) {
				names = append(names, other)
			}
		}
	}
	if of > 1 {
		names = append(names, service.Name+"-"+strconv.Itoa(i+1))
	}
	return names
}

// supported refuses keys whose absence would make other servers than the file describes.
func supported(s types.ServiceConfig) error {
	for _, key := range []struct {
		name  string
		there bool
	}{
		{"privileged", s.Privileged}, {"cap_add", len(s.CapAdd) > 0}, {"network_mode", s.NetworkMode != ""}, {"pid", s.Pid != ""},
		{"configs", len(s.Configs) > 0}, {"secrets", len(s.Secrets) > 0}, {"devices", len(s.Devices) > 0}, {"user", s.User != ""},
		{"working_dir", s.WorkingDir != ""}, {"extends", s.Extends != nil}, {"sysctls", len(s.Sysctls) > 0}, {"ulimits", len(s.Ulimits) > 0},
		{"tmpfs", len(s.Tmpfs) > 0}, {"read_only", s.ReadOnly}, {"ipc", s.Ipc != ""}, {"extra_hosts", len(s.ExtraHosts) > 0},
		{"security_opt other than no-new-privileges", slices.ContainsFunc(s.SecurityOpt, otherThanPrivileges)}, {"cap_drop", len(s.CapDrop) > 0}, {"shm_size", s.ShmSize > 0},
		{"links", len(s.Links) > 0}, {"external_links", len(s.ExternalLinks) > 0}, {"volumes_from", len(s.VolumesFrom) > 0},
		{"cgroup", s.Cgroup != ""}, {"cgroup_parent", s.CgroupParent != ""}, {"device_cgroup_rules", len(s.DeviceCgroupRules) > 0}, {"gpus", len(s.Gpus) > 0},
		{"group_add", len(s.GroupAdd) > 0}, {"runtime", s.Runtime != ""}, {"use_api_socket", s.UseAPISocket}, {"userns_mode", s.UserNSMode != ""}, {"uts", s.Uts != ""},
		{"deploy.resources.reservations", s.Deploy != nil && s.Deploy.Resources.Reservations != nil},
		{"a network with an alias or an address", slices.ContainsFunc(slices.Collect(maps.Values(s.Networks)), named)},
		{"a volume of another type than bind and volume", slices.ContainsFunc(s.Volumes, special)},
		{"a service without an image", s.Image == "" && s.Build == nil},
	} {
		if key.there {
			return fmt.Errorf("%s is not supported; leave it out, in a copy of the file if need be", key.name)
		}
	}
	for name, dependency := range s.DependsOn {
		if c := dependency.Condition; c != types.ServiceConditionStarted && c != types.ServiceConditionHealthy {
			return fmt.Errorf("depends_on %s: the condition %s is not supported: servers do not end; write service_started or service_healthy", name, c)
		}
	}
	if b := s.Build; b != nil && (b.Dockerfile != "" && b.Dockerfile != "Dockerfile" || b.DockerfileInline != "" || len(b.Args) > 0 || b.Target != "") {
		return errors.New("a build with other keys than context is not supported; write build: and the folder, or build the image and name it with image")
	}
	return nil
}

// named says whether a service has an alias or an address on a network.
func named(n *types.ServiceNetworkConfig) bool {
	return n != nil && (len(n.Aliases) > 0 || n.Ipv4Address != "" || n.Ipv6Address != "")
}

// special says whether a volume is neither a bind mount nor a named volume.
func special(v types.ServiceVolumeConfig) bool {
	return v.Type != types.VolumeTypeBind && v.Type != types.VolumeTypeVolume
}

// deployed are the limits under deploy.resources. Compose rejects a file whose older keys contradict them.
func deployed(s types.ServiceConfig) types.Resource {
	if s.Deploy == nil || s.Deploy.Resources.Limits == nil {
		return types.Resource{}
	}
	return *s.Deploy.Resources.Limits
}

// imageOf is the image of a service. Its build folder must be allowed like that of a mount.
func imageOf(s types.ServiceConfig, folders []string) (clusters.ProgramImage, error) {
	other := deployed(s)
	limits := engine.Limits{
		Memory: int64(cmp.Or(s.MemLimit, other.MemoryBytes)), PIDs: cmp.Or(s.PidsLimit, other.Pids),
		CPUs:          cmp.Or(float64(s.CPUS), float64(other.NanoCPUs)),
		NewPrivileges: slices.ContainsFunc(s.SecurityOpt, func(option string) bool { return newPrivileges[option] }),
	}
	if s.Build == nil {
		return clusters.ProgramImage{Ref: s.Image, Limits: limits}, nil
	}
	context, err := within(s.Build.Context, folders)
	if err != nil {
		return clusters.ProgramImage{}, fmt.Errorf("build: %w", err)
	}
	return clusters.ProgramImage{Build: context, Limits: limits}, nil
}

// newPrivileges maps the spellings of the one supported security option to whether processes may gain
// privileges.
var newPrivileges = map[string]bool{
	"no-new-privileges": false, "no-new-privileges:true": false, "no-new-privileges=true": false,
	"no-new-privileges:false": true, "no-new-privileges=false": true,
}

func otherThanPrivileges(option string) bool {
	_, known := newPrivileges[option]
	return !known
}

func portOf(s types.ServiceConfig) int {
	if len(s.Ports) > 0 {
		return int(s.Ports[0].Target)
	}
	if len(s.Expose) > 0 {
		port, _ := strconv.Atoi(strings.TrimSuffix(s.Expose[0], "/tcp")) // a range gives 0: no port
		return port
	}
	return 0
}

func assignments(environment map[string]string) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		list = append(list, name+"="+environment[name])
	}
	return list
}

// healthOf is the command of the health check; nil for none.
func healthOf(s types.ServiceConfig) []string {
	if s.HealthCheck == nil || s.HealthCheck.Disable || len(s.HealthCheck.Test) < 2 {
		return nil
	}
	switch test := s.HealthCheck.Test; test[0] {
	case "CMD":
		return test[1:]
	case "CMD-SHELL":
		return []string{"/bin/sh", "-c", test[1]}
	}
	return nil
}

// mountsOf lists the bind mounts of a service. Volumes are left out, because the container itself survives
// kills with its data. Files of variables are subject to the same rule as mounts.
func mountsOf(s types.ServiceConfig, folders []string) ([]string, error) {
	for _, file := range s.EnvFiles {
		if _, err := within(file.Path, folders); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("env_file: %w", err)
		}
	}
	var mounts []string
	for _, v := range s.Volumes {
		if v.Type != types.VolumeTypeBind {
			continue
		}
		source, err := within(v.Source, folders)
		if err != nil {
			return nil, err
		}
		if strings.Contains(source, ":") {
			return nil, fmt.Errorf("%s has a colon in its path, and Docker splits mounts at colons: rename it", v.Source)
		}
		mounts = append(mounts, source+":"+v.Target)
	}
	return mounts, nil
}

// timeZones is the folder that /etc/localtime links into. Many services mount it, and it holds nothing secret.
const timeZones = "/usr/share/zoneinfo"

// within returns the path without symbolic links, or why a server may not have it. The author of the Compose
// file must not be able to read all of this machine, or to control the Docker engine through its socket.
func within(path string, folders []string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	about, err := os.Stat(real)
	switch {
	case err != nil:
		return "", err
	case !about.IsDir() && !about.Mode().IsRegular():
		return "", fmt.Errorf("%s is neither a file nor a folder: sockets and devices cannot be mounted", path)
	}
	for _, folder := range append(slices.Clone(folders), timeZones) {
		allowed, err := filepath.EvalSymlinks(folder)
		switch {
		case err != nil && folder == timeZones:
			continue // this machine has no such folder
		case err != nil:
			return "", err
		}
		if inside, err := filepath.Rel(allowed, real); err == nil && filepath.IsLocal(inside) {
			return real, nil
		}
	}
	return "", fmt.Errorf("%s is outside of the folders of the Compose file and of the file that names it; copy it into one of them", path)
}
