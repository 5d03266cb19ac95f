package nemesis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/clusters/agent"
	"lockcheck/clusters/clustertest"
	"lockcheck/history"
)

func TestMain(m *testing.M) { os.Exit(clustertest.Main(m)) }

// Lengths of faults: one that is over at once, and one that only the test ends.
var (
	short = Span{Plus: time.Millisecond}
	long  = Span{Plus: plenty / 2}
)

// TestPause takes a pause of real processes through its stages and asks the kernel at each.
func TestPause(t *testing.T) {
	for _, c := range []struct {
		name, script    string
		processes       int
		stopped, awake  string // patterns of the states of the processes in /proc
		proven, evident string // patterns of the evidence
	}{
		{
			name: "one process", script: sleeper, processes: 1, stopped: "T", awake: "[SDR]",
			proven: `^w1: sleep\[\d+\] T$`, evident: `^w1: sleep\[\d+\] [SDR]$`,
		},
		{
			name: "one that has forked", script: "sleep 600 & sleep 601 & wait", processes: 3, stopped: "TTT", awake: "[SDR]{3}",
			proven: `^w1: sh\[\d+\] T, sleep\[\d+\] T, sleep\[\d+\] T$`, evident: `^w1: sh\[\d+\] [SDR], `,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			group := family(t, c.script, c.processes)
			d := &diary{t: t}
			w1 := node("w1", group)
			w1.Host = recordSignals(w1.Host, d)
			d.on = func(f history.Fault) {
				want := c.awake
				if f.Stage == history.Applied || f.Stage == history.Proven {
					want = c.stopped
				}
				if f.Stage == history.Applied || f.Stage == history.Healed {
					return // the kernel may not be done; the proof is the next stage
				}
				if got, err := states(group); err != nil || !regexp.MustCompile("^"+want+"$").MatchString(got) {
					t.Errorf("%s: the processes are %s, %v, want %s", f.Stage, got, err, want)
				}
			}
			n := d.nemesis(ofWorkers(w1), Step{Fault: "pause", Target: "w1", For: short})
			n.Run(bounded(t), plenty)
			d.expect("requested pause-1", "begin pause-1", "stop", "applied pause-1", "proven pause-1",
				"continue", "healed pause-1", "end pause-1", "proven-healed pause-1")
			if undo := d.lines[1]; undo != "begin pause-1: heal pause of w1" {
				t.Errorf("the journal has %q", undo)
			}
			for stage, pattern := range map[history.Stage]string{history.Proven: c.proven, history.ProvenHealed: c.evident} {
				if f := d.stage("pause-1", stage); !regexp.MustCompile(pattern).MatchString(f.Evidence) || !slices.Equal(f.Targets, []string{"w1"}) {
					t.Errorf("%s: evidence %q of %v, want %s", stage, f.Evidence, f.Targets, pattern)
				}
			}
			applied, healed := d.stage("pause-1", history.Applied), d.stage("pause-1", history.Healed)
			if !(0 < applied.From && applied.From <= applied.To && applied.To < healed.From && healed.From <= healed.To) {
				t.Errorf("applied in [%d, %d], healed in [%d, %d]", applied.From, applied.To, healed.From, healed.To)
			}
			executed := n.Executed().Executed
			if len(executed) != 1 || executed[0].ID != "pause-1" || !slices.Equal(executed[0].Targets, []string{"w1"}) {
				t.Errorf("executed %+v", executed)
			}
		})
	}
}

// TestCancelled ends runs during a fault. The target must be healed.
func TestCancelled(t *testing.T) {
	for _, when := range []history.Stage{history.Requested, history.Applied, history.Proven} {
		t.Run(string(when), func(t *testing.T) {
			ctx, cancel := context.WithCancel(bounded(t))
			group := family(t, sleeper, 1)
			d := &diary{t: t, on: func(f history.Fault) {
				if f.Stage == when {
					cancel()
				}
			}}
			w1 := node("w1", group)
			w1.Host = recordSignals(w1.Host, d)
			n := d.nemesis(ofWorkers(w1), Step{Fault: "pause", Target: "w1", For: long})
			n.Run(ctx, plenty)
			if f := d.stage("pause-1", history.ProvenHealed); f.Evidence == "" || !slices.Contains(d.order(), "end pause-1") {
				t.Errorf("it was not healed: %v", d.order())
			}
			if got, err := states(group); err != nil || strings.Contains("TtX", got) {
				t.Errorf("the process is %s, %v", got, err)
			}
		})
	}
}

