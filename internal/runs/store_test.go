package runs

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestRunFolders: runs that begin at the same moment get separate folders, and the latest link points at one
// of them.
func TestRunFolders(t *testing.T) {
	store := t.TempDir()
	var mu sync.Mutex
	var wg sync.WaitGroup
	folders := make(map[string]bool)
	for range 20 {
		wg.Go(func() {
			folder, err := newRunFolder(store, "some-run")
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			folders[folder] = true
		})
	}
	wg.Wait()
	if len(folders) != 20 {
		t.Errorf("%d folders for 20 runs", len(folders))
	}
	for _, link := range []string{latestLink, "some-run/" + latestLink} {
		latest, err := filepath.EvalSymlinks(filepath.Join(store, link))
		if err != nil || !folders[latest] {
			t.Errorf("%s is %q, %v", link, latest, err)
		}
	}
	left, err := os.ReadDir(store)
	if err != nil || len(left) != 2 {
		t.Errorf("%v in the store, %v", left, err)
	}
}
