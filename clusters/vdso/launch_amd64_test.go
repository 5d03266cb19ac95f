package vdso

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockcheck/clusters/clustertest"
)

// TestMain also runs the hidden commands, for code that starts this binary.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		run := map[string]func() error{
			LaunchCommand: func() error { return Exec(os.Args[3], os.Args[5:]) },
			TraceCommand:  func() error { return Trace(os.Stdin, os.Stdout) },
			NowCommand:    func() error { return Now(os.Stdin, os.Stdout) },
		}[os.Args[1]]
		if run != nil {
			if err := run(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(3)
			}
			os.Exit(0)
		}
	}
	os.Exit(clustertest.Main(m))
}

// clockAt makes a clock file with an offset.
func clockAt(t *testing.T, offset time.Duration) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "n1", "clock")
	if err := SetClock(path, offset); err != nil {
		t.Fatal(err)
	}
	return path
}

// self returns the path of this test binary.
func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// built builds a program from testdata.
func built(t *testing.T, command ...string) string {
	t.Helper()
	if _, err := exec.LookPath(command[0]); err != nil {
		if os.Getenv("CI") == "true" { // where a skip would look like a pass
			t.Fatal(err)
		}
		t.Skip(err)
	}
	path := filepath.Join(t.TempDir(), "clocks")
	build := exec.Command(command[0], append(command[1:], "-o", path)...)
	if command[0] == "go" {
		build = exec.Command("go", "build", "-o", path, command[len(command)-1])
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
	}
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return path
}

// teller is a running program from testdata that prints its clocks.
type teller struct {
	t     *testing.T
	pid   int
	input io.WriteCloser
	lines *bufio.Scanner
}

func start(t *testing.T, command ...string) *teller {
	t.Helper()
	program := exec.Command(command[0], command[1:]...)
	program.Stderr = os.Stderr
	input, err := program.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		if err := program.Wait(); err != nil {
			t.Errorf("%s: %v", command, err)
		}
	})
	return &teller{t: t, pid: program.Process.Pid, input: input, lines: bufio.NewScanner(output)}
}

// moved is the set of clocks that follow the file. The other clocks must not.
var moved = map[string]bool{"realtime": true, "coarse": true, "gettimeofday": true, "time": true, "time-stored": true}

// at asks for all clocks and checks them. A clock that is off by the offset must lie between two true times of
// the kernel, moved by the offset.
func (p *teller) at(order string, offset time.Duration) {
	p.t.Helper()
	if _, err := io.WriteString(p.input, order+"\n"); err != nil {
		p.t.Fatal(err)
	}
	told := 0
	for p.lines.Scan() && p.lines.Text() != "end" {
		var name string
		var before, seconds, fraction, after, unit int64
		if _, err := fmt.Sscan(p.lines.Text(), &name, &before, &seconds, &fraction, &after, &unit); err != nil {
			p.t.Fatalf("%q: %v", p.lines.Text(), err)
		}
		told++
		if moved[name] {
			before, after = before+offset.Nanoseconds(), after+offset.Nanoseconds()
		}
		now := seconds*1e9 + fraction*unit
		// Rounding down may move the clock and the bound by one unit each.
		if fraction < 0 || fraction*unit >= 1e9 || now <= before-2*unit || now > after {
			p.t.Errorf("at %s %s: %d s and %d of %d ns, not between %d and %d", offset, name, seconds, fraction, unit, before, after)
		}
	}
	if told < 2 {
		p.t.Fatalf("at %s: %d clocks were told: %v", offset, told, p.lines.Err())
	}
}

// children lists the children of a process.
func children(t *testing.T, parent int) []string {
	t.Helper()
	var found []string
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if fields[1] == strconv.Itoa(parent) {
			found = append(found, string(text))
		}
	}
	return found
}

var programs = map[string][]string{
	"static Go": {"go", "./testdata/clocks"},
	"dynamic C": {"gcc", "testdata/clocks.c"},
	"static C":  {"gcc", "-static", "testdata/clocks.c"},
}

// offsets cover a carry of the fraction in both directions, no carry, and times before 1970.
var offsets = []time.Duration{
	0, time.Hour, -time.Hour, 1, -1, 999_999_999, -999_999_999, 500 * time.Millisecond, -1500 * time.Millisecond,
	time.Second, -time.Second, 100 * 365 * 24 * time.Hour, -60 * 365 * 24 * time.Hour, 0,
}

