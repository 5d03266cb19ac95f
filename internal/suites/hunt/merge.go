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

// Merge joins the parts of one hunt in a new folder, with copies of their runs and reproductions. Trials are numbered in
// the order in which they began. The result names the parts that are missing.
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
		return whole.take(ctx, parts)
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

// wholeOf is the plan of the whole hunt. Parts of different hunts, or one part given twice, are errors of usage.
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

// taken is an entry of a part.
type taken struct {
	entry
	part int
	at   int // index in the part
}

func (f *Folder) take(ctx context.Context, parts []*Folder) error {
	trials := trialsOf(parts)
	numbers := make([]map[int]int, len(parts)) // of the trials in the whole hunt, by their numbers in the part
	for i := range parts {
		numbers[i] = make(map[int]int)
	}
	for i, t := range trials {
		numbers[t.part][t.at+1] = i + 1
		tried := *t.Tried
		tried.Fresh = slices.DeleteFunc(slices.Clone(tried.Fresh), func(c Cell) bool { return f.guide.cells[c] })
		tried.Run = within(t.part, tried.Run)
		if err := f.add(entry{Tried: &tried}); err != nil {
			return err
		}
	}
	finds := recordsOf(parts)
	for _, t := range bestOf(finds) {
		found := *t.Found
		found.Run, found.File = within(t.part, found.Run), within(t.part, found.File)
		found.Source = numbers[t.part][found.Source]
		found.Rerun = nil
		for _, other := range finds {
			// Where no part confirmed it, a trial that any part reran is not rerun.
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
		if err := f.copyOf(ctx, i, part); err != nil {
			return err
		}
	}
	return nil
}

// within is the path in the whole hunt of a file or run of a part.
func within(part int, path string) string {
	if path == "" {
		return ""
	}
	folder, name, _ := strings.Cut(filepath.ToSlash(path), "/")
	return filepath.Join(folder, fmt.Sprintf("part%d", part+1), name)
}

func (f *Folder) copyOf(ctx context.Context, i int, part *Folder) error {
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
	return f.rewrite(i, part)
}

// rewrite adapts the reproductions of a part: they name a lock file relative to their own folder.
func (f *Folder) rewrite(i int, part *Folder) error {
	for _, find := range part.records {
		if find.File == "" || !lockfile.IsPath(f.Plan.Lock) {
			continue
		}
		r, err := repros.FromFile(filepath.Join(part.Path, find.File))
		if err != nil {
			return err
		}
		r.Setup.Lock = f.Plan.Lock // a part may come from another folder
		if _, err := write(filepath.Join(f.Path, filepath.Dir(within(i, find.File))), r); err != nil {
			return err
		}
	}
	return nil
}

func trialsOf(parts []*Folder) []taken {
	var all []taken
	for i, part := range parts {
		for at := range part.attempts {
			all = append(all, taken{entry{Tried: &part.attempts[at]}, i, at})
		}
	}
	slices.SortStableFunc(all, func(a, b taken) int { return a.Tried.Began.Compare(b.Tried.Began) })
	return all
}

func recordsOf(parts []*Folder) []taken {
	var all []taken
	for i, part := range parts {
		for at := range part.records {
			all = append(all, taken{entry{Found: &part.records[at]}, i, at})
		}
	}
	return all
}

// bestOf keeps, of the records of one finding, the one that got furthest.
func bestOf(all []taken) []taken {
	var best []taken
	for _, t := range all {
		i := slices.IndexFunc(best, func(other taken) bool { return other.Found.key() == t.Found.key() })
		switch {
		case i < 0:
			best = append(best, t)
		case t.Found.isFurtherThan(*best[i].Found):
			best[i] = t
		}
	}
	return best
}
