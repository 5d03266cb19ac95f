package vdso

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTraceRefused: the launcher learns why its helper cannot trace it.
func TestTraceRefused(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		thread int
		want   error
	}{
		"the kernel forbids it":   {unix.Gettid(), unix.EPERM}, // no process can trace itself
		"the launcher is no more": {ended.Process.Pid, unix.ESRCH},
	} {
		t.Run(name, func(t *testing.T) {
			var given, told bytes.Buffer
			if err := json.NewEncoder(&given).Encode(order{Thread: c.thread}); err != nil {
				t.Fatal(err)
			}
			if err := Trace(&given, &told); err != nil {
				t.Fatal(err)
			}
			err := sendOrder(order{}, &bytes.Buffer{}, &told)
			if err == nil || !strings.Contains(err.Error(), c.want.Error()) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
	if err := Trace(strings.NewReader("{"), &bytes.Buffer{}); err == nil {
		t.Error("an order that was cut off is obeyed")
	}
	if err := sendOrder(order{}, &bytes.Buffer{}, &bytes.Buffer{}); err == nil {
		t.Error("a helper that ended without an answer agreed")
	}
}

// TestPatchFails: a program that cannot be patched never runs, and the helper says why. The control can be
// patched.
func TestPatchFails(t *testing.T) {
	for name, c := range map[string]struct {
		clock int
		want  error
	}{
		"control":       {3, nil},
		"no clock file": {99, unix.EBADF},
	} {
		t.Run(name, func(t *testing.T) {
			told, complaint, err := traced(t, c.clock)
			if c.want == nil {
				if err != nil || told != "ran\n" || complaint != "" {
					t.Fatalf("wrote %q, ended with %v: %s", told, err, complaint)
				}
				return
			}
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL || told != "" {
				t.Errorf("wrote %q, ended with %v, want it killed", told, err)
			}
			if !strings.Contains(complaint, c.want.Error()) {
				t.Errorf("the helper says %q, want %v", complaint, c.want)
			}
		})
	}
}

// traced has a helper trace a shell that executes a program. It returns the output of both.
func traced(t *testing.T, clock int) (told, complaint string, err error) {
	t.Helper()
	file, err := openClock(clockAt(t, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	shell := exec.Command("sh", "-c", "read go; exec echo ran")
	var output, complaints bytes.Buffer
	shell.Stdout, shell.ExtraFiles = &output, []*os.File{file} // descriptor 3
	begin, err := shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	given, err := json.Marshal(order{Thread: shell.Process.Pid, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	helper := exec.Command(self(t), TraceCommand)
	helper.Stdin, helper.Stderr = bytes.NewReader(given), &complaints
	answers, err := helper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := helper.Start(); err != nil {
		t.Fatal(err)
	}
	agreed := sendOrder(order{}, &bytes.Buffer{}, bufio.NewReader(answers))
	_, _ = fmt.Fprintln(begin)
	err = shell.Wait()
	_ = helper.Wait() // its complaint says more than its status
	if agreed != nil {
		if strings.Contains(agreed.Error(), unix.EPERM.Error()) && os.Getenv("CI") != "true" {
			t.Skipf("only parents may trace here: %v", agreed)
		}
		t.Fatal(agreed)
	}
	return output.String(), complaints.String(), err
}

// TestParse reads the vDSO of this process and refuses malformed ones.
func TestParse(t *testing.T) {
	content, base := ownVDSO(t)
	found, err := parse(content, base)
	if err != nil || len(found.functions) != len(replacements) {
		t.Fatalf("%+v, %v", found, err)
	}
	for name, at := range found.functions {
		if at <= base || at >= base+uint64(len(content)) {
			t.Errorf("%s at %x is outside", name, at)
		}
	}
	if at := found.syscall - base; !bytes.Equal(content[at:at+2], []byte{0x0f, 0x05}) {
		t.Errorf("at %x there is no syscall instruction", at)
	}
	const machine = 18 // offset of e_machine
	other := bytes.Clone(content)
	other[machine] = 3 // i386
	for name, bad := range map[string][]byte{
		"empty":              nil,
		"not ELF":            bytes.Repeat([]byte{0x0f, 0x05}, 4096),
		"cut off":            content[:100],
		"another machine":    other,
		"without a function": bytes.ReplaceAll(content, []byte("__vdso_time\x00"), []byte("__vdso_temp\x00")),
		"without a syscall":  bytes.ReplaceAll(content, []byte{0x0f, 0x05}, []byte{0x0f, 0x0b}),
	} {
		if _, err := parse(bad, base); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func ownVDSO(t *testing.T) (content []byte, base uint64) {
	t.Helper()
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	defer maps.Close()
	from, to, err := findVDSO(maps)
	if err != nil {
		t.Fatal(err)
	}
	memory, err := os.Open("/proc/self/mem")
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	content = make([]byte, to-from)
	if _, err := memory.ReadAt(content, int64(from)); err != nil {
		t.Fatal(err)
	}
	return content, from
}

func TestArea(t *testing.T) {
	const heap = "01c4a000-01c6b000 rw-p 00000000 00:00 0                                  [heap]\n"
	for name, c := range map[string]struct {
		maps     string
		from, to uint64
	}{
		"there":     {heap + "7ffd8ab5c000-7ffd8ab5e000 r-xp 00000000 00:00 0   [vdso]\n" + heap, 0x7ffd8ab5c000, 0x7ffd8ab5e000},
		"not there": {heap, 0, 0},
		"malformed": {"vdso [vdso]\n", 0, 0},
		"nothing":   {"", 0, 0},
	} {
		from, to, err := findVDSO(strings.NewReader(c.maps))
		if (err == nil) != (c.to > 0) || from != c.from || to != c.to {
			t.Errorf("%s: %x-%x, %v", name, from, to, err)
		}
	}
}
