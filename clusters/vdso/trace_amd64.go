package vdso

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// order is the request of the launcher to its helper.
type order struct {
	Thread int // will execute the server
	Clock  int // descriptor of the open clock file, inherited across execve
}

// answer says whether the launcher may execute the server; an empty Error means yes.
type answer struct{ Error string }

// Trace is the helper of a launcher. It reads the launcher's order, answers it, patches the program that the
// launcher executes, and returns before that program has run. After an error the traced process is killed as
// soon as this process ends.
func Trace(in io.Reader, out io.Writer) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var order order
	if err := json.NewDecoder(in).Decode(&order); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	t, err := seize(order.Thread)
	if err != nil {
		return json.NewEncoder(out).Encode(answer{Error: err.Error()})
	}
	if err := json.NewEncoder(out).Encode(answer{}); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	err = t.patchAtExec(order.Clock)
	if err != nil {
		return fmt.Errorf("the clock of the server cannot be moved, so it is killed: %w", err)
	}
	return nil
}

func (t *tracee) patchAtExec(clock int) error {
	switch err := t.awaitExec(); {
	case errors.Is(err, errExited):
		return nil // the launcher could not execute the server, and reports that itself
	case err != nil:
		return err
	}
	if err := t.patch(clock); err != nil {
		return err
	}
	if err := unix.PtraceDetach(t.pid); err != nil {
		return fmt.Errorf("ptrace: %w", err)
	}
	return nil
}

// patch redirects the functions of the vDSO. It also lets the program begin by waiting for the end of this
// process. This process is the program's child, and must not remain among the server's children.
func (t *tracee) patch(clock int) error {
	var start unix.PtraceRegs
	if err := unix.PtraceGetRegs(t.pid, &start); err != nil {
		return fmt.Errorf("ptrace: %w", err)
	}
	vdso, err := t.image()
	if err != nil {
		return err
	}
	offset, err := t.mapClock(vdso, clock)
	if err != nil {
		return fmt.Errorf("clock file: %w", err)
	}
	next, err := t.redirect(vdso, offset)
	if err != nil {
		return err
	}
	if err := t.write(next, reap(uint32(os.Getpid()), start.Rip)); err != nil {
		return err
	}
	start.Rip = next
	start.Orig_rax = ^uint64(0)
	if err := unix.PtraceSetRegs(t.pid, &start); err != nil {
		return fmt.Errorf("ptrace: %w", err)
	}
	return nil
}

// image reads the vDSO of the process.
func (t *tracee) image() (image, error) {
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", t.pid))
	if err != nil {
		return image{}, err
	}
	defer maps.Close()
	from, to, err := findVDSO(maps)
	if err != nil {
		return image{}, err
	}
	content, err := t.read(from, to)
	if err != nil {
		return image{}, err
	}
	return parse(content, from)
}

// mapClock maps the clock file into the process and returns its address.
func (t *tracee) mapClock(vdso image, clock int) (uint64, error) {
	at, err := t.call(vdso.syscall, unix.SYS_MMAP,
		[6]uint64{0, clockSize, unix.PROT_READ, unix.MAP_SHARED, uint64(clock), 0})
	if err != nil {
		return 0, fmt.Errorf("mmap: %w", err)
	}
	if _, err := t.call(vdso.syscall, unix.SYS_CLOSE, [6]uint64{uint64(clock)}); err != nil {
		return 0, fmt.Errorf("close: %w", err)
	}
	return at, nil
}

// redirect writes the replacements into a page of their own and lets the vDSO's functions jump there. It
// returns the address of the free space behind them.
func (t *tracee) redirect(vdso image, offset uint64) (next uint64, err error) {
	next, err = t.call(vdso.syscall, unix.SYS_MMAP, [6]uint64{
		0, uint64(os.Getpagesize()), unix.PROT_READ | unix.PROT_EXEC, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS, ^uint64(0), 0,
	})
	if err != nil {
		return 0, fmt.Errorf("mmap: %w", err)
	}
	for name, replacement := range replacements {
		code := replacement(offset)
		if err := t.write(next, code); err != nil {
			return 0, err
		}
		if err := t.write(vdso.functions[name], jump(next)); err != nil {
			return 0, err
		}
		next += uint64(len(code))
	}
	return next, nil
}
