package cleanup

import (
	"errors"
	"os/exec"
	"time"
)

// Registry records what must not outlive this process, however the process ends.
type Registry interface {
	// Start starts a command as the leader of a process group and records it.
	Start(command *exec.Cmd) error
	// Folder records a temporary folder.
	Folder(path string) error
}

var _ Registry = (*Journal)(nil)

// WithReaper calls do, which starts processes and makes temporary folders outside a run. If this process is
// killed, a reaper removes the registered ones. The reaper is started from lockcheck's binary.
func WithReaper(binary string, do func(Registry) error) (err error) {
	me, err := Self()
	if err != nil {
		return err
	}
	id, err := NewID(time.Now())
	if err != nil {
		return err
	}
	// The reaper starts first. If this process were killed between the two calls, a journal without a reaper
	// would stay.
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
