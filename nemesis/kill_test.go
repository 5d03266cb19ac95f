package nemesis

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/clusters/clustertest"
	"lockcheck/history"
)

// TestKillWorker takes the kill of a worker through its stages and asks the kernel at each. Later steps must
// not count on the worker.
func TestKillWorker(t *testing.T) {
	group := family(t, "sleep 600 & sleep 601 & wait", 3)
	env := sleepers(t, 3)
	w4 := node("w4", group)
	env.Workers = append(env.Workers, w4)
	d := &diary{t: t}
	w4.Host = recordSignals(w4.Host, d)
	d.on = func(f history.Fault) {
		if f.ID != "death" || f.Stage == history.Requested {
			return
		}
		if letters, err := states(group); err != nil || strings.Trim(letters, "Z") != "" && f.Stage != history.Applied {
			t.Errorf("%s: the processes are %s, %v, want none", f.Stage, letters, err)
		}
	}
	n := d.nemesis(env,
		Step{ID: "death", Fault: "kill", Target: "w4", Sequence: "a"},
		Step{ID: "pause", Fault: "pause", Target: "w4", For: short, Sequence: "a"},
		Step{ID: "again", Fault: "kill", Target: "w4", Sequence: "a"},
		Step{ID: "others", Fault: "pause", Target: "workers", For: short, Sequence: "a"},
	)
	n.Environment.Watch.Observe(reads("w4", "w4-1"))
	n.Run(bounded(t), plenty)
	want := []string{"requested death", "begin death", "kill", "applied death", "proven death",
		"healed death", "end death", "proven-healed death", "skipped pause", "skipped again"}
	if got := d.order(); !slices.Equal(got[:min(len(got), len(want))], want) {
		t.Errorf("happened: %v\nwant: %v", got, want)
	}
	for stage, want := range map[history.Stage]string{
		history.Proven: "w4 has no process", history.ProvenHealed: "w4 dead and not restarted",
	} {
		if f := d.stage("death", stage); f.Evidence != want {
			t.Errorf("%s: %q, want %q", stage, f.Evidence, want)
		}
	}
	for _, id := range []string{"pause", "again"} {
		if f := d.stage(id, history.Skipped); f.Evidence != "w4 was killed" {
			t.Errorf("%s of a dead worker: %q", id, f.Evidence)
		}
	}
	if f := d.stage("others", history.ProvenHealed); !slices.Equal(f.Targets, []string{"w1", "w2", "w3"}) {
		t.Errorf("all workers are %v, want the living ones", f.Targets)
	}
	n.Environment.Watch.Observe(reads("w4", "w4-2")) // its last event arrives late
	if holders := n.Environment.Watch.insiders(); len(holders) > 0 {
		t.Errorf("inside are %v, who are dead", holders)
	}
}

// TestKillUnproven: a worker that did not receive the signal.
func TestKillUnproven(t *testing.T) {
	t.Parallel() // it waits for a proof that does not come
	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()
	env := sleepers(t, 3)
	d := &diary{t: t, on: func(f history.Fault) {
		if f.Stage == history.Applied {
			cancel() // the proof cannot come
		}
	}}
	host := recordSignals(env.Workers[0].Host, d)
	host.ignored = agent.Kill
	env.Workers[0].Host = host
	d.nemesis(env, Step{Fault: "kill", Target: "w1"}).Run(ctx, plenty)
	for _, stage := range []history.Stage{history.Unproven, history.Unhealed} {
		if f := d.stage("kill-1", stage); !strings.Contains(f.Evidence, "still runs") {
			t.Errorf("%s: %q", stage, f.Evidence)
		}
	}
}

// TestKillSpares: enough workers survive to compete.
func TestKillSpares(t *testing.T) {
	for _, c := range []struct {
		workers int
		target  string
		killed  bool
	}{
		{3, "w1", true}, {3, "w1,w2", false}, {4, "w1,w2", true}, {2, "w1", false}, {1, "w1", false}, {3, "workers", false},
	} {
		d := &diary{t: t}
		d.nemesis(sleepers(t, c.workers), Step{Fault: "kill", Target: c.target}).Run(bounded(t), plenty)
		if killed := d.stage("kill-1", history.Proven).ID != ""; killed != c.killed {
			t.Errorf("%s of %d workers killed: %v, want %v", c.target, c.workers, killed, c.killed)
		}
		if why := d.stage("kill-1", history.Skipped).Evidence; !c.killed && why != errTooFewWorkers.Error() {
			t.Errorf("%s of %d workers: %q", c.target, c.workers, why)
		}
	}
}

// TestKillSparesTogether: kills that begin at the same moment spare as many workers as kills one after the
// other.
func TestKillSparesTogether(t *testing.T) {
	for workers, killed := range map[int]int{3: 1, 4: 2} {
		n := (&diary{t: t}).nemesis(sleepers(t, workers))
		n.busy = make(map[affected]bool)
		kills := 0
		for _, name := range []string{"w1", "w2"} {
			// Prepared, and not yet marked as killed: two sequences can get this far at the same time.
			switch _, _, err := n.prepare(Step{Fault: "kill", Target: name}, name, entry{}); {
			case err == nil:
				kills++
			case !errors.Is(err, errTooFewWorkers):
				t.Errorf("%s of %d: %v", name, workers, err)
			}
		}
		if kills != killed {
			t.Errorf("%d of %d workers are killed, want %d", kills, workers, killed)
		}
	}
}

// reborn is a server that can be restarted, after a number of failures.
type reborn struct {
	*clusters.Node
	group  atomic.Int64
	starts int
}

