package runs

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// A journal is kept on disk while a run lasts, outside of its store, so that
// whoever comes after a killed run finds what it left: which processes it had
// started and which faults were not yet undone. It is gone when the run has
// cleaned up after itself.
type journal struct {
	path string

	mu   sync.Mutex
	file *os.File
}

// entry is a line of a journal.
type entry struct {
	Owner  string `json:"owner,omitempty"`
	Docker bool   `json:"docker,omitempty"` // beside the owner: something may be on the engine
	Folder string `json:"folder,omitempty"` // temporary, to be removed
	PID    int    `json:"pid,omitempty"`
	Start  string `json:"start,omitempty"`
	Begin  string `json:"begin,omitempty"` // id of a fault
	Undo   string `json:"undo,omitempty"`
	End    string `json:"end,omitempty"`
}

// journalFolder is where the journals of this user's runs are.
func journalFolder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = filepath.Join(os.TempDir(), fmt.Sprintf("lockcheck-%d", os.Getuid()))
	}
	folder := filepath.Join(cache, "lockcheck", "runs")
	return folder, os.MkdirAll(folder, 0o755)
}

func openJournal(run string, me owner, onDocker bool) (*journal, error) {
	folder, err := journalFolder()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(folder, run+".jsonl")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	j := &journal{path: path, file: file}
	return j, j.write(entry{Owner: me.String(), Docker: onDocker})
}

func (j *journal) write(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// Folder notes a temporary folder.
func (j *journal) Folder(path string) error { return j.write(entry{Folder: path}) }

// Process notes a child process that leads a process group.
func (j *journal) Process(pid int) error {
	start, err := startTime(pid)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has ended already
	}
	if err != nil {
		return err
	}
	return j.write(entry{PID: pid, Start: start})
}

// Begin implements nemesis.Journal.
func (j *journal) Begin(id, undo string) error {
	if err := j.write(entry{Begin: id, Undo: undo}); err != nil {
		return err
	}
	return j.file.Sync()
}

// End implements nemesis.Journal.
func (j *journal) End(id string) error { return j.write(entry{End: id}) }

// close writes no more: what is still to be undone is left to somebody else.
func (j *journal) close() error { return j.file.Close() }

// remove ends the journal: there is nothing left to undo.
func (j *journal) remove() error { return errors.Join(j.close(), removeIfThere(j.path)) }

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// readJournal reads the journal of a run. A last line that was cut off in
// mid-write is left out; no journal at all is the empty one.
func readJournal(run string) ([]entry, error) {
	folder, err := journalFolder()
	if err != nil {
		return nil, err
	}
	file, err := os.Open(filepath.Join(folder, run+".jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var entries []entry
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			entries = append(entries, e)
		}
	}
	return entries, lines.Err()
}

// journaledRuns lists the runs that have a journal.
func journaledRuns() ([]string, error) {
	folder, err := journalFolder()
	if err != nil {
		return nil, err
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var runs []string
	for _, file := range files {
		if run, is := strings.CutSuffix(file.Name(), ".jsonl"); is {
			runs = append(runs, run)
		}
	}
	return runs, nil
}
