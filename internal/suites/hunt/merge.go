package hunt

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lockcheck/internal/lockfile"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/internal/suites/repros"
)

// Merge joins the parts of one hunt in a new folder, with copies of their runs and reproductions. It numbers
// the trials in the order in which they began. The result names missing parts.
func Merge(ctx context.Context, path string, parts []*Folder) (*Folder, error) {
	plan, err := wholeOf(parts)
	if err != nil {
		return nil, err
	}
	err = suites.Assemble(path, func(unfinished string) error {
		whole, err := Create(unfinished, plan)
		if err != nil {
			return err
		}
		return whole.addParts(ctx, parts)
	})
	if err != nil {
		return nil, err
	}
	return Open(path)
}

func (p Plan) sameHunt(other Plan) bool {
	return p.Lock == other.Lock && p.Version == other.Version && p.Nodes == other.Nodes && p.TTL == other.TTL &&
		p.Seed == other.Seed && p.Blind == other.Blind && p.Shard.Of == other.Shard.Of
}

// wholeOf is the plan of the whole hunt. Parts of different hunts, or the same part given twice, are errors
// of usage.
func wholeOf(parts []*Folder) (Plan, error) {
	first := parts[0].Plan
	made := make(map[suites.Shard]string)
	for _, part := range parts {
		p := part.Plan
		if p.Shard.Of == 0 {
			return Plan{}, runs.Usagef("%s is a whole hunt, not a part of one", part.Path)
		}
		if !p.sameHunt(first) {
			return Plan{}, runs.Usagef("%s and %s are not parts of one hunt", parts[0].Path, part.Path)
		}
		if other, is := made[p.Shard]; is {
			return Plan{}, runs.Usagef("%s and %s are the same part", other, part.Path)
		}
		made[p.Shard] = part.Path
	}
	whole := first
	whole.Shard = suites.Shard{}
	for n := range first.Shard.Of {
		part := suites.Shard{N: n + 1, Of: first.Shard.Of}
		if _, is := made[part]; !is {
			whole.Missing = append(whole.Missing, part)
		}
	}
	return whole, nil
}

// partEntry is a ledger entry of a part.
type partEntry struct {
	entry
	part int
	at   int // its index in the part
}

func (f *Folder) addParts(ctx context.Context, parts []*Folder) error {
	trials := trialsOf(parts)
	numbers := make([]map[int]int, len(parts)) // a trial's number in the part → its number in the whole hunt
	for i := range parts {
		numbers[i] = make(map[int]int)
	}
	for i, t := range trials {
		numbers[t.part][t.at+1] = i + 1
		tried := *t.Tried
		tried.Fresh = slices.DeleteFunc(slices.Clone(tried.Fresh), func(c Cell) bool { return f.guide.cells[c] })
		tried.Run = mergedPath(t.part, tried.Run)
		if err := f.add(entry{Tried: &tried}); err != nil {
			return err
		}
	}
	finds := recordsOf(parts)
	for _, t := range bestOf(finds) {
		found := *t.Found
		found.Run, found.File = mergedPath(t.part, found.Run), mergedPath(t.part, found.File)
		found.Source = numbers[t.part][found.Source]
		found.Rerun = nil
		for _, other := range finds {
			// If no part confirmed the finding, trials that any part reran are not rerun.
			if other.Found.key() != found.key() || other.part != t.part && found.OriginalRuns.Shown > 0 {
				continue
			}
			for _, n := range other.Found.Rerun {
				found.Rerun = append(found.Rerun, numbers[other.part][n])
			}
		}
		if err := f.add(entry{Found: &found}); err != nil {
			return err
		}
	}
	for i, part := range parts {
		if err := f.copyPart(ctx, i, part); err != nil {
			return err
		}
	}
	return nil
}

// mergedPath turns the path of a part's file or run into its path in the whole hunt.
func mergedPath(part int, path string) string {
	if path == "" {
		return ""
	}
	folder, name, _ := strings.Cut(filepath.ToSlash(path), "/")
	return filepath.Join(folder, fmt.Sprintf("part%d", part+1), name)
}

func (f *Folder) copyPart(ctx context.Context, i int, part *Folder) error {
	root, err := os.OpenRoot(part.Path)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, folder := range []string{runsFolder, findsFolder} {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := root.Stat(folder); err != nil {
			continue // the part found nothing
		}
		if err := suites.CopyFolder(filepath.Join(f.Path, folder, fmt.Sprintf("part%d", i+1)), root, folder); err != nil {
			return err
		}
	}
	return f.rewriteReproductions(i, part)
}

// rewriteReproductions adapts the reproductions of a part: they name a lock file relative to their own folder, which is
// another one now.
func (f *Folder) rewriteReproductions(i int, part *Folder) error {
	for _, find := range part.records {
		if find.File == "" || !lockfile.IsPath(f.Plan.Lock) {
			continue
		}
		r, err := repros.FromFile(filepath.Join(part.Path, find.File))
		if err != nil {
			return err
		}
		r.Setup.Lock = f.Plan.Lock // the part may come from another folder
		if _, err := write(filepath.Join(f.Path, filepath.Dir(mergedPath(i, find.File))), r); err != nil {
			return err
		}
	}
	return nil
}

func trialsOf(parts []*Folder) []partEntry {
	var all []partEntry
	for i, part := range parts {
		for at := range part.attempts {
			all = append(all, partEntry{entry{Tried: &part.attempts[at]}, i, at})
		}
	}
	slices.SortStableFunc(all, func(a, b partEntry) int { return a.Tried.Began.Compare(b.Tried.Began) })
	return all
}

func recordsOf(parts []*Folder) []partEntry {
	var all []partEntry
	for i, part := range parts {
		for at := range part.records {
			all = append(all, partEntry{entry{Found: &part.records[at]}, i, at})
		}
	}
	return all
}

// bestOf keeps one record per finding, the one that got furthest.
func bestOf(all []partEntry) []partEntry {
	var best []partEntry
	for _, t := range all {
		i := slices.IndexFunc(best, func(other partEntry) bool { return other.Found.key() == t.Found.key() })
		switch {
		case i < 0:
			best = append(best, t)
		case t.Found.isFurtherThan(*best[i].Found):
			best[i] = t
		}
	}
	return best
}
