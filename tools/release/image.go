package main

import (
	"bytes"
	"io"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"lockcheck/clusters/images"
)

// imageName is the name that docker load gives the image.
const imageName = "lockcheck:latest"

// writeImage writes an image that contains only the programs, in the format of docker load. It has no
// timestamps, so that the same programs give the same image.
func writeImage(path string, programs []program, arch string) error {
	root, err := images.Root(filesOf(programs)...)
	if err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(root.Bytes())), nil })
	if err != nil {
		return err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}
	image, err = mutate.Config(image, v1.Config{
		Entrypoint: []string{images.SelfPath},
		// Any user can write there. What lockcheck keeps there ends with the container.
		Env: []string{"PATH=/bin", "HOME=/tmp"},
	})
	if err != nil {
		return err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", arch
	if image, err = mutate.ConfigFile(image, file); err != nil {
		return err
	}
	tag, err := name.NewTag(imageName)
	if err != nil {
		return err
	}
	return tarball.WriteToFile(path, tag, image)
}
