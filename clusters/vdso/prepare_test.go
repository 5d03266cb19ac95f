package vdso

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestPrepare: several agents prepare one launcher, as those of a run do.
func TestPrepare(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		if err := Prepare(t.Context(), filepath.Join(t.TempDir(), "launcher")); err == nil {
			t.Error("prepared on another architecture")
		}
		return
	}
	folder := filepath.Join(t.TempDir(), "bin")
	launcher := filepath.Join(folder, "lockcheck")
	var agents sync.WaitGroup
	for range 4 {
		agents.Go(func() {
			if err := Prepare(t.Context(), launcher); err != nil {
				t.Error(err)
			}
		})
	}
	agents.Wait()
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 {
		t.Errorf("left %v, %v, want the launcher alone", entries, err)
	}
	info, err := os.Stat(launcher)
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v: any user must be able to execute it", info.Mode(), err)
	}
}

// TestPrepareFails: a launcher that does not work is found out.
func TestPrepareFails(t *testing.T) {
	for name, c := range map[string]struct{ launcher, want string }{
		"it fails and says why":  {"#!/bin/sh\necho no ptrace here >&2\nexit 3\n", "no ptrace here"},
		"it tells the true time": {"#!/bin/sh\nexec date +%s%N\n", "told"},
		"it tells no time":       {"#!/bin/sh\necho soon\n", "soon"},
	} {
		t.Run(name, func(t *testing.T) {
			launcher := filepath.Join(t.TempDir(), "launcher")
			if err := os.WriteFile(launcher, []byte(c.launcher), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := Prepare(t.Context(), launcher); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
	if err := Prepare(t.Context(), "/dev/null/launcher"); err == nil {
		t.Error("prepared where nothing can be written")
	}
}

func TestJudge(t *testing.T) {
	at := time.Unix(100, 7)
	for told, good := range map[string]bool{
		"100000000007\n": true, "100000000008": true, "100000000006": false, "100000000009": false, "": false, "soon": false,
	} {
		if err := judge(told, at, at.Add(1)); (err == nil) != good {
			t.Errorf("%q: %v", told, err)
		}
	}
}
