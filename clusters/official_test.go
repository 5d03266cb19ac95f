package clusters

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockcheck/clusters/clustertest"
	"lockcheck/clusters/engine"
	"lockcheck/clusters/images"
)

// TestOfficial: servers run from an image pulled by its digest, Source says so, and the second start needs no
// registry. etcd stands for all, because its image is small.
func TestOfficial(t *testing.T) {
	docker := clustertest.Engine(t, clustertest.Rest)
	registry := clustertest.NewRegistry(t)
	maker := images.Maker{Engine: docker, Progress: t.Logf}
	built, err := maker.Ensure(t.Context(), "etcd-3.6.16")
	if err != nil {
		t.Fatal(err)
	}
	digest := registry.Push(t, docker, built.Ref, "coreos/etcd:v3.6.16")
	table := filepath.Join(t.TempDir(), "official.txt")
	if err := os.WriteFile(table, []byte("etcd-official quay.io/coreos/etcd:v3.6.16\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv(images.TableVariable, table)
	t.Setenv(images.RegistryVariable, registry.Host)

	if _, err := maker.Ensure(t.Context(), "etcd-official"); !errors.As(err, new(*images.UnpinnedError)) {
		t.Fatalf("without a digest: %v", err)
	}
	all, err := images.OfficialImages()
	if err != nil {
		t.Fatal(err)
	}
	pinned, err := maker.Pin(t.Context(), all)
	name := registry.Host + "/coreos/etcd:v3.6.16"
	if err != nil || len(pinned) != 1 || pinned[0].Pinned() != name+"@"+digest {
		t.Fatalf("pinned %v, %v; want %s", pinned, err, digest)
	}
	if err := os.WriteFile(table, []byte(pinned[0].String()), 0o644); err != nil {
		t.Fatal(err)
	}
	removed(t, docker, registry.Host+"/coreos/etcd@"+digest)

	made, err := maker.Ensure(t.Context(), "etcd-official")
	if err != nil {
		t.Fatal(err)
	}
	removed(t, docker, made.Ref) // registered before the cluster, so it runs after the cluster's removal
	if named, err := docker.ImagesNamed(t.Context(), "lockcheck/*-official"); err != nil || !slices.ContainsFunc(named, func(i engine.Image) bool { return i.Ref == made.Ref && i.ID == made.ID }) {
		t.Errorf("by its name: %v, %v, want %v", named, err, made)
	}

	cluster := startedEtcd(t, images.Official, 1)
	if cluster.Images()[name] != digest {
		t.Errorf("images %v: want %s with %s", cluster.Images(), name, digest)
	}
	if source := cluster.Source(); !strings.Contains(source, name) || !strings.Contains(source, digest[:15]) {
		t.Errorf("source %q", source)
	}
	registry.Close()
	if _, err := maker.Ensure(t.Context(), "etcd-official"); err != nil {
		t.Errorf("a second time, without the registry: %v", err)
	}
}

// removed removes an image when the test is over and nothing uses it any more.
func removed(t *testing.T, docker *engine.Engine, ref string) {
	t.Helper()
	t.Cleanup(func() {
		if gone, err := docker.RemoveImage(context.WithoutCancel(t.Context()), ref); err != nil || !gone {
			t.Errorf("%s: removed %v, %v", ref, gone, err)
		}
	})
}

// TestOfficialServers: every server that can run from an official image is in the table.
func TestOfficialServers(t *testing.T) {
	all, err := images.OfficialImages()
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range Table() {
		recipe := spec.Recipe(images.Official)
		listed := slices.ContainsFunc(all, func(o images.OfficialImage) bool { return o.Recipe == recipe })
		if spec.Official && !listed {
			t.Errorf("%s: %s is not in the table", spec.Name, recipe)
		}
		if spec.HasVersion(images.Official) != spec.Official {
			t.Errorf("%s: official %v, version %v", spec.Name, spec.Official, spec.HasVersion(images.Official))
		}
		if spec.Version("") == images.Official {
			t.Errorf("%s: nobody asked for the official image", spec.Name)
		}
	}
}
