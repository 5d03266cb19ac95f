package clusters

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/clients"
	"lockcheck/clusters/agent"
	"lockcheck/clusters/clustertest"
	"lockcheck/internal/cleanup/cleanuptest"
)

func TestMain(m *testing.M) { os.Exit(clustertest.Main(m)) }

var patience = clustertest.Slow(time.Minute)

// request asks for the named servers, in a new run.
func request(t *testing.T, servers string) Request {
	t.Helper()
	spec, ok := ByName(servers)
	if !ok {
		t.Fatalf("no servers %q", servers)
	}
	run, labels := cleanuptest.Run(t)
	return Request{
		Run: run, Spec: spec, Binary: clustertest.Binary(t), Progress: t.Logf, Labels: labels,
	}
}

// started starts the servers and removes them with the test.
func started(t *testing.T, servers string) Cluster {
	t.Helper()
	return startedWith(t, request(t, servers))
}

// startedWith is started for a modified request.
func startedWith(t *testing.T, r Request) Cluster {
	t.Helper()
	if r.Spec.OnDocker() {
		clustertest.Engine(t, servers(r))
	}
	cluster, err := Start(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return cluster
}

// servers is the argument of clustertest.Engine for a request.
func servers(r Request) string {
	if r.Version != "" || r.Image != "" {
		return clustertest.Rest
	}
	return r.Spec.Name
}

// signal stops or continues the processes of a node and waits until that shows in their state.
func signal(t *testing.T, node *Node, s agent.Signal) {
	t.Helper()
	if _, err := node.Host.Signal(t.Context(), s); err != nil {
		t.Fatalf("%s: %v", node.Name, err)
	}
	clustertest.Eventually(t, patience, func() error {
		processes, err := node.Host.Processes(t.Context())
		if err != nil || len(processes) == 0 {
			return fmt.Errorf("%s: processes %v, %w", node.Name, processes, err)
		}
		for _, p := range processes {
			if p.Stopped != (s == agent.Stop) {
				return fmt.Errorf("%s: %+v after %s", node.Name, p, s)
			}
		}
		return nil
	})
}

func TestTable(t *testing.T) {
	for _, info := range clients.Table() {
		if _, ok := ByName(info.Servers); !ok {
			t.Errorf("lock %s needs servers %q, which nobody knows", info.Name, info.Servers)
		}
	}
	for _, spec := range Table() {
		t.Run(spec.Name, func(t *testing.T) {
			if found, ok := ByName(spec.Name); !ok || found.Nodes != spec.Nodes {
				t.Errorf("finds %+v, %v", found, ok)
			}
			if spec.OnDocker() && spec.Embedded != nil {
				t.Error("both on Docker and embedded")
			}
			for n := range spec.Nodes {
				server := spec.Server(n)
				if spec.OnDocker() && (server.Command == nil || server.Port == 0) {
					t.Errorf("server %d has no command or no port", n)
				}
				if server.Probes == nil || server.Program == "" {
					t.Errorf("server %d cannot be asked whether it is ready, or has no name", n)
				}
			}
		})
	}
	if _, ok := ByName("no such servers"); ok {
		t.Error("unknown servers are found")
	}
}

// TestLeases checks the leases of the textbook service against a simulated clock.
func TestLeases(t *testing.T) {
	type call struct {
		at     time.Duration
		method string
		id     string
		want   clients.MemoryReply
	}
	const ttl = time.Second
	granted := func(token uint64) clients.MemoryReply { return clients.MemoryReply{Done: true, Token: token} }
	held := clients.MemoryReply{Holder: "a"}
	var free clients.MemoryReply
	for _, c := range []struct {
		name  string
		calls []call
	}{
		{"one after the other", []call{
			{0, "acquire", "a", granted(1)}, {1, "acquire", "b", held}, {2, "release", "a", granted(1)}, {3, "acquire", "b", granted(2)},
		}},
		{"ends at its end, not before", []call{
			{0, "acquire", "a", granted(1)}, {ttl - 1, "acquire", "b", held}, {ttl, "acquire", "b", granted(2)},
		}},
		{"not for the holder twice", []call{{0, "acquire", "a", granted(1)}, {1, "acquire", "a", held}}},
		{"renewed from now on", []call{
			{0, "acquire", "a", granted(1)}, {ttl - 1, "renew", "a", granted(1)}, {2*ttl - 2, "acquire", "b", held}, {2*ttl - 1, "acquire", "b", granted(2)},
		}},
		{"renewed too late", []call{{0, "acquire", "a", granted(1)}, {ttl, "renew", "a", free}, {ttl, "acquire", "b", granted(2)}}},
		{"renewed by another", []call{{0, "acquire", "a", granted(1)}, {1, "renew", "b", held}, {ttl, "acquire", "b", granted(2)}}},
		{"released by another", []call{{0, "acquire", "a", granted(1)}, {1, "release", "b", held}, {2, "acquire", "b", held}}},
		{"released too late", []call{{0, "acquire", "a", granted(1)}, {ttl, "release", "a", free}}},
		{"a zombie releases its successor's", []call{
			{0, "acquire", "b", granted(1)}, {ttl, "acquire", "a", granted(2)}, {ttl + 1, "release", "b", held}, {ttl + 2, "acquire", "c", held},
		}},
		{"released twice", []call{{0, "acquire", "a", granted(1)}, {1, "release", "a", granted(1)}, {2, "release", "a", free}}},
		{"never held", []call{{0, "renew", "a", free}, {0, "release", "a", free}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var now time.Duration
			service := newLeases(func() int64 { return now.Nanoseconds() })
			methods := map[string]func(clients.MemoryRequest) clients.MemoryReply{
				"acquire": service.acquire, "renew": service.renew, "release": service.release,
			}
			for i, step := range c.calls {
				now = step.at
				if got := methods[step.method](clients.MemoryRequest{Key: "k0", ID: step.id, TTL: ttl}); got != step.want {
					t.Errorf("step %d, %s by %s: got %+v, want %+v", i, step.method, step.id, got, step.want)
				}
			}
			// Another key is another lock, but shares the token counter.
			if got := service.acquire(clients.MemoryRequest{Key: "k1", ID: "z", TTL: ttl}); !got.Done || got.Token != service.token {
				t.Errorf("another key: %+v", got)
			}
		})
	}
}

func TestTail(t *testing.T) {
	leftOut := func(n int) string {
		return fmt.Sprintf("(%d bytes before this are left out: lockcheck keeps the last 65536)\n", n)
	}
	long := strings.Repeat("x", tailSize)
	for _, c := range []struct {
		name   string
		writes []string
		want   string
	}{
		{"nothing", nil, ""},
		{"all of it", []string{"a", "b\n"}, "ab\n"},
		{"exactly as much", []string{long}, long},
		{"too much, in pieces", []string{"ab", long[:tailSize-1]}, leftOut(1) + "b" + long[:tailSize-1]},
		{"too much at once", []string{"a" + long + "b"}, leftOut(2) + long[1:] + "b"},
		{"too much again and again", []string{long, long, "a"}, leftOut(tailSize+1) + long[1:] + "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tail Tail
			for _, w := range c.writes {
				if n, err := tail.Write([]byte(w)); n != len(w) || err != nil {
					t.Errorf("wrote %d, %v", n, err)
				}
			}
			if got := tail.String(); got != c.want {
				t.Errorf("kept %d bytes, want %d", len(got), len(c.want))
			}
		})
	}
}

