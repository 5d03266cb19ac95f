package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"lockcheck/clusters/disk"
	"lockcheck/history"
)

// Wipe implements Host.
func (Local) Wipe(_ context.Context, folder string) (Moment, error) {
	moment := Moment{From: history.Now()}
	err := wipe(folder)
	moment.To = history.Now()
	return moment, err
}

// wipe leaves an empty folder that everybody can write. The agent is root, but the server's image may run as
// another user.
func wipe(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := os.Chmod(folder, 0o777); err != nil { // regardless of the umask
		return err
	}
	entries, err := os.ReadDir(folder)
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(folder, entry.Name())))
	}
	return err
}

// Files implements Host.
func (Local) Files(_ context.Context, folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, err
}

// errNoPower is why a node's disk cannot lose power.
var errNoPower = errors.New("the server is not on a disk that can lose power")

// LosePower implements Host. The disk learns of the loss before the server ends, and acts when it has ended.
func (l Local) LosePower(ctx context.Context) (Moment, error) {
	if l.Disk == "" {
		return Moment{}, errNoPower
	}
	if err := l.Disk.Off(ctx); err != nil {
		return Moment{}, err
	}
	moment, err := l.Signal(ctx, Kill)
	if err != nil { // the server lives on, and a later kill of it is no loss of power
		err = errors.Join(err, l.Disk.On(context.WithoutCancel(ctx)))
	}
	return moment, err
}

// SyncDisk implements Host.
func (l Local) SyncDisk(ctx context.Context) error {
	if l.Disk == "" {
		return nil
	}
	return l.Disk.Sync(ctx)
}

// Lost implements Host.
func (l Local) Lost(context.Context) (disk.Report, error) {
	if l.Disk == "" {
		return disk.Report{}, errNoPower
	}
	report, err := l.Disk.Report()
	if errors.Is(err, os.ErrNotExist) {
		return report, ErrNoLoss
	}
	return report, err
}
