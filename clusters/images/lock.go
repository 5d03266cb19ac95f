package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"lockcheck/clusters/engine"
	"lockcheck/internal/folders"
)

// made returns the image that look finds, and makes it if there is none. Of several callers at the same time
// one makes it, and the others then find it. A second image would take the name from the first, with which
// another run may be about to start.
func (m Maker) made(ctx context.Context, name string, look func() (engine.Image, bool, error), make func() error) (found engine.Image, err error) {
	found, ok, err := look()
	if err != nil || ok {
		return found, err
	}
	err = m.alone(ctx, name, func() error {
		if found, ok, err = look(); err != nil || ok {
			return err
		}
		if err := make(); err != nil {
			return err
		}
		if found, ok, err = look(); err == nil && !ok {
			err = errors.New("made, but not there")
		}
		return err
	})
	return found, err
}

// alone makes an image while no other process makes one of the same name or removes images. Without that the
// parent of the image could be removed meanwhile.
func (m Maker) alone(ctx context.Context, name string, do func() error) error {
	return m.locked(ctx, allImages, syscall.LOCK_SH, "another lockcheck that is removing images", func() error {
		return m.locked(ctx, name, syscall.LOCK_EX, "another run that is making the image "+name, do)
	})
}

// allImages is the lock that makers of images share and that a removal takes exclusively. No image has this
// name.
const allImages = ".all"

// locked calls do with a lock on a file. The kernel releases the lock when its process ends in any way. The
// file stays: if it were removed, a process could wait for a lock on a file that no other process sees.
func (m Maker) locked(ctx context.Context, name string, how int, others string, do func() error) error {
	folder, err := folders.Cache("images")
	if err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(folder, name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	for waiting := false; ; waiting = true {
		err := syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
		switch {
		case err == nil:
			return do()
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return fmt.Errorf("lock %s: %w", file.Name(), err)
		case !waiting:
			m.Progress("waiting for %s", others)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockPoll):
		}
	}
}

// lockPoll is how often the lock is tried again. A blocking wait in the kernel could not be cancelled.
const lockPoll = 100 * time.Millisecond
