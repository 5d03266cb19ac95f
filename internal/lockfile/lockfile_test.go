package lockfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// write writes a lock file into a folder of its own, next to a Dockerfile.
func write(t *testing.T, text string) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range map[string]string{"mine.yaml": text, "Dockerfile": "FROM scratch\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(folder, "mine.yaml")
}

func TestFind(t *testing.T) {
	path := write(t, `
client: {command: [python3, client.py], environment: {B: "2", A: "1"}}
servers: memory
lease: 400ms
tokens: true
renew: true
holds: true
`)
	lock, err := Find(path)
	if err != nil {
		t.Fatal(err)
	}
	if lock.Info.Name != "mine" || lock.Info.TTL != 400*time.Millisecond || lock.Info.Grace != defaultGrace ||
		lock.Info.Token == "" || !lock.Info.Renew || !lock.Info.Ask || lock.Info.Queues || lock.Servers.Name != "memory" {
		t.Errorf("got %+v on %s", lock.Info, lock.Servers.Name)
	}
	program := lock.Definition.Program
	if program.Folder != filepath.Dir(path) || strings.Join(program.Env, " ") != "A=1 B=2" || strings.Join(program.Args, " ") != "python3 client.py" {
		t.Errorf("got %+v", program)
	}
	if with, err := Find(path + "+watchdog"); err != nil || with.Info.Name != "mine+watchdog" || !with.Info.Uses("watchdog") {
		t.Errorf("with an option: %v, %v", with.Info.Name, err)
	}
	if without, err := Find(write(t, "client: {command: [c]}\nservers: none\n")); err != nil || without.Info.TTL != 0 || without.Info.MinTTL != 0 {
		t.Errorf("without a lease: %+v, %v", without.Info, err)
	}
	if known, err := Find("etcd+watch-session"); err != nil || known.Definition != nil || known.Servers.Name != "etcd" {
		t.Errorf("a lock of lockcheck's: %+v, %v", known, err)
	}
}

// TestFindEnvironment: a variable without a value gets lockcheck's own value if there is one. A program on this
// machine inherits only the listed variables.
func TestFindEnvironment(t *testing.T) {
	t.Setenv("LOCKFILE_TEST", "passed-on")
	const environment = `environment: {LOCKFILE_TEST: , LOCKFILE_TEST_UNSET: , EMPTY: "", SET: "1"}`
	for text, onHost := range map[string]bool{
		"client: {command: [c], " + environment + "}\nservers: memory\n":          true,
		"client: {command: [c], build: ., " + environment + "}\nservers: redis\n": false,
	} {
		lock, err := Find(write(t, text))
		if err != nil {
			t.Fatal(err)
		}
		program := lock.Definition.Program
		if got := strings.Join(program.Env, " "); got != "EMPTY= LOCKFILE_TEST=passed-on SET=1" || program.OnHost != onHost {
			t.Errorf("%s gives %q, on the host: %t", text, got, program.OnHost)
		}
	}
}

