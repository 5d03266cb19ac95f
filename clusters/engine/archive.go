package engine

import (
	"archive/tar"
	"bytes"
	"fmt"
)

// File is one file of an archive. A name that ends with a slash makes it a folder.
type File struct {
	Name    string
	Mode    int64
	Content []byte
}

// Archive packs files as a tar archive for the engine. It holds no times, so the same files give the same
// bytes.
func Archive(files ...File) (*bytes.Buffer, error) {
	archive := new(bytes.Buffer)
	w := tar.NewWriter(archive)
	for _, file := range files {
		err := w.WriteHeader(&tar.Header{Name: file.Name, Mode: file.Mode, Size: int64(len(file.Content))})
		if err == nil {
			_, err = w.Write(file.Content)
		}
		if err != nil {
			return nil, fmt.Errorf("archive: %s: %w", file.Name, err)
		}
	}
	return archive, w.Close()
}
