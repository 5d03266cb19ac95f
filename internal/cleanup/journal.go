// Package cleanup removes what a killed run has left behind on the machine.
package cleanup

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"lockcheck/internal/folders"
)

// Journal records on disk, outside the store, which processes a run has started and which faults it has not
// undone. If the run is killed, a later lockcheck finds there what to clean up. The run removes its journal
// once it has cleaned up itself.
type Journal struct {
	run  string
	path string

	mu   sync.Mutex
	file *os.File
	open map[string]bool // IDs of faults that are not undone
}

// Entry is a line of a journal.
type Entry struct {
	Owner  string `json:"owner,omitempty"`
	Docker bool   `json:"docker,omitempty"` // in the first line, with Owner: the engine may have objects of the run
	Folder string `json:"folder,omitempty"` // temporary folder that must be removed
	PID    int    `json:"pid,omitempty"`
	Start  string `json:"start,omitempty"`
	Begin  string `json:"begin,omitempty"` // ID of a fault
	Undo   string `json:"undo,omitempty"`
	End    string `json:"end,omitempty"`
}

// journalFolder returns the folder with the journals of this user's runs.
func journalFolder() (string, error) { return folders.Cache("runs") }

func journalPath(run string) (string, error) {
	if !isID(run) {
		return "", fmt.Errorf("%q is not the ID of a run", run)
	}
	folder, err := journalFolder()
	return filepath.Join(folder, run+".jsonl"), err
}

// OpenJournal creates the journal of a run; onDocker says that the run may create objects on the engine.
func OpenJournal(run string, me Owner, onDocker bool) (*Journal, error) {
	path, err := journalPath(run)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	j := &Journal{run: run, path: path, file: file, open: make(map[string]bool)}
	if err := j.write(Entry{Owner: me.String(), Docker: onDocker}); err != nil {
		return nil, errors.Join(err, j.Remove()) // without an owner no later run could judge it
	}
	return j, nil
}

func (j *Journal) write(e Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if e.Begin != "" {
		j.open[e.Begin] = true
	}
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	delete(j.open, e.End)
	return nil
}

// Folder records a temporary folder.
func (j *Journal) Folder(path string) error { return j.write(Entry{Folder: path}) }

// Start starts a command as the leader of a process group and records it. If recording fails, Start kills the
// group.
func (j *Journal) Start(command *exec.Cmd) error {
	if command.SysProcAttr == nil {
		command.SysProcAttr = new(syscall.SysProcAttr)
	}
	command.SysProcAttr.Setpgid = true
	command.Env = append(command.Environ(), string(mark(j.run)))
	if err := command.Start(); err != nil {
		return err
	}
	err := j.process(command.Process.Pid)
	if err != nil {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		_ = command.Wait()
	}
	return err
}

// process records the leader of a process group.
func (j *Journal) process(pid int) error {
	start, err := startTime(pid)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has ended already
	}
	if err != nil {
		return err
	}
	return j.write(Entry{PID: pid, Start: start})
}

// Begin implements nemesis.Journal. It does not sync to disk. A sync would delay a fault beyond the moment when
// its target still holds the lock. And no effect of a fault survives a crash of the machine.
func (j *Journal) Begin(id, undo string) error { return j.write(Entry{Begin: id, Undo: undo}) }

// End implements nemesis.Journal.
func (j *Journal) End(id string) error { return j.write(Entry{End: id}) }

// Settled returns an error that names the faults that were begun and not undone; nil if there are none.
func (j *Journal) Settled() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.open) > 0 {
		return fmt.Errorf("faults %s were not undone", strings.Join(slices.Sorted(maps.Keys(j.open)), ", "))
	}
	return nil
}

// Close closes the journal but keeps the file, so that the reaper or a later run undoes what is left.
func (j *Journal) Close() error { return j.file.Close() }

// Remove closes and deletes the journal: there is nothing left to undo.
func (j *Journal) Remove() error { return errors.Join(j.Close(), removeIfThere(j.path)) }

// NewID returns an ID for a run that starts now. Its objects are named after it.
func NewID(now time.Time) (string, error) {
	random := make([]byte, 3)
	_, err := rand.Read(random)
	return now.UTC().Format("20060102t150405") + hex.EncodeToString(random), err
}

// idPattern matches the IDs that NewID returns.
var idPattern = regexp.MustCompile(`^[0-9]{8}t[0-9]{6}[0-9a-f]{6}$`)

// isID reports whether NewID may have made an ID. An ID from a label can come from anybody: an image passes its
// labels on to each of its containers.
func isID(run string) bool { return idPattern.MatchString(run) }

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// ReadJournal reads the journal of a run. It skips lines that are not JSON, such as a last line that was cut
// off in mid-write. If there is no journal, it returns no entries and no error.
func ReadJournal(run string) ([]Entry, error) {
	path, err := journalPath(run)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var entries []Entry
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var e Entry
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			entries = append(entries, e)
		}
	}
	return entries, lines.Err()
}

// Journals lists the runs that have a journal.
func Journals() ([]string, error) {
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
		if run, is := strings.CutSuffix(file.Name(), ".jsonl"); is && isID(run) {
			runs = append(runs, run)
		}
	}
	return runs, nil
}
