package vdso

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// tracee is a process under ptrace. All calls must come from the thread that has seized it.
type tracee struct{ pid int }

// syscallStop is the stop signal at a system call under PTRACE_O_TRACESYSGOOD.
const syscallStop = unix.SIGTRAP | 0x80

// errExited is the error of wait when the process has ended.
var errExited = errors.New("it has ended")

// seize begins to trace a running thread. The process is killed when its tracer ends, so it never runs half
// patched.
func seize(thread int) (*tracee, error) {
	const options = unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_EXITKILL
	if err := ptrace(unix.PTRACE_SEIZE, thread, options); err != nil {
		return nil, err
	}
	return &tracee{pid: thread}, nil
}

// ptrace makes a request for which package unix has no function.
func ptrace(request, pid, data int) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(pid), 0, uintptr(data), 0, 0)
	if errno != 0 {
		return fmt.Errorf("ptrace: %w", errno)
	}
	return nil
}

// request is a ptrace(2) request that continues a stopped process and delivers a signal.
type request func(pid, signal int) error

// advance continues the process with the request until it stops as wanted.
func (t *tracee) advance(by request, wanted func(unix.WaitStatus) bool) error {
	if err := by(t.pid, 0); err != nil {
		return fmt.Errorf("ptrace: %w", err)
	}
	return t.await(by, wanted)
}

// await waits until the process stops as wanted. It continues the process from all other stops, because signals
// may arrive at any time.
func (t *tracee) await(by request, wanted func(unix.WaitStatus) bool) error {
	for {
		status, err := t.wait()
		if err != nil || wanted(status) {
			return err
		}
		if groupStop(status) {
			err = ptrace(unix.PTRACE_LISTEN, t.pid, 0)
		} else {
			err = by(t.pid, delivered(status))
		}
		if err != nil {
			return err
		}
	}
}

// wait returns the next stop of any thread. A thread that executes a program takes over the number of its
// process, so the number may change.
func (t *tracee) wait() (unix.WaitStatus, error) {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, fmt.Errorf("wait: %w", err)
		case status.Exited():
			return 0, errExited
		case status.Signaled():
			return 0, fmt.Errorf("%w: %s", errExited, status.Signal())
		}
		t.pid = pid
		return status, nil
	}
}

// event returns the ptrace event of a stop; 0 for signals and system calls.
func event(status unix.WaitStatus) int { return int(status >> 16) }

// groupStop distinguishes a group-stop (SIGSTOP and the like) from other stops of a seized process with
// PTRACE_EVENT_STOP (see ptrace(2), "Group-stop").
func groupStop(status unix.WaitStatus) bool {
	if event(status) != unix.PTRACE_EVENT_STOP {
		return false
	}
	switch status.StopSignal() {
	case unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU:
		return true
	}
	return false
}

// delivered returns the signal that a stop has intercepted; 0 for none.
func delivered(status unix.WaitStatus) int {
	if event(status) != 0 || atSyscall(status) {
		return 0
	}
	return int(status.StopSignal())
}

func executed(status unix.WaitStatus) bool { return event(status) == unix.PTRACE_EVENT_EXEC }

func atSyscall(status unix.WaitStatus) bool { return status.StopSignal() == syscallStop }

// awaitExec waits until the process has executed a program, and stops behind execve. The process then has one
// thread, and no instruction of the program has run. At the exec event itself the kernel has yet to write the
// result of execve into a register, which would overwrite our value.
func (t *tracee) awaitExec() error {
	if err := t.await(unix.PtraceCont, executed); err != nil {
		return err
	}
	return t.advance(unix.PtraceSyscall, atSyscall)
}

// call lets the process make a system call, with the syscall instruction at an address.
func (t *tracee) call(instruction, number uint64, args [6]uint64) (uint64, error) {
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(t.pid, &regs); err != nil {
		return 0, fmt.Errorf("ptrace: %w", err)
	}
	regs.Rip, regs.Rax = instruction, number
	regs.Orig_rax = ^uint64(0) // no system call that the kernel could restart
	regs.Rdi, regs.Rsi, regs.Rdx, regs.R10, regs.R8, regs.R9 = args[0], args[1], args[2], args[3], args[4], args[5]
	if err := unix.PtraceSetRegs(t.pid, &regs); err != nil {
		return 0, fmt.Errorf("ptrace: %w", err)
	}
	for range 2 { // into the call and out of it
		if err := t.advance(unix.PtraceSyscall, atSyscall); err != nil {
			return 0, err
		}
	}
	if err := unix.PtraceGetRegs(t.pid, &regs); err != nil {
		return 0, fmt.Errorf("ptrace: %w", err)
	}
	const lastErrno = 4095
	if result := int64(regs.Rax); result < 0 && result >= -lastErrno {
		return 0, unix.Errno(-result)
	}
	return regs.Rax, nil
}

func (t *tracee) read(from, to uint64) ([]byte, error) {
	content := make([]byte, to-from)
	if _, err := unix.PtracePeekData(t.pid, uintptr(from), content); err != nil {
		return nil, fmt.Errorf("ptrace: %w", err)
	}
	return content, nil
}

// write also writes to memory that the process itself cannot write.
func (t *tracee) write(at uint64, content []byte) error {
	if _, err := unix.PtracePokeData(t.pid, uintptr(at), content); err != nil {
		return fmt.Errorf("ptrace: %w", err)
	}
	return nil
}
