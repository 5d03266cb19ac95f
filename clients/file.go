package clients

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// fileLock is a file that exists while the lock is held, in a folder that all workers share. It is created as
// open(2) advises for NFS, where O_EXCL was not reliable. The attempt writes a file of its own and links it
// (link(2)) to the lock's name. It then relies on the number of links, because the answer to link may be lost.
// So the lock file names its holder from the start.
type fileLock struct {
	folder string
	// mu serializes calls. Release reads the holder and then removes the file. In between only the holder
	// itself could remove the file, and the holder is this process.
	//
	// If anything removed the locks of others, by hand or by age, Release could remove the lock of the next
	// holder. Here nothing does.
	mu sync.Mutex
}

func openFile(c Config) (Lock, error) {
	if c.Folder == "" {
		return nil, errors.New("a lock file needs a folder that the workers share")
	}
	return &fileLock{folder: c.Folder}, nil
}

// path returns the path of a file for a text with arbitrary characters. The prefix separates locks from
// attempts, and makes ".." harmless.
func (l *fileLock) path(prefix, text string) string {
	return filepath.Join(l.folder, prefix+url.PathEscape(text))
}

func (l *fileLock) lock(key string) string { return l.path("lock.", key) }

func (l *fileLock) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return Grant{}, &NoEffectError{Err: err}
	}
	if err := l.link(a); err != nil {
		return Grant{}, err
	}
	if err := ctx.Err(); err != nil {
		// The caller has given up and would never release the lock.
		return Grant{}, l.withdraw(a, err)
	}
	return Grant{Key: a.Key, ID: a.ID}, nil
}

func (l *fileLock) link(a Attempt) error {
	own := l.path("attempt.", a.ID)
	defer os.Remove(own) // the lock no longer needs it, and if it stays it does no harm
	if err := os.WriteFile(own, []byte(a.ID), 0o600); err != nil {
		return &NoEffectError{Err: err}
	}
	linkErr := os.Link(own, l.lock(a.Key))
	links, err := linksOf(own)
	switch {
	case err != nil:
		return fmt.Errorf("links of the attempt: %w", err)
	case links == 2:
		return nil
	case errors.Is(linkErr, fs.ErrExist):
		return l.busy(a.Key)
	}
	return noEffect("link: %w", linkErr)
}

// linksOf returns the number of hard links of a file.
func linksOf(path string) (uint64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, errors.New("this system does not count links")
	}
	return uint64(stat.Nlink), nil
}

// busy names the holder, unless the holder has released the lock in the meantime.
func (l *fileLock) busy(key string) error {
	// If the file cannot be read, the holder stays unnamed.
	holder, _ := os.ReadFile(l.lock(key))
	return &BusyError{Holder: string(holder)}
}

// withdraw releases a lock that was granted too late.
func (l *fileLock) withdraw(a Attempt, cause error) error {
	if err := l.remove(Grant{Key: a.Key, ID: a.ID}); err != nil {
		return fmt.Errorf("%w, and the lock could not be given back: %w", cause, err)
	}
	return &NoEffectError{Err: cause}
}

func (l *fileLock) Release(_ context.Context, g Grant) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.remove(g)
}

// remove removes the lock file if it belongs to the grant.
func (l *fileLock) remove(g Grant) error {
	holder, err := os.ReadFile(l.lock(g.Key))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ErrNotHeld
	case err != nil:
		return &NoEffectError{Err: err}
	case string(holder) != g.ID:
		return ErrNotHeld
	}
	err = os.Remove(l.lock(g.Key))
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotHeld
	}
	return err
}

func (l *fileLock) Close() error { return nil }
