package lockfile

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

// composed makes servers of the services of a Compose file: one server a replica, in the
// order of their dependencies and then of their names.
func (s servers) composed(name, folder string) (clusters.Spec, error) {
	if s.Cluster != "" || s.Version != "" || s.Image != "" || s.Build != "" || s.Count != 0 || s.Command != nil || s.Environment != nil || s.Files != nil || s.Limits != (limits{}) {
		return clusters.Spec{}, fieldError("compose", "the file says what is started; next to it are only services, port, ready, leader and clock")
	}
	project, err := loadProject(filepath.Join(folder, s.Compose))
	if err != nil {
		return clusters.Spec{}, fieldError("compose", "%w", err)
	}
	for _, wanted := range s.Services {
		if _, there := project.Services[wanted]; !there {
			return clusters.Spec{}, fieldError("services", "%s has no service %q; it has %s", s.Compose, wanted, strings.Join(project.ServiceNames(), ", "))
		}
	}
	var all []clusters.CustomServer
	for _, service := range inOrder(project) {
		servers, err := s.ofService(service, []string{folder, project.WorkingDir})
		if err != nil {
			return clusters.Spec{}, fieldError("compose", "service %s: %w", service.Name, err)
		}
		all = append(all, servers...)
	}
	switch visible := slices.ContainsFunc(all, func(s clusters.CustomServer) bool { return !s.Hidden }); {
	case len(all) > maxServers:
		return clusters.Spec{}, fieldError("compose", "%d servers: at most %d", len(all), maxServers)
	case !visible:
		return clusters.Spec{}, fieldError("compose", "no service has a port: name those that clients use (services) and their port")
	}
	return clusters.Custom(name, all), nil
}

func loadProject(path string) (*types.Project, error) {
	details := types.ConfigDetails{
		WorkingDir: filepath.Dir(path), ConfigFiles: []types.ConfigFile{{Filename: path}},
		Environment: types.NewMapping(os.Environ()),
	}
	return loader.LoadWithContext(context.Background(), details, func(o *loader.Options) { o.SetProjectName("lockcheck", true) })
}

// inOrder lists the services so that none comes before one that it depends on.
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

// ofService makes a server of each replica of a service.
// Of this machine the service may read what is in the folders.
func (s servers) ofService(service types.ServiceConfig, folders []string) ([]clusters.CustomServer, error) {
	if err := supported(service); err != nil {
		return nil, err
	}
	port := portOf(service)
	used := slices.Contains(s.Services, service.Name)
	if used {
		port = cmp.Or(s.Port, port)
	}
	if used && port == 0 {
		return nil, errors.New("it names no port")
	}
	mounts, err := mountsOf(service, folders)
	if err != nil {
		return nil, err
	}
	image, err := imageOf(service, folders)
	if err != nil {
		return nil, err
	}
	server := clusters.CustomServer{
		Literal: true, Program: service.Name, Image: image, Port: port,
		Entrypoint: service.Entrypoint, Command: service.Command, Environment: environmentOf(service), Mounts: mounts,
		ReadyHTTP: s.Ready.HTTP, ReadyCommand: firstCommand(s.Ready.Command, healthOf(service)),
		LeaderCommand: s.Leader.Command, ClockCommand: s.Clock.Command,
		Later:  len(service.GetDependencies()) > 0,
		Hidden: port == 0 || len(s.Services) > 0 && !used,
	}
	if server.Hidden { // nobody asks it but through the others
		server.ReadyHTTP, server.ReadyCommand = "", healthOf(service)
		server.LeaderCommand, server.ClockCommand = nil, nil
	}
	replicas := slices.Repeat([]clusters.CustomServer{server}, service.GetScale())
	for i := range replicas {
		replicas[i].Names = namesOf(service, i, len(replicas))
	}
	return replicas, nil
}

func firstCommand(first, second []string) []string {
	if first != nil {
		return first
	}
	return second
}

// namesOf are the names under which a replica is reached: with several the name of the
// service is that of the first.
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

// supported refuses what would make servers other ones than the file says.
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
			return fmt.Errorf("%s is not supported", key.name)
		}
	}
	for name, dependency := range s.DependsOn {
		if c := dependency.Condition; c != types.ServiceConditionStarted && c != types.ServiceConditionHealthy {
			return fmt.Errorf("depends_on %s: the condition %s is not supported: servers do not end", name, c)
		}
	}
	if b := s.Build; b != nil && (b.Dockerfile != "" && b.Dockerfile != "Dockerfile" || b.DockerfileInline != "" || len(b.Args) > 0 || b.Target != "") {
		return errors.New("a build with other keys than context is not supported")
	}
	return nil
}

// named says whether a server has a name or an address on a network that the others may know it by.
func named(n *types.ServiceNetworkConfig) bool {
	return n != nil && (len(n.Aliases) > 0 || n.Ipv4Address != "" || n.Ipv6Address != "")
}

// special says whether a volume is neither a place of this machine nor one that the container can
// have in itself.
func special(v types.ServiceVolumeConfig) bool {
	return v.Type != types.VolumeTypeBind && v.Type != types.VolumeTypeVolume
}

// deployed are the limits under deploy.resources. Compose refuses a file that contradicts them by
// the older keys next to the image.
func deployed(s types.ServiceConfig) types.Resource {
	if s.Deploy == nil || s.Deploy.Resources.Limits == nil {
		return types.Resource{}
	}
	return *s.Deploy.Resources.Limits
}

// imageOf is the image of a service. A folder to build it of is lent to the Dockerfile like a mount.
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

// newPrivileges are the spellings of the one security option that a server may have, and whether
// it then may get new rights.
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
		port, _ := strconv.Atoi(strings.TrimSuffix(s.Expose[0], "/tcp")) // 0 for a range: none
		return port
	}
	return 0
}

func environmentOf(s types.ServiceConfig) []string {
	var list []string
	for name, value := range s.Environment {
		if value != nil {
			list = append(list, name+"="+*value)
		}
	}
	slices.Sort(list)
	return list
}

// healthOf is the command of a health check; nil for none.
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

// mountsOf lists what of this machine a server may read. Its volumes are left out: what it
// writes stays in its container, which outlives its kills. A file of variables is read like a mount.
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

// timeZones is what /etc/localtime is a link into, which many mount: it tells nobody anything.
const timeZones = "/usr/share/zoneinfo"

// within returns the path of a file or folder without symbolic links, or says why a server may not
// have it: whoever wrote the file that names it must not be able to read all of this machine with
// it, nor to command the Docker engine, by its socket.
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
			continue // this machine has none
		case err != nil:
			return "", err
		}
		if inside, err := filepath.Rel(allowed, real); err == nil && filepath.IsLocal(inside) {
			return real, nil
		}
	}
	return "", fmt.Errorf("%s is outside of the folders of the lock file and of its Compose file; copy it into one of them", path)
}
