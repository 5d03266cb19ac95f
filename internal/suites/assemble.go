package suites

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"lockcheck/internal/runs"
	"lockcheck/reports"
)

// Assemble makes a folder that appears only once it is complete: fill fills it under another name. If the
// folder already exists, the error is a usage error.
func Assemble(path string, fill func(unfinished string) error) error {
	if _, err := os.Stat(path); err == nil {
		return runs.Usagef("%s is there already; name another folder with --out", path)
	}
	path = filepath.Clean(path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	// The unfinished folder lies next to the target, so that it can be renamed, and has a unique name.
	unfinished, err := os.MkdirTemp(filepath.Dir(path), filepath.Base(path)+".unfinished-")
	if err != nil {
		return err
	}
	if err := fill(unfinished); err != nil {
		return errors.Join(err, os.RemoveAll(unfinished))
	}
	if err := errors.Join(os.Chmod(unfinished, 0o755), os.Rename(unfinished, path)); err != nil {
		return errors.Join(err, os.RemoveAll(unfinished))
	}
	return nil
}

// CopyFolder copies the files of a folder below root, with its subfolders. It copies no links, which may lead
// anywhere.
func CopyFolder(to string, root *os.Root, from string) error {
	return fs.WalkDir(root.FS(), filepath.ToSlash(from), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		within, err := filepath.Rel(from, filepath.FromSlash(path))
		if err != nil {
			return err
		}
		return copyFile(filepath.Join(to, within), root, path)
	})
}

func copyFile(to string, root *os.Root, from string) error {
	source, err := root.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// WriteFiles writes files by their names into a folder. After an error it goes on with the other files.
func WriteFiles(folder string, files map[string]func(io.Writer) error) error {
	var errs []error
	for name, write := range files {
		errs = append(errs, runs.WriteFile(folder, name, write))
	}
	return errors.Join(errs...)
}

// WriteReports writes a result into a folder under a name: as JSON for programs, and as a page with pictures
// for people.
func WriteReports(folder, name string, result any, page reports.Page) error {
	files := map[string]func(io.Writer) error{
		name + ".json": func(w io.Writer) error { return reports.WriteJSON(w, result) },
		name + ".html": page.WriteHTML,
		name + ".md":   page.WriteMarkdown,
	}
	for _, block := range page.Blocks {
		if picture, is := block.(reports.Picture); is {
			files[picture.File] = func(w io.Writer) error { _, err := io.WriteString(w, picture.SVG); return err }
		}
	}
	return WriteFiles(folder, files)
}
