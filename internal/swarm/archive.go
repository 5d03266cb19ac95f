package swarm

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// pack writes files and whole folders to an archive. The map goes from names in the archive to paths.
func pack(to io.Writer, files map[string]string) error {
	w := tar.NewWriter(to)
	for name, source := range files {
		err := filepath.WalkDir(source, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := entry.Info()
			if err != nil || !info.Mode().IsRegular() {
				return err // folders come with their files, and links may lead elsewhere
			}
			within, err := filepath.Rel(source, path)
			if err != nil {
				return err
			}
			return packFile(w, filepath.Join(name, within), path, info)
		})
		if err != nil {
			return err
		}
	}
	return w.Close()
}

func packFile(w *tar.Writer, name, path string, info fs.FileInfo) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	header := &tar.Header{Name: filepath.ToSlash(name), Mode: int64(info.Mode().Perm()), Size: info.Size()}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(w, file)
	return err
}

// unpack writes the files of an archive into a new folder, and never outside it.
func unpack(from io.Reader, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	r := tar.NewReader(from)
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg {
			return fmt.Errorf("archive: %s is no file", header.Name)
		}
		if err := unpackFile(root, header, r); err != nil {
			return err
		}
	}
}

func unpackFile(root *os.Root, header *tar.Header, content io.Reader) error {
	name := filepath.FromSlash(header.Name)
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, fs.FileMode(header.Mode).Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
