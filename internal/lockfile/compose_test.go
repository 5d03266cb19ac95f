package lockfile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockcheck/clusters"
)

// writeCompose puts a Compose file and a lock file that names it into a folder of their own.
func writeCompose(t *testing.T, compose, servers string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "a+b") // no option begins here
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

// TestCompose: what a Compose file says is taken as it is, in the order of dependencies.
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

// TestComposeHidden: what the lock file says of the servers that clients use is said of no other.
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
		{"limits", service + ", deploy: {resources: {limits: {memory: 1g}}}}}", "{compose: compose.yml}", "deploy.resources is not supported"},
		{"reservations", service + ", deploy: {resources: {reservations: {cpus: \"1\"}}}}}", "{compose: compose.yml}", "deploy.resources is not supported"},
		{"shared memory", service + ", shm_size: 1g}}", "{compose: compose.yml}", "shm_size is not supported"},
		{"a volume in memory", service + ", volumes: [{type: tmpfs, target: /t}]}}", "{compose: compose.yml}", "a volume of another type"},
		{"a service that ends", service + ", depends_on: {b: {condition: service_completed_successfully}}}, b: {image: j}}", "{compose: compose.yml}",
			"service a: depends_on b: the condition service_completed_successfully is not supported"},
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
