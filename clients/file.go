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

// fileLock is a file that exists as long as somebody holds the lock, in a folder
// that all workers see. It is made as open(2) advises for NFS, where O_EXCL
// could not be relied on: write a file of one's own, link(2) it to the name of
// the lock, and believe the number of links, not the answer, which may be lost.
// The holder is in the file before the file has the name of the lock.
type fileLock struct {
	folder string
	// mu: one call at a time. Release reads the holder and then removes the file;
	// in between only the holder itself could remove it, and that is this process.
	// Whoever removes locks of others by hand or by age can still make it remove
	// that of the next holder; here nobody does.
	mu sync.Mutex
}

func openFile(c Config) (Lock, error) {
	if c.Folder == "" {
		return nil, errors.New("a lock file needs a folder that the workers share")
	}
	return &fileLock{folder: c.Folder}, nil
}

// path names a file by a text that may hold anything. The prefix keeps locks and
// attempts apart, and ".." harmless.
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
		// The caller has given up: nobody would release it.
		return Grant{}, l.withdraw(a, err)
	}
	return Grant{Key: a.Key, ID: a.ID}, nil
}

// link makes one attempt.
func (l *fileLock) link(a Attempt) error {
	own := l.path("attempt.", a.ID)
	defer os.Remove(own) // the lock needs it no more; left behind it does no damage
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

// linksOf returns how many names a file has.
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

// busy names the holder, unless that one has left in the meantime.
func (l *fileLock) busy(key string) error {
	// A holder that cannot be read is none that could be named.
	holder, _ := os.ReadFile(l.lock(key))
	return &BusyError{Holder: string(holder)}
}

// withdraw gives back what was granted too late.
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

// remove removes the lock if the grant has it.
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