// TestClocks moves the clock of running programs of each kind.
func TestClocks(t *testing.T) {
	for name, source := range programs {
		t.Run(name, func(t *testing.T) {
			program := built(t, source...)
			clock := clockAt(t, 0)
			server := start(t, append(Launcher(self(t), clock), program)...)
			for _, offset := range offsets {
				if err := SetClock(clock, offset); err != nil {
					t.Fatal(err)
				}
				for range 20 { // at different fractions of a second
					server.at("", offset)
				}
			}
			if strays := children(t, server.pid); len(strays) > 0 {
				t.Errorf("the helper is still there: %q", strays)
			}
			// A program that is started later gets the offset in force.
			if err := SetClock(clock, -time.Hour); err != nil {
				t.Fatal(err)
			}
			start(t, append(Launcher(self(t), clock), program)...).at("", -time.Hour)
		})
	}
}

// TestRate lets the clock of a running program run fast, slow, and at true speed again. The program's wall
// clock follows and its monotonic clock does not.
func TestRate(t *testing.T) {
	clock := clockAt(t, time.Hour)
	command := append(Launcher(self(t), clock), self(t), NowCommand)
	program := exec.Command(command[0], command[1:]...)
	input, inputErr := program.StdinPipe()
	output, outputErr := program.StdoutPipe()
	if err := errors.Join(inputErr, outputErr, program.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = input.Close(); _ = program.Wait() })
	told := bufio.NewScanner(output)
	told.Scan()
	now := func() (wall, elapsed int64) {
		t.Helper()
		if _, err := io.WriteString(input, "\n"); err != nil {
			t.Fatal(err)
		}
		told.Scan()
		if n, err := fmt.Sscan(told.Text(), &wall, &elapsed); n != 2 || err != nil {
			t.Fatalf("%q: %v", told.Text(), err)
		}
		return wall, elapsed
	}
	// The program may be preempted between its two clock reads, so the best of several answers counts.
	runsAt := func(speed float64) error {
		wall, elapsed := now()
		nextWall, next := wall, elapsed
		for next-elapsed < (50 * time.Millisecond).Nanoseconds() {
			nextWall, next = now()
		}
		if got := float64(nextWall-wall) / float64(next-elapsed); math.Abs(got-speed) > 0.01 {
			return fmt.Errorf("it runs at %g, want %g", got, speed)
		}
		return nil
	}
	for _, speed := range []float64{1, 1.1, 0.5, 10, 0.1} {
		before, _ := now()
		if err := SetClockRate(clock, speed); err != nil {
			t.Fatal(err)
		}
		if after, _ := now(); after < before {
			t.Errorf("at speed %g it jumped back by %s", speed, time.Duration(before-after))
		}
		clustertest.Eventually(t, 30*time.Second, func() error { return runsAt(speed) })
		if err := SetClockRate(clock, 1); err != nil {
			t.Fatal(err)
		}
	}
	low := time.Now()
	wall, _ := now()
	if off := time.Unix(0, wall).Sub(low); off < time.Hour || off > time.Hour+time.Since(low) {
		t.Errorf("at true speed it is off by %s, want the hour of before", off)
	}
}

// TestForks: a process forked before a step sees the step, too.
func TestForks(t *testing.T) {
	clock := clockAt(t, time.Hour)
	server := start(t, append(Launcher(self(t), clock), built(t, programs["dynamic C"]...))...)
	server.at("", time.Hour)
	server.at("fork", time.Hour)
	for _, offset := range offsets {
		if err := SetClock(clock, offset); err != nil {
			t.Fatal(err)
		}
		server.at("", offset)
	}
}

// TestControl: without the launcher the same programs pass the same check at true time only.
func TestControl(t *testing.T) {
	for name, source := range programs {
		t.Run(name, func(t *testing.T) {
			clock := clockAt(t, time.Hour)
			server := start(t, built(t, source...))
			server.at("", 0)
			if err := SetClock(clock, -time.Hour); err != nil {
				t.Fatal(err)
			}
			server.at("", 0)
		})
	}
}

// TestTwoServers: each server follows the clock of its own file.
func TestTwoServers(t *testing.T) {
	program := built(t, programs["static Go"]...)
	first, second := clockAt(t, time.Hour), clockAt(t, 0)
	one := start(t, append(Launcher(self(t), first), program)...)
	other := start(t, append(Launcher(self(t), second), program)...)
	one.at("", time.Hour)
	other.at("", 0)
	if err := SetClock(second, -time.Minute); err != nil {
		t.Fatal(err)
	}
	one.at("", time.Hour)
	other.at("", -time.Minute)
}

