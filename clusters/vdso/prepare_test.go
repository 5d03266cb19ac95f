package vdso

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"lockcheck/clusters/clustertest"
)

// TestPrepare: several agents prepare one launcher at the same time, as in a run.
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

// TestPrepareFails: a launcher that does not work is detected.
func TestPrepareFails(t *testing.T) {
	for name, c := range map[string]struct{ launcher, want string }{
		"it fails and says why":  {"#!/bin/sh\necho no ptrace here >&2\nexit 3\n", "no ptrace here"},
		"it tells the true time": {"#!/bin/sh\nexec date +%s%N\n", "told"},
		"it tells no time":       {"#!/bin/sh\necho soon\n", "soon"},
		"it ends too early":      {"#!/bin/sh\nexit 0\n", "invalid syntax"},
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

// TestTryHangs: a trial that hangs is abandoned and leaves nothing behind. A trial that works is unaffected by
// the limit.
func TestTryHangs(t *testing.T) {
	folder := t.TempDir()
	hanging, pids := filepath.Join(folder, "launcher"), filepath.Join(folder, "pids")
	script := "#!/bin/sh\nsleep 600 &\necho $$ $! > " + pids + "\nwait\n"
	if err := os.WriteFile(hanging, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	const limit = 2 * time.Second
	if err := tryLaunch(t.Context(), hanging, limit); err == nil || !strings.Contains(err.Error(), "not told the time within 2s") {
		t.Errorf("got %v", err)
	}
	text, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range strings.Fields(string(text)) {
		clustertest.Eventually(t, 10*time.Second, func() error {
			if stat, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && !strings.Contains(string(stat), ") Z ") {
				return fmt.Errorf("still there: %s", stat)
			}
			return nil
		})
	}
	if runtime.GOARCH != "amd64" {
		return
	}
	working := filepath.Join(folder, "working")
	if err := Install(working); err != nil {
		t.Fatal(err)
	}
	if err := tryLaunch(t.Context(), working, tryLimit); err != nil {
		t.Errorf("one that works: %v", err)
	}
}

func TestJudge(t *testing.T) {
	at := time.Unix(100, 7)
	for told, good := range map[string]bool{
		"100000000007\n": true, "100000000008": true, "100000000006": false, "100000000009": false, "": false, "soon": false,
	} {
		if err := checkTime(told, at, at.Add(1)); (err == nil) != good {
			t.Errorf("%q: %v", told, err)
		}
	}
}

func TestJudgeElapsed(t *testing.T) {
	for told, good := range map[string]bool{
		"0": true, "1000000000": true, "1000000001": false, "-1": false, "": false, "soon": false,
	} {
		if err := checkElapsed(told, time.Second); (err == nil) != good {
			t.Errorf("%q: %v", told, err)
		}
	}
}

// TestConverse: a program whose monotonic clock moves with its wall clock is detected, and a program whose wall
// clock alone moves passes.
func TestConverse(t *testing.T) {
	for name, moves := range map[string]bool{"its monotonic clock moves, too": true, "it stands": false} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			input, answer := &bytes.Buffer{}, &bytes.Buffer{}
			fmt.Fprintln(answer, began.Add(tryOffset).UnixNano())
			// The clock must not be read before it was moved, so the answer is made when it is read.
			script := io.MultiReader(answer, later(func() string {
				elapsed := time.Since(began)
				if moves {
					elapsed += tryNextStep
				}
				return fmt.Sprintln(time.Now().Add(tryOffset+tryNextStep).UnixNano(), elapsed.Nanoseconds())
			}))
			err := converse(input, bufio.NewScanner(script), filepath.Join(t.TempDir(), "clock"), began)
			if moves != (err != nil) || moves && !strings.Contains(err.Error(), "monotonic") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// later is a text that is made once, when it is read.
func later(text func() string) io.Reader { return &lateText{make: text} }

type lateText struct {
	make func() string
	rest io.Reader
}

func (l *lateText) Read(p []byte) (int, error) {
	if l.rest == nil {
		l.rest = strings.NewReader(l.make())
	}
	return l.rest.Read(p)
}
