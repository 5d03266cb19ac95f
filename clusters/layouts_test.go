package clusters

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockcheck/clusters/clustertest"
	"lockcheck/clusters/images"
)

// layouts are images that stand for upstream images. testdata/layouts has the Dockerfiles that make them from
// lockcheck's images.
func layouts() []layout {
	return []layout{
		{servers: "redis", recipe: "redis", published: "library/redis:7.4.2"},
		{servers: "valkey", recipe: "valkey", published: "valkey/valkey:8.1.3"},
		{servers: "consul", recipe: "consul-1.20.1", base: "valkey", published: "hashicorp/consul:1.20.1"},
		{servers: "postgres", recipe: "postgres", published: "library/postgres:17.5"},
		{servers: "mariadb", recipe: "mariadb", published: "library/mariadb:11.4.5"},
		{servers: "zookeeper", recipe: "zookeeper", published: "library/zookeeper:3.9.4"},
	}
}

type layout struct {
	servers, recipe string
	base            string // recipe that provides a system, where lockcheck's image has none; "" for none
	published       string
}

// layoutsVariable is set by make layouts, because packing and unpacking such images takes minutes.
const layoutsVariable = "LOCKCHECK_LAYOUTS"

// TestLayouts: servers start from images laid out like the official ones, without their entry points (which
// fail here), and their clocks can be moved.
func TestLayouts(t *testing.T) {
	if os.Getenv(layoutsVariable) == "" {
		t.Skip("takes minutes: make layouts")
	}
	docker := clustertest.Engine(t, clustertest.Rest)
	for _, l := range layouts() {
		t.Run(l.servers, func(t *testing.T) {
			registry := clustertest.NewRegistry(t)
			t.Setenv(images.RegistryVariable, registry.Host)
			maker := images.Maker{Engine: docker, Progress: t.Logf}
			digest := registry.Push(t, docker, l.build(t, maker), l.published)
			recipe := l.servers + "-" + images.Official
			table := filepath.Join(t.TempDir(), "official.txt")
			if err := os.WriteFile(table, []byte(recipe+" docker.io/"+l.published+"@"+digest), 0o644); err != nil {
				t.Fatal(err)
			}
			t.Setenv(images.TableVariable, table)
			path, _, _ := strings.Cut(l.published, ":")
			removed(t, docker, registry.Host+"/"+path+"@"+digest)
			made, err := maker.Ensure(t.Context(), recipe)
			if err != nil {
				t.Fatal(err)
			}
			removed(t, docker, made.Ref)
			l.try(t)
		})
	}
}

// build makes the image that stands for the official one, and removes it when the test ends.
func (l layout) build(t *testing.T, maker images.Maker) (ref string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "layouts", l.servers+".Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	dockerfile := string(text)
	for name, recipe := range map[string]string{"Made": l.recipe, "Base": l.base} {
		if recipe == "" {
			continue
		}
		image, err := maker.Ensure(t.Context(), recipe)
		if err != nil {
			t.Fatal(err)
		}
		dockerfile = strings.ReplaceAll(dockerfile, "{{."+name+"}}", image.ID)
	}
	ref = "lockcheck/test-layout-" + l.servers + ":latest"
	if err := maker.Engine.Build(t.Context(), ref, dockerfile, func(string) {}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = maker.Engine.RemoveImage(context.WithoutCancel(t.Context()), ref) })
	return ref
}

// try starts the servers and checks that they are ready and report versions and clocks.
func (l layout) try(t *testing.T) {
	r := request(t, l.servers)
	r.Version = images.Official
	cluster := startedWith(t, r)
	if source := cluster.Source(); !strings.Contains(source, l.published) {
		t.Errorf("source %q", source)
	}
	for _, node := range cluster.Servers() {
		version, err := node.Host.Version(t.Context())
		if err != nil {
			t.Errorf("%s: %v", node.Name, err)
		}
		log, err := cluster.Log(t.Context(), node.Name, LogPart{})
		if err != nil || strings.Contains(log, " DEBUG ") {
			t.Errorf("%s: the log is not set up: %v\n%.500s", node.Name, err, log)
		}
		t.Logf("%s: %s %s, %d bytes of log, clock: %v", node.Name, l.servers, version, len(log), node.Clock)
	}
	node := cluster.Servers()[0]
	if node.Clock != nil {
		if node.Server.NoClock == nil {
			t.Errorf("%s: %v", node.Name, node.Clock)
		}
		return
	}
	if _, err := node.Host.SetClock(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, patience, func() error {
		reading, err := node.Host.Clock(t.Context())
		if err != nil {
			return err
		}
		if low, _ := reading.Offset(); low < time.Minute/2 {
			return fmt.Errorf("%s is only %s ahead", node.Name, low)
		}
		return nil
	})
}
