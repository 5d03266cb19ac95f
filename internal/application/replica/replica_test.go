package replica

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockcheck/clusters/clustertest"
	"lockcheck/history"
	"lockcheck/internal/processes"
)

// printerVariable makes this test binary a program of a user that knows when it writes.
const printerVariable = "LOCKCHECK_TEST_PRINTER"

func TestMain(m *testing.M) {
	if path := os.Getenv(printerVariable); path != "" {
		printStamps(path)
	}
	os.Exit(clustertest.Main(m))
}

// printStamps writes lines to both outputs, each with its number, the time before it was written and the time after the
// line before was. A file gets a byte for each line.
func printStamps(path string) {
	outputs := []*os.File{os.Stdout, os.Stderr}
	counter, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	var after int64
	for i := 0; err == nil; i++ {
		line := fmt.Sprintf("did %d,%d,%d\n", i, history.Now(), after)
		_, err = outputs[i%2].WriteString(line)
		after = history.Now()
		if err == nil {
			_, err = counter.Write([]byte{'.'})
		}
		time.Sleep(time.Millisecond)
	}
	os.Exit(1)
}

var limit = clustertest.Slow(time.Minute)

// launched is a launcher that runs.
type launched struct {
	*testing.T
	command *exec.Cmd
	input   io.WriteCloser
	events  chan history.Event // closed at the end of the output
	raw     bytes.Buffer       // valid after the end
	seen    []history.Event
}

// launch runs the real launcher.
func launch(t *testing.T, c Config) *launched {
	t.Helper()
	path := filepath.Join(t.TempDir(), "replica.json")
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	l := &launched{T: t, command: exec.Command(clustertest.Binary(t), Command, "--config", path), events: make(chan history.Event, 1<<16)}
	l.command.Stderr = &l.raw
	if l.input, err = l.command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output, err := l.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.command.Process.Kill() })
	go func() {
		defer close(l.events)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			var e history.Event
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				t.Errorf("%q: %v", lines.Text(), err)
			}
			l.events <- e
		}
	}()
	return l
}

// next returns the next event.
func (l *launched) next() history.Event {
	l.Helper()
	select {
	case e, open := <-l.events:
		if !open {
			l.Fatal("the output has ended")
		}
		l.see(e)
		return e
	case <-time.After(limit):
		l.Fatal("no event")
	}
	return history.Event{}
}

// see checks an event.
func (l *launched) see(e history.Event) {
	l.Helper()
	if e.From > e.Time || e.From <= 0 || e.Process != "r" || len(l.seen) > 0 && e.Time < l.seen[len(l.seen)-1].Time {
		l.Errorf("%+v after %+v", e, l.seen[max(0, len(l.seen)-1):])
	}
	l.seen = append(l.seen, e)
}

// want takes events, which must be of these functions.
func (l *launched) want(functions ...history.Function) (last history.Event) {
	l.Helper()
	for _, f := range functions {
		if last = l.next(); last.F != f {
			l.Fatalf("%+v, want %s", last, f)
		}
	}
	return last
}

// end ends the input, and waits for the end of the launcher. It returns the events until then.
func (l *launched) end() (events []history.Event) {
	l.Helper()
	_ = l.input.Close()
	for timeout := time.After(limit); ; {
		select {
		case e, open := <-l.events:
			if open {
				l.see(e)
				events = append(events, e)
				continue
			}
			if err := l.command.Wait(); err != nil {
				l.Errorf("%v\n%s", err, l.raw.String())
			}
			return events
		case <-timeout:
			l.Fatal("it does not end")
		}
	}
}

// shell is a program that a shell runs.
func shell(script string) Config {
	return Config{Name: "r", Command: []string{"sh", "-c", script}, Says: map[history.Function][]string{
		history.Did: {`did (?P<id>\S+)`}, history.Holding: {`holding (?P<key>\S+)`},
	}}
}

