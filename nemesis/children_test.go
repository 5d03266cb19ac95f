package nemesis

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/clusters/clustertest"
	"lockcheck/history"
)

// family starts a shell command in a new process group, waits until the group has the given number of
// processes, and kills it when the test ends.
func family(t *testing.T, script string, processes int) (group int) {
	t.Helper()
	command := exec.Command("/bin/sh", "-c", script)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	group = command.Process.Pid
	t.Cleanup(func() { end(command) })
	clustertest.Eventually(t, 10*time.Second, func() error {
		if pids, err := members(group); err != nil || len(pids) != processes {
			return fmt.Errorf("processes %v, %v", pids, err)
		}
		return nil
	})
	return group
}

// end kills a process group: that ends stopped processes too.
func end(command *exec.Cmd) {
	_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) // it may have ended
	_ = command.Wait()                                      // "signal: killed" is what was asked for
}

// members lists the processes of a group, in the way in which the agent of a node
// lists those of its namespace.
func members(group int) ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, path := range stats {
		_, fields, err := stat(path)
		if err != nil || fields[2] != strconv.Itoa(group) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// stat returns a process' command, and its state and what follows in /proc/PID/stat.
func stat(path string) (command string, fields []string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", nil, err
	}
	begin, end := strings.IndexByte(string(text), '('), strings.LastIndexByte(string(text), ')')
	return string(text[begin+1 : end]), strings.Fields(string(text[end+1:])), nil
}

// states returns the state letters of a group, sorted, from the kernel itself.
func states(group int) (string, error) {
	pids, err := members(group)
	if err != nil {
		return "", err
	}
	var letters []string
	for _, pid := range pids {
		_, fields, err := stat(fmt.Sprintf("/proc/%d/stat", pid))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended since it was listed
		}
		if err != nil {
			return "", err
		}
		letters = append(letters, fields[0])
	}
	slices.Sort(letters)
	return strings.Join(letters, ""), nil
}

// node is a node that consists of a process group; without processes for group 0.
func node(name string, group int) *clusters.Node {
	return &clusters.Node{Name: name, Host: agent.Local{PIDs: func() ([]int, error) {
		if group == 0 {
			return nil, nil
		}
		return members(group)
	}}}
}

// ofWorkers is an environment without servers.
func ofWorkers(workers ...*clusters.Node) Environment {
	return Environment{Workers: workers, Lease: time.Second}
}

const sleeper = "exec sleep 600"

// sleepers makes an environment of workers that sleep.
func sleepers(t *testing.T, n int) Environment {
	t.Helper()
	var workers []*clusters.Node
	for i := range n {
		workers = append(workers, node(fmt.Sprintf("w%d", i+1), family(t, sleeper, 1)))
	}
	return ofWorkers(workers...)
}

// diary records a run of the nemesis in order: the stages of faults, the calls of the journal, and the signals
// to targets.
type diary struct {
	mu      sync.Mutex
	lines   []string
	faults  []history.Fault
	last    int64 // time of the last event
	on      func(history.Fault)
	noBegin error // error of Journal.Begin
	t       *testing.T
}

func (d *diary) add(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) Begin(id, undo string) error {
	d.add("begin %s: %s", id, undo)
	return d.noBegin
}

func (d *diary) End(id string) error {
	d.add("end %s", id)
	return nil
}

func (d *diary) record(e history.Event) {
	if e.Process != history.Nemesis || e.Type != history.Info || e.F != history.FaultPhase || e.Fault == nil {
		d.t.Errorf("recorded %+v", e)
		return
	}
	d.add("%s %s", e.Fault.Stage, e.Fault.ID)
	d.mu.Lock()
	if e.Time < d.last {
		d.t.Errorf("%s of %s goes back in time", e.Fault.Stage, e.Fault.ID)
	}
	d.last = e.Time
	d.faults = append(d.faults, *e.Fault)
	d.mu.Unlock()
	if d.on != nil {
		d.on(*e.Fault)
	}
}

// stage returns the recorded stage of a fault; its zero value if there was none.
func (d *diary) stage(id string, s history.Stage) history.Fault {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range d.faults {
		if f.ID == id && f.Stage == s {
			return f
		}
	}
	return history.Fault{}
}

// order returns the lines without what follows a colon.
func (d *diary) order() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var short []string
	for _, line := range d.lines {
		line, _, _ = strings.Cut(line, ":")
		short = append(short, line)
	}
	return short
}

// expect fails the test if the lines are not the wanted ones.
func (d *diary) expect(want ...string) {
	d.t.Helper()
	if got := d.order(); !slices.Equal(got, want) {
		d.t.Errorf("happened:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// recordingHost is a Host that records in the diary the signals that it passes on, and fails or pretends on request.
type recordingHost struct {
	agent.Host
	diary *diary
	// fail returns an error in place of the n-th signal of its kind, counted from 1; nil to pass the signal on.
	fail    func(s agent.Signal, n int) error
	ignored agent.Signal // reported as sent, but not sent
	mu      *sync.Mutex
	count   map[agent.Signal]int
}

func recordSignals(host agent.Host, d *diary) *recordingHost {
	return &recordingHost{Host: host, diary: d, mu: new(sync.Mutex), count: make(map[agent.Signal]int)}
}

func (h *recordingHost) Signal(ctx context.Context, s agent.Signal) (agent.Moment, error) {
	h.diary.add("%s", s)
	h.mu.Lock()
	h.count[s]++
	n := h.count[s]
	h.mu.Unlock()
	if h.fail != nil {
		if err := h.fail(s, n); err != nil {
			return agent.Moment{}, err
		}
	}
	if err := ctx.Err(); err != nil {
		return agent.Moment{}, err // as an agent behind a wire does
	}
	if h.ignored == s {
		return agent.Moment{From: history.Now(), To: history.Now()}, nil
	}
	return h.Host.Signal(ctx, s)
}

var errNotToday = errors.New("not today")

// plenty is a run length that no test reaches.
const plenty = 24 * time.Hour

// bounded is a context that ends long after the run should have ended.
func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// nemesis makes a Nemesis that records in the diary.
func (d *diary) nemesis(env Environment, steps ...Step) *Nemesis {
	d.t.Helper()
	schedule := Schedule{Seed: 1, Steps: steps}
	if err := schedule.Check(); err != nil {
		d.t.Fatal(err)
	}
	env.Watch = NewWatch()
	return &Nemesis{Environment: env, Schedule: schedule, Journal: d, Record: d.record}
}