// TestUnchanged: a launched program has the environment that it would have anyway, and the number of the
// process that was started.
func TestUnchanged(t *testing.T) {
	t.Setenv("LOCKCHECK_TEST", "a b\n$c")
	clock := clockAt(t, 0)
	for _, command := range [][]string{
		{"cat", "/proc/self/environ"}, {"cat", "/proc/self/cmdline"}, {"cat", "/proc/self/limits"},
		{"ls", "/proc/self/fd"}, {"grep", "-E", "^(Sig[PBIC]|Shd|Cap|Seccomp|NoNewPrivs|TracerPid|Threads)", "/proc/self/status"},
		{"echo", "--clock-file", "--", "", "a b"}, {"printenv", "LOCKCHECK_TEST"},
	} {
		t.Run(strings.Join(command, " "), func(t *testing.T) {
			want, err := exec.Command(command[0], command[1:]...).Output()
			if err != nil || len(want) == 0 {
				t.Fatalf("%q, %v", want, err)
			}
			launched := append(Launcher(clustertest.Binary(t), clock), command...)
			got, err := exec.Command(launched[0], launched[1:]...).Output()
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		})
	}
	launched := exec.Command(self(t), append(Launcher("", clock)[1:], "sh", "-c", "echo $$; exit 7")...)
	told, err := launched.Output()
	if strings.TrimSpace(string(told)) != strconv.Itoa(launched.Process.Pid) || launched.ProcessState.ExitCode() != 7 {
		t.Errorf("process %d says %q and ends with %v", launched.Process.Pid, told, err)
	}
}

// TestRefused: a program whose clock could not be moved does not run.
func TestRefused(t *testing.T) {
	folder := t.TempDir()
	write := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	short := write("short", "1234567", 0o644)
	script := write("script", "#!/bin/sh\necho ran\n", 0o755)
	text := write("text", "echo ran\n", 0o755)
	closed := write("closed", "echo ran\n", 0o644)
	empty := write("empty", "", 0o755)
	good := clockAt(t, 0)
	for _, c := range []struct{ name, clock, program, want string }{
		{"no clock file", folder + "/none", "echo", "no such file"},
		{"a clock file that is too short", short, "echo", "not a clock file"},
		{"a folder for a clock file", folder, "echo", "not a clock file"},
		{"no such program", good, "no-such-program", "not found"},
		{"no such path", good, "/no/such/program", "no such file"},
		{"not executable", good, closed, "permission denied"},
		{"a script", good, script, "is a script"},
		{"no program at all", good, text, "exec format error"},
		{"an empty file", good, empty, "EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			launched := exec.Command(self(t), append(Launcher("", c.clock)[1:], c.program, "ran")...)
			var complaint bytes.Buffer
			launched.Stderr = &complaint
			told, err := launched.Output()
			if err == nil || len(told) > 0 || !strings.Contains(complaint.String(), c.want) {
				t.Errorf("wrote %q, ended with %v: %q, want %q in it", told, err, &complaint, c.want)
			}
		})
	}
	if err := Exec(good, nil); err == nil {
		t.Error("nothing was launched")
	}
}

// TestSignalsOnTheWay: a process that is stopped and continued while it is being patched still becomes the
// server.
func TestSignalsOnTheWay(t *testing.T) {
	clock := clockAt(t, time.Hour)
	binary := clustertest.Binary(t)
	for range 30 {
		before := time.Now()
		launched := exec.Command(binary, append(Launcher("", clock)[1:], binary, NowCommand)...)
		var told bytes.Buffer
		launched.Stdout, launched.Stderr = &told, os.Stderr
		if err := launched.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- launched.Wait() }()
		if err := harass(launched.Process, ended); err != nil {
			t.Fatal(err)
		}
		if err := checkTime(told.String(), before.Add(time.Hour), time.Now().Add(time.Hour)); err != nil {
			t.Error(err)
		}
	}
}

// harass sends harmless signals until the process has ended.
func harass(process *os.Process, ended <-chan error) error {
	for {
		for _, signal := range []os.Signal{syscall.SIGSTOP, syscall.SIGURG, syscall.SIGCONT, syscall.SIGCHLD} {
			_ = process.Signal(signal) // the process may have ended
			select {
			case err := <-ended:
				return err
			case <-time.After(100 * time.Microsecond):
			}
		}
	}
}
