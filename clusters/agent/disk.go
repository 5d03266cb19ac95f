package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"

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
