package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lockcheck/clusters/clustertest"
)

// TestReadStat: a process chooses its own command name.
func TestReadStat(t *testing.T) {
	for _, c := range []struct {
		name, text, command string
		state               byte // 0: malformed
	}{
		{"plain", "7 (sleep) T 1 7 7 0", "sleep", 'T'},
		{"with blanks", "7 (tmux: server) S 1 7", "tmux: server", 'S'},
		{"with a parenthesis", "7 (a) T (b) R 1 7", "a) T (b", 'R'},
		{"only parentheses", "7 ()))) S 1", ")))", 'S'},
		{"with a newline", "7 (a\nb) S 1", "a\nb", 'S'},
		{"that looks like a state", "7 () T) S 1", ") T", 'S'},
		{"empty", "7 () Z 1", "", 'Z'},
		{"not UTF-8", "7 (\xff\xfe) R 1", "\xff\xfe", 'R'},
		{"state at the very end", "7 (x) R", "x", 'R'},
		{"no state", "7 (x)", "", 0},
		{"no state after the blank", "7 (x) ", "", 0},
		{"no command", "7 sleep T", "", 0},
		{"parentheses the wrong way", "7 )x( T", "", 0},
		{"nothing", "", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "stat")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			command, state, err := readStat(path)
			if (err != nil) != (c.state == 0) || command != c.command || state != c.state {
				t.Errorf("got %q, %q, %v", command, state, err)
			}
		})
	}
	if _, _, err := readStat(filepath.Join(t.TempDir(), "gone")); !gone(err) {
		t.Errorf("a process that ended: %v", err)
	}
}

// sleeper starts a child that sleeps until the test ends.
func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	command := exec.Command("sleep", "3600")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill() // the test may have killed it
		_ = command.Wait()
	})
	// Until execve the child carries the name of this binary.
	clustertest.Eventually(t, 10*time.Second, func() error {
		p, err := inspectOne(command.Process.Pid)
		if err == nil && p.Command != "sleep" {
			err = fmt.Errorf("runs %q", p.Command)
		}
		return err
	})
	return command
}

// local is a host of the given children.
func local(children ...*exec.Cmd) Local {
	return Local{PIDs: func() ([]int, error) {
		var pids []int
		for _, c := range children {
			pids = append(pids, c.Process.Pid)
		}
		return pids, nil
	}}
}

// awaitStopped waits until the host has n processes and all of them are stopped, or none is.
func awaitStopped(t *testing.T, host Host, n int, stopped bool) {
	t.Helper()
	clustertest.Eventually(t, 10*time.Second, func() error {
		processes, err := host.Processes(context.Background())
		if err != nil {
			return err
		}
		if len(processes) != n {
			return fmt.Errorf("%d processes, want %d", len(processes), n)
		}
		for _, p := range processes {
			if p.Command != "sleep" || p.Stopped != stopped {
				return fmt.Errorf("%+v, want stopped: %v", p, stopped)
			}
		}
		return nil
	})
}

// TestSignal stops two processes and leaves a third alone.
func TestSignal(t *testing.T) {
	host, bystander := local(sleeper(t), sleeper(t)), local(sleeper(t))
	awaitStopped(t, host, 2, false)
	for _, c := range []struct {
		signal  Signal
		stopped bool
	}{{Stop, true}, {Stop, true}, {Continue, false}, {Continue, false}, {Stop, true}} {
		moment, err := host.Signal(t.Context(), c.signal)
		if err != nil || moment.From <= 0 || moment.To < moment.From {
			t.Fatalf("%s: %+v, %v", c.signal, moment, err)
		}
		awaitStopped(t, host, 2, c.stopped)
		awaitStopped(t, bystander, 1, false)
	}
	if _, err := host.Signal(t.Context(), "kill -9 everything"); err == nil {
		t.Error("an unknown signal was sent")
	}
}

// TestSleep is the program of another test.
func TestSleep(*testing.T) {
	if os.Getenv("SLEEP") != "" {
		time.Sleep(time.Hour)
	}
}

