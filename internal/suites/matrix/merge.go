package matrix

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
)

// Merge joins the parts of one comparison in a new folder and copies their runs. If it fails, it leaves
// nothing behind.
func Merge(ctx context.Context, path string, parts []*Folder) (*Folder, error) {
	suite, err := sameSuite(parts)
	if err != nil {
		return nil, err
	}
	var merged *Folder
	err = suites.Assemble(path, func(unfinished string) error {
		var err error
		merged, err = mergeInto(ctx, unfinished, suite, parts)
		return err
	})
	if err != nil {
		return nil, err
	}
	merged.Path = filepath.Clean(path)
	return merged, nil
}

func mergeInto(ctx context.Context, path string, suite Suite, parts []*Folder) (*Folder, error) {
	merged, err := Create(path, suite, suites.Shard{})
	if err != nil {
		return nil, err
	}
	for i, part := range parts {
		if err := merged.addPart(ctx, part, fmt.Sprintf("part%d", i+1)); err != nil {
			return nil, err
		}
	}
	return merged, nil
}

// addPart copies the runs of a part. If another part has made the same run, that is an error, because either
// could count. A failed run gives way to a run that did not fail.
func (f *Folder) addPart(ctx context.Context, part *Folder, name string) error {
	root, err := os.OpenRoot(part.Path) // symbolic links that leave the part are not followed
	if err != nil {
		return err
	}
	defer root.Close()
	for _, e := range part.latest() {
		if err := ctx.Err(); err != nil {
			return err
		}
		switch other, ran := f.latestRun(e.Place, e.Seed); {
		case !ran || other.isOpen():
		case e.isOpen():
			continue
		default:
			return runs.Usagef("%s has made %s with seed %d, and another part, too", part.Path, e.Place, e.Seed)
		}
		if e.Run != "" {
			to := filepath.Join(runsFolder, name, strings.TrimPrefix(e.Run, runsFolder+string(filepath.Separator)))
			if err := suites.CopyFolder(f.file(to), root, e.Run); err != nil {
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

// latest lists the runs that count: the last run for each cell and seed.
func (f *Folder) latest() []entry {
	var all []entry
	for _, e := range f.entries() {
		if last, _ := f.latestRun(e.Place, e.Seed); last == e {
			all = append(all, e)
		}
	}
	return all
}

// sameSuite returns the suite that all parts share. Parts with different suites cannot be merged.
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
