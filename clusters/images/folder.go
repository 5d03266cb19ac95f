package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"lockcheck/clusters/engine"
)

// EnsureFolder returns the image of a user's folder with a Dockerfile, and makes it if it is missing. The image
// is named after the content of the folder.
func (m Maker) EnsureFolder(ctx context.Context, folder string) (engine.Image, error) {
	archive, err := m.archiveOfFolder(ctx, folder)
	if err != nil {
		return engine.Image{}, fmt.Errorf("image of %s: %w", folder, err)
	}
	return m.once(ctx, "own", archive, func(ref string) error {
		m.Progress("building the image of %s (once)", fromHere(folder))
		return m.Engine.BuildFrom(ctx, ref, bytes.NewReader(archive), m.status)
	})
}

// fromHere is a folder as whoever runs lockcheck would name it: relative to where they are, if it is within that.
func fromHere(folder string) string {
	here, err := os.Getwd()
	if err != nil {
		return folder
	}
	if relative, err := filepath.Rel(here, folder); err == nil && filepath.IsLocal(relative) {
		return relative
	}
	return folder
}

// maxFolder bounds what is sent to the engine, in bytes.
const maxFolder = 100 << 20

var errFolderTooLarge = errors.New("the folder is larger than 100 MiB: what the Dockerfile needs is to be in a folder of its own")

// archiveOfFolder packs a folder for the engine. It leaves out times, which are not part of the content.
func (m Maker) archiveOfFolder(ctx context.Context, folder string) ([]byte, error) {
	var files []engine.File
	var size int64
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		name, relErr := filepath.Rel(folder, path)
		switch {
		case err != nil || relErr != nil:
			return errors.Join(err, relErr)
		case !entry.Type().IsRegular():
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if size += info.Size(); size > maxFolder {
			return errFolderTooLarge
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if name == "Dockerfile" {
			if content, err = m.onOwnBase(ctx, content); err != nil {
				return err
			}
		}
		files = append(files, engine.File{Name: filepath.ToSlash(name), Mode: int64(info.Mode().Perm()), Content: content})
		return nil
	})
	if err != nil {
		return nil, err
	}
	archive, err := engine.Archive(files...)
	if err != nil {
		return nil, err
	}
	return archive.Bytes(), nil
}

// fromDebian matches a FROM line with one of the Debian images that lockcheck can make itself.
var fromDebian = regexp.MustCompile(`(?mi)^(FROM\s+)debian:(bookworm|trixie)-slim\b`)

// onOwnBase replaces a Debian release in a Dockerfile with the ID of lockcheck's base image. The engine could
// not find the release by name where no registry answers.
func (m Maker) onOwnBase(ctx context.Context, dockerfile []byte) ([]byte, error) {
	var err error
	replaced := fromDebian.ReplaceAllFunc(dockerfile, func(line []byte) []byte {
		parts := fromDebian.FindSubmatch(line)
		release := bookworm
		if string(parts[2]) == trixie.name {
			release = trixie
		}
		base, baseErr := m.base(ctx, release)
		err = errors.Join(err, baseErr)
		return append(bytes.Clone(parts[1]), base.ID...)
	})
	return replaced, err
}