// TestSignalFirst: only the oldest process is asked to end, and not one of lockcheck's own program, which may have
// launched it.
func TestSignalFirst(t *testing.T) {
	launcher := exec.Command(os.Args[0], "-test.run", "TestSleep$") // has the name of this program
	launcher.Env = append(os.Environ(), "SLEEP=1")
	if err := launcher.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = launcher.Process.Kill(); _ = launcher.Wait() })
	first, second := sleeper(t), sleeper(t)
	host := local(launcher, first, second)
	if _, err := host.Signal(t.Context(), Terminate); err != nil {
		t.Fatal(err)
	}
	state, err := first.Process.Wait()
	if err != nil || state.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("the first process ended as %v, %v", state, err)
	}
	if left, err := host.Processes(t.Context()); err != nil || len(left) != 2 {
		t.Errorf("%v are left, %v; want the launcher and the second process", left, err)
	}
}

func TestSignalNobody(t *testing.T) {
	dead, alive := sleeper(t), sleeper(t)
	_ = dead.Process.Kill()
	_ = dead.Wait()
	broken := errors.New("no /proc")
	for _, c := range []struct {
		name string
		host Local
		fine bool
	}{
		{"control", local(alive), true},
		{"one of them is gone", local(dead, alive), true},
		{"all are gone", local(dead), false},
		{"there are none", local(), false},
		{"they cannot be listed", Local{PIDs: func() ([]int, error) { return nil, broken }}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := c.host.Signal(t.Context(), Continue); (err == nil) != c.fine {
				t.Errorf("got %v", err)
			}
		})
	}
	if processes, err := local(dead).Processes(t.Context()); err != nil || len(processes) != 0 {
		t.Errorf("a dead child is listed: %v, %v", processes, err)
	}
}

// TestSignalChild: a signal through the child's handle reaches it. After its end the signal reaches no process,
// even if the child's number is still listed, because the number may be reused.
func TestSignalChild(t *testing.T) {
	child, bystander := sleeper(t), sleeper(t)
	host := local(bystander) // stands for a process that has reused the number
	host.Send = func(_ int, signal syscall.Signal) error { return child.Process.Signal(signal) }
	if _, err := host.Signal(t.Context(), Stop); err != nil {
		t.Fatal(err)
	}
	awaitStopped(t, local(child), 1, true)
	_ = child.Process.Kill()
	_ = child.Wait()
	if _, err := host.Signal(t.Context(), Stop); err == nil || err.Error() != "no process to signal" {
		t.Errorf("got %v", err)
	}
	awaitStopped(t, local(bystander), 1, false)
	if _, err := local(bystander).Signal(t.Context(), Stop); err != nil {
		t.Errorf("by its number: %v", err)
	}
	awaitStopped(t, local(bystander), 1, true)
}

// TestSignalNewcomers: a process forked while the others are being stopped is stopped, too.
func TestSignalNewcomers(t *testing.T) {
	children := []*exec.Cmd{sleeper(t)}
	var host Local
	host.PIDs = func() ([]int, error) {
		pids, err := local(children...).PIDs()
		if len(children) < 4 {
			children = append(children, sleeper(t))
		}
		return pids, err
	}
	if _, err := host.Signal(t.Context(), Stop); err != nil {
		t.Fatal(err)
	}
	if len(children) != 4 {
		t.Fatalf("%d children: the list was not read again", len(children))
	}
	awaitStopped(t, host, 4, true)
}

