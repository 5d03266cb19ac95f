package lockfile

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockcheck/clusters"
	"lockcheck/clusters/engine"
)

// writeCompose writes a Compose file, and a lock file that names it, into a folder of their own.
func writeCompose(t *testing.T, compose, servers string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "a+b") // the + in the folder's name begins no option
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"compose.yml": compose, "Dockerfile": "FROM scratch\n",
		"mine.yaml": "client: {command: [c], build: .}\nservers: " + servers + "\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(folder, "mine.yaml")
}

// TestCompose: the content of a Compose file is taken literally, and its services come in the order of their
// dependencies.
func TestCompose(t *testing.T) {
	lock, err := Find(writeCompose(t, `
services:
  a: {image: i, depends_on: [b], command: [serve, "{n}", "$${HOME}"], environment: {NAME: "{name}"}, expose: ["80"]}
  b: {image: j, ports: ["70:7000"], scale: 2}
`, "{compose: compose.yml}"))
	if err != nil {
		t.Fatal(err)
	}
	var programs []string
	for n := range lock.Servers.Nodes {
		programs = append(programs, lock.Servers.Server(n).Program)
	}
	if want := []string{"b", "b", "a"}; !slices.Equal(programs, want) {
		t.Fatalf("servers %v, want %v", programs, want)
	}
	a, place := lock.Servers.Server(2), clusters.Place{N: 2, IPs: []string{"1", "2", "3"}, Folder: "/f"}
	if got, want := a.Command(place), []string{"serve", "{n}", "${HOME}"}; !slices.Equal(got, want) {
		t.Errorf("command %q, want %q", got, want)
	}
	if got, want := a.Environment(place), []string{"NAME={name}"}; !slices.Equal(got, want) {
		t.Errorf("environment %q, want %q", got, want)
	}
	if b := lock.Servers.Server(0); b.Port != 7000 || a.Port != 80 || a.NoWipe == nil {
		t.Errorf("ports %d and %d, wipe: %v", b.Port, a.Port, a.NoWipe)
	}
}

// TestComposeHidden: settings of the lock file apply only to the servers that clients use.
func TestComposeHidden(t *testing.T) {
	lock, err := Find(writeCompose(t, `
services:
  a: {image: i, expose: ["80"], depends_on: {b: {condition: service_healthy}}, networks: [n], volumes: ["v:/data"]}
  b: {image: j, networks: {n: {}}}
networks: {n: {}}
volumes: {v: {}}
`, "{compose: compose.yml, clock: {command: [date]}}"))
	if err != nil {
		t.Fatal(err)
	}
	for n, hidden := range []bool{true, false} {
		if s := lock.Servers.Server(n); s.Hidden != hidden || (s.NoClock != nil) != hidden {
			t.Errorf("%s is hidden: %t; its clock: %v", s.Program, s.Hidden, s.NoClock)
		}
	}
}