func newReborn(t *testing.T, failures int) *reborn {
	s := new(reborn)
	s.group.Store(int64(family(t, sleeper, 1)))
	s.Node = &clusters.Node{
		Name: "n1",
		Host: agent.Local{Probes: follower{}, PIDs: func() ([]int, error) { return members(int(s.group.Load())) }},
		Again: func(context.Context) error {
			if s.starts++; s.starts <= failures {
				return errNotToday
			}
			s.group.Store(int64(family(t, sleeper, 1)))
			return nil
		},
	}
	return s
}

// TestKillServer: a server is dead for the time of the fault and then restarted exactly once, with as many
// attempts as that takes.
func TestKillServer(t *testing.T) {
	for failures, starts := range []int{1, 2, 3, 3} {
		server := newReborn(t, failures)
		first := server.group.Load()
		d := &diary{t: t}
		d.on = func(f history.Fault) {
			if letters, err := states(int(first)); f.Stage == history.Proven && (err != nil || letters != "Z") {
				t.Errorf("dead, the process is %s, %v", letters, err)
			}
		}
		d.nemesis(Environment{Servers: []*clusters.Node{server.Node}}, Step{Fault: "kill", For: short}).Run(bounded(t), plenty)
		if server.starts != starts {
			t.Errorf("%d failures: started %d times, want %d", failures, server.starts, starts)
		}
		healed := d.stage("kill-1", history.ProvenHealed)
		if failures == 3 {
			if healed.ID != "" || d.stage("kill-1", history.Unhealed).Evidence != errNotToday.Error() {
				t.Errorf("a server that does not start: %v", d.order())
			}
			continue
		}
		if !strings.HasPrefix(healed.Evidence, "n1 is ready again after ") {
			t.Errorf("healed: %q", healed.Evidence)
		}
		if letters, err := states(int(server.group.Load())); err != nil || letters != "S" {
			t.Errorf("healed, the process is %s, %v", letters, err)
		}
	}
}

// unready is a server that never becomes ready.
type unready struct{ follower }

func (unready) Ready(context.Context, string) error { return errNotToday }

// TestKillDisturbed: a server that other faults keep from being ready must run. Without other faults it must be
// ready.
func TestKillDisturbed(t *testing.T) {
	server := newReborn(t, 0)
	host := server.Host.(agent.Local)
	host.Probes = unready{}
	server.Host = host
	stopped, awake := node("n2", family(t, sleeper, 1)), node("n3", family(t, sleeper, 1))
	if _, err := stopped.Host.Signal(t.Context(), agent.Stop); err != nil {
		t.Fatal(err)
	}
	if evidence, yes := (&kill{env: Environment{Servers: []*clusters.Node{server.Node, stopped}}}).runs(t.Context(), server.Node); !yes || !strings.Contains(evidence, "while n2 is stopped") {
		t.Errorf("next to a stopped server: %v, %q", yes, evidence)
	}
	if evidence, yes := (&kill{env: Environment{Servers: []*clusters.Node{server.Node, awake}}}).runs(t.Context(), server.Node); yes {
		t.Errorf("next to a healthy server: %q", evidence)
	}
	if _, err := server.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, time.Minute, func() error { // the kernel ends the process with a delay
		if evidence, yes := (&kill{env: Environment{Servers: []*clusters.Node{server.Node, stopped}}}).runs(t.Context(), server.Node); yes {
			return errors.New("dead itself: " + evidence)
		}
		return nil
	})
}

// TestKillAmongOthers: a fault that could not be healed on a dead server is not begun there, and a server under
// such a fault is not killed.
func TestKillAmongOthers(t *testing.T) {
	for _, c := range []struct{ first, second, why string }{
		{"kill", "pause", "n1 is dead at the moment"},
		{"kill", "clock", "n1 is dead at the moment"},
		{"kill", "kill", "n1 is under the same fault already"},
		{"pause", "kill", "n1 is stopped and could not be continued"},
		{"kill", "disk-full", "n1 is dead at the moment"},
		{"pause", "fsync-error", "n1 is stopped, so its disk could not be mended"},
	} {
		ctx, cancel := context.WithCancel(bounded(t))
		d := &diary{t: t, on: func(f history.Fault) {
			if f.ID == "second" {
				cancel()
			}
		}}
		step := Step{ID: "second", Fault: c.second, Target: "n1", For: long, Needs: []string{"first"}}
		if c.second == "clock" {
			step.Step = Span{Plus: time.Minute}
		}
		d.nemesis(Environment{Servers: []*clusters.Node{newReborn(t, 0).Node}},
			Step{ID: "first", Fault: c.first, Target: "n1", For: long}, step).Run(ctx, plenty)
		cancel()
		if f := d.stage("second", history.Skipped); f.Evidence != c.why {
			t.Errorf("%s under %s: %q, want %q", c.second, c.first, f.Evidence, c.why)
		}
		if d.stage("first", history.ProvenHealed).ID == "" {
			t.Errorf("%s was not healed", c.first)
		}
	}
}

// TestKillSupport: embedded servers keep nothing to restart with. Their workers can still be killed.
func TestKillSupport(t *testing.T) {
	env := sleepers(t, 3)
	env.Servers = []*clusters.Node{node("n1", 0)}
	var unsupported *UnsupportedError
	for target, supported := range map[string]bool{"one": false, "n1": false, "holder": true, "w2": true, "one worker": true} {
		err := (&diary{t: t}).nemesis(env, Step{Fault: "kill", Target: target}).Plan()
		if errors.As(err, &unsupported) == supported || supported && err != nil {
			t.Errorf("%s: %v, want supported: %v", target, err, supported)
		}
	}
	env.Servers = []*clusters.Node{newReborn(t, 0).Node}
	if err := (&diary{t: t}).nemesis(env, Step{Fault: "kill"}).Plan(); err != nil {
		t.Errorf("a server that can be started again: %v", err)
	}
}
