package runs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockcheck/clients"
	"lockcheck/clusters/clustertest"
)

// TestWorkerPrograms: if the lock's library is not in lockcheck and the program of the workers is missing,
// the error says so. Otherwise the run records the version in that program.
func TestWorkerPrograms(t *testing.T) {
	clustertest.Engine(t, clustertest.Rest)
	binary := clustertest.WithWorkerPrograms(t)
	for _, info := range clients.Table() {
		if info.Program == "" {
			continue
		}
		t.Run(info.Name, func(t *testing.T) {
			missing := &test{Options: Options{Lock: info.Name, Machine: Machine{Binary: filepath.Join(t.TempDir(), "lockcheck")}}, info: info}
			if err := missing.ensureWorkerProgram(t.Context(), Silent{}); err == nil || !strings.Contains(err.Error(), "lockcheck-"+info.Program) {
				t.Errorf("without the program: %v", err)
			}
			there := &test{Options: Options{Lock: info.Name, Machine: Machine{Binary: binary}}, info: info}
			if err := there.ensureWorkerProgram(t.Context(), Silent{}); err != nil {
				t.Errorf("with the program: %v", err)
			}
			library := info.Library
			if library == "" {
				library = info.Modules[0]
			}
			version := there.moduleVersions()[library]
			if version == "" {
				t.Errorf("the program has no %s", library)
			}
			there.info.Program = ""
			if err := there.ensureWorkerProgram(t.Context(), Silent{}); err != nil {
				t.Errorf("lockcheck itself: %v", err)
			}
			// A test binary has no module versions, so there must be none, or another one.
			if there.moduleVersions()[library] == version {
				t.Errorf("lockcheck itself has %s too", version)
			}
		})
	}
}

// TestWorkerProgramOfSource: next to its source code the program is built if it is missing or older than
// lockcheck, and not otherwise.
func TestWorkerProgramOfSource(t *testing.T) {
	folder := t.TempDir()
	binary, source := filepath.Join(folder, "lockcheck"), filepath.Join(folder, "workers", "small")
	write := func(path, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	write(binary, "")
	write(filepath.Join(source, "go.mod"), "module small\n")
	write(filepath.Join(source, "main.go"), "package main\n\nfunc main() {}\n")
	lock := &test{Options: Options{Machine: Machine{Binary: binary}}, info: clients.Info{Program: "small"}}
	ensured := func() time.Time {
		t.Helper()
		if err := lock.ensureWorkerProgram(t.Context(), Silent{}); err != nil {
			t.Fatal(err)
		}
		file, err := os.Stat(binary + "-small")
		if err != nil {
			t.Fatal(err)
		}
		return file.ModTime()
	}
	first := ensured()
	if again := ensured(); !again.Equal(first) {
		t.Error("it was built again, although it is newer than lockcheck")
	}
	if err := os.Chtimes(binary+"-small", time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if again := ensured(); again.Before(first) {
		t.Error("it was not built again, although it is older than lockcheck")
	}
	write(filepath.Join(source, "main.go"), "no Go")
	if err := os.Remove(binary + "-small"); err != nil {
		t.Fatal(err)
	}
	if err := lock.ensureWorkerProgram(t.Context(), Silent{}); err == nil || !strings.Contains(err.Error(), "main.go:1:1") {
		t.Errorf("its source is no Go, and the error is %v", err)
	}
}