// TestHealedAgain: a failed attempt to heal may have healed, so the fault is certainly in force only until the
// first attempt. For a single attempt the moment is known.
func TestHealedAgain(t *testing.T) {
	for _, c := range []struct {
		name  string
		fails []int
		again bool
	}{
		{"at the first attempt", nil, false},
		{"at the third attempt", []int{1, 2}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &diary{t: t}
			w1 := node("w1", family(t, sleeper, 1))
			host, first := recordSignals(w1.Host, d), int64(0)
			host.fail = func(s agent.Signal, n int) error {
				if s == agent.Continue && n == 1 {
					first = history.Now()
				}
				return only(agent.Continue, c.fails...)(s, n)
			}
			w1.Host = host
			d.nemesis(ofWorkers(w1), Step{Fault: "pause", Target: "w1", For: short}).Run(bounded(t), plenty)
			f := d.stage("pause-1", history.Healed)
			if (f.From < first) != c.again || f.To < first {
				t.Errorf("healed in [%d, %d], first attempt at %d: %v", f.From, f.To, first, d.order())
			}
		})
	}
}

// TestFailures: what could not be done or proven is never recorded as done, and the undo is always tried.
func TestFailures(t *testing.T) {
	begun := []string{"requested pause-1", "begin pause-1", "stop"}
	healed := []string{"continue", "healed pause-1", "end pause-1", "proven-healed pause-1"}
	for _, c := range []struct {
		name  string
		gone  bool // the target has no process any more
		spoil func(*diary, *recordingHost)
		at    history.Stage // stage at which the problem is reported
		why   string
		want  []string
	}{
		{
			name: "nothing goes wrong", at: history.Proven, why: "] T",
			want: slices.Concat(begun, []string{"applied pause-1", "proven pause-1"}, healed),
		},
		{
			name: "no undo on disk, no action", spoil: func(d *diary, _ *recordingHost) { d.noBegin = errNotToday },
			at: history.Skipped, why: "the undo could not be stored: not today",
			want: []string{"requested pause-1", "begin pause-1", "skipped pause-1"},
		},
		{
			// The action may have been done in part.
			name: "the action fails", at: history.Unproven, why: "not today",
			spoil: func(_ *diary, h *recordingHost) { h.fail = only(agent.Stop, 1) },
			want:  slices.Concat(begun, []string{"applied pause-1", "unproven pause-1"}, healed),
		},
		{
			name: "the process is gone", gone: true, at: history.Unproven, why: "no process to signal",
			want: slices.Concat(begun, []string{"applied pause-1", "unproven pause-1", "continue", "continue", "continue", "unhealed pause-1"}),
		},
		{
			name: "the target only says that it was stopped", at: history.Unproven, why: "] S",
			spoil: func(_ *diary, h *recordingHost) { h.ignored = agent.Stop },
			want:  slices.Concat(begun, []string{"applied pause-1", "unproven pause-1"}, healed),
		},
		{
			name: "healed at the second attempt", at: history.ProvenHealed, why: "] S",
			spoil: func(_ *diary, h *recordingHost) { h.fail = only(agent.Continue, 1) },
			want:  slices.Concat(begun, []string{"applied pause-1", "proven pause-1", "continue"}, healed),
		},
		{
			name: "not healed", at: history.Unhealed, why: "not today",
			spoil: func(_ *diary, h *recordingHost) { h.fail = only(agent.Continue, 1, 2, 3) },
			want: slices.Concat(begun, []string{"applied pause-1", "proven pause-1",
				"continue", "continue", "continue", "unhealed pause-1"}),
		},
		{
			name: "the target only says that it goes on", at: history.Unhealed, why: "] T",
			spoil: func(_ *diary, h *recordingHost) { h.ignored = agent.Continue },
			want: slices.Concat(begun, []string{"applied pause-1", "proven pause-1",
				"continue", "healed pause-1", "unhealed pause-1"}),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // it waits for a proof that does not come
			ctx, cancel := context.WithCancel(bounded(t))
			group := 0
			if !c.gone {
				group = family(t, sleeper, 1)
			}
			d := &diary{t: t}
			d.on = func(f history.Fault) {
				if c.at == history.Unproven && f.Stage == history.Applied {
					cancel() // this proof cannot come
				}
			}
			w1 := node("w1", group)
			host := recordSignals(w1.Host, d)
			w1.Host = host
			if c.spoil != nil {
				c.spoil(d, host)
			}
			n := d.nemesis(ofWorkers(w1), Step{Fault: "pause", Target: "w1", For: short})
			n.Run(ctx, plenty)
			d.expect(c.want...)
			if f := d.stage("pause-1", c.at); !strings.Contains(f.Evidence, c.why) {
				t.Errorf("%s: %q, want %q", c.at, f.Evidence, c.why)
			}
		})
	}
}

