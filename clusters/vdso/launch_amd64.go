package vdso

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Exec becomes the program with its arguments. The file moves the program's clock from its first instruction
// on. Exec returns only if it fails. The process may also be killed, after its helper has written the reason to
// standard error.
func Exec(clockFile string, command []string) error {
	if len(command) == 0 {
		return errProgram
	}
	program, err := find(command[0])
	if err != nil {
		return err
	}
	clock, err := openClock(clockFile)
	if err != nil {
		return fmt.Errorf("clock file: %w", err)
	}
	defer clock.Close()
	// The helper traces this thread, so this thread must call execve.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	descriptor := int(clock.Fd())
	if err := beTraced(order{Thread: unix.Gettid(), Clock: descriptor}); err != nil {
		return fmt.Errorf("the clock of %s cannot be moved: %w", program, err)
	}
	if _, err := unix.FcntlInt(uintptr(descriptor), unix.F_SETFD, 0); err != nil {
		return fmt.Errorf("clock file: %w", err)
	}
	return &os.PathError{Op: "execute", Path: program, Err: syscall.Exec(program, command, os.Environ())}
}

// find looks a program up as the container runtime does. It refuses a script: the interpreter would be patched,
// but not the programs that the script executes.
func find(name string) (string, error) {
	program, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	file, err := os.Open(program)
	if err != nil {
		return "", err
	}
	defer file.Close()
	begin := make([]byte, 2)
	if _, err := io.ReadFull(file, begin); err != nil {
		return "", fmt.Errorf("%s: %w", program, err)
	}
	if bytes.Equal(begin, []byte("#!")) {
		return "", fmt.Errorf("%s is a script, and what it executes would have true time: let it execute the launcher", program)
	}
	return program, nil
}

// beTraced starts the helper and returns when the helper is ready for execve.
func beTraced(order order) error {
	helper := exec.Command("/proc/self/exe", TraceCommand)
	helper.Stderr = os.Stderr
	input, err := helper.StdinPipe()
	if err != nil {
		return err
	}
	output, err := helper.StdoutPipe()
	if err != nil {
		return err
	}
	if err := helper.Start(); err != nil {
		return err
	}
	// The Yama module lets only a parent trace its children, unless allowed here. Without Yama the call fails,
	// which does no harm.
	_ = unix.Prctl(unix.PR_SET_PTRACER, uintptr(helper.Process.Pid), 0, 0, 0)
	if err := sendOrder(order, input, output); err != nil {
		return errors.Join(err, input.Close(), helper.Wait())
	}
	return nil
}

// sendOrder sends the order and waits for the answer.
func sendOrder(order order, input io.Writer, output io.Reader) error {
	if err := json.NewEncoder(input).Encode(order); err != nil {
		return err
	}
	var answer answer
	if err := json.NewDecoder(output).Decode(&answer); err != nil {
		return fmt.Errorf("no answer of the helper: %w", err)
	}
	if answer.Error != "" {
		return errors.New(answer.Error)
	}
	return nil
}
