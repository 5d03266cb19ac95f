package matrix

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
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
	Shard suites.Shard

	ledger *suites.Ledger[heading, entry] // nil for a comparison that is not on disk
	// attacks has the digest of each cell's attack.
	attacks map[Place]string

	mu sync.Mutex
	// byCell has the latest run of each cell and seed among the first indexed entries of the ledger. A published
	// comparison has so many runs that a search through all of them for each would take minutes.
	byCell  map[seeded]entry
	indexed int
}

// seeded identifies a run of a cell.
type seeded struct {
	Place
	seed uint64
}

// entry is a line of the ledger: a run that ended.
type entry struct {
	Place
	Seed uint64 `json:"seed"`
	// Recorded is the run. A run that failed or is broken is repeated when the comparison resumes.
	suites.Recorded
	// OutOfTime: the run was not made because the budget was used up.
	OutOfTime bool `json:"out_of_time,omitempty"`
	// Late: the machine was so busy during the trial that the fault may have missed its moment.
	Late bool `json:"late,omitempty"`
	// Whole: this trial of the cell keeps its history and page.
	Whole bool `json:"whole,omitempty"`
	// Attack is the digest of the trial's attack; "" for other runs.
	Attack string `json:"attack,omitempty"`
}

// isOpen says whether a resumed comparison makes the run again.
func (e entry) isOpen() bool { return e.Failed != "" || e.OutOfTime }

// heading is the first line of the ledger.
type heading struct {
	Schema int          `json:"schema"`
	Shard  suites.Shard `json:"shard,omitzero"`
}

const ledgerSchema = 1

// Create makes the folder of a new comparison. A folder that already holds a comparison is an error of usage.
func Create(path string, s Suite, shard suites.Shard) (*Folder, error) {
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
	f.ledger, err = suites.CreateLedger[heading, entry](f.file(ledgerFile), heading{Schema: ledgerSchema, Shard: shard})
	f.digestAttacks()
	return f, err
}

// Open reads a comparison without changing it.
func Open(path string) (*Folder, error) {
	f := &Folder{Path: path}
	file, err := os.Open(f.file(suiteFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, runs.Usagef("%s holds no comparison; name the folder that the comparison printed at its end", path)
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

func (f *Folder) readLedger() error {
	path := f.file(ledgerFile)
	var err error
	if f.ledger, err = suites.OpenLedger[heading, entry](path); err != nil {
		return err
	}
	if schema := f.ledger.Heading.Schema; schema != ledgerSchema {
		return fmt.Errorf("%s: schema %d is not known", path, schema)
	}
	for i, e := range f.ledger.Entries() {
		if e.Run != "" && !filepath.IsLocal(e.Run) {
			return fmt.Errorf("%s: line %d: the run %q is not within the comparison", path, i+2, e.Run)
		}
	}
	f.Shard = f.ledger.Heading.Shard
	f.digestAttacks()
	return nil
}

func (f *Folder) digestAttacks() {
	f.attacks = make(map[Place]string)
	for _, p := range f.Suite.places() {
		f.attacks[p] = p.attackDigest()
	}
}

func (f *Folder) file(name string) string { return filepath.Join(f.Path, name) }

// entries lists the runs that were made, without trials of an outdated attack.
func (f *Folder) entries() []entry {
	if f.ledger == nil {
		return nil
	}
	return slices.DeleteFunc(f.ledger.Entries(), f.isOutdated)
}

// isOutdated says whether a trial was made before its attack was edited. Such a trial says nothing about the
// present attack.
func (f *Folder) isOutdated(e entry) bool { return e.Attack != f.attacks[e.Place] }

// outdated counts the trials of a cell that were made before its attack was edited.
func (f *Folder) outdated(p Place) int {
	if f.ledger == nil {
		return 0
	}
	seeds := make(map[uint64]bool)
	for _, e := range f.ledger.Entries() {
		if e.Place == p && !e.isOpen() && f.isOutdated(e) {
			seeds[e.Seed] = true
		}
	}
	return len(seeds)
}

// latestRun returns the latest run of a cell with a seed.
func (f *Folder) latestRun(p Place, seed uint64) (entry, bool) {
	if f.ledger == nil {
		return entry{}, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byCell == nil {
		f.byCell = make(map[seeded]entry)
	}
	for _, e := range f.ledger.EntriesFrom(f.indexed) {
		f.indexed++
		if !f.isOutdated(e) {
			f.byCell[seeded{e.Place, e.Seed}] = e
		}
	}
	e, ran := f.byCell[seeded{p, seed}]
	return e, ran
}
