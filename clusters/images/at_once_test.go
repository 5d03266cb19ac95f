package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"lockcheck/clusters/clustertest"
	"lockcheck/clusters/engine"
)

// several calls ensure several times at once. It returns the images and the errors, joined.
func several(ensure func() (engine.Image, error)) (made []engine.Image, err error) {
	const n = 4
	results, errs := make([]engine.Image, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { results[i], errs[i] = ensure() })
	}
	all.Wait()
	return results, errors.Join(errs...)
}

// TestSeveralAtOnce: runs that start together make an image once, and no image loses its name to another.
// Without a lock between looking and making several images are made.
func TestSeveralAtOnce(t *testing.T) {
	docker := clustertest.Engine(t, clustertest.Rest)
	maker := Maker{Engine: docker, Progress: t.Logf}
	for _, c := range []struct {
		name   string
		locked bool
	}{{"locked", true}, {"control", false}} {
		t.Run(c.name, func(t *testing.T) {
			label := fmt.Sprintf("lockcheck.test=%d-%s", os.Getpid(), c.name)
			t.Cleanup(func() { removeWith(docker, label) })
			var looked sync.WaitGroup // all of them have looked before one makes the image
			looked.Add(4)
			ensure := func() (engine.Image, error) {
				return maker.once(t.Context(), "test", []byte(label), func(ref string) error {
					return docker.Import(t.Context(), ref, strings.NewReader(string(make([]byte, 1024))), "LABEL "+label)
				})
			}
			if !c.locked {
				ensure = func() (engine.Image, error) {
					ref := namespace + "test:control"
					found, there, err := docker.Image(t.Context(), ref)
					looked.Done()
					looked.Wait()
					if err == nil && !there {
						err = docker.Import(t.Context(), ref, strings.NewReader(string(make([]byte, 1024))), "LABEL "+label)
					}
					return found, err
				}
			}
			made, err := several(ensure)
			if err != nil {
				t.Fatal(err)
			}
			left, err := docker.ImagesWith(t.Context(), label)
			if err != nil || (len(left) == 1) != c.locked {
				t.Errorf("there are %+v, %v", left, err)
			}
			for _, image := range made {
				if c.locked && image.ID != left[0].ID {
					t.Errorf("somebody got %s", image.ID)
				}
			}
		})
	}
}

// TestSelvesAtOnce: the same for lockcheck's own image.
func TestSelvesAtOnce(t *testing.T) {
	docker := clustertest.Engine(t, clustertest.Rest)
	content, err := os.ReadFile(clustertest.Binary(t))
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "lockcheck")
	if err := os.WriteFile(binary, fmt.Appendf(content, "build %d", os.Getpid()), 0o755); err != nil {
		t.Fatal(err)
	}
	selves := func() map[string]bool {
		found, err := docker.ImagesWith(t.Context(), RecipeLabel+"="+Self)
		if err != nil {
			t.Fatal(err)
		}
		refs := make(map[string]bool)
		for _, image := range found {
			refs[image.Ref] = true
		}
		return refs
	}
	before := selves()
	made, err := several(func() (engine.Image, error) {
		return Maker{Engine: docker, Progress: t.Logf}.EnsureSelf(t.Context(), binary)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = docker.RemoveImage(context.WithoutCancel(t.Context()), made[0].Ref) })
	for _, image := range made {
		if image.ID != made[0].ID {
			t.Errorf("%s next to %s", image.ID, made[0].ID)
		}
	}
	after := selves()
	if !after[made[0].Ref] {
		t.Errorf("%s is not there", made[0].Ref)
	}
	for ref := range after {
		if !before[ref] && !strings.HasPrefix(ref, namespace) {
			t.Errorf("%s has no name", ref)
		}
	}
}

// removeWith removes the images with a label.
func removeWith(docker *engine.Engine, label string) {
	left, _ := docker.ImagesWith(context.Background(), label)
	for _, image := range left {
		_, _ = docker.RemoveImage(context.Background(), image.Ref)
	}
}
