package runs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"lockcheck/clusters/clustertest"
)

// TestErrand: what is registered can be removed by whoever comes later, until
// the errand is done.
func TestErrand(t *testing.T) {
	binary := clustertest.Binary(t) // first: the compiler's cache is in the same folder
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	failed := errors.New("failed")
	err := Errand(binary, func(r Registry) error {
		if err := r.Folder(t.TempDir()); err != nil {
			t.Error(err)
		}
		if run := onlyRun(t); len(run.folders) != 1 {
			t.Errorf("journaled %+v", run)
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	if left, err := journaledRuns(); err != nil || len(left) > 0 {
		t.Errorf("journals %v, %v", left, err)
	}
	missing := filepath.Join(t.TempDir(), "missing")
	err = Errand(missing, func(Registry) error { t.Error("done without a reaper"); return nil })
	if left, _ := journaledRuns(); !errors.Is(err, os.ErrNotExist) && !errors.Is(err, exec.ErrNotFound) || len(left) > 0 {
		t.Errorf("without a reaper: %v, journals %v", err, left)
	}
}