// only makes the given signals fail.
func only(signal agent.Signal, numbers ...int) func(agent.Signal, int) error {
	return func(s agent.Signal, n int) error {
		if s == signal && slices.Contains(numbers, n) {
			return errNotToday
		}
		return nil
	}
}

// TestSameFaultTwice: two pauses of one target conflict, because the end of the first would end both.
func TestSameFaultTwice(t *testing.T) {
	for _, c := range []struct {
		target string
		stage  history.Stage
		why    string
	}{
		{"w1", history.Skipped, "w1 is under the same fault already"},
		{"workers", history.Skipped, "w1 is under the same fault already"},
		{"w2", history.Proven, "] T"},
	} {
		t.Run(c.target, func(t *testing.T) {
			ctx, cancel := context.WithCancel(bounded(t))
			d := &diary{t: t, on: func(f history.Fault) {
				if f.ID == "second" && f.Stage == c.stage {
					cancel()
				}
			}}
			d.nemesis(sleepers(t, 2),
				Step{ID: "first", Fault: "pause", Target: "w1", For: long},
				Step{ID: "second", Fault: "pause", Target: c.target, For: long, Needs: []string{"first"}},
			).Run(ctx, plenty)
			if f := d.stage("second", c.stage); !strings.Contains(f.Evidence, c.why) {
				t.Errorf("second: %q, want %q", f.Evidence, c.why)
			}
			if d.stage("first", history.ProvenHealed).ID == "" {
				t.Error("the first was not healed")
			}
		})
	}
	// When the first pause is over the target is free again.
	d := &diary{t: t}
	d.nemesis(sleepers(t, 1),
		Step{ID: "first", Fault: "pause", Target: "w1", For: short, Sequence: "a"},
		Step{ID: "second", Fault: "pause", Target: "w1", For: short, Sequence: "a"},
	).Run(bounded(t), plenty)
	if d.stage("second", history.Proven).ID == "" {
		t.Errorf("one after the other: %v", d.order())
	}
}

// TestSequences: steps of one sequence come one after the other. Other steps may be in force together, as two
// that last until the test ends show.
func TestSequences(t *testing.T) {
	d := &diary{t: t}
	d.nemesis(sleepers(t, 2),
		Step{ID: "a", Fault: "pause", Target: "w1", For: short, Sequence: "one at a time"},
		Step{ID: "b", Fault: "pause", Target: "w2", For: short, Sequence: "one at a time"},
	).Run(bounded(t), plenty)
	if order := d.order(); slices.Index(order, "requested b") < slices.Index(order, "proven-healed a") {
		t.Errorf("in one sequence: %v", order)
	}

	ctx, cancel := context.WithCancel(bounded(t))
	d = &diary{t: t}
	d.on = func(history.Fault) {
		if d.stage("a", history.Proven).ID != "" && d.stage("b", history.Proven).ID != "" {
			cancel()
		}
	}
	d.nemesis(sleepers(t, 2),
		Step{ID: "a", Fault: "pause", Target: "w1", For: long},
		Step{ID: "b", Fault: "pause", Target: "w2", For: long},
	).Run(ctx, plenty)
	if order := d.order(); slices.Index(order, "proven b") > slices.Index(order, "healed a") {
		t.Errorf("without sequences: %v", order)
	}
}

// TestSequenceGroups: one group for each name, in the order of the schedule.
func TestSequenceGroups(t *testing.T) {
	var steps []Step
	for i, sequence := range []string{"", "a", "b", "a", "", "b"} {
		steps = append(steps, Step{ID: fmt.Sprint(i), Sequence: sequence})
	}
	var got []string
	for _, sequence := range sequences(steps) {
		var ids []string
		for _, step := range sequence {
			ids = append(ids, step.ID)
		}
		got = append(got, strings.Join(ids, " "))
	}
	if want := []string{"0", "1 3", "2 5", "4"}; !slices.Equal(got, want) {
		t.Errorf("sequences %q, want %q", got, want)
	}
}

