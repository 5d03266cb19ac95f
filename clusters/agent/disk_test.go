package agent

import (
	"os"
	"path/filepath"
	"testing"
)

// TestWipe: the folder exists, is empty and can be written by everybody, whether it existed before or not. A
// neighbouring folder is unchanged.
func TestWipe(t *testing.T) {
	parent := t.TempDir()
	neighbour := filepath.Join(parent, "neighbour")
	if err := os.Mkdir(neighbour, 0o700); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(parent, "n1")
	for _, when := range []string{"before the first start", "after a server has made it its own"} {
		if _, err := (Local{}).Wipe(t.Context(), folder); err != nil {
			t.Fatal(err)
		}
		if names, err := (Local{}).Files(t.Context(), folder); err != nil || len(names) != 0 {
			t.Errorf("%s: there are %v, %v", when, names, err)
		}
		if mode := permissions(t, folder); mode != 0o777 {
			t.Errorf("%s: %o", when, mode)
		}
		if err := os.WriteFile(filepath.Join(folder, "data"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if mode := permissions(t, neighbour); mode != 0o700 {
		t.Errorf("next to it: %o", mode)
	}
}

func permissions(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}