func TestInfoField(t *testing.T) {
	const info = "# Server\r\nredis_version:7.0.15\r\nredis_git_sha1:00000000\r\nx_redis_version:1\r\n"
	for name, want := range map[string]string{"redis_version": "7.0.15", "redis_git_sha1": "00000000", "version": "", "# Server": ""} {
		if got := infoField(info, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// TestAddressesIn: what the servers of Redis say of each other is read as addresses.
func TestAddressesIn(t *testing.T) {
	const list = "id=3 addr=10.0.0.3:41000 laddr=10.0.0.1:6379 fd=10 name=sentinel-1a2b3c4d-cmd age=9\n" +
		"id=4 addr=10.0.0.3:41001 name=sentinel-1a2b3c4d-pubsub age=9\nid=5 addr=10.0.0.9:5000 name= age=1\n"
	if got := sentinelsAmong(list); !slices.Equal(got, []string{"10.0.0.3:26379"}) {
		t.Errorf("Sentinels %v", got)
	}
	for field, want := range map[string]string{"ip=10.0.0.4,port=6379,state=online,offset=14,lag=0": "10.0.0.4:6379", "": ""} {
		if got := replicaIn(field); got != want {
			t.Errorf("%q: replica %q, want %q", field, got, want)
		}
	}
}

// TestEmbedded: a server and programs run as processes, and nothing of them is left after Close.
func TestEmbedded(t *testing.T) {
	r := request(t, "memory")
	var registered []int
	r.Launch = func(command *exec.Cmd) error {
		err := command.Start()
		registered = append(registered, command.Process.Pid)
		return err
	}
	cluster, err := Start(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Close(context.Background()) })
	server := cluster.Servers()[0]
	if err := server.Host.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if server.Clock == nil {
		t.Error("the clock of an embedded server cannot be moved, and nobody says so")
	}
	signal(t, server, agent.Stop)
	signal(t, server, agent.Continue)

	// Two programs: one ends with its input, the other fails to start.
	good, err := cluster.Start(t.Context(), Program{Name: "p1", Args: []string{"server", "--servers", "memory", "--socket", cluster.Folder() + "/p1"}})
	if err != nil {
		t.Fatal(err)
	}
	bad, err := cluster.Start(t.Context(), Program{Name: "p2", Args: []string{"--no-such-flag"}})
	if err != nil {
		t.Fatal(err)
	}
	if exit := <-bad.Exited; exit.Clean || !strings.Contains(exit.Reason, "64") {
		t.Errorf("bad program: %+v", exit)
	}
	clustertest.Eventually(t, patience, func() error {
		if text := bad.Errors.String(); !strings.Contains(text, "no-such-flag") {
			return fmt.Errorf("its error output is %q", text)
		}
		return nil
	})
	// Another process may soon have the same number.
	if _, err := bad.Host.Signal(t.Context(), agent.Continue); err == nil {
		t.Error("signalled a process that has ended")
	}
	signal(t, good, agent.Stop)
	signal(t, good, agent.Continue)
	if err := good.Input.Close(); err != nil {
		t.Fatal(err)
	}
	if exit := <-good.Exited; !exit.Clean {
		t.Errorf("good program: %+v", exit)
	}

	// Close also ends a stopped process.
	signal(t, server, agent.Stop)
	for range 2 {
		if err := cluster.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if len(registered) != 3 {
		t.Errorf("processes %v were registered, want three", registered)
	}
	for _, pid := range registered {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("process %d: %v", pid, err)
		}
	}
	if _, err := os.Stat(cluster.Folder()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder: %v", err)
	}
}

// TestEmbeddedFails: a start that fails says why, and leaves nothing.
func TestEmbeddedFails(t *testing.T) {
	refused := errors.New("the journal is full")
	for _, c := range []struct {
		name   string
		change func(*Request)
		want   string
	}{
		{"no binary", func(r *Request) { r.Binary = "/no/such/lockcheck" }, "no such file"},
		{"a server that ends at once", func(r *Request) { r.Binary = "/bin/false" }, "exit status 1"},
		{"a process that cannot be registered", func(r *Request) { r.Launch = func(*exec.Cmd) error { return refused } }, refused.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			r := request(t, "memory")
			c.change(&r)
			if _, err := Start(t.Context(), r); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
			if entries, err := filepath.Glob(os.Getenv("TMPDIR") + "/*"); err != nil || len(entries) > 0 {
				t.Errorf("left %v, %v", entries, err)
			}
		})
	}
	if err := ServeEmbedded(t.Context(), "redis", "", strings.NewReader("")); err == nil {
		t.Error("Redis is served embedded")
	}
}
