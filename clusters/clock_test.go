package clusters

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"lockcheck/clusters/agent"
	"lockcheck/clusters/clustertest"
	"lockcheck/clusters/engine"
	"lockcheck/clusters/images"
)

// foreignRedis makes an image of Redis that is not prepared for lockcheck and runs as another user.
func foreignRedis(t *testing.T, ref string) string {
	t.Helper()
	docker := clustertest.Engine(t, clustertest.Rest)
	base, err := images.Maker{Engine: docker, Progress: t.Logf}.Ensure(t.Context(), "redis")
	if err != nil {
		t.Fatal(err)
	}
	err = docker.Build(t.Context(), ref, "FROM "+base.Ref+"\nLABEL "+images.ClockLabel+"=\nUSER redis\n", func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = docker.RemoveImage(context.WithoutCancel(t.Context()), ref) })
	return ref
}

// TestForeignClock moves the clocks of servers of a foreign image, as TestFaults does for lockcheck's images.
// The servers' own answers prove the steps. Only the server runs on a node.
func TestForeignClock(t *testing.T) {
	r := request(t, "redis5")
	r.Image = foreignRedis(t, "lockcheck/test-foreign-redis:latest")
	n := startedWith(t, r).Servers()
	for _, node := range n {
		if node.Clock != nil {
			t.Fatalf("%s: %v", node.Name, node.Clock)
		}
		processes, err := node.Host.Processes(t.Context())
		if err != nil || len(processes) != 1 {
			t.Errorf("%s: processes %+v, %v, want the server alone", node.Name, processes, err)
		}
	}
	faultClock(t, n[0], n[1])
	faultPause(t, n[0], n[1])
}

// TestForeignUser: servers of an image that runs as another user can write their files, a Sentinel its settings
// and a Redis its log. They cannot write elsewhere.
func TestForeignUser(t *testing.T) {
	image := foreignRedis(t, "lockcheck/test-user-redis:latest")
	for _, c := range []struct{ name, servers, folder, want string }{
		{"settings", "redis-failover", "", ""},
		{"data", "redis-aof", "", ""},
		{"control", "redis-aof", "/root", "Permission denied"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := request(t, c.servers)
			r.Image = image
			if c.folder != "" {
				server := r.Spec.Server(0)
				command := server.Command
				server.Command = func(p Place) []string { return append(command(p), "--dir", c.folder) }
				r.Spec.Server = func(int) Server { return server }
			}
			cluster, err := Start(t.Context(), r)
			if err == nil {
				t.Cleanup(func() { _ = cluster.Close(context.WithoutCancel(t.Context())) })
			}
			if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestLaunchFails: a server that the launcher refuses is not started without it, and the error says why.
func TestLaunchFails(t *testing.T) {
	r := request(t, "redis")
	r.Image = foreignRedis(t, "lockcheck/test-script-redis:latest")
	r.Spec.Server = func(int) Server {
		server := redisServer("redis")
		server.Command = func(Place) []string { return []string{"ldd", "--version"} } // ldd is a script
		return server
	}
	cluster, err := Start(t.Context(), r)
	if err == nil {
		_ = cluster.Close(context.WithoutCancel(t.Context()))
	}
	if err == nil || !strings.Contains(err.Error(), "is a script") {
		t.Errorf("got %v", err)
	}
	if err := isLeft(clustertest.Engine(t, clustertest.Rest), r.Run, false); err != nil {
		t.Error(err)
	}
}

func TestDriverOf(t *testing.T) {
	for label, want := range map[string]agent.ClockDriver{
		images.Libfaketime: agent.Libfaketime, "": agent.VDSO, "something else": agent.VDSO,
	} {
		if got := driverOf(engine.Image{Labels: map[string]string{images.ClockLabel: label}}); got != want {
			t.Errorf("label %q: %s, want %s", label, got, want)
		}
	}
	if got := driverOf(engine.Image{}); got != agent.VDSO {
		t.Errorf("no labels: %s", got)
	}
}

// TestWithClock: a server whose clock cannot be moved is started unchanged.
func TestWithClock(t *testing.T) {
	command := []string{"server", "--port", "1"}
	preload := []string{"LD_PRELOAD=x.so"}
	for _, c := range []struct {
		name     string
		driver   agent.ClockDriver
		clock    error
		launched []string
		env      string // one of the variables
	}{
		{"libfaketime", agent.Libfaketime, nil, command, "FAKETIME_TIMESTAMP_FILE=/lockcheck/clocks/n1/offset"},
		{"with what its server needs", agent.Libfaketime, nil, command, preload[0]},
		{"vDSO", agent.VDSO, nil, append([]string{"/lockcheck/bin/lockcheck", "launch", "--clock-file", "/lockcheck/clocks/n1/offset", "--"}, command...), ""},
		{"neither", agent.VDSO, errors.New("no ptrace"), command, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			launched, env := withClock(&Node{Name: "n1", Clock: c.clock}, c.driver, command, preload)
			if !slices.Equal(launched, c.launched) {
				t.Errorf("launched %q", launched)
			}
			if c.env == "" && len(env) > 0 || c.env != "" && !slices.Contains(env, c.env) {
				t.Errorf("environment %q", env)
			}
		})
	}
}