func TestFindServers(t *testing.T) {
	for _, c := range []struct {
		name, servers string
		nodes         int
		docker        bool
		version       string
	}{
		{"none", "none", 0, false, ""},
		{"known", "etcd", 3, true, "3.6.16"},
		{"known, changed", "{cluster: etcd, version: 3.4.3, count: 5}", 5, true, "3.4.3"},
		{"own image", "{image: mine:1, port: 99, count: 2, ready: {http: /ready}}", 2, true, ""},
		{"own Dockerfile", "{build: ., port: 99}", 1, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := "{command: [c]}"
			if c.docker {
				client = "{command: [c], build: .}"
			}
			lock, err := Find(write(t, "client: "+client+"\nservers: "+c.servers+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			if s := lock.Servers; s.Nodes != c.nodes || s.OnDocker() != c.docker || s.Version("") != c.version {
				t.Errorf("got %d servers, on Docker %v, version %q", s.Nodes, s.OnDocker(), s.Version(""))
			}
		})
	}
}

// TestFindWrapped: a command that runs its child under the lock, on this machine and in the image of its
// servers.
func TestFindWrapped(t *testing.T) {
	for _, c := range []struct{ name, text, says string }{
		{"no lease", "client: {command: [flock, -n, \"{folder}/{key}\"], wrap: true, busy_status: 1}\nservers: none\n", "flock -n {folder}/{key}"},
		{"a script", "client: {command: [sh, -c, 'l=${HOME}; exec \"$@\"', sh, \"{child}\"], wrap: true}\nservers: none\n", "sh -c"},
		{"its servers", "client: {image: servers, command: [consul, lock, \"-http-addr={host}:{port}\", \"{key}\", \"{child}\"], environment: {A: \"{endpoints}\"}, wrap: true}\nservers: consul\nlease: 15s\nsession: true\n", "consul lock"},
	} {
		t.Run(c.name, func(t *testing.T) {
			lock, err := Find(write(t, c.text))
			if err != nil {
				t.Fatal(err)
			}
			if !lock.Definition.Wraps || !strings.Contains(lock.Info.Summary, c.says) || lock.Info.LossNotification == "" {
				t.Errorf("got %+v", lock.Definition)
			}
			if lock.Image.OfServers != lock.Servers.OnDocker() {
				t.Errorf("image %+v", lock.Image)
			}
			if lock.Info.TTL == 0 && lock.Info.MinTTL != 0 {
				t.Errorf("without a lease the shortest is %s", lock.Info.MinTTL)
			}
		})
	}
	seconds, err := Find(write(t, "client: {command: [l, \"{ttl}\"], wrap: true}\nservers: none\nlease: 1500ms\n"))
	if err != nil || seconds.Info.Lease(seconds.Info.TTL) != 2*time.Second {
		t.Errorf("a lease that is named in seconds is %s, %v", seconds.Info.Lease(seconds.Info.TTL), err)
	}
}

// TestFindName: a name may be in any language.
func TestFindName(t *testing.T) {
	if lock, err := Find(write(t, "client: {command: [c]}\nservers: none\nname: Schloß №1 ロック\n")); err != nil || lock.Info.Name != "Schloß №1 ロック" {
		t.Errorf("got %q, %v", lock.Info.Name, err)
	}
}

// TestFindRefuses: every error in a lock file is reported with its line, before anything starts.
func TestFindRefuses(t *testing.T) {
	const good = "client: {command: [c]}\nservers: none\n"
	const wrapping = "client:\n  command: [c]\n  wrap: true\n"
	for _, c := range []struct{ name, text, want string }{
		{"unknown key", good + "leese: 2s\n", `line 3: there is no key "leese"`},
		{"unknown key of the client", "client:\n  comand: [c]\nservers: none\n", `line 2: there is no key "comand"`},
		{"no client", "servers: none\n", "command: it is missing"},
		{"no servers", "client: {command: [c]}\n", "servers: name a cluster"},
		{"unknown cluster", "client: {command: [c]}\nservers: redsi\n", `did you mean "redis"?`},
		{"no number", good + "lease: soon\n", "line 3"},
		{"negative lease", good + "lease: -1s\n", "line 3: lease: it must not be negative"},
		{"renewal without a lease", good + "renew: true\n", "line 3: renew"},
		{"a session without a lease", good + "session: true\n", "line 3: session: a session has a lease"},
		{"a session is renewed by its client", good + "lease: 1s\nsession: true\nrenew: true\n", "line 5: renew"},
		{"a name of ours", good + "name: redis\n", `line 3: name: "redis" is the name of one`},
		{"a name that moves the cursor", good + "name: \"a\\e[2Jb\"\n", "line 3: name"},
		{"a name of two lines", good + "name: \"a\\nb\"\n", "line 3: name"},
		{"a path as name", good + "name: a/b\n", "line 3: name"},
		{"servers on Docker, client here", "client: {command: [c]}\nservers: redis\n", "needs an image; add build: ."},
		{"client in an image, no Docker", "client: {command: [c], image: i}\nservers: memory\n", "runs on this machine"},
		{"both", "client: {command: [c], image: i, build: .}\nservers: redis\n", "exclude each other"},
		{"no Dockerfile", "client: {command: [c], build: nowhere}\nservers: redis\n", "no Dockerfile"},
		{"no port", "client: {command: [c], build: .}\nservers: {image: i}\n", "port"},
		{"no such version", "client: {command: [c], build: .}\nservers: {cluster: etcd, version: 1.0}\n", "version: of etcd there is"},
		{"no such number", "client: {command: [c], build: .}\nservers: {cluster: etcd, count: 4}\n", "count: etcd has"},
		{"a known cluster with a port", "client: {command: [c], build: .}\nservers: {cluster: etcd, port: 4}\n", "and nothing else"},
		{"two questions", "client: {command: [c], build: .}\nservers: {image: i, port: 4, ready: {http: /, command: [c]}}\n", "exclude each other"},
		{"a busy status without wrap", "client:\n  command: [c]\n  busy_status: 1\nservers: none\n", "line 3: busy_status: it is for a command"},
		{"wrapped, status", wrapping + "  busy_status: 256\nservers: none\n", "line 4: busy_status"},
		{"wrapped, work", wrapping + "  work: true\nservers: none\n", "line 4: work"},
		{"wrapped, tokens", wrapping + "servers: none\ntokens: true\n", "line 5: tokens"},
		{"wrapped, renew", wrapping + "servers: none\nlease: 1s\nrenew: true\n", "line 6: renew"},
		{"wrapped, holds", wrapping + "servers: none\nholds: true\n", "line 5: holds"},
		{"wrapped, child in a text", "client:\n  command: [sh, -c, \"x {child}\"]\n  wrap: true\nservers: none\n", `line 2: command: {child} stands for several`},
		{"wrapped, two children", "client:\n  command: [c, \"{child}\", \"{child}\"]\n  wrap: true\nservers: none\n", "line 2: command: {child} stands there more"},
		{"wrapped, unknown place", "client:\n  command: [c, \"{name}\"]\n  wrap: true\nservers: none\n", "line 2: command: nothing is called {name}"},
		{"wrapped, no servers", "client:\n  command: [c, \"{host}\"]\n  wrap: true\nservers: none\n", "line 2: command: {host}: there are no servers"},
		{"wrapped, unknown place in a variable", wrapping + "  environment: {A: \"{kee}\"}\nservers: none\n", "line 4: environment: nothing is called {kee}"},
		{"empty", "", "it is empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := write(t, c.text)
			_, err := Find(path)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want %q with the path", err, c.want)
			}
		})
	}
	for name, want := range map[string]string{"nowhere/lock.yaml": "no such file", "redsi": "did you mean", "x.yaml+y": "x.yaml"} {
		if _, err := Find(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
}
