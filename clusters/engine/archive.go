package engine

import (
	"archive/tar"
	"bytes"
	"fmt"
)

// File is one in an archive; a folder if its name ends with a slash.
type File struct {
	Name    string
	Mode    int64
	Content []byte
}

// Archive packs files as the engine takes them. It has no times: the same files are the same archive.
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
