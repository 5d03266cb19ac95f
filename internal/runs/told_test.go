package runs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"lockcheck/clusters"
	"lockcheck/history"
)

// TestRecorderTells: a failure to write the history is reported at once, and only once.
func TestRecorderTells(t *testing.T) {
	writer, err := history.Create(filepath.Join(t.TempDir(), HistoryFile), history.Header{})
	if err != nil {
		t.Fatal(err)
	}
	var told []error
	r := recorder{writer: writer, failed: func(err error) { told = append(told, err) }}
	r.Phase(history.PhaseReady, "")
	if len(told) != 0 || r.failure() != nil {
		t.Fatalf("told %v while there was space", told)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	r.Phase(history.PhaseRecovery, "")
	r.Phase(history.PhaseFinal, "")
	if len(told) != 1 || !errors.Is(told[0], fs.ErrClosed) || !errors.Is(r.failure(), fs.ErrClosed) {
		t.Errorf("told %v, failure %v", told, r.failure())
	}
}

// TestUnusable: a folder that cannot be used is a usage error, but a full disk is not.
func TestUnusable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var usage *UsageError
	if _, err := NewFolder(filepath.Join(file, "store")); !errors.As(err, &usage) {
		t.Errorf("a file for a folder: %v", err)
	}
	full := Unusable(&fs.PathError{Op: "mkdir", Path: file, Err: syscall.ENOSPC})
	if errors.As(full, &usage) {
		t.Errorf("a full disk: %v", full)
	}
}

// TestEndTold: progress says that the end of a run waits for critical sections of workers. It says nothing of
// the resource, which has none.
func TestEndTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name      string
			interrupt <-chan struct{}
			lines     int
		}{{"w1", make(chan struct{}), 1}, {"resource", nil, 0}} {
			_, input := io.Pipe()
			node, exited, progress := &clusters.Node{Name: c.name, Input: input}, make(chan clusters.Exit, 1), &steps{}
			r := session{exits: map[*clusters.Node]<-chan clusters.Exit{node: exited}, progress: progress}
			time.AfterFunc(3*waitUntold, func() { exited <- clusters.Exit{Clean: true} })
			if err := r.end(t.Context(), []*clusters.Node{node}, c.interrupt); err != nil {
				t.Fatal(err)
			}
			if len(progress.lines) != c.lines {
				t.Errorf("%s: said %q, want %d lines", c.name, progress.lines, c.lines)
			}
		}
	})
}

// steps keeps the lines of a progress.
type steps struct {
	Silent
	lines []string
}

func (s *steps) Step(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// TestImageCount: images that exist take no time, and do not affect the estimate for the others.
func TestImageCount(t *testing.T) {
	var told steps
	now := time.Now()
	c := imageCount{total: 4, began: now, progress: &told}
	c.add()
	if len(told.lines) != 0 {
		t.Errorf("told %q of an image that was there", told.lines)
	}
	c.began, c.last = now.Add(-time.Minute), now.Add(-time.Minute)
	c.add()
	c.done = 3
	c.add()
	if got := strings.Join(told.lines, "|"); got != "2 of 4 images; at most about 2 min left|4 of 4 images" {
		t.Errorf("told %s", got)
	}
}

// TestInterruptionTold: an interruption is acknowledged at once, and the faults that it skips are not
// reported.
func TestInterruptionTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, interrupted := range []bool{false, true} {
			progress, interrupt := &steps{}, make(chan struct{})
			r, err := newSession(progress)
			if err != nil {
				t.Fatal(err)
			}
			want := []string{"pause of w1 skipped: too late"}
			if interrupted {
				close(interrupt)
				want = []string{"interrupted: healing faults and stopping; Ctrl-C again ends at once"}
			}
			if got, err := r.awaitEnd(time.Now().Add(time.Millisecond), 0, interrupt, nil, nil); got != interrupted || err != nil {
				t.Fatal(got, err)
			}
			r.announce(history.Event{Fault: &history.Fault{Kind: history.Pause, Targets: []string{"w1"}, Stage: history.Skipped, Evidence: "too late"}})
			if !slices.Equal(progress.lines, want) {
				t.Errorf("interrupted %v: %q, want %q", interrupted, progress.lines, want)
			}
		}
	})
}
