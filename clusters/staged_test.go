package clusters

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"lockcheck/clusters/agent"
	"lockcheck/clusters/engine"
	"lockcheck/clusters/stage"
)

// newTestStage runs a stage in this process. Its programs are shell scripts.
func newTestStage(t *testing.T) (s *staged, end func()) {
	t.Helper()
	orders, input := io.Pipe()
	output, outputEnd := io.Pipe()
	errorOutput, errorsEnd := io.Pipe()
	served := make(chan error, 1)
	exited := make(chan engine.Exit, 1)
	go func() {
		err := stage.Serve("/bin/sh", orders, outputEnd, errorsEnd)
		_ = outputEnd.Close()
		_ = errorsEnd.Close()
		exited <- engine.Exit{Code: 9}
		served <- err
	}()
	s = new(staged)
	s.open(&engine.Container{Input: input, Output: output, Errors: errorOutput, Exited: exited})
	return s, func() {
		_ = input.Close()
		if err := <-served; err != nil {
			t.Errorf("the stage: %v", err)
		}
	}
}

// TestStage: programs that run one after another have separate inputs, outputs and exits.
func TestStage(t *testing.T) {
	s, end := newTestStage(t)
	for _, c := range []struct {
		name, script, input string
		output, errors      string
		exit                Exit
	}{
		{"one that says nothing", "", "", "", "", Exit{Clean: true, Reason: "exit status 0"}},
		{"one that reads to the end", "cat; echo over >&2", "a\nb\n", "a\nb\n", "over\n", Exit{Clean: true, Reason: "exit status 0"}},
		{"one that fails in mid-line", "printf half; exit 3", "", "half", "", Exit{Reason: "exit status 3"}},
		{"one that is killed", "kill -KILL $$", "", "", "", Exit{Reason: "signal: killed"}},
		{"a long line", "head -c 200000 /dev/zero | tr '\\0' x", "", strings.Repeat("x", 200000), "", Exit{Clean: true, Reason: "exit status 0"}},
		{"bytes that are no text", "printf 'a\\000b\\000\\n'; printf '\\000\\n' >&2; printf '\\000c' >&2", "", "a\x00b\x00\n", "\x00\n\x00c", Exit{Clean: true, Reason: "exit status 0"}},
		{"one that does not read", "exec 0</dev/null; echo done", "ignored\n", "done\n", "", Exit{Clean: true, Reason: "exit status 0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			node, err := s.start([]string{"-c", c.script})
			if err != nil {
				t.Fatal(err)
			}
			if c.input != "" {
				if _, err := io.WriteString(node.Input, c.input); err != nil {
					t.Fatal(err)
				}
			}
			if err := node.Input.Close(); err != nil {
				t.Fatal(err)
			}
			output, err := io.ReadAll(node.Output)
			exit := <-node.Exited
			if err != nil || string(output) != c.output || node.Errors.All() != c.errors || exit != c.exit {
				t.Errorf("%.20q, %q, %v, %+v: want %.20q, %q, %+v", output, node.Errors.All(), err, exit, c.output, c.errors, c.exit)
			}
		})
	}
	end()
}

// TestStageGone: a program ends with its stage.
func TestStageGone(t *testing.T) {
	s, end := newTestStage(t)
	node, err := s.start([]string{"-c", "echo begun; cat"})
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(node.Output).ReadString('\n'); err != nil || line != "begun\n" {
		t.Fatalf("%q, %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, node.Output) }()
	end() // the stage's input ends, as when the harness is gone
	if exit := <-node.Exited; !exit.Clean {
		t.Errorf("it ended before the stage did, with %+v", exit)
	}
	if s.gone.Load() {
		t.Error("the stage is gone with a program that had ended")
	}
	if _, err := stage.Output(s.output, "\x00", io.Discard); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
}

// leftHost is a host of which only the processes are known.
type leftHost struct {
	agent.Host
	processes []agent.Process
}

func (h leftHost) Processes(context.Context) ([]agent.Process, error) { return h.processes, nil }

func (h leftHost) Cuts(context.Context) ([]string, error) { return nil, nil }

// TestStageClean: only the process of the stage may remain after a program.
func TestStageClean(t *testing.T) {
	own, child := agent.Process{PID: 7, Command: "lockcheck"}, agent.Process{PID: 8, Command: "sleep"}
	for _, c := range []struct {
		name      string
		processes []agent.Process
		want      error
	}{
		{"the stage", []agent.Process{own}, nil},
		{"a child", []agent.Process{own, child}, errLeft},
		{"a stage that runs nothing", nil, nil},
		{"a stage that is stopped", []agent.Process{{PID: 7, Stopped: true}}, errHeld},
	} {
		s := &staged{node: Node{Host: leftHost{processes: c.processes}}}
		if err := s.clean(t.Context()); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		s.gone.Store(true)
		if err := s.clean(t.Context()); (err == nil) != (len(c.processes) == 0) {
			t.Errorf("%s, and the stage was killed: %v", c.name, err)
		}
		s.busy.Store(true)
		if err := s.clean(t.Context()); !errors.Is(err, errOccupied) {
			t.Errorf("%s, and a program that runs: %v", c.name, err)
		}
	}
}

// TestLasting: the next program of a name is another process in the same container, also after a kill.
func TestLasting(t *testing.T) {
	r := request(t, "redis")
	r.Lasting = true
	cluster := startedWith(t, r)
	config, err := json.Marshal(map[string]string{"name": "w1", "lock": "redis", "workload": "set"})
	if err != nil {
		t.Fatal(err)
	}
	program := Program{Name: "w1", Networked: true, Args: []string{"worker"}}
	var address string
	for round, killed := range []bool{false, true, false} {
		node, err := cluster.Start(t.Context(), program)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := node.Input.Write(append(config, '\n')); err != nil {
			t.Fatal(err)
		}
		if address == "" {
			address = node.IP
		}
		if node.IP != address {
			t.Errorf("round %d: at %s, before at %s", round, node.IP, address)
		}
		if err := cluster.Clean(t.Context()); err == nil {
			t.Error("clean with a program that runs")
		}
		if _, err := cluster.Start(t.Context(), program); err == nil {
			t.Error("a second program of the name was started")
		}
		if killed {
			if _, err := node.Kill(t.Context()); err != nil {
				t.Fatal(err)
			}
		} else if err := node.Input.Close(); err != nil {
			t.Fatal(err)
		}
		if exit := <-node.Exited; exit.Killed != killed || exit.Clean == killed {
			t.Errorf("round %d: exit %+v", round, exit)
		}
		if err := cluster.Clean(t.Context()); err != nil {
			t.Errorf("round %d: not clean: %v", round, err)
		}
	}
	signal(t, cluster.Servers()[0], agent.Stop)
	if err := cluster.Clean(t.Context()); err == nil {
		t.Error("clean with a server that is stopped")
	}
}