// TestFrozen: a thread in state S is frozen only if it waits in the freezer.
func TestFrozen(t *testing.T) {
	for _, c := range []struct {
		state byte
		wchan string // "-" for none
		want  bool
	}{
		{'D', "-", true}, {'Z', "-", true}, {'R', "do_freezer_trap", false}, {'T', "do_signal_stop", false},
		{'S', "do_freezer_trap", true}, {'S', "get_signal", true}, {'S', "__refrigerator\n", true},
		{'S', "hrtimer_nanosleep", false}, {'S', "0", false}, {'S', "", false}, {'S', "-", false},
	} {
		folder := t.TempDir()
		if c.wchan != "-" {
			if err := os.WriteFile(filepath.Join(folder, "wchan"), []byte(c.wchan), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := frozen(c.state, folder); got != c.want {
			t.Errorf("state %c, waiting in %s: %v, want %v", c.state, c.wchan, got, c.want)
		}
	}
}

// TestFreezer compares what this machine's kernel shows of a process before, while and after cgroup version 2
// freezes it.
func TestFreezer(t *testing.T) {
	group := freezerGroup(t)
	child := sleeper(t)
	tell := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(group, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tell("cgroup.procs", fmt.Sprint(child.Process.Pid))
	for _, freeze := range []bool{false, true, false} {
		tell("cgroup.freeze", map[bool]string{true: "1", false: "0"}[freeze])
		clustertest.Eventually(t, 10*time.Second, func() error {
			processes, err := local(child).Processes(t.Context())
			if err != nil || len(processes) != 1 || processes[0].Frozen != freeze || processes[0].States != "S" {
				return fmt.Errorf("frozen %v: %+v, %v", freeze, processes, err)
			}
			return nil
		})
	}
}

// freezerGroup makes a control group of version 2, which takes root. It removes the group when its processes
// have ended.
func freezerGroup(t *testing.T) string {
	t.Helper()
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(filepath.Join(root, "cgroup.procs")); err != nil {
			continue
		}
		group, err := os.MkdirTemp(root, "lockcheck-test-")
		if err != nil {
			continue
		}
		t.Cleanup(func() {
			clustertest.Eventually(t, 10*time.Second, func() error { return os.Remove(group) })
		})
		if _, err := os.Stat(filepath.Join(group, "cgroup.freeze")); err == nil {
			return group
		}
	}
	t.Skip("needs control groups of version 2 and root")
	return ""
}

// TestInspectWhileThreadsEnd: a process whose threads come and go is always listed. If it were left out, a
// pause could look proven that is not.
func TestInspectWhileThreadsEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var churn sync.WaitGroup
	for range 4 {
		churn.Go(func() {
			for ctx.Err() == nil {
				var thread sync.WaitGroup
				// A goroutine that ends while locked ends its thread, too.
				thread.Go(runtime.LockOSThread)
				thread.Wait()
			}
		})
	}
	defer churn.Wait()
	defer cancel()
	for i := range 500 {
		processes, err := inspect([]int{os.Getpid()})
		if err != nil || len(processes) != 1 || processes[0].States == "" || processes[0].Stopped {
			t.Fatalf("look %d: %+v, %v", i, processes, err)
		}
	}
}

func TestEveryProcess(t *testing.T) {
	child := sleeper(t)
	processes, err := Local{}.Processes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, p := range processes {
		found = found || p.PID == child.Process.Pid
		if p.PID == os.Getpid() {
			t.Error("the agent would stop itself")
		}
	}
	if !found {
		t.Error("a child is missing")
	}
}

// TestReadingOffset: the offset is known as precisely as the question was short.
func TestReadingOffset(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	for _, c := range []struct {
		name      string
		reading   Reading
		low, high time.Duration
	}{
		{"in step", Reading{Server: at(0.5), Before: at(0), After: at(1)}, -500 * time.Millisecond, 500 * time.Millisecond},
		{"ahead", Reading{Server: at(60.5), Before: at(0), After: at(1)}, 59500 * time.Millisecond, 60500 * time.Millisecond},
		{"behind", Reading{Server: at(-59), Before: at(0), After: at(1)}, -time.Minute, -59 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			if low, high := c.reading.Offset(); low != c.low || high != c.high {
				t.Errorf("between %s and %s, want %s and %s", low, high, c.low, c.high)
			}
		})
	}
}

// TestCannot: a host returns an error for everything that it cannot do.
func TestCannot(t *testing.T) {
	host := local(sleeper(t))
	for what, do := range map[string]func() error{
		"cut":     func() error { _, err := host.Cut(t.Context(), Cut{ID: "f1", Peers: []string{"10.0.0.1"}}); return err },
		"heal":    func() error { _, _, err := host.Heal(t.Context(), "f1"); return err },
		"clock":   func() error { _, err := host.Clock(t.Context()); return err },
		"step":    func() error { _, err := host.SetClock(t.Context(), time.Minute); return err },
		"ready":   func() error { return host.Ready(t.Context()) },
		"version": func() error { _, err := host.Version(t.Context()); return err },
	} {
		if err := do(); err == nil || strings.TrimSpace(err.Error()) == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
	if cuts, err := host.Cuts(t.Context()); err != nil || len(cuts) != 0 {
		t.Errorf("cuts %v, %v", cuts, err)
	}
}
