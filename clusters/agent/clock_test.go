package agent

import (
	"encoding/binary"
	"errors"
	"os"
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
			for range 2 { // the second time it replaces the first
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

// TestSetVDSO: the file stays the same, because servers have it mapped.
func TestSetVDSO(t *testing.T) {
	host := Local{ClockFile: filepath.Join(t.TempDir(), "n1", "offset"), ClockDriver: VDSO}
	var first os.FileInfo
	for _, offset := range []time.Duration{0, time.Minute, -time.Minute, 1, 0} {
		moment, err := host.SetClock(t.Context(), offset)
		if err != nil || moment.From <= 0 || moment.To < moment.From {
			t.Fatalf("%+v, %v", moment, err)
		}
		content, err := os.ReadFile(host.ClockFile)
		if err != nil || len(content) != 8 || int64(binary.NativeEndian.Uint64(content)) != offset.Nanoseconds() {
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

// TestUnmovable: why a clock cannot be moved passes the wire, and is no failure of
// anything else.
func TestUnmovable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "offset")
	broken := filepath.Join(t.TempDir(), "launcher")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho not permitted >&2; exit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		host Local
		want string // "" if it can be moved
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
			for _, host := range []Host{c.host, remote} {
				moment, err := host.SetClock(t.Context(), time.Minute)
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
