package clustertest

import (
	"crypto/rand"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"lockcheck/clusters/engine"
)

// Registry is a registry of images on the loopback of this machine.
type Registry struct {
	// Host is the registry part of image names: address and port.
	Host   string
	server *httptest.Server
}

// NewRegistry starts an empty registry. It ends with the test, or when it is closed.
func NewRegistry(t testing.TB) *Registry {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return &Registry{Host: strings.TrimPrefix(server.URL, "http://"), server: server}
}

// Close ends the registry before the test ends.
func (r *Registry) Close() { r.server.Close() }

// Push puts an image of the engine into the registry under another name (without Host), and returns the digest
// of its manifest. An image pulled by that digest is a new image that nothing else uses, so it can be removed.
func (r *Registry) Push(t testing.TB, docker *engine.Engine, ref, as string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.tar")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := docker.Save(t.Context(), []string{ref}, file); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	image = published(t, image)
	target, err := name.ParseReference(r.Host + "/" + as)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(target, image, remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

// published returns the image with a unique label.
func published(t testing.TB, image v1.Image) v1.Image {
	t.Helper()
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config := *file.Config.DeepCopy()
	if config.Labels == nil {
		config.Labels = make(map[string]string)
	}
	config.Labels["lockcheck.published"] = rand.Text()
	image, err = mutate.Config(image, config)
	if err != nil {
		t.Fatal(err)
	}
	return image
}
