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

// errNoDisk is why a node's disk has no faults.
var errNoDisk = errors.New("the server is not on a disk of lockcheck's")

// LosePower implements Host. The disk learns of the loss before the server ends, and acts when it has ended.
func (l Local) LosePower(ctx context.Context) (Moment, error) {
	if l.Disk == "" {
		return Moment{}, errNoDisk
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

// SetDisk implements Host. A disk ends with its server, and its fault with it.
func (l Local) SetDisk(ctx context.Context, fault disk.Fault) (Moment, error) {
	if l.Disk == "" {
		return Moment{}, errNoDisk
	}
	moment := Moment{From: history.Now()}
	err := l.Disk.Set(ctx, fault)
	moment.To = history.Now()
	if err != nil && fault == (disk.Fault{}) {
		if pids, unknown := l.pids(); unknown == nil && len(pids) == 0 {
			return moment, nil
		}
	}
	return moment, err
}

// CheckDisk implements Host.
func (l Local) CheckDisk(ctx context.Context) (disk.Condition, error) {
	if l.Disk == "" {
		return disk.Condition{}, errNoDisk
	}
	return l.Disk.Check(ctx)
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
		return disk.Report{}, errNoDisk
	}
	report, err := l.Disk.Report()
	if errors.Is(err, os.ErrNotExist) {
		return report, ErrNoLoss
	}
	return report, err
}