// TestComposeMounts: a server may read the files next to the Compose file. A link out of the folder and a
// socket are refused.
func TestComposeMounts(t *testing.T) {
	const compose = "services: {a: {image: i, expose: ['80'], env_file: in/env, volumes: ['./in/%s:/x']}}"
	for name, want := range map[string]string{"file": "", "folder": "", "link": "", "out": "outside of the folders", "socket": "neither a file nor a folder"} {
		t.Run(name, func(t *testing.T) {
			path := writeCompose(t, strings.ReplaceAll(compose, "%s", name), "{compose: compose.yml}")
			in := filepath.Join(filepath.Dir(path), "in")
			// The path of a socket may have at most 107 bytes.
			short, err := os.MkdirTemp("", "s")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(short) })
			listener, err := net.Listen("unix", filepath.Join(short, "socket"))
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			if err := errors.Join(
				os.MkdirAll(filepath.Join(in, "folder"), 0o755), os.WriteFile(filepath.Join(in, "file"), nil, 0o644), os.WriteFile(filepath.Join(in, "env"), []byte("A=b\n"), 0o644),
				os.Symlink("file", filepath.Join(in, "link")), os.Symlink("/", filepath.Join(in, "out")), os.Rename(listener.Addr().String(), filepath.Join(in, "socket")),
			); err != nil {
				t.Fatal(err)
			}
			if lock, err := Find(path); want == "" && (err != nil || lock.Servers.Server(0).Environment(clusters.Place{})[0] != "A=b") {
				t.Error(err)
			} else if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}

// TestComposeFromBelow: if the Compose file is in a subfolder, its services may also read what is next to the
// lock file.
func TestComposeFromBelow(t *testing.T) {
	path := writeCompose(t, "", "{compose: docker/compose.yml}")
	folder := filepath.Join(filepath.Dir(path), "docker")
	if err := errors.Join(os.Mkdir(folder, 0o755), os.WriteFile(filepath.Join(folder, "compose.yml"),
		[]byte("services: {a: {image: i, expose: ['80'], volumes: ['../Dockerfile:/x']}}"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(path); err != nil {
		t.Error(err)
	}
}

// TestLimits: the limits of a user's containers are written next to the settings that they belong to.
func TestLimits(t *testing.T) {
	const client = "client: {command: [c], build: ., limits: {memory: 512m, pids: 10, cpus: 1.5, new_privileges: true}}\n"
	small := engine.Limits{Memory: 512 << 20, PIDs: 10, CPUs: 1.5, NewPrivileges: true}
	for name, c := range map[string]struct {
		path string
		want engine.Limits
	}{
		"image":   {write(t, client+"servers: {image: i, port: 80, limits: {memory: 512m, pids: 10, cpus: 1.5, new_privileges: true}}\n"), small},
		"default": {write(t, client+"servers: {image: i, port: 80}\n"), engine.Limits{}},
		"Compose": {writeCompose(t, "services: {a: {image: i, expose: ['80'], mem_limit: 512m, pids_limit: 10, cpus: 1.5, security_opt: ['no-new-privileges:false']}}", "{compose: compose.yml}"), small},
		"deploy":  {writeCompose(t, "services: {a: {build: ., expose: ['80'], security_opt: ['no-new-privileges:false'], deploy: {resources: {limits: {memory: 512m, pids: 10, cpus: '1.5'}}}}}", "{compose: compose.yml}"), small},
		"cpus":    {writeCompose(t, "services: {a: {image: i, expose: ['80'], cpus: 1.5}}", "{compose: compose.yml}"), engine.Limits{CPUs: 1.5}},
		"strict":  {writeCompose(t, "services: {a: {image: i, expose: ['80'], security_opt: ['no-new-privileges:true']}}", "{compose: compose.yml}"), engine.Limits{}},
	} {
		lock, err := Find(c.path)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := *lock.Servers.Limits(0); got != c.want {
			t.Errorf("%s: servers %+v, want %+v", name, got, c.want)
		}
		if (name == "image" || name == "default") && lock.Image.Limits != small {
			t.Errorf("%s: client %+v, want %+v", name, lock.Image.Limits, small)
		}
	}
	if _, err := Find(write(t, "client: {command: [c], limits: {pids: 10}}\nservers: memory\n")); err == nil || !strings.Contains(err.Error(), "limits: limits are for containers") {
		t.Errorf("a client of this machine: %v", err)
	}
}

func TestComposeRefuses(t *testing.T) {
	const service = "services: {a: {image: i, expose: [\"80\"]"
	for _, c := range []struct{ name, compose, servers, want string }{
		{"services of no file", service + "}}", "{services: [a]}", "services: they are those of a Compose file"},
		{"an unknown service", service + "}}", "{compose: compose.yml, services: [b]}", `no service "b"; it has a`},
		{"an image besides", service + "}}", "{compose: compose.yml, image: i}", "the file says what is started"},
		{"no file", service + "}}", "{compose: other.yml}", "no such file"},
		{"no port", "services: {a: {image: i}}", "{compose: compose.yml}", "no service has a port"},
		{"two unsupported keys", service + ", user: u, privileged: true}}", "{compose: compose.yml}", "service a: privileged is not supported"},
		{"a link", service + ", links: [b]}, b: {image: j}}", "{compose: compose.yml}", "service a: links is not supported"},
		{"an external link", service + ", external_links: [b]}}", "{compose: compose.yml}", "external_links is not supported"},
		{"an alias", service + ", networks: {n: {aliases: [b]}}}}\nnetworks: {n: {}}", "{compose: compose.yml}", "a network with an alias"},
		{"an address", service + ", networks: {n: {ipv4_address: 10.9.0.2}}}}\nnetworks: {n: {}}", "{compose: compose.yml}", "a network with an alias or an address"},
		{"limits that contradict each other", service + ", mem_limit: 1g, deploy: {resources: {limits: {memory: 2g}}}}}", "{compose: compose.yml}", "mem_limit"},
		{"reservations", service + ", deploy: {resources: {reservations: {cpus: \"1\"}}}}}", "{compose: compose.yml}", "deploy.resources.reservations is not supported"},
		{"shared memory", service + ", shm_size: 1g}}", "{compose: compose.yml}", "shm_size is not supported"},
		{"a volume in memory", service + ", volumes: [{type: tmpfs, target: /t}]}}", "{compose: compose.yml}", "a volume of another type"},
		{"a service that ends", service + ", depends_on: {b: {condition: service_completed_successfully}}}, b: {image: j}}", "{compose: compose.yml}",
			"service a: depends_on b: the condition service_completed_successfully is not supported"},
		{"processes of the host", service + ", pid: host}}", "{compose: compose.yml}", "pid is not supported"},
		{"users of the host", service + ", userns_mode: host}}", "{compose: compose.yml}", "userns_mode is not supported"},
		{"the engine's socket by its key", service + ", use_api_socket: true}}", "{compose: compose.yml}", "use_api_socket is not supported"},
		{"rights to devices", service + ", device_cgroup_rules: ['a *:* rwm']}}", "{compose: compose.yml}", "device_cgroup_rules is not supported"},
		{"no seccomp", service + ", security_opt: ['seccomp:unconfined']}}", "{compose: compose.yml}", "security_opt other than no-new-privileges"},
		{"all of the host", service + ", volumes: ['/:/host']}}", "{compose: compose.yml}", "/ is outside of the folders"},
		{"a parent", service + ", volumes: ['../:/host']}}", "{compose: compose.yml}", "is outside of the folders"},
		{"variables of the host", service + ", env_file: /etc/os-release}}", "{compose: compose.yml}", "env_file: /etc/os-release is outside of the folders"},
		{"a build of all of the host", "services: {a: {build: {context: /}, expose: [\"80\"]}}", "{compose: compose.yml}", "build: / is outside of the folders"},
		{"a build of a parent", "services: {a: {build: .., expose: [\"80\"]}}", "{compose: compose.yml}", "is outside of the folders"},
		{"a build with arguments", "services: {a: {build: {context: ., args: {A: b}}, expose: [\"80\"]}}", "{compose: compose.yml}", "other keys than context"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Find(writeCompose(t, c.compose, c.servers))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
