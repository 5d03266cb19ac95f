// Package folders makes the folders that lockcheck has outside of its stores, and recognizes them.
package folders

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
)

// Cache returns the folder of that name which only this user can change, in the user's cache
// folder; it makes it if there is none. Without a cache folder (HOME is not set) it is in the
// folder for temporary files, where any user could have made one of that name before: lockcheck
// does what the files in it say, so a folder of somebody else is an error.
func Cache(name string) (string, error) {
	folder, err := os.UserCacheDir()
	ours := "lockcheck"
	if err != nil {
		folder, ours = os.TempDir(), fmt.Sprintf("lockcheck-%d", os.Getuid())
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	for _, element := range []string{ours, name} {
		folder = filepath.Join(folder, element)
		// One after another: below a folder of somebody else nothing is made.
		if err := own(folder); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// own makes a folder that nobody else can read, if there is nothing of that name, and says why
// what there is cannot be trusted. Only the last element of the path is looked at.
func own(folder string) error {
	if err := os.Mkdir(folder, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	if isOwnLink(folder) {
		return nil
	}
	if err := isOwn(folder); err != nil {
		return fmt.Errorf("%w; lockcheck does what the files in it say, so only you may be able to change it: "+
			"set XDG_CACHE_HOME to a folder of yours, or remove this one", err)
	}
	return os.Chmod(folder, 0o700) // earlier versions let others read it
}

// isOwnLink says whether a path is a symbolic link that this user made to a folder that only this
// user can read or change. Somebody else's link could lead to any folder of this user.
func isOwnLink(path string) bool {
	link, err := os.Lstat(path)
	if err != nil || link.Mode().Type() != os.ModeSymlink || !isMine(link) {
		return false
	}
	folder, err := os.Stat(path)
	return err == nil && folder.IsDir() && isMine(folder) && folder.Mode().Perm() == 0o700
}

func isMine(about os.FileInfo) bool {
	status, known := about.Sys().(*syscall.Stat_t)
	return known && int(status.Uid) == os.Geteuid()
}

// isOwn says why a folder is not one that only this user can change. It does not follow a
// symbolic link.
func isOwn(folder string) error {
	about, err := os.Lstat(folder)
	if err != nil {
		return err
	}
	switch {
	case !about.IsDir():
		return fmt.Errorf("%s is not a folder but a %s", folder, kind(about.Mode()))
	case !isMine(about):
		return fmt.Errorf("%s belongs to another user", folder)
	case about.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s can be changed by other users (mode %#o)", folder, about.Mode().Perm())
	}
	return nil
}

func kind(mode os.FileMode) string {
	if mode&os.ModeSymlink != 0 {
		return "symbolic link"
	}
	return "file"
}

// Temporary makes a temporary folder that IsTemporary recognizes. Its name is short, for the path
// of a Unix socket in it may have 107 bytes only.
func Temporary() (string, error) { return os.MkdirTemp("", "lockcheck-") }

// temporary is how os.MkdirTemp names the folders of Temporary.
var temporary = regexp.MustCompile(`^lockcheck-[0-9]+$`)

// IsTemporary says why a path is not that of a folder as Temporary makes them for this user; nil
// also if there is nothing of that name any more. Whoever removes what a file names asks first:
// the file may say anything.
func IsTemporary(path string) error {
	if !temporary.MatchString(filepath.Base(path)) || filepath.Clean(path) != path || filepath.Dir(path) != filepath.Clean(os.TempDir()) {
		return fmt.Errorf("%q is not a temporary folder of lockcheck in %s (TMPDIR)", path, os.TempDir())
	}
	if err := isOwn(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}
