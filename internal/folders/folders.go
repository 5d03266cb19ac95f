// Package folders creates and recognizes the folders that lockcheck uses outside its stores.
package folders

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
)

// Cache returns the folder called name in the user's cache folder, and creates it if necessary. Only this user
// can change the folder.
//
// Without a cache folder (HOME is not set) it is in the folder for temporary files. There another user could
// have created a folder of that name first. lockcheck does what the files in the folder say, so a folder that
// belongs to another user is an error.
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
		// From the top down, so that nothing is created inside another user's folder.
		if err := makeOwn(folder); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// makeOwn creates a folder that only this user can read, unless the name exists. If what exists cannot be
// trusted, the error says why. It checks only the last element of the path.
func makeOwn(folder string) error {
	if err := os.Mkdir(folder, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	if isOwnLink(folder) {
		return nil
	}
	if err := checkOwn(folder); err != nil {
		return fmt.Errorf("%w; lockcheck does what the files in it say, so only you may be able to change it: "+
			"set XDG_CACHE_HOME to a folder of yours, or remove this one", err)
	}
	return os.Chmod(folder, 0o700) // earlier versions let other users read it
}

// isOwnLink reports whether a path is a symbolic link that this user made to a folder which only this user can
// read or change. A link made by another user could lead to any folder of this user.
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

// checkOwn returns nil if only this user can change a folder. Otherwise the error says why others can, or why
// the path is no folder. It does not follow a symbolic link.
func checkOwn(folder string) error {
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

// Temporary makes a temporary folder that IsTemporary recognizes. Its name is short because the path of a Unix
// socket in it may have at most 107 bytes.
func Temporary() (string, error) { return os.MkdirTemp("", "lockcheck-") }

// temporaryName matches the names that os.MkdirTemp gives to the folders of Temporary.
var temporaryName = regexp.MustCompile(`^lockcheck-[0-9]+$`)

// IsTemporary returns an error unless the path is that of a folder made by Temporary for this user. If the
// folder no longer exists, it returns nil. Call it before removing a path that a file names, because the file
// may name any path.
func IsTemporary(path string) error {
	if !temporaryName.MatchString(filepath.Base(path)) || filepath.Clean(path) != path || filepath.Dir(path) != filepath.Clean(os.TempDir()) {
		return fmt.Errorf("%q is not a temporary folder of lockcheck in %s (TMPDIR)", path, os.TempDir())
	}
	if err := checkOwn(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}