// TestStopped: the bracket of a line contains its instant, also if the launcher was stopped while the program was not.
// A stamp of the arrival would be wrong, which is the control.
func TestStopped(t *testing.T) {
	counter := filepath.Join(t.TempDir(), "count")
	printer, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := launch(t, Config{
		Name: "r", Command: []string{printer}, Env: []string{printerVariable + "=" + counter},
		Says: map[history.Function][]string{history.Did: {`did (?P<id>\S+)`}},
	})
	count := func() int64 {
		info, err := os.Stat(counter)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	l.want(history.Started, history.Did)
	for range 3 {
		if err := l.command.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		for before := count(); ; time.Sleep(time.Millisecond) {
			if now := count(); now > before+200 {
				break
			}
		}
		if err := l.command.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		for at := history.Now(); l.next().From < at; {
		}
	}
	l.end()
	type stamps struct{ number, before, last int64 }
	after, late, prompt := make(map[int64]int64), 0, 0
	parse := func(id string) (s stamps) {
		if _, err := fmt.Sscanf(id, "%d,%d,%d", &s.number, &s.before, &s.last); err != nil {
			t.Fatalf("%q: %v", id, err)
		}
		return s
	}
	did := slices.DeleteFunc(l.seen, func(e history.Event) bool { return e.F != history.Did })
	for _, e := range did {
		s := parse(e.ID)
		after[s.number-1] = s.last
	}
	for _, e := range did {
		s := parse(e.ID)
		to, known := after[s.number]
		if !known {
			continue // it is the last one
		}
		if wrote := (span{s.before, to}); e.From > wrote.to || e.Time < wrote.from {
			t.Errorf("line %d was written in %+v, bracket %d to %d", s.number, wrote, e.From, e.Time)
		}
		const long = int64(50 * time.Millisecond)
		if e.Time-to > long {
			late++
		}
		if e.Time-e.From < long {
			prompt++
		}
	}
	if late < 100 || prompt == 0 {
		t.Errorf("%d of %d lines were read late, and %d have a short bracket: want most of 600 late, and some short", late, len(did), prompt)
	}
}

// how says how a program ended, without its last words.
func how(e history.Event) string {
	how, _, _ := strings.Cut(e.Note, ": did")
	return how
}

// TestEnded: a program that ends by itself is started again if its policy says so, and what it has started ends with it.
func TestEnded(t *testing.T) {
	const leaves = "echo did $$; (exec setsid env -i sleep 1000 >/dev/null 2>&1 &) ; "
	for name, c := range map[string]struct {
		script, restart string
		again           bool
		note            string
	}{
		"by default":          {"exit 3", "", false, "exit status 3"},
		"no":                  {"exit 3", RestartNo, false, "exit status 3"},
		"failure":             {"exit 3", RestartOnFailure, true, "exit status 3"},
		"no failure":          {"exit 0", RestartOnFailure, false, "exit status 0"},
		"a signal":            {"kill -9 $$", RestartOnFailure, true, "signal: killed"},
		"always":              {"exit 0", RestartAlways, true, "exit status 0"},
		"without its outputs": {"exec >&- 2>&-; exit 3", RestartNo, false, "exit status 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := shell(leaves + c.script)
			config.Restart = c.restart
			l := launch(t, config)
			rounds := 1
			if c.again {
				rounds = 3
			}
			for range rounds {
				l.want(history.Started, history.Did)
				if e := l.want(history.Ended); how(e) != c.note || e.Error != "" {
					t.Errorf("%+v, want %q", e, c.note)
				}
				left, err := processes.Descendants(l.command.Process.Pid)
				if err != nil {
					t.Fatal(err)
				}
				for _, pid := range left {
					if command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); bytes.HasPrefix(command, []byte("sleep")) {
						t.Errorf("%q is left", command)
					}
				}
			}
			if more := l.end(); !c.again && len(more) > 0 {
				t.Errorf("afterwards: %+v", more)
			}
		})
	}
}

// TestEnd: at the end of the input the program is told to end, and what it says then is heard. It has not ended by
// itself. One that will not end is killed.
func TestEnd(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		want   string // ID of the last Did
	}{
		"says goodbye":  {`trap 'echo did goodbye; exit' TERM; echo did hello; while :; do sleep 0.01; done`, "goodbye"},
		"will not end":  {`trap 'echo did not' TERM; echo did hello; while :; do sleep 0.01; done`, "not"},
		"is stopped":    {`echo did hello; kill -STOP $$`, "hello"},
		"without end":   {`trap 'printf "did last"; exit 1' TERM; echo did hello; while :; do sleep 0.01; done`, "last"},
		"cut in a line": {`echo did hello; printf "did hal"; while :; do sleep 0.01; done`, "hello"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := launch(t, shell(c.script))
			l.want(history.Started, history.Did)
			for _, e := range l.end() {
				if e.F != history.Did {
					t.Errorf("%+v", e)
				}
			}
			if last := l.seen[len(l.seen)-1]; last.ID != c.want {
				t.Errorf("last: %+v, want %q", last, c.want)
			}
		})
	}
}

// TestSignal: a signal is the program's.
func TestSignal(t *testing.T) {
	l := launch(t, shell(`trap 'echo did goodbye; exit 5' TERM; echo did hello; while :; do sleep 0.01; done`))
	l.want(history.Started, history.Did)
	if err := l.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if e := l.want(history.Did); e.ID != "goodbye" {
		t.Errorf("%+v", e)
	}
	if e := l.want(history.Ended); e.Note != "exit status 5: did goodbye" {
		t.Errorf("%+v", e)
	}
	l.end()
}