func TestNeeds(t *testing.T) {
	d := &diary{t: t}
	d.nemesis(sleepers(t, 2),
		Step{ID: "first", Fault: "pause", Target: "w1", For: short},
		Step{ID: "second", Fault: "pause", Target: "w2", For: short, Needs: []string{"first"}},
	).Run(bounded(t), plenty)
	if order := d.order(); slices.Index(order, "requested second") < slices.Index(order, "proven first") ||
		!slices.Contains(order, "proven second") {
		t.Errorf("second was not armed by first: %v", order)
	}

	// A step is not begun if a step that it needs was skipped.
	ctx, cancel := context.WithCancel(bounded(t))
	d = &diary{t: t, on: func(f history.Fault) {
		if f.Stage == history.Skipped {
			cancel()
		}
	}}
	env := sleepers(t, 1)
	env.Servers = append(env.Servers, node("n1", 0))
	d.nemesis(env,
		Step{ID: "first", Fault: "pause", Target: "n9", For: short},
		Step{ID: "second", Fault: "pause", Target: "w1", For: short, Needs: []string{"first"}},
	).Run(ctx, plenty)
	d.expect("skipped first", "skipped second")
}

// TestWhenHolding: the fault comes when a worker enters its section, records how soon after that, and hits that
// worker.
func TestWhenHolding(t *testing.T) {
	const into = 20 * time.Millisecond
	for _, c := range []struct {
		of, enters, target, hit string
		into                    time.Duration
	}{
		{"", "w2", "holder", "w2", 0},
		{"", "w2", "holder", "w2", into},
		{"w2", "w2", "holder", "w2", 0},
		{"w2", "w2", "w1", "w1", 0},
		{"w1", "w1", "waiter", "w2", 0},
	} {
		t.Run(fmt.Sprintf("%s when %s", c.target, c.enters), func(t *testing.T) {
			d := &diary{t: t}
			n := d.nemesis(sleepers(t, 2), Step{ID: "p", Fault: "pause", Target: c.target, When: WhenHolding, Of: c.of, Into: Span{Plus: c.into}, For: short})
			done := make(chan struct{})
			go func() {
				defer close(done)
				n.Run(bounded(t), plenty)
			}()
			clustertest.Eventually(t, 10*time.Second, func() error {
				if len(n.Environment.Watch.waiters()) == 0 {
					return fmt.Errorf("nobody waits for a holder")
				}
				return nil
			})
			d.expect() // nothing happens before the section
			e := reads(c.enters, "g1")
			e.Time = history.Now()
			n.Environment.Watch.Observe(e)
			<-done
			applied := d.stage("p", history.Applied)
			after := time.Duration(applied.To - e.Time).Round(10 * time.Microsecond)
			if want := fmt.Sprintf("%s after %s had read", after, c.enters); applied.Evidence != want || after <= c.into {
				t.Errorf("applied: %q, want %q", applied.Evidence, want)
			}
			if f := d.stage("p", history.Proven); !slices.Equal(f.Targets, []string{c.hit}) || f.Role != c.target {
				t.Errorf("it hit %v as %s, want %s", f.Targets, f.Role, c.hit)
			}
		})
	}
}

// TestIntoSectionThatIsOver: a fault at some time into a section waits for a section that lasts that long.
func TestIntoSectionThatIsOver(t *testing.T) {
	d := &diary{t: t}
	n := d.nemesis(sleepers(t, 2), Step{ID: "p", Fault: "pause", Target: "holder", When: WhenHolding, Into: Span{Plus: 20 * time.Millisecond}, For: short})
	watch := n.Environment.Watch
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.Run(bounded(t), plenty)
	}()
	awaited := func() {
		clustertest.Eventually(t, 10*time.Second, func() error {
			if len(watch.waiters()) == 0 {
				return fmt.Errorf("nobody waits for a holder")
			}
			return nil
		})
	}
	enter := func(worker, grant string) int64 {
		e := reads(worker, grant)
		e.Time = history.Now()
		watch.Observe(e)
		return e.Time
	}
	awaited()
	enter("w1", "g1")
	release := reads("w1", "g1")
	release.Type, release.F = history.Invoke, history.Release
	watch.Observe(release)
	awaited()
	entered := enter("w2", "g2")
	<-done
	applied := d.stage("p", history.Applied)
	after := time.Duration(applied.To - entered).Round(10 * time.Microsecond)
	if want := fmt.Sprintf("%s after w2 had read", after); applied.Evidence != want || !slices.Equal(applied.Targets, []string{"w2"}) {
		t.Errorf("%v: %q, want w2, %q", applied.Targets, applied.Evidence, want)
	}
}

