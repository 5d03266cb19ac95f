package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSetFaketime(t *testing.T) {
	for offset, want := range map[time.Duration]string{
		0:                       "+0.000000000\n",
		time.Minute:             "+60.000000000\n",
		-time.Minute:            "-60.000000000\n",
		-500 * time.Millisecond: "-0.500000000\n",
		time.Nanosecond:         "+0.000000001\n",
	} {
		t.Run(offset.String(), func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "n1")
			host := Local{ClockFile: filepath.Join(folder, "offset"), ClockDriver: Libfaketime}
			for range 2 { // the second call replaces the first file
				if _, err := host.SetClock(t.Context(), offset); err != nil {
					t.Fatal(err)
				}
			}
			content, err := os.ReadFile(host.ClockFile)
			if err != nil || string(content) != want {
				t.Errorf("%q, %v: want %q", content, err, want)
			}
			if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
				t.Errorf("%v, %v: want the file alone", entries, err)
			}
		})
	}
}

// TestSetVDSO: SetClock writes into the existing file, because servers have it mapped.
func TestSetVDSO(t *testing.T) {
	host := Local{ClockFile: filepath.Join(t.TempDir(), "n1", "offset"), ClockDriver: VDSO}
	var first os.FileInfo
	for _, offset := range []time.Duration{0, time.Minute, -time.Minute, 1, 0} {
		moment, err := host.SetClock(t.Context(), offset)
		if err != nil || moment.From <= 0 || moment.To < moment.From {
			t.Fatalf("%+v, %v", moment, err)
		}
		content, err := os.ReadFile(host.ClockFile)
		if err != nil || len(content) < 8 || int64(binary.NativeEndian.Uint64(content)) != offset.Nanoseconds() {
			t.Errorf("%x, %v: want %d", content, err, offset.Nanoseconds())
		}
		info, err := os.Stat(host.ClockFile)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = info
		}
		if !os.SameFile(first, info) {
			t.Errorf("at %s the file was replaced", offset)
		}
	}
}

// TestSetFaketimeRate: the offset compensates the time since libfaketime was loaded. A speed of 1 is written
// out, because libfaketime keeps the previous speed otherwise.
func TestSetFaketimeRate(t *testing.T) {
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
	server := []int{child.Process.Pid}
	loaded := time.Now().Add(-time.Hour) // whatever the process' own start time is
	file := faketimeFile(child.Process.Pid)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(file) })
	if err := os.Chtimes(file, loaded, loaded); err != nil {
		t.Fatal(err)
	}
	host := Local{
		ClockFile: filepath.Join(t.TempDir(), "n1", "offset"), ClockDriver: Libfaketime,
		PIDs: func() ([]int, error) { return server, nil },
	}
	set := func(speed float64) (offset, factor float64) {
		t.Helper()
		if _, err := host.SetClockRate(t.Context(), speed); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(host.ClockFile)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := fmt.Sscanf(string(content), "%g x%g\n", &offset, &factor); n != 2 || err != nil {
			t.Fatalf("%q: %v", content, err)
		}
		return offset, factor
	}
	before := time.Since(loaded)
	offset, factor := set(1.5)
	after := time.Since(loaded)
	// Sixteen significant digits do not resolve every billionth.
	if least, most := -0.5*after.Seconds()-1e-6, -0.5*before.Seconds()+1e-6; factor != 1.5 || offset < least || offset > most {
		t.Errorf("factor %g, offset %g, want %g to %g", factor, offset, least, most)
	}
	if offset, factor := set(0.5); factor != 0.5 || offset < 0 {
		t.Errorf("a slow clock: factor %g, offset %g", factor, offset)
	}
	if offset, factor := set(1); factor != 1 || offset != 0 {
		t.Errorf("true speed: factor %g, offset %g", factor, offset)
	}
	server = nil
	if _, err := host.SetClockRate(t.Context(), 2); err == nil {
		t.Error("the clock of no server was set")
	}
}

// TestUnmovable: the reason why a clock cannot be moved crosses the wire, and other calls still work.
func TestUnmovable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "offset")
	broken := filepath.Join(t.TempDir(), "launcher")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho not permitted >&2; exit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		host Local
		want string // "" if the clock can be moved
	}{
		"libfaketime needs no launcher": {Local{ClockFile: file, ClockDriver: Libfaketime}, ""},
		"no clock":                      {Local{}, "cannot be moved"},
		"no clock for a launcher":       {Local{ClockDriver: VDSO}, "cannot be moved"},
		"unknown driver":                {Local{ClockFile: file, ClockDriver: "hands"}, "hands"},
		"launcher that does not work":   {Local{ClockFile: file, ClockDriver: VDSO}, "not permitted"},
	} {
		t.Run(name, func(t *testing.T) {
			c.host.PrepareClock(t.Context(), broken)
			remote, _ := connected(t, c.host)
			for _, set := range []func() (Moment, error){
				func() (Moment, error) { return c.host.SetClock(t.Context(), time.Minute) },
				func() (Moment, error) { return remote.SetClock(t.Context(), time.Minute) },
				func() (Moment, error) { return c.host.SetClockRate(t.Context(), 2) },
				func() (Moment, error) { return remote.SetClockRate(t.Context(), 2) },
			} {
				moment, err := set()
				if errors.Is(err, ErrClock) != (c.want != "") || moment.To < moment.From || moment.From <= 0 {
					t.Fatalf("%+v, %v", moment, err)
				}
				if err != nil && !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q in it", err, c.want)
				}
			}
			if _, err := remote.Clock(t.Context()); err == nil || errors.Is(err, ErrClock) {
				t.Errorf("asking nobody: %v", err)
			}
		})
	}
}
