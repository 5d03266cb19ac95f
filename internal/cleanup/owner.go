package cleanup

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"lockcheck/internal/processes"
)

// Owner identifies a process on a machine, even after its number is used again.
type Owner struct {
	host  string
	boot  string
	pid   int
	start string // in clock ticks since boot
	// space is the PID namespace in which the process has this number. Two containers on one machine have
	// different ones.
	space string
}

// Self returns this process as an owner.
func Self() (Owner, error) {
	host, err := os.Hostname()
	if err != nil {
		return Owner{}, err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Owner{}, err
	}
	start, err := startTime(os.Getpid())
	if err != nil {
		return Owner{}, err
	}
	space, err := os.Readlink("/proc/self/ns/pid") // such as pid:[4026531836]
	if err != nil {
		return Owner{}, err
	}
	return Owner{host: host, boot: strings.TrimSpace(string(boot)), pid: os.Getpid(), start: start, space: space}, nil
}

func (o Owner) String() string {
	return fmt.Sprintf("%s/%s/%d/%s/%s", o.host, o.boot, o.pid, o.start, o.space)
}

func parseOwner(text string) (Owner, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 5 {
		return Owner{}, fmt.Errorf("malformed owner %q", text)
	}
	pid, err := strconv.Atoi(parts[2])
	if err != nil || pid < 1 {
		return Owner{}, fmt.Errorf("malformed owner %q", text)
	}
	return Owner{host: parts[0], boot: parts[1], pid: pid, start: parts[3], space: parts[4]}, nil
}

// dead reports whether the owner has certainly ended. It is unknown for a process on another machine that
// shares the Docker engine. It is also unknown for a process in another container on this machine, unless the
// machine was rebooted since.
func (o Owner) dead(me Owner) bool {
	switch {
	case o.host != me.host:
		return false
	case o.boot != me.boot:
		return true
	}
	return o.space == me.space && ended(o.pid, o.start)
}

// ended reports whether the process with this number and start time has certainly ended. If it cannot be
// examined, nothing is known, and the result is false.
func ended(pid int, start string) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	now, err := startTime(pid)
	return err == nil && now != start
}

// Runs reports whether the process of the entry still exists.
func (e Entry) Runs() bool {
	now, err := startTime(e.PID)
	return err == nil && now == e.Start
}

func startTime(pid int) (string, error) {
	fields, err := processes.Stat(pid)
	if err != nil {
		return "", err
	}
	return fields[processes.StartTime], nil
}