// TestNobodyThere: if no node has the role the step is skipped, not delayed.
func TestNobodyThere(t *testing.T) {
	d := &diary{t: t}
	env := sleepers(t, 1)
	n := d.nemesis(env, Step{ID: "p", Fault: "pause", Target: "waiter", For: short})
	n.Environment.Watch.Observe(reads("w1", "g1"))
	n.Run(bounded(t), plenty)
	d.expect("skipped p")
	if f := d.stage("p", history.Skipped); f.Evidence != errNobody.Error() {
		t.Errorf("why: %q", f.Evidence)
	}
}

// TestTooLate: a fault that would be cut short is not begun.
func TestTooLate(t *testing.T) {
	for _, c := range []struct {
		name  string
		lasts Span
		want  int // faults
	}{
		{"fits", short, 1},
		{"would end after the run", Span{Plus: plenty + time.Minute}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &diary{t: t}
			n := d.nemesis(sleepers(t, 1), Step{Fault: "pause", Target: "w1", For: c.lasts})
			n.Run(bounded(t), plenty)
			if got := len(n.Executed().Executed); got != c.want {
				t.Errorf("%d faults, want %d: %v", got, c.want, d.order())
			}
		})
	}
	// A step after the end of the run is skipped, and not waited for.
	d := &diary{t: t}
	d.nemesis(sleepers(t, 1), Step{Fault: "pause", Target: "w1", For: short, After: Span{Plus: plenty}}).Run(bounded(t), 10*time.Millisecond)
	d.expect("skipped pause-1")
}

func TestEvery(t *testing.T) {
	ids := func(n *Nemesis) string {
		var ids []string
		for _, e := range n.Executed().Executed {
			ids = append(ids, e.ID)
		}
		return strings.Join(ids, " ")
	}
	env := sleepers(t, 1)
	for _, c := range []struct {
		every Span
		times int
		want  string
	}{
		{Span{}, 0, "p"},
		{short, 1, "p.1"},
		{short, 3, "p.1 p.2 p.3"},
	} {
		d := &diary{t: t}
		n := d.nemesis(env, Step{ID: "p", Fault: "pause", Target: "w1", For: short, Every: c.every, Times: c.times})
		n.Run(bounded(t), plenty)
		if got := ids(n); got != c.want {
			t.Errorf("every %s, %d times: %s, want %s", c.every, c.times, got, c.want)
		}
	}
	// Without a limit the repetitions continue until the run ends.
	ctx, cancel := context.WithCancel(bounded(t))
	d := &diary{t: t, on: func(f history.Fault) {
		if f.ID == "p.5" {
			cancel()
		}
	}}
	d.nemesis(env, Step{ID: "p", Fault: "pause", Target: "w1", For: short, Every: short}).Run(ctx, plenty)
	if d.stage("p.5", history.ProvenHealed).ID == "" || d.stage("p.6", history.Requested).ID != "" {
		t.Errorf("until the run ends: %v", d.order())
	}
}

// TestOrderOfTimes runs many faults concurrently. The diary checks that recorded times never go back.
func TestOrderOfTimes(t *testing.T) {
	env := Environment{}
	var steps []Step
	for i := range 50 {
		name := fmt.Sprintf("n%d", i)
		env.Servers = append(env.Servers, node(name, 0))
		steps = append(steps, Step{ID: name, Fault: "pause", Target: name, For: short})
	}
	d := &diary{t: t}
	n := d.nemesis(env, steps...)
	n.Record = func(e history.Event) {
		for range rand.IntN(20) { // unlocked concurrent recording would get out of order
			runtime.Gosched()
		}
		d.record(e)
	}
	n.Run(bounded(t), plenty)
	if len(d.faults) != 4*len(steps) {
		t.Errorf("%d events of %d faults", len(d.faults), len(steps))
	}
}
