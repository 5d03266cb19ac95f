package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/client"

	"lockcheck/clusters/clustertest"
	"lockcheck/clusters/engine"
	"lockcheck/internal/cleanup/cleanuptest"
)

func TestMain(m *testing.M) { os.Exit(clustertest.Main(m)) }

var patience = clustertest.Slow(time.Minute)

// testRun makes the identity of a run and removes everything labelled with it when the test ends.
func testRun(t *testing.T, docker *engine.Engine) (id string, labels map[string]string) {
	t.Helper()
	id, labels = cleanuptest.Run(t)
	t.Cleanup(func() {
		if _, err := docker.RemoveRun(context.Background(), id); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return id, labels
}

// importBinary makes an image that holds only the static binary, whose commands the tests run.
func importBinary(t *testing.T, docker *engine.Engine) engine.Image {
	t.Helper()
	content, err := os.ReadFile(clustertest.Binary(t))
	if err != nil {
		t.Fatal(err)
	}
	archive, err := engine.Archive(engine.File{Name: "lockcheck", Mode: 0o755, Content: content})
	if err != nil {
		t.Fatal(err)
	}
	ref := fmt.Sprintf("lockcheck-test/engine:%d", os.Getpid())
	t.Cleanup(func() { _, _ = docker.RemoveImage(context.Background(), ref) })
	if err := docker.Import(t.Context(), ref, archive, `ENTRYPOINT ["/lockcheck"]`, "LABEL lockcheck.test="+ref); err != nil {
		t.Fatal(err)
	}
	image, ok, err := docker.Image(t.Context(), ref)
	if err != nil || !ok {
		t.Fatalf("imported, and then: %v, %v", ok, err)
	}
	return image
}

func start(t *testing.T, docker *engine.Engine, spec engine.Spec) *engine.Container {
	t.Helper()
	container, err := docker.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return container
}

func await(t *testing.T, c *engine.Container) engine.Exit {
	t.Helper()
	select {
	case exit := <-c.Exited:
		return exit
	case <-time.After(patience):
		t.Fatal("the container has not ended")
		return engine.Exit{}
	}
}

// left says whether the engine still has anything of the run.
func left(t *testing.T, docker *engine.Engine, id string) bool {
	t.Helper()
	runs, err := docker.Runs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(runs, func(r engine.Run) bool { return r.ID == id })
}

func TestContainers(t *testing.T) {
	docker := clustertest.Engine(t)
	image := importBinary(t, docker)
	id, labels := testRun(t, docker)
	spec := func(name string, command ...string) engine.Spec {
		return engine.Spec{Name: id + "-" + name, Image: image.Ref, Labels: labels, Network: "none", Command: command}
	}
	t.Run("exit code and log", func(t *testing.T) {
		for _, c := range []struct {
			command []string
			code    int64
			log     string
		}{
			{[]string{"--help"}, 0, "Usage"},
			{[]string{"--no-such-flag"}, 64, "no-such-flag"},
		} {
			s := spec(fmt.Sprint("exit", c.code), c.command...)
			if exit := await(t, start(t, docker, s)); exit.Err != nil || exit.Code != c.code {
				t.Errorf("%v: %s, want %d", c.command, exit, c.code)
			}
			all, err := docker.Logs(t.Context(), s.Name, 0, time.Time{})
			if err != nil || !strings.Contains(all, c.log) {
				t.Errorf("%v: log %q, %v: want it with %q", c.command, all, err, c.log)
			}
			last, err := docker.Logs(t.Context(), s.Name, 1, time.Time{})
			if err != nil || strings.Count(last, "\n") != 1 || !strings.HasSuffix(all, last) {
				t.Errorf("%v: last line %q, %v", c.command, last, err)
			}
		}
	})
	t.Run("limits", func(t *testing.T) {
		api, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
		if err != nil {
			t.Fatal(err)
		}
		defer api.Close()
		for name, c := range map[string]struct {
			limits       *engine.Limits
			pids, memory int64 // 0: no limit, -1: some limit
			privileges   bool
		}{
			"ours":    {nil, 0, 0, true},
			"default": {new(engine.Limits), engine.DefaultPIDs, -1, false},
			"said":    {&engine.Limits{Memory: 64 << 20, PIDs: 20, NewPrivileges: true}, 20, 64 << 20, true},
			"none":    {&engine.Limits{Memory: -1, PIDs: -1}, 0, 0, false},
		} {
			s := spec("limits-"+name, "agent")
			s.Attach, s.Limits = true, c.limits
			container := start(t, docker, s)
			about, err := api.ContainerInspect(t.Context(), s.Name)
			if err != nil {
				t.Fatal(err)
			}
			host, pids := about.HostConfig, int64(0)
			if host.PidsLimit != nil {
				pids = max(0, *host.PidsLimit)
			}
			if pids != c.pids || host.Memory != c.memory && !(c.memory < 0 && host.Memory > 0) || slices.Contains(host.SecurityOpt, "no-new-privileges") == c.privileges {
				t.Errorf("%s: %d processes, %d bytes, %q", name, pids, host.Memory, host.SecurityOpt)
			}
			if err := container.Input.Close(); err != nil {
				t.Fatal(err)
			}
			await(t, container)
		}
	})
	t.Run("streams", func(t *testing.T) {
		s := spec("streams", "agent")
		s.Attach = true
		container := start(t, docker, s)
		go func() { _, _ = io.Copy(io.Discard, container.Errors) }()
		// The agent answers each line and ends when its input ends.
		if _, err := io.WriteString(container.Input, `{"id":5,"Method":"dance"}`+"\n"); err != nil {
			t.Fatal(err)
		}
		buffer := make([]byte, 1024)
		n, err := container.Output.Read(buffer)
		if err != nil || !strings.Contains(string(buffer[:n]), `"id":5`) || !strings.Contains(string(buffer[:n]), "dance") {
			t.Errorf("answered %q, %v", buffer[:n], err)
		}
		select {
		case exit := <-container.Exited:
			t.Fatalf("ended before its input: %s", exit)
		default:
		}
		if err := container.Input.Close(); err != nil {
			t.Fatal(err)
		}
		if exit := await(t, container); exit.Err != nil || exit.Code != 0 {
			t.Errorf("ended with %s", exit)
		}
		if rest, err := io.ReadAll(container.Output); err != nil || len(rest) > 0 {
			t.Errorf("then %q, %v", rest, err)
		}
	})
	t.Run("no such program", func(t *testing.T) {
		s := spec("missing")
		s.Entrypoint = []string{"/no/such/program"}
		if _, err := docker.Start(t.Context(), s); err == nil || !strings.Contains(err.Error(), s.Name) {
			t.Errorf("got %v, want an error that names the container", err)
		}
	})
	t.Run("no such image", func(t *testing.T) {
		s := spec("imageless")
		s.Image = "lockcheck-test/no-such-image:latest"
		if _, err := docker.Start(t.Context(), s); err == nil || !strings.Contains(err.Error(), "no-such-image") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("image in use", func(t *testing.T) {
		if removed, err := docker.RemoveImage(t.Context(), image.Ref); removed || err != nil {
			t.Errorf("removed: %v, %v", removed, err)
		}
		if removed, err := docker.RemoveImage(t.Context(), "lockcheck-test/no-such-image:latest"); removed || err != nil {
			t.Errorf("one that is not there: removed: %v, %v", removed, err)
		}
	})
	t.Run("by label", func(t *testing.T) {
		found, err := docker.ImagesWith(t.Context(), "lockcheck.test="+image.Ref)
		if err != nil || len(found) != 1 || found[0].Ref != image.Ref || found[0].ID != image.ID {
			t.Errorf("%+v, %v", found, err)
		}
	})
}

// TestNamelessImage: an image whose name has moved to another image is still found.
func TestNamelessImage(t *testing.T) {
	docker := clustertest.Engine(t)
	id, _ := testRun(t, docker)
	ref, label := "lockcheck-test/nameless:"+id, "lockcheck.test="+id
	for range 2 {
		nothing := bytes.NewReader(make([]byte, 1024)) // how an archive ends
		if err := docker.Import(t.Context(), ref, nothing, "LABEL "+label); err != nil {
			t.Fatal(err)
		}
	}
	found, err := docker.ImagesWith(t.Context(), label)
	if err != nil || len(found) != 2 {
		t.Fatalf("%+v, %v", found, err)
	}
	nameless := 0
	for _, image := range found {
		if image.Ref == image.ID {
			nameless++
		}
		if removed, err := docker.RemoveImage(t.Context(), image.Ref); !removed || err != nil {
			t.Errorf("%s: removed: %v, %v", image.Ref, removed, err)
		}
	}
	if nameless != 1 {
		t.Errorf("%+v: want one without a name", found)
	}
}

// TestRemoveRun: containers in any state, the network and the volume of one run are removed, and those of
// another run stay.
func TestRemoveRun(t *testing.T) {
	docker := clustertest.Engine(t)
	image := importBinary(t, docker)
	make := func() (string, *engine.Container) {
		id, labels := testRun(t, docker)
		network, err := docker.CreateNetwork(t.Context(), id, labels)
		if err != nil {
			t.Fatal(err)
		}
		if err := docker.CreateVolume(t.Context(), id, labels); err != nil {
			t.Fatal(err)
		}
		agent := start(t, docker, engine.Spec{
			Name: id, Image: image.Ref, Labels: labels, Command: []string{"agent"}, Attach: true,
			Network: network.Name, IP: network.Address(11), Volumes: map[string]string{id: "/shared"},
		})
		go func() { _, _ = io.Copy(io.Discard, agent.Output) }()
		go func() { _, _ = io.Copy(io.Discard, agent.Errors) }()
		within := start(t, docker, engine.Spec{
			Name: id + "-main", Image: image.Ref, Labels: labels, Command: []string{"--help"}, Within: id,
		})
		await(t, within)
		return id, agent
	}
	removed, agent := make()
	control, _ := make()
	for _, id := range []string{removed, control} {
		if !left(t, docker, id) {
			t.Fatalf("run %s is not listed", id)
		}
	}
	if n, err := docker.RemoveRun(t.Context(), removed); err != nil || n != 4 {
		t.Errorf("removed %d, %v: want two containers, a network and a volume", n, err)
	}
	if left(t, docker, removed) {
		t.Error("the run is still there")
	}
	if exit := await(t, agent); exit.Err == nil && exit.Code == 0 {
		t.Errorf("a killed container ended with %s", exit)
	}
	if n, err := docker.RemoveRun(t.Context(), removed); err != nil || n != 0 {
		t.Errorf("the second time it removed %d, %v", n, err)
	}
	if !left(t, docker, control) {
		t.Error("another run was removed too")
	}
	// The harness and its reaper may both remove a run.
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if _, err := docker.RemoveRun(t.Context(), control); err != nil {
				t.Errorf("two at once: %v", err)
			}
		})
	}
	both.Wait()
	clustertest.Eventually(t, patience, func() error {
		if left(t, docker, control) {
			return errors.New("the run is still there")
		}
		return nil
	})
}

// TestVolumeInUse: a volume in use by another run's container is not counted as removed, and goes once that
// container is gone. Everything else of the run goes at once.
func TestVolumeInUse(t *testing.T) {
	docker := clustertest.Engine(t)
	image := importBinary(t, docker)
	id, labels := testRun(t, docker)
	other, otherLabels := testRun(t, docker)
	if err := docker.CreateVolume(t.Context(), id, labels); err != nil {
		t.Fatal(err)
	}
	if _, err := docker.CreateNetwork(t.Context(), id, labels); err != nil {
		t.Fatal(err)
	}
	start(t, docker, engine.Spec{
		Name: other, Image: image.Ref, Labels: otherLabels, Command: []string{"agent"},
		Network: "none", Volumes: map[string]string{id: "/held"},
	})
	n, err := docker.RemoveRun(t.Context(), id)
	if n != 1 || err == nil || !strings.Contains(err.Error(), "volume "+id+" is in use: stop the container") {
		t.Errorf("removed %d, %v: want the network only, and why", n, err)
	}
	if n, err := docker.RemoveRun(t.Context(), other); n != 1 || err != nil {
		t.Fatalf("removed %d, %v: want the container that holds it", n, err)
	}
	if n, err := docker.RemoveRun(t.Context(), id); n != 1 || err != nil {
		t.Errorf("removed %d, %v: want the volume", n, err)
	}
	if left(t, docker, id) {
		t.Error("the run is still there")
	}
}

// TestNetworks: many runs at once get networks that do not overlap, even if all searches begin at the same
// subnet.
func TestNetworks(t *testing.T) {
	docker := clustertest.Engine(t)
	names := make([]string, 12)
	for i, n := 0, 0; i < len(names); n++ {
		if name := fmt.Sprintf("test-%d-%d", os.Getpid(), n); i == 0 || engine.FirstSubnet(name) == engine.FirstSubnet(names[0]) {
			names[i] = name
			i++
		}
	}
	_, labels := testRun(t, docker)
	networks, errs := make([]engine.Network, len(names)), make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { networks[i], errs[i] = docker.CreateNetwork(t.Context(), name, labels) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for i, one := range networks {
		for _, other := range networks[:i] {
			if one.Subnet.Overlaps(other.Subnet) {
				t.Errorf("%s and %s overlap", one.Subnet, other.Subnet)
			}
		}
	}
	// A retry on another subnet would not help here.
	if made, err := docker.CreateNetwork(t.Context(), names[0], labels); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("the same name again: %+v, %v", made, err)
	}
}

// TestBuildFails: the error says why, and no container stays behind.
func TestBuildFails(t *testing.T) {
	docker := clustertest.Engine(t)
	image := importBinary(t, docker)
	id, _ := testRun(t, docker)
	ref := "lockcheck-test/build:" + fmt.Sprint(os.Getpid())
	t.Cleanup(func() {
		_, _ = docker.RemoveImage(context.Background(), ref)
		if err := docker.RemoveLayers(context.Background(), engine.RunLabel+"="+id); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	// The label marks containers of the build as part of a run.
	dockerfile := "FROM " + image.Ref + "\nLABEL " + engine.RunLabel + "=" + id + "\nRUN "
	for _, c := range []struct {
		name, step string
		want       []string // of the error; nil for success
	}{
		{"control", `["/lockcheck", "--help"]`, nil},
		{"failing", `["/lockcheck", "--no-such-flag"]`, []string{"64", "unknown flag: --no-such-flag"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var lines []string
			err := docker.Build(t.Context(), ref, dockerfile+c.step+"\n", func(line string) { lines = append(lines, line) })
			if (err != nil) != (len(c.want) > 0) || len(lines) == 0 {
				t.Errorf("got %v, after %d lines", err, len(lines))
			}
			for _, want := range c.want {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want it with %q", err, want)
				}
			}
			if left(t, docker, id) {
				t.Error("a container of the build is still there")
			}
			if _, made, err := docker.Image(t.Context(), ref); err != nil || made != (len(c.want) == 0) {
				t.Errorf("image there: %v, %v", made, err)
			}
			_, _ = docker.RemoveImage(t.Context(), ref)
		})
	}
}

func TestUnavailable(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
	_, err := engine.Connect(t.Context())
	var unavailable *engine.UnavailableError
	if !errors.As(err, &unavailable) || !strings.Contains(err.Error(), "no Docker engine") {
		t.Errorf("got %v", err)
	}
}

// TestElsewhere: an engine on another machine is refused for that reason, before it is asked anything.
// TestUnavailable covers an engine that does not exist.
func TestElsewhere(t *testing.T) {
	t.Setenv("DOCKER_HOST", "ssh://nobody@nowhere.invalid")
	_, err := engine.Connect(t.Context())
	var unavailable *engine.UnavailableError
	if !errors.As(err, &unavailable) || !strings.Contains(err.Error(), "on another machine") {
		t.Errorf("got %v", err)
	}
}
