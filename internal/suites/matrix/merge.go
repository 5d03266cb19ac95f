package matrix

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"lockcheck/internal/runs"
)

// Merge puts the parts of one comparison together in a new folder. Their runs are copied.
// If it cannot be completed nothing is left of it.
func Merge(ctx context.Context, path string, parts []*Folder) (*Folder, error) {
	suite, err := sameSuite(parts)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err == nil {
		return nil, runs.Usagef("%s is there already", path)
	}
	path = filepath.Clean(path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	// Next to the target, so that it can be renamed; of a name that no other merge has.
	unfinished, err := os.MkdirTemp(filepath.Dir(path), filepath.Base(path)+".unfinished-")
	if err != nil {
		return nil, err
	}
	merged, err := mergeInto(ctx, unfinished, suite, parts)
	if err == nil {
		err = errors.Join(os.Chmod(unfinished, 0o755), os.Rename(unfinished, path))
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(unfinished))
	}
	merged.Path = path
	return merged, nil
}

func mergeInto(ctx context.Context, path string, suite Suite, parts []*Folder) (*Folder, error) {
	merged, err := Create(path, suite, Shard{})
	if err != nil {
		return nil, err
	}
	for i, part := range parts {
		if err := merged.take(ctx, part, fmt.Sprintf("part%d", i+1)); err != nil {
			return nil, err
		}
	}
	return merged, nil
}

// take copies the runs of a part. One that another part has made, too, is an error, for
// which of them is to count nobody knows; but one that failed gives way to one that did not.
func (f *Folder) take(ctx context.Context, part *Folder, name string) error {
	root, err := os.OpenRoot(part.Path) // what the part links to outside of it is not taken
	if err != nil {
		return err
	}
	defer root.Close()
	for _, e := range part.latest() {
		if err := ctx.Err(); err != nil {
			return err
		}
		switch other, ran := f.ran(e.cell(), e.Seed); {
		case !ran || other.isOpen():
		case e.isOpen():
			continue
		default:
			return runs.Usagef("%s has made %s with seed %d, and another part, too", part.Path, e.cell(), e.Seed)
		}
		if e.Run != "" {
			to := filepath.Join(runsFolder, name, strings.TrimPrefix(e.Run, runsFolder+string(filepath.Separator)))
			if err := copyFolder(f.file(to), root, e.Run); err != nil {
				return err
			}
			e.Run = to
		}
		if err := f.ledger.Add(e); err != nil {
			return err
		}
	}
	return nil
}

// latest lists the runs that count: of those that were made again the last one.
func (f *Folder) latest() []entry {
	var all []entry
	for _, e := range f.entries() {
		if last, _ := f.ran(e.cell(), e.Seed); last == e {
			all = append(all, e)
		}
	}
	return all
}

func copyFolder(to string, root *os.Root, from string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	folder, err := fs.Sub(root.FS(), filepath.ToSlash(from))
	if err != nil {
		return err
	}
	return os.CopyFS(to, folder)
}

// sameSuite returns what all parts compare; parts that compare something else cannot be
// put together.
func sameSuite(parts []*Folder) (Suite, error) {
	var first string
	for i, part := range parts {
		var text strings.Builder
		if err := part.Suite.Write(&text); err != nil {
			return Suite{}, err
		}
		if i == 0 {
			first = text.String()
		} else if text.String() != first {
			return Suite{}, runs.Usagef("%s and %s do not compare the same", parts[0].Path, part.Path)
		} else if part.Shard.Of != parts[0].Shard.Of {
			return Suite{}, runs.Usagef("%s and %s are parts of different numbers of parts", parts[0].Path, part.Path)
		}
	}
	return parts[0].Suite, nil
}
