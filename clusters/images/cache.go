package images

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"lockcheck/clusters/engine"
)

// EnsureCached is EnsureAll with a file that carries images from one machine to the next. It first loads the
// images in the file. If the file is missing or lacks one of the images, it is written again.
func (m Maker) EnsureCached(ctx context.Context, names []string, path string) ([]engine.Image, error) {
	if err := m.load(ctx, path); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	made, err := m.EnsureAll(ctx, names)
	if err != nil {
		return nil, err
	}
	if err := m.keep(ctx, path, names, made); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return made, nil
}

// load loads the file unless the engine has all images in it.
func (m Maker) load(ctx context.Context, path string) error {
	kept, err := refsIn(path)
	if err != nil {
		return err
	}
	missing := false
	for _, ref := range kept {
		_, there, err := m.Engine.Image(ctx, ref)
		if err != nil {
			return err
		}
		missing = missing || !there
	}
	if !missing {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	m.Progress("loading images from %s", path)
	return m.Engine.Load(ctx, file)
}

// keep writes the images and the parents on which their names depend, unless the file has them all.
func (m Maker) keep(ctx context.Context, path string, names []string, made []engine.Image) error {
	refs, err := m.parentsOf(ctx, names)
	if err != nil {
		return err
	}
	for _, image := range made {
		refs = append(refs, image.Ref)
	}
	kept, err := refsIn(path)
	if err != nil || !slices.ContainsFunc(refs, func(ref string) bool { return !slices.Contains(kept, ref) }) {
		return err
	}
	m.Progress("writing %d images to %s", len(refs), path)
	// The file gets its name only when it is complete, because a job may be killed meanwhile.
	file, err := os.CreateTemp(filepath.Dir(path), ".images-")
	if err != nil {
		return err
	}
	err = errors.Join(m.Engine.Save(ctx, refs, file), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// parentsOf returns the names of the images that the recipes are based on. The name of an image depends on the
// ID of its parent; without the parent it would be made again.
func (m Maker) parentsOf(ctx context.Context, names []string) ([]string, error) {
	if !slices.ContainsFunc(names, onServers) {
		return nil, nil
	}
	base, err := m.base(ctx, trixie)
	if err != nil {
		return nil, err
	}
	servers, err := m.servers(ctx)
	if err != nil {
		return nil, err
	}
	return []string{base.Ref, servers.Ref}, nil
}

// refsIn lists the names of the images in an archive; none if the file does not exist.
func refsIn(path string) ([]string, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for archive := tar.NewReader(file); ; {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, errors.New("no archive of images")
		case err != nil:
			return nil, err
		case header.Name != "manifest.json":
			continue
		}
		var list []struct{ RepoTags []string }
		if err := json.NewDecoder(archive).Decode(&list); err != nil {
			return nil, err
		}
		var refs []string
		for _, image := range list {
			refs = append(refs, image.RepoTags...)
		}
		return refs, nil
	}
}
