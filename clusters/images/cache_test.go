package images

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockcheck/clusters/clustertest"
)

// TestCache: missing images are loaded from the file. The file is written if it lacks an image, and otherwise
// left alone.
func TestCache(t *testing.T) {
	docker := clustertest.Engine(t, clustertest.Rest)
	maker := Maker{Engine: docker, Progress: t.Logf}
	path := filepath.Join(t.TempDir(), "images.tar")
	const recipe = "etcd-3.6.16"
	made, err := maker.EnsureCached(t.Context(), []string{recipe}, path)
	if err != nil || len(made) != 1 {
		t.Fatalf("%v, %v", made, err)
	}
	if kept, err := refsIn(path); err != nil || !slices.Equal(kept, []string{made[0].Ref}) {
		t.Fatalf("the file has %v, %v; want %s", kept, err, made[0].Ref)
	}
	first, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := maker.EnsureCached(t.Context(), []string{recipe}, path); err != nil {
		t.Fatal(err)
	}
	if again, err := os.Stat(path); err != nil || !os.SameFile(first, again) {
		t.Errorf("it was written again: %v", err)
	}

	// An image that nothing uses and that exists only in the file.
	own := "lockcheck-test/" + strings.ToLower(rand.Text()) + ":latest"
	if err := docker.Build(t.Context(), own, "FROM "+made[0].ID+"\nLABEL own="+own+"\n", func(string) {}); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := docker.Save(t.Context(), []string{own}, file); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if gone, err := docker.RemoveImage(t.Context(), own); err != nil || !gone {
		t.Fatalf("%s: %v", own, err)
	}
	if _, err := maker.EnsureCached(t.Context(), []string{recipe}, path); err != nil {
		t.Fatal(err)
	}
	if _, there, err := docker.Image(t.Context(), own); err != nil || !there {
		t.Errorf("it was not loaded: %v", err)
	}
	if kept, err := refsIn(path); err != nil || !slices.Equal(kept, []string{made[0].Ref}) {
		t.Errorf("the file has %v, %v; want what was asked for", kept, err)
	}
	if gone, err := docker.RemoveImage(t.Context(), own); err != nil || !gone {
		t.Errorf("%s: %v", own, err)
	}
}

// TestCacheRefused: a file that is not an archive of images is not overwritten.
func TestCacheRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(path, []byte("not an archive"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := (Maker{Progress: t.Logf}).EnsureCached(t.Context(), []string{"redis"}, path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "not an archive" {
		t.Errorf("the file has %q, %v", text, err)
	}
}
