package cleanup

import (
	"errors"
	"os/exec"
	"time"
)

// Registry is told what must not outlive this process, however that ends.
type Registry interface {
	// Start starts a command as the leader of a process group.
	Start(command *exec.Cmd) error
	// Folder notes a temporary folder.
	Folder(path string) error
}

var _ Registry = (*Journal)(nil)

// WithReaper does work outside of a run that starts processes and makes temporary
// folders. Should this process be killed, a reaper, started from the binary of
// lockcheck, removes those that were registered.
func WithReaper(binary string, do func(Registry) error) (err error) {
	me, err := Self()
	if err != nil {
		return err
	}
	id, err := NewID(time.Now())
	if err != nil {
		return err
	}
	// The reaper first: were this process killed in between, its journal would stay.
	reaper, err := StartReaper(binary, id, false)
	if err != nil {
		return err
	}
	journal, err := OpenJournal(id, me, false)
	if err != nil {
		return errors.Join(err, reaper.Dismiss())
	}
	defer func() { err = errors.Join(err, journal.Remove(), reaper.Dismiss()) }()
	return do(journal)
}
