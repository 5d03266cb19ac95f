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

// made returns the image that look finds, and makes it first if there is none. Of those
// who want it at the same time one makes it, and the others find it then: a second one of
// the same name would take it from the first, under which somebody may just start.
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

// alone makes an image while nobody else makes one of this name, and nobody removes images: what
// it is to stand on could go.
func (m Maker) alone(ctx context.Context, name string, do func() error) error {
	return m.locked(ctx, allImages, syscall.LOCK_SH, "another lockcheck that is removing images", func() error {
		return m.locked(ctx, name, syscall.LOCK_EX, "another run that is making the image "+name, do)
	})
}

// allImages is the lock that whoever makes an image shares with others, and whoever removes some
// has alone. No image is called so.
const allImages = ".all"

// locked does something with a lock. The lock ends with the process that has it, however that
// ends. Its file stays: were it removed, somebody could wait for a lock that nobody else sees.
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

// lockPoll is how often it is tried again to get a lock. To wait for it in the kernel
// could not be given up.
const lockPoll = 100 * time.Millisecond
