package harness

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// owner identifies a process on a machine beyond the reuse of its number.
type owner struct {
	host  string
	boot  string
	pid   int
	start string // in clock ticks since boot
}

// self returns this process as an owner.
func self() (owner, error) {
	host, err := os.Hostname()
	if err != nil {
		return owner{}, err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return owner{}, err
	}
	start, err := startTime(os.Getpid())
	if err != nil {
		return owner{}, err
	}
	return owner{host: host, boot: strings.TrimSpace(string(boot)), pid: os.Getpid(), start: start}, nil
}

func (o owner) String() string {
	return fmt.Sprintf("%s/%s/%d/%s", o.host, o.boot, o.pid, o.start)
}

func parseOwner(text string) (owner, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 4 {
		return owner{}, fmt.Errorf("malformed owner %q", text)
	}
	pid, err := strconv.Atoi(parts[2])
	if err != nil {
		return owner{}, fmt.Errorf("malformed owner %q", text)
	}
	return owner{host: parts[0], boot: parts[1], pid: pid, start: parts[3]}, nil
}

// dead reports whether the owner certainly runs no more. Of a process on another
// machine that shares the Docker engine nothing is known.
func (o owner) dead(me owner) bool {
	if o.host != me.host {
		return false
	}
	return o.boot != me.boot || !runs(o.pid, o.start)
}

// runs reports whether the process with this number and start time exists.
func runs(pid int, start string) bool {
	now, err := startTime(pid)
	return err == nil && now == start
}

// startTimeField is the place of starttime in /proc/PID/stat, counted from the
// field after the command, which ends with the last parenthesis.
const startTimeField = 19

func startTime(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= startTimeField {
		return "", fmt.Errorf("/proc/%d/stat: malformed", pid)
	}
	return fields[startTimeField], nil
}
