package nemesis

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/history"
)

func TestJudgeReading(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name         string
		want         time.Duration
		server       time.Duration // ahead of true time before the question
		took         time.Duration // the question
		good         bool
		evidenceHint string
	}{
		{"true time", 0, 0, time.Millisecond, true, "n1 tells 03:04:05.000, -0.001 s from true time"},
		{"moved as it should", 10 * time.Second, 10 * time.Second, 0, true, "n1 tells 03:04:15.000, +10.000 s"},
		{"moved back as it should", -10 * time.Second, -10 * time.Second, 0, true, "n1 tells 03:03:55.000, -10.000 s"},
		{"not moved", 10 * time.Second, 0, 0, false, "not +10.000 s"},
		{"moved the other way", 10 * time.Second, -10 * time.Second, 0, false, "not +10.000 s"},
		{"moved too far", 10 * time.Second, 12 * time.Second, 0, false, "not +10.000 s"},
		{"still moved", 0, 10 * time.Second, 0, false, "not +0.000 s"},
		// Servers that report whole seconds are up to a second behind.
		{"whole seconds", 10 * time.Second, 9001 * time.Millisecond, 0, true, "+9.001 s"},
		{"more than a second behind", 10 * time.Second, 8800 * time.Millisecond, 0, false, "+8.800 s"},
		// The server may have read its clock at any time during a slow question.
		{"slow answer", 10 * time.Second, 13 * time.Second, 3 * time.Second, true, "+10.000 s"},
		{"answer too slow to tell from true time", 3 * time.Second, 2 * time.Second, 2 * time.Second, false, "which may be true time"},
		{"behind, by an answer too slow to tell", -3 * time.Second, 0, 2 * time.Second, false, "which may be true time"},
		{"answer too slow to prove that nothing was moved", 0, 13 * time.Second, 3 * time.Second, false, "not +0.000 s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			evidence, err := judgeReading("n1", agent.Reading{Server: at.Add(c.server), Before: at, After: at.Add(c.took)}, c.want)
			if err != nil {
				evidence = err.Error()
			}
			if (err == nil) != c.good || !strings.Contains(evidence, c.evidenceHint) {
				t.Errorf("good %t, %q, want %t and %q in it", err == nil, evidence, c.good, c.evidenceHint)
			}
		})
	}
}

// follower is a server whose wall clock follows its clock file, as under libfaketime; without a path it ignores
// the file.
type follower struct{ path string }

func (follower) Ready(context.Context, string) error             { return nil }
func (follower) Version(context.Context, string) (string, error) { return "", nil }

func (f follower) Clock(context.Context, string) (time.Time, error) {
	if f.path == "" {
		return time.Now(), nil
	}
	text, err := os.ReadFile(f.path)
	if err != nil {
		return time.Time{}, err
	}
	seconds, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
	return time.Now().Add(time.Duration(math.Round(seconds * 1e9))), err
}

// TestClock moves the clock of a server that follows its file, and of one that does not. Only the first is
// proven.
func TestClock(t *testing.T) {
	for _, unmoved := range []bool{false, true} {
		ctx, cancel := context.WithCancel(bounded(t))
		path := filepath.Join(t.TempDir(), "offset")
		server := follower{path}
		d := &diary{t: t}
		if unmoved {
			server.path = ""
			d.on = func(f history.Fault) {
				if f.Stage == history.Applied {
					cancel() // the proof cannot come
				}
			}
		}
		n1 := &clusters.Node{Name: "n1", Host: agent.Local{ClockFile: path, Probes: server}}
		d.nemesis(Environment{Servers: []*clusters.Node{n1}, Lease: 2 * time.Second},
			Step{Fault: "clock", Target: "n1", Step: Span{1, 8 * time.Second}, For: short},
		).Run(ctx, plenty)
		cancel()
		proof := history.Proven
		if unmoved {
			proof = history.Unproven
		}
		if want := []string{
			"requested clock-1", "begin clock-1", "applied clock-1", string(proof) + " clock-1",
			"healed clock-1", "end clock-1", "proven-healed clock-1",
		}; !slices.Equal(d.order(), want) {
			t.Errorf("unmoved %t: %v, want %v", unmoved, d.order(), want)
		}
		if f := d.stage("clock-1", proof); f.Step != (10*time.Second).Nanoseconds() || unmoved != strings.Contains(f.Evidence, "not +10.000 s") {
			t.Errorf("unmoved %t: step %d, %q", unmoved, f.Step, f.Evidence)
		}
	}
}

// TestClockOrStopped: a stopped server cannot report its time, so a clock step on it would look unhealed. On
// another node a step is fine.
func TestClockOrStopped(t *testing.T) {
	for _, c := range []struct{ first, second, target, why string }{
		{"clock", "pause", "n1", "n1 could not be asked for its clock"},
		{"pause", "clock", "n1", "n1 is stopped and could not be asked for its clock"},
		{"clock", "pause", "w1", ""},
	} {
		t.Run(c.first+" "+c.second+" "+c.target, func(t *testing.T) {
			ctx, cancel := context.WithCancel(bounded(t))
			d := &diary{t: t, on: func(f history.Fault) {
				if f.ID == "second" && f.Stage != history.Requested && f.Stage != history.Applied {
					cancel()
				}
			}}
			path := filepath.Join(t.TempDir(), "offset")
			group := family(t, sleeper, 1)
			env := sleepers(t, 1)
			env.Servers = []*clusters.Node{{Name: "n1", Host: agent.Local{
				ClockFile: path, Probes: follower{path}, PIDs: func() ([]int, error) { return members(group) },
			}}}
			step := func(id, fault, target string) Step {
				s := Step{ID: id, Fault: fault, Target: target, For: long}
				if fault == "clock" {
					s.Step = Span{Plus: time.Minute}
				}
				return s
			}
			second := step("second", c.second, c.target)
			second.Needs = []string{"first"}
			d.nemesis(env, step("first", c.first, "n1"), second).Run(ctx, plenty)
			if f := d.stage("second", history.Skipped); f.Evidence != c.why {
				t.Errorf("second: %q, want %q: %v", f.Evidence, c.why, d.order())
			}
			if d.stage("first", history.ProvenHealed).ID == "" {
				t.Errorf("the first was not healed: %v", d.order())
			}
		})
	}
}

// TestClockStepTooSmall: a step that the resolution of a server's clock could hide is refused.
func TestClockStepTooSmall(t *testing.T) {
	for step, good := range map[time.Duration]bool{
		SmallestClockStep: true, -SmallestClockStep: true, SmallestClockStep - 1: false, -time.Second: false,
	} {
		_, err := newClock(Environment{}, Order{Step: Step{Step: Span{Plus: step}}})
		if (err == nil) != good {
			t.Errorf("a step of %s: %v", step, err)
		}
	}
}
