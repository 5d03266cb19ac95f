package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockcheck/clusters/clustertest"
	"lockcheck/clusters/engine"
	"lockcheck/clusters/images"
	"lockcheck/internal/cleanup/cleanuptest"
)

func TestMain(m *testing.M) { os.Exit(clustertest.Main(m)) }

// released makes a release of lockcheck and the programs next to it, and returns its files.
func released(t *testing.T, binary string) (folder string, files map[string][]byte) {
	t.Helper()
	folder = t.TempDir()
	programs := filepath.Join(folder, prefix+"amd64")
	if err := os.Mkdir(programs, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-kubernetes", "-redsync-4.12.0", "-s3"} {
		content, err := os.ReadFile(binary + suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := errors.Join(err, os.WriteFile(filepath.Join(programs, images.Self+suffix), content, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if err := release(folder); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	files = make(map[string][]byte)
	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(folder, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return folder, files
}

// TestRelease: the same programs give the same bytes, with correct checksums and the modules that they
// contain.
func TestRelease(t *testing.T) {
	clustertest.Engine(t, clustertest.Rest)
	binary := clustertest.WithWorkerPrograms(t)
	folder, files := released(t, binary)
	want := []string{"SHA256SUMS", "lockcheck-linux-amd64.cdx.json", "lockcheck-linux-amd64.image.tar", "lockcheck-linux-amd64.tar.gz"}
	if names := slices.Sorted(maps.Keys(files)); !slices.Equal(names, want) {
		t.Errorf("files %v", names)
	}
	list := exec.Command("tar", "--list", "--gzip", "--file", "lockcheck-linux-amd64.tar.gz")
	list.Dir = folder
	if output, err := list.Output(); err != nil || string(output) != "lockcheck\nlockcheck-kubernetes\nlockcheck-redsync-4.12.0\nlockcheck-s3\n" {
		t.Errorf("the archive has %q, %v", output, err)
	}
	check := exec.Command("sha256sum", "--check", "--strict", sumsFile)
	check.Dir = folder
	if output, err := check.CombinedOutput(); err != nil || bytes.Count(output, []byte(": OK")) != len(want)-1 {
		t.Errorf("%v\n%s", err, output)
	}
	var modules bom
	if err := json.Unmarshal(files["lockcheck-linux-amd64.cdx.json"], &modules); err != nil {
		t.Fatal(err)
	}
	for _, module := range []string{"github.com/spf13/cobra", "github.com/docker/docker", "k8s.io/client-go", "std"} {
		if !slices.ContainsFunc(modules.Components, func(c component) bool { return c.Name == module && c.Version != "" }) {
			t.Errorf("%s is missing", module)
		}
	}
	if slices.ContainsFunc(modules.Components, func(c component) bool { return strings.Contains(c.Name, "go-containerregistry") }) {
		t.Error("it lists a module of tests, which is not in the binary")
	}
	_, again := released(t, binary)
	for name := range files {
		if !bytes.Equal(files[name], again[name]) {
			t.Errorf("%s is another one the second time", name)
		}
	}
}

// TestDynamicBinary: a dynamic binary is refused, because the image has nothing that could load it.
func TestDynamicBinary(t *testing.T) {
	folder := t.TempDir()
	content, err := os.ReadFile("/bin/ls")
	if err != nil {
		t.Fatal(err)
	}
	programs := filepath.Join(folder, prefix+"amd64")
	if err := errors.Join(os.Mkdir(programs, 0o755), os.WriteFile(filepath.Join(programs, images.Self), content, 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := release(folder); err == nil || !strings.Contains(err.Error(), "CGO_ENABLED=0") {
		t.Errorf("got %v", err)
	}
}

// TestImage: lockcheck in its own image tests a lock on the engine of its host.
func TestImage(t *testing.T) {
	docker := clustertest.Engine(t, clustertest.Rest)
	socket, local := strings.CutPrefix(os.Getenv("DOCKER_HOST"), "unix://")
	if !local {
		socket = "/var/run/docker.sock"
	}
	// The image has no go command to build it with.
	if _, err := (images.Maker{Engine: docker, Progress: t.Logf}).Ensure(t.Context(), "etcd-3.6.16"); err != nil {
		t.Fatal(err)
	}
	folder, _ := released(t, clustertest.Binary(t))
	archive, err := os.Open(filepath.Join(folder, "lockcheck-linux-amd64.image.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if err := docker.Load(t.Context(), archive); err != nil {
		t.Fatal(err)
	}
	run, labels := cleanuptest.Run(t)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if _, err := docker.RemoveRun(ctx, run); err != nil {
			t.Error(err)
		}
		if _, err := docker.RemoveImage(ctx, imageName); err != nil {
			t.Error(err)
		}
	})
	process, err := docker.Start(t.Context(), engine.Spec{
		Name: "lockcheck-test-" + run, Image: imageName, Network: "none", Attach: true,
		Labels:  labels,
		Command: []string{"test", "--lock", "etcd", "--nodes", "1", "--nemesis", "pause:holder", "--concurrency", "2", "--store", "/tmp/store"},
		Mounts:  []string{socket + ":/var/run/docker.sock"},
	})
	if err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, process.Errors) //nolint:errcheck // progress
	report, err := io.ReadAll(process.Output)
	if err != nil {
		t.Fatal(err)
	}
	exit := <-process.Exited
	if !strings.Contains(string(report), "built from Go modules") || exit.Code > 2 {
		t.Errorf("%v: no verdict:\n%s", exit, report)
	}
}
