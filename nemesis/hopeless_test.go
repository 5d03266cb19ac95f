package nemesis

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockcheck/clusters"
)

// TestHopeless refuses before a run what every run would skip, and accepts what some run can do. It has five
// servers, three workers and a lease of a second.
func TestHopeless(t *testing.T) {
	for _, c := range []struct {
		name string
		step Step
		want string // part of the error; "" for none
	}{
		{"the moment of a worker", Step{Fault: "pause", Target: "actor", When: WhenHolding, Of: "w3"}, ""},
		{"the moment of nobody", Step{Fault: "pause", Target: "actor", When: WhenHolding, Of: "w4"}, `of: there is no worker "w4" (the workers are w1, w2, w3)`},
		{"the moment of a server", Step{Fault: "pause", Target: "actor", When: WhenHolding, Of: "n1"}, "of: there is no worker"},
		{"from another one", Step{Fault: "partition", Target: "w1", From: "w2"}, ""},
		{"from itself", Step{Fault: "partition", Target: "w1", From: "w1"}, "nobody is cut off from itself"},
		{"from itself and another one", Step{Fault: "partition", Target: "w1", From: "w1,w2"}, ""},
		{"from one of all", Step{Fault: "partition", Target: "all servers", From: "leader"}, "nobody is cut off from itself"},
		{"one of all from the rest", Step{Fault: "partition", Target: "one worker", From: "all workers"}, ""},
		{"the holder from itself", Step{Fault: "packet-loss", Loss: 0.5, Target: "holder", From: "holder", When: WhenHolding}, "nobody is cut off from itself"},
		{"the holder from itself by another name", Step{Fault: "partition", Target: "holder", From: "actor", When: WhenHolding}, "nobody is cut off from itself"},
		{"the holder from who lost its lock", Step{Fault: "partition", Target: "holder", From: "actor", When: WhenLost}, ""},
		{"the actor from who it is", Step{Fault: "partition", Target: "actor", From: "w2", When: WhenLost, Of: "w2"}, "nobody is cut off from itself"},
		{"the actor from another one", Step{Fault: "partition", Target: "actor", From: "w2", When: WhenLost, Of: "w1"}, ""},
		{"any from any other", Step{Fault: "partition", Target: "one worker", From: "one worker"}, ""},
		{"a clock by enough", Step{Fault: "clock", Target: "n1", Step: Span{Plus: -SmallestClockStep}}, ""},
		{"a clock by too little", Step{Fault: "clock", Target: "n1", Step: Span{Plus: 1 - SmallestClockStep}}, "too small to be proven; move the clock by 2.2s or more"},
		{"a strobe by too little for this lease", Step{Fault: "clock-strobe", Target: "n1", Step: Span{Leases: 1}}, "too small to be proven"},
		{"one killed of three", Step{Fault: "kill", Target: "holder", When: WhenHolding}, ""},
		{"two killed of three", Step{Fault: "kill", Target: "w1,w2"}, "this would kill 2 of 3 workers, and at least 2 must stay alive"},
		{"all killed", Step{Fault: "kill", Target: "all workers"}, `"all workers" would kill every worker, and at least 2 must stay alive; write target: w1`},
		{"all killed by another name", Step{Fault: "kill", Target: "workers"}, `"workers" would kill every worker`},
		{"most killed", Step{Fault: "kill", Target: "majority workers"}, "this would kill 2 of 3 workers, and at least 2 must stay alive; kill fewer, or run at least 5 workers"},
		{"a version that there is", Step{Fault: "restart", Target: "n1", Version: "1.1"}, ""},
		{"a version that there is not", Step{Fault: "restart", Target: "n1", Version: "1.2"}, "version: there is no version 1.2 (there are 1.1, 1.0)"},
		{"all servers killed", Step{Fault: "kill", Target: "all servers"}, ""},
		{"one killed with a server", Step{Fault: "kill", Target: "n1,w1"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.step.For = Span{Plus: time.Second}
			env := fiveAndThree()
			for _, server := range env.Servers {
				server.Again, server.Versions = func(context.Context) error { return nil }, []string{"1.1", "1.0"}
			}
			err := planOf(env, c.step)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}

// TestHopelessOfFew refuses roles for which there are too few nodes.
func TestHopelessOfFew(t *testing.T) {
	env := fiveAndThree()
	env.Workers, env.Servers = env.Workers[:1], env.Servers[:1]
	for target, want := range map[string]string{"waiter": "a waiter needs another worker", "w1": "", "one": ""} {
		err := planOf(env, Step{Fault: "pause", Target: target, For: Span{Plus: time.Second}})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q in it", target, err, want)
		}
	}
}

// TestHopelessAndUnsupported: an unsupported step can be left out, so other problems of the step do not matter.
func TestHopelessAndUnsupported(t *testing.T) {
	env := fiveAndThree()
	env.Servers[0].Clock = errors.New("it cannot be moved")
	err := planOf(env, Step{Fault: "clock", Target: "n1", Step: Span{Plus: time.Second}, For: Span{Plus: time.Second}})
	var unsupported *UnsupportedError
	if !errors.As(err, &unsupported) {
		t.Errorf("error %v, want that it is not supported", err)
	}
}

func planOf(env Environment, step Step) error {
	n := Nemesis{Environment: env, Schedule: Schedule{Steps: []Step{step}}}
	if err := n.Schedule.Check(); err != nil {
		return err
	}
	return n.Plan()
}

// TestKillWhatIsAdvised: the target that a refusal suggests is accepted, with any number of workers.
func TestKillWhatIsAdvised(t *testing.T) {
	refused := 0
	for workers := 1; workers <= 7; workers++ {
		for _, target := range []string{"workers", "all worker", "all workers", "majority workers", "w1"} {
			err := killOf(workers, target)
			if err == nil {
				continue
			}
			refused++
			advised, then := target, workers
			if more := regexp.MustCompile(`run at least (\d+)`).FindStringSubmatch(err.Error()); more != nil {
				then, _ = strconv.Atoi(more[1])
			}
			if _, other, is := strings.Cut(err.Error(), "write target: "); is {
				advised = other
			}
			if again := killOf(then, advised); again != nil {
				t.Errorf("%s of %d: %v\nthen %s of %d: %v", target, workers, err, advised, then, again)
			}
		}
	}
	if refused != 3*7+4+2 {
		t.Errorf("%d were refused", refused)
	}
}

// killOf returns why the target among so many workers cannot be killed; nil if it can.
func killOf(workers int, target string) error {
	env := fiveAndThree()
	env.Workers = nil
	for i := range workers {
		env.Workers = append(env.Workers, &clusters.Node{Name: fmt.Sprintf("w%d", i+1)})
	}
	return planOf(env, Step{Fault: "kill", Target: target, For: Span{Plus: time.Second}})
}
