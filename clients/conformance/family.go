package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// family is what clients leave behind. Whose parent has ended is a child of this process, as
// package protocol makes it so.
type family struct {
	before []int // children that were there already
}

// child is a running child of this process.
type child struct {
	pid  int
	name string
}

func newFamily() (*family, error) {
	children, err := childrenOf(os.Getpid())
	if err != nil {
		return nil, err
	}
	f := new(family)
	for _, c := range children {
		f.before = append(f.before, c.pid)
	}
	return f, nil
}

// left lists what clients have left behind that have ended; running are the others.
func (f *family) left(running ...int) ([]child, error) {
	children, err := childrenOf(os.Getpid())
	return slices.DeleteFunc(children, func(c child) bool { return slices.Contains(f.before, c.pid) || slices.Contains(running, c.pid) }), err
}

// await waits for what clients have left to end by itself, and returns what does not.
func (f *family) await(limit time.Duration) ([]child, error) {
	for deadline := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		left, err := f.left()
		if err != nil || len(left) == 0 || time.Now().After(deadline) {
			return left, err
		}
	}
}

// generations bounds how deep what clients have left is looked for.
const generations = 100

// end kills what clients have left that have ended, and what that has started: its children
// are ours then.
func (f *family) end(running ...int) {
	for range generations {
		left, err := f.left(running...)
		if err != nil || len(left) == 0 {
			return
		}
		for _, c := range left {
			if syscall.Kill(c.pid, syscall.SIGKILL) == nil {
				_, _ = syscall.Wait4(c.pid, nil, 0, nil)
			}
		}
	}
}

// childrenOf lists the children of a process, but those that have ended.
func childrenOf(parent int) ([]child, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var children []child
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended meanwhile
		}
		if err != nil {
			return nil, err
		}
		if c, its, running := parse(text); its == parent && running {
			children = append(children, c)
		}
	}
	return children, nil
}

// parse reads a line of /proc/PID/stat: "12 (a name) S 1 …".
func parse(stat []byte) (c child, parent int, running bool) {
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 1 || end < open {
		return c, 0, false
	}
	fields := bytes.Fields(stat[end+1:])
	if len(fields) < 2 {
		return c, 0, false
	}
	c.name = string(stat[open+1 : end])
	c.pid, _ = strconv.Atoi(string(stat[:open-1]))
	parent, _ = strconv.Atoi(string(fields[1]))
	return c, parent, c.pid > 0 && !slices.Contains([]string{"Z", "X"}, string(fields[0]))
}

func (c child) String() string { return fmt.Sprintf("%s (process %d)", c.name, c.pid) }
