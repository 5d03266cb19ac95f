package locktest

import (
	"os"
	"path/filepath"
	"testing"

	"lockcheck/internal/lockfile"
)

// TestWrite: the files that Run makes describe a lock, with the test binary where its
// servers need it.
func TestWrite(t *testing.T) {
	for about, inImage := range map[string]bool{"servers: memory\nlease: 1s": false, "lease: 2s\nservers: redis\nrenew: true\n": true} {
		path, err := write(t.TempDir(), about)
		if err != nil {
			t.Fatal(err)
		}
		lock, err := lockfile.Find(path)
		if err != nil {
			t.Fatalf("%s: %v", about, err)
		}
		if _, err := os.Stat(filepath.Join(lock.Image.Build, "client")); inImage == (err != nil) {
			t.Errorf("%s: the test binary in the folder of the image: %v", about, err)
		}
		if got := len(lock.Definition.Program.Env); got != 1 {
			t.Errorf("%s: %d variables, want the one that makes the binary a client", about, got)
		}
	}
}
