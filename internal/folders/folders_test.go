package folders

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// TestCacheWithoutHome: an existing folder, in a place where every user can create one, is used only if no
// other user can have put anything into it.
func TestCacheWithoutHome(t *testing.T) {
	name := "lockcheck-" + strconv.Itoa(os.Getuid())
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, path string)
		refused bool
	}{
		{"nothing is there", func(*testing.T, string) {}, false},
		{"a folder of ours", func(t *testing.T, path string) { mkdir(t, path, 0o700) }, false},
		{"a folder of ours that others can read", func(t *testing.T, path string) { mkdir(t, path, 0o755) }, false},
		{"a folder that others can write to", func(t *testing.T, path string) { mkdir(t, path, 0o777) }, true},
		{"a folder in it that others can write to", func(t *testing.T, path string) {
			mkdir(t, path, 0o700)
			mkdir(t, filepath.Join(path, "runs"), 0o770)
		}, true},
		{"a link to a folder of ours", func(t *testing.T, path string) { link(t, path, 0o700) }, false},
		{"a link to a folder of ours that others can read", func(t *testing.T, path string) { link(t, path, 0o755) }, true},
		{"a link to nothing", func(t *testing.T, path string) {
			if err := os.Symlink(path+"-gone", path); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"another user's link to a folder of ours", func(t *testing.T, path string) {
			if os.Geteuid() != 0 {
				t.Skip("giving a link away needs root")
			}
			link(t, path, 0o700)
			if err := os.Lchown(path, 12345, -1); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"a file", func(t *testing.T, path string) {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"a folder of another user", func(t *testing.T, path string) {
			if os.Geteuid() != 0 {
				t.Skip("giving a folder away needs root")
			}
			mkdir(t, path, 0o700)
			if err := os.Chown(path, 12345, -1); err != nil {
				t.Fatal(err)
			}
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, variable := range []string{"HOME", "XDG_CACHE_HOME"} {
				t.Setenv(variable, "")
			}
			t.Setenv("TMPDIR", t.TempDir())
			path := filepath.Join(os.TempDir(), name)
			c.prepare(t, path)
			folder, err := Cache("runs")
			if (err != nil) != c.refused || err == nil && folder != filepath.Join(path, "runs") {
				t.Fatalf("got %q, %v: want it refused: %t", folder, err, c.refused)
			}
			for _, made := range []string{path, folder} {
				if about, err := os.Stat(made); !c.refused && (err != nil || about.Mode().Perm() != 0o700) {
					t.Errorf("%s: %v, %v: want the mode 0700", made, about, err)
				}
			}
		})
	}
}

// TestIsTemporary accepts only what Temporary makes. A folder that is gone is no error.
func TestIsTemporary(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	folder, err := Temporary()
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), filepath.Base(folder))
	mkdir(t, other, 0o700)
	elsewhere := filepath.Join(os.TempDir(), "lockcheck-1")
	if err := os.Symlink(other, elsewhere); err != nil {
		t.Fatal(err)
	}
	mkdir(t, filepath.Join(os.TempDir(), "precious"), 0o700)
	for path, is := range map[string]bool{
		folder: true,
		filepath.Join(os.TempDir(), "lockcheck-2"): true, // does not exist
		elsewhere:                               false,
		other:                                   false,
		filepath.Join(os.TempDir(), "precious"): false,
		os.TempDir():                            false,
		folder + "/../precious":                 false,
		folder + "/":                            false,
		filepath.Base(folder):                   false,
		"":                                      false,
	} {
		if err := IsTemporary(path); (err == nil) != is {
			t.Errorf("%q: %v, want it to be one: %t", path, err, is)
		}
	}
}

func mkdir(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // independent of the umask
		t.Fatal(err)
	}
}

// link makes a symbolic link to a folder with the given mode.
func link(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	mkdir(t, path+"-real", mode)
	if err := os.Symlink(path+"-real", path); err != nil {
		t.Fatal(err)
	}
}