// TestHostile: what is not looked at is missed, before the next thing that is; and a near miss is not.
func TestHostile(t *testing.T) {
	const end = "; sleep 1.1; echo did end; exit"
	for name, c := range map[string]struct {
		script string
		missed string // "" for nothing
		did    int    // how many times at most, and at least once
	}{
		"a flood":              {`seq -f 'did %.0f' 1 100000`, "more than 2000 lines", 50000},
		"many lines":           {`i=0; while [ $i -lt 1000 ]; do i=$((i+1)); echo did $i; done`, "", 1001},
		"a flood of others":    {`seq 1 300000`, "", 1},
		"a line without end":   {`head -c 20000000 /dev/zero; echo; echo did more`, "a line of more than 65536 bytes", 2},
		"on the other output":  {`head -c 70000 /dev/zero >&2; echo did more`, "a line of more than 65536 bytes", 2},
		"a long line":          {`head -c 65536 /dev/zero; echo; echo did more`, "", 2},
		"garbage":              {`head -c 3000000 /dev/urandom | tr '\n' x | fold -b -w 60000`, "", 1},
		"an ID that is a text": {`echo did $(head -c 2000 /dev/zero | tr '\0' x)`, "a name of more than 1024 bytes", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := launch(t, shell(c.script+end))
			for l.next().F != history.Ended {
			}
			did := 0
			var missed []history.Event
			for _, e := range l.seen {
				switch e.F {
				case history.Did:
					did++
				case history.Missed:
					missed = append(missed, e)
				}
			}
			if last := l.seen[len(l.seen)-2]; last.ID != "end" {
				t.Errorf("last %+v", last)
			}
			if did > c.did || (len(missed) > 0) != (c.missed != "") {
				t.Errorf("%d events, %+v missed; want at most %d, and %q", did, missed, c.did, c.missed)
			}
			for _, e := range missed {
				if !strings.Contains(e.Error, c.missed) {
					t.Errorf("missed: %q, want %q", e.Error, c.missed)
				}
			}
			l.end()
		})
	}
}

// TestDeaf: nobody looks at lines that mean nothing to anybody.
func TestDeaf(t *testing.T) {
	config := shell(`head -c 70000 /dev/zero; exit`)
	config.Says = nil
	l := launch(t, config)
	l.want(history.Started, history.Ended)
	l.end()
	if raw := l.raw.Len(); raw != 70000 {
		t.Errorf("%d bytes went to the standard error, want 70000", raw)
	}
}

// TestNotStarted: a program that there is not is an error, and so is a launcher that is told nonsense.
func TestNotStarted(t *testing.T) {
	for want, config := range map[string]Config{
		"no-such-program":             {Name: "r", Command: []string{"no-such-program"}},
		"/no/such/folder":             {Name: "r", Command: []string{"true"}, Folder: "/no/such/folder"},
		"there is no command":         {Name: "r"},
		`no restart policy "perhaps"`: {Name: "r", Command: []string{"true"}, Restart: "perhaps"},
	} {
		l := launch(t, config)
		for range l.events {
		}
		if err := l.command.Wait(); err == nil || !strings.Contains(l.raw.String(), want) {
			t.Errorf("%v, %q, want %q", err, l.raw.String(), want)
		}
	}
}

// TestOrphans: what a program has left behind does not fill its container, although this process is its parent then.
func TestOrphans(t *testing.T) {
	l := launch(t, shell(`echo did start; while :; do (true &); sleep 0.001; done`))
	l.want(history.Started, history.Did)
	ended := func() (zombies []int) {
		all, err := processes.Descendants(l.command.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(all, func(pid int) bool {
			fields, err := processes.Stat(pid)
			return err != nil || fields[processes.State] != "Z"
		})
	}
	var before []int
	clustertest.Eventually(t, limit, func() error {
		if before = ended(); len(before) < 5 {
			return fmt.Errorf("only %v have ended", before)
		}
		return nil
	})
	clustertest.Eventually(t, limit, func() error {
		now := ended()
		if slices.ContainsFunc(before, func(pid int) bool { return slices.Contains(now, pid) }) {
			return fmt.Errorf("of %v there are still %v", before, now)
		}
		return nil
	})
	l.end()
}

// TestGone: a launcher whose harness is gone ends its program.
func TestGone(t *testing.T) {
	l := launch(t, shell(`echo did $$; while :; do sleep 0.01; done`))
	l.want(history.Started)
	program := l.want(history.Did).ID
	if err := l.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = l.command.Wait() // it was killed
	pid, err := strconv.Atoi(program)
	if err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, limit, func() error {
		if fields, err := processes.Stat(pid); err == nil && fields[processes.State] != "Z" {
			return fmt.Errorf("the program outlives its launcher: %v", fields)
		}
		return nil
	})
}
