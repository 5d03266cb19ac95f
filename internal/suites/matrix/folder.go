package matrix

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"lockcheck/internal/runs"
)

// Names of the files of a comparison.
const (
	suiteFile    = "suite.yaml"
	ledgerFile   = "ledger.jsonl"
	runsFolder   = "runs"
	jsonFile     = runs.ComparisonDataFile
	HTMLFile     = runs.ComparisonFile
	markdownFile = "comparison.md"
	junitFile    = "junit.xml"
)

// Folder is a comparison on disk.
type Folder struct {
	Path  string
	Suite Suite
	Shard Shard

	mu      sync.Mutex
	entries []entry
}

// entry is a line of the ledger: a run that was made to its end.
type entry struct {
	Lock  string `json:"lock"`
	Fault string `json:"fault"`
	Guard string `json:"guard"`
	Seed  uint64 `json:"seed"`
	// Run is its folder, relative to that of the comparison; "" if it was not recorded.
	Run   string    `json:"run"`
	Began time.Time `json:"began"`
	// Took is how long it took, start and end of its servers included.
	Took time.Duration `json:"took_ns"`
	// Failed is why it is broken, or could not be recorded at all; it is then made again
	// when the comparison goes on.
	Failed string `json:"failed,omitempty"`
}

// heading is the first line of the ledger.
type heading struct {
	Schema int    `json:"schema"`
	Shard  string `json:"shard,omitempty"`
}

const ledgerSchema = 1

// Create makes the folder of a new comparison; it must not hold one yet.
func Create(path string, s Suite, shard Shard) (*Folder, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, runs.Unusable(err)
	}
	f := &Folder{Path: path, Suite: s, Shard: shard}
	file, err := os.OpenFile(f.file(suiteFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return nil, runs.Usagef("%s holds a comparison; --resume %s goes on with it", path, path)
	}
	if err != nil {
		return nil, runs.Unusable(err)
	}
	if err := errors.Join(s.Write(file), file.Close()); err != nil {
		return nil, err
	}
	return f, f.write(heading{Schema: ledgerSchema, Shard: shard.String()})
}

// Open reads a comparison, and changes nothing of it.
func Open(path string) (*Folder, error) {
	f := &Folder{Path: path}
	file, err := os.Open(f.file(suiteFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, runs.Usagef("%s holds no comparison", path)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if f.Suite, err = ReadSuite(file); err != nil {
		return nil, fmt.Errorf("%s: %w", f.file(suiteFile), err)
	}
	return f, f.readLedger()
}

// readLedger reads what is complete of the ledger: the last line of one that was killed
// may be cut off.
func (f *Folder) readLedger() error {
	path := f.file(ledgerFile)
	complete, _, err := completeLines(path)
	if err != nil {
		return err
	}
	for n, line := range bytes.Split(bytes.TrimSuffix(complete, []byte("\n")), []byte("\n")) {
		if err := f.readLine(n+1, line); err != nil {
			return fmt.Errorf("%s: line %d: %w", path, n+1, err)
		}
	}
	return nil
}

// mendLedger takes away a last line that was cut off: the next one would continue it.
func (f *Folder) mendLedger() error {
	path := f.file(ledgerFile)
	complete, whole, err := completeLines(path)
	if err != nil || whole {
		return err
	}
	return os.Truncate(path, int64(len(complete)))
}

// completeLines reads a file as far as its last line break, and says whether that is
// where it ends.
func completeLines(path string) (lines []byte, whole bool, err error) {
	text, err := os.ReadFile(path)
	end := bytes.LastIndexByte(text, '\n') + 1
	return text[:end], end == len(text), err
}

func (f *Folder) readLine(n int, line []byte) error {
	if n == 1 {
		var h heading
		if err := json.Unmarshal(line, &h); err != nil {
			return err
		}
		if h.Schema != ledgerSchema {
			return fmt.Errorf("schema %d is not known", h.Schema)
		}
		var err error
		f.Shard, err = ParseShard(h.Shard)
		return err
	}
	var e entry
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	if e.Run != "" && !filepath.IsLocal(e.Run) {
		return fmt.Errorf("the run %q is not within the comparison", e.Run)
	}
	f.entries = append(f.entries, e)
	return nil
}

func (f *Folder) file(name string) string { return filepath.Join(f.Path, name) }

// add puts down a run in the ledger.
func (f *Folder) add(e entry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entries = append(f.entries, e)
	return f.write(e)
}

// write appends a line to the ledger.
func (f *Folder) write(line any) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(f.file(ledgerFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	return errors.Join(err, file.Close())
}

// ran returns the run of a cell with a seed, the last one if it was made again.
func (f *Folder) ran(c Cell, seed uint64) (entry, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := len(f.entries) - 1; i >= 0; i-- {
		if e := f.entries[i]; e.cell() == c && e.Seed == seed {
			return e, true
		}
	}
	return entry{}, false
}

func (e entry) cell() Cell { return Cell{e.Lock, e.Fault, e.Guard} }

// Shard is the part of a comparison that one machine makes: every Of-th run. The zero
// value is the whole.
type Shard struct{ N, Of int }

// ParseShard reads "2/8", the second of eight parts; "" is the whole.
func ParseShard(text string) (Shard, error) {
	if text == "" {
		return Shard{}, nil
	}
	number, of, _ := strings.Cut(text, "/")
	n, err1 := strconv.Atoi(number)
	m, err2 := strconv.Atoi(of)
	if err1 != nil || err2 != nil || n < 1 || n > m {
		return Shard{}, runs.Usagef("--shard %s: write 2/8 for the second of eight parts", text)
	}
	return Shard{n, m}, nil
}

// String is the inverse of ParseShard.
func (s Shard) String() string {
	if s.Of == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.N, s.Of)
}

func (s Shard) has(i int) bool { return s.Of == 0 || i%s.Of == s.N-1 }

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
		case !ran || other.Failed != "":
		case e.Failed != "":
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
		if err := f.add(e); err != nil {
			return err
		}
	}
	return nil
}

// latest lists the runs that count: of those that were made again the last one.
func (f *Folder) latest() []entry {
	var all []entry
	for _, e := range f.entries {
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
