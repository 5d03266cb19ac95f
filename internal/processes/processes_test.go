package processes

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// TestStat: the list of all processes is sorted and contains this one, and Stat returns its parent.
func TestStat(t *testing.T) {
	all, err := All()
	if err != nil || !slices.Contains(all, os.Getpid()) || !slices.IsSorted(all) {
		t.Errorf("all %v, %v: want %d among them", all, err, os.Getpid())
	}
	fields, err := Stat(os.Getpid())
	if err != nil || fields[Parent] != strconv.Itoa(os.Getppid()) {
		t.Errorf("fields %q, %v: want the parent %d", fields, err, os.Getppid())
	}
	if _, err := Stat(-1); err == nil {
		t.Error("there is no such process")
	}
}

// TestKill: processes that carry the mark end, with their descendants, and no others.
func TestKill(t *testing.T) {
	mark := Mark(fmt.Sprintf("LOCKCHECK_TEST_MARK=%d-%d", os.Getpid(), time.Now().UnixNano()))
	other := start(t, mark+"0") // its mark only begins with that mark
	marked := start(t, mark)
	if pids, err := mark.Running(); err != nil || !slices.Contains(pids, marked.Process.Pid) || slices.Contains(pids, other.Process.Pid) {
		t.Errorf("running %v, %v: want %d, not %d", pids, err, marked.Process.Pid, other.Process.Pid)
	}
	killed, err := mark.Kill()
	if err != nil || !killed[marked.Process.Pid] || killed[other.Process.Pid] || len(killed) != 2 {
		t.Errorf("killed %v, %v: want %d and its child", killed, err, marked.Process.Pid)
	}
	_ = marked.Wait() // the error says that it was killed
	// The kernel ends its child some time later.
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if left, err := mark.Running(); err != nil || len(left) == 0 {
			break
		}
	}
	if again, err := mark.Kill(); err != nil || len(again) != 0 {
		t.Errorf("killed again: %v, %v", again, err)
	}
}

// TestFamilyOf: parents come first whatever their numbers are, and each process once.
func TestFamilyOf(t *testing.T) {
	children := map[int][]int{7: {3, 8}, 3: {5}, 1: {7, 9}}
	for _, c := range []struct{ pids, want []int }{
		{nil, nil},
		{[]int{7}, []int{7, 3, 5, 8}},
		{[]int{3, 7}, []int{7, 3, 5, 8}},
		{[]int{5, 7}, []int{7, 3, 5, 8}},
		{[]int{5, 9}, []int{5, 9}},
	} {
		if got := familyOf(c.pids, children); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.pids, got, c.want)
		}
	}
}

// TestKillWithoutMark: the child of a marked process ends with it even if the child has cleared its
// environment. Children of other processes survive.
func TestKillWithoutMark(t *testing.T) {
	mark := Mark(fmt.Sprintf("LOCKCHECK_TEST_MARK=%d-%d", os.Getpid(), time.Now().UnixNano()))
	begin := func(m Mark) (child int) {
		command := exec.Command("sh", "-c", "env -i setsid sleep 60 >/dev/null 2>&1 & echo $!; wait")
		command.Env = append(os.Environ(), string(m))
		output, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(output).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if child, err = strconv.Atoi(line[:len(line)-1]); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = m.Kill(); _ = command.Wait() })
		// Until env has executed, the child still has the environment of the shell.
		for deadline := time.Now().Add(time.Minute); m.carriedBy(child) && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		}
		return child
	}
	ours, others := begin(mark), begin(mark+"0")
	if killed, err := mark.Kill(); err != nil || !killed[ours] || killed[others] || len(killed) != 2 {
		t.Errorf("killed %v, %v: want %d and its parent, not %d", killed, err, ours, others)
	}
	if ended(others) {
		t.Error("a process of others has ended")
	}
}

// start starts a process with a child.
func start(t *testing.T, mark Mark) *exec.Cmd {
	t.Helper()
	command := exec.Command("sh", "-c", "sleep 60 & echo; wait")
	command.Env = append(os.Environ(), string(mark))
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = mark.Kill(); _ = command.Wait() })
	if _, err := output.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return command
}

// TestMarkWhileExecuting: a process that executes one program after the other never loses its mark.
func TestMarkWhileExecuting(t *testing.T) {
	script := filepath.Join(t.TempDir(), "again")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec \"$0\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	mark := Mark("LOCKCHECK_TEST=executing")
	command := exec.Command(script)
	command.Env = append(os.Environ(), string(mark))
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = command.Process.Kill(), command.Wait() })
	for i := range 5000 {
		if !mark.carriedBy(command.Process.Pid) {
			t.Fatalf("the mark is missing at look %d", i)
		}
	}
}

// TestLaunched: a process whose wall clock can be moved starts others with its own launcher.
func TestLaunched(t *testing.T) {
	command := []string{"client", "--flag"}
	if got := Launched(command); !slices.Equal(got, command) {
		t.Errorf("without a launcher: %q", got)
	}
	t.Setenv(LauncherVariable, "launch\n--clock-file\n/a b\n--")
	if got, want := Launched(command), []string{"/proc/self/exe", "launch", "--clock-file", "/a b", "--", "client", "--flag"}; !slices.Equal(got, want) {
		t.Errorf("with a launcher: %q, want %q", got, want)
	}
}
