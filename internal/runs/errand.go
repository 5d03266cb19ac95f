package runs

import (
	"errors"
	"time"
)

// Registry is told what must not outlive this process, however that ends.
type Registry interface {
	// Process notes a child process that leads a process group.
	Process(pid int) error
	// Folder notes a temporary folder.
	Folder(path string) error
}

var _ Registry = (*journal)(nil)

// Errand does work outside of a run that starts processes and makes temporary
// folders. Should this process be killed, a reaper, started from the binary of
// lockcheck, removes those that were registered.
func Errand(binary string, do func(Registry) error) (err error) {
	me, err := self()
	if err != nil {
		return err
	}
	id, err := newID(time.Now())
	if err != nil {
		return err
	}
	journal, err := openJournal(id, me, false)
	if err != nil {
		return err
	}
	reaper, err := startReaper(binary, id, false)
	if err != nil {
		return errors.Join(err, journal.remove())
	}
	defer func() { err = errors.Join(err, journal.remove(), reaper.dismiss()) }()
	return do(journal)
}
