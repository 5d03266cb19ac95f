package runs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clusters/clustertest"
	"lockcheck/history"
	"lockcheck/internal/cleanup"
	"lockcheck/internal/lockfile"
	"lockcheck/nemesis"
	"lockcheck/workloads"
)

// options returns the options of a short run on the embedded lock.
func options(t *testing.T, change func(*Options)) Options {
	t.Helper()
	o := Options{
		Lock: "memory", Workload: "set", Guard: "none", Nemesis: "pause", Interval: time.Second,
		TimeLimit: 8 * time.Second, Concurrency: 5,
		// Sections are so long that a signal arrives within the section of its target, even on a busy
		// machine.
		Use:    workloads.Use{TTL: 500 * time.Millisecond, Section: workloads.Range{Min: 100 * time.Millisecond, Max: 200 * time.Millisecond}},
		MinOps: 5, Seed: 1, Machine: Machine{Store: t.TempDir(), Binary: clustertest.Binary(t), Version: "test"},
	}
	if change != nil {
		change(&o)
	}
	return o
}

// logged shows the progress of a run in the log of its test.
type logged struct{ t *testing.T }

func (l logged) Step(format string, args ...any) { l.t.Logf(format, args...) }
func (logged) Status(string, ...any)             {}

// runTest runs a test to its end and makes sure that it left nothing.
func runTest(t *testing.T, o Options) Outcome {
	t.Helper()
	// A test with servers on Docker has called Engine, which says to which ring it belongs.
	if lock, err := lockfile.Find(o.Lock); err != nil || !lock.Servers.OnDocker() {
		clustertest.StartsServers(t)
	}
	outcome, err := Test(context.Background(), o, nil, logged{t})
	return leftNothing(t, outcome, err)
}

// leftNothing makes sure that a run ended properly and left nothing.
func leftNothing(t *testing.T, outcome Outcome, err error) Outcome {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %s %v", outcome.Results.Verdict, outcome.Results.Sentence, outcome.Results.Finding(checker.MutualExclusion).Causes)
	if all, err := cleanup.Journals(); err != nil || slices.Contains(all, outcome.History.Header.Run) {
		t.Errorf("journals %v, %v: that of the run is to be gone", all, err)
	}
	return outcome
}

// patiently runs a test, and repeats it with more time until enough accepts the results, at most twice. On a
// busy machine workers hold the lock only a few times a second, or less often.
func patiently(t *testing.T, run func(*testing.T, Options) Outcome, o Options, enough func(checker.Results) bool) Outcome {
	t.Helper()
	var outcome Outcome
	for _, longer := range []time.Duration{1, 3, 6} {
		again, longer := o, clustertest.Slow(longer)
		again.TimeLimit, again.recoveryLimit = longer*o.TimeLimit, longer*o.recoveryLimit
		if outcome = run(t, again); enough(outcome.Results) {
			break
		}
	}
	return outcome
}

// verdictIs runs a test that must end with a verdict. On a busy machine a fault may strike too late, so a run
// that is unexpectedly undecided, or shows no violation, is repeated. If a run must be valid but leases ran
// out with no fault of a holder, it is repeated with everything slower.
func verdictIs(t *testing.T, want checker.Verdict, o Options) Outcome {
	t.Helper()
	return endsWith(t, runTest, want, o)
}

// endsWith is verdictIs for a test that run runs in another way.
func endsWith(t *testing.T, run func(*testing.T, Options) Outcome, want checker.Verdict, o Options) Outcome {
	t.Helper()
	decided := func(r checker.Results) bool {
		return r.Verdict == want || r.Verdict != checker.Undecided && want != checker.Violation
	}
	outcome := patiently(t, run, o, decided)
	if want == checker.Valid && stoodStill(outcome.Results) {
		const slower = 4
		o.TTL, o.Section.Min, o.Section.Max, o.TimeLimit = slower*o.TTL, slower*o.Section.Min, slower*o.Section.Max, slower*o.TimeLimit
		outcome = patiently(t, run, o, decided)
	}
	if r := outcome.Results; r.Verdict != want {
		t.Errorf("verdict %s, want %s: %s; faults %+v", r.Verdict, want, r.Sentence, r.Faults)
	}
	return outcome
}

// stoodStill says whether holders outlasted their leases although no fault hit a worker: the machine kept
// them waiting.
func stoodStill(r checker.Results) bool {
	applied := slices.ContainsFunc(r.Faults, func(f checker.FaultCoverage) bool {
		return f.Applied && slices.ContainsFunc(f.Targets, func(name string) bool { return strings.HasPrefix(name, "w") })
	})
	late := maps.Clone(r.Finding(checker.MutualExclusion).Causes)
	maps.DeleteFunc(late, func(class string, _ int64) bool {
		return class == checker.CauseOutlasted || class == checker.CauseInFlight
	})
	return r.Verdict == checker.Violation && !applied && len(late) == 0
}

// TestEmbedded shows the violation, and that everything that must prevent it does: no fault, a fence, a
// version check. The control has no lock.
func TestEmbedded(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*Options)
		want   checker.Verdict
		check  func(*testing.T, checker.Results)
	}{
		{name: "pauses of the holder", want: checker.Violation, check: func(t *testing.T, r checker.Results) {
			if r.Overlaps.UsesAfterExpiry == 0 || r.Updates.Lost == 0 {
				t.Errorf("overlaps %+v, updates %+v: want uses after expiry and lost updates", r.Overlaps, r.Updates)
			}
			if r.Overlaps.DoubleGrants != 0 {
				t.Errorf("the embedded lock was granted twice %d times", r.Overlaps.DoubleGrants)
			}
		}},
		{name: "no faults", change: func(o *Options) { o.Nemesis = "none"; o.TimeLimit = 4 * time.Second }, want: checker.Valid},
		{name: "pauses with a fence", change: func(o *Options) { o.Guard = "fence" }, want: checker.Valid, check: tolerated},
		{name: "pauses with a fence, counter", change: func(o *Options) { o.Guard = "fence"; o.Workload = "counter" }, want: checker.Valid, check: tolerated},
		{name: "pauses with a version check", change: func(o *Options) { o.Guard = "cas" }, want: checker.Valid, check: tolerated},
		{name: "Redlock", change: func(o *Options) {
			o.Lock, o.TTL, o.Nemesis, o.TimeLimit, o.Concurrency = "memory-redlock", 0, "none", 8*time.Second, 2
		}, want: checker.Valid},
		{
			name: "Redlock, the clocks of a majority jump",
			change: func(o *Options) {
				o.Lock, o.TTL, o.Concurrency = "memory-redlock", 2*time.Second, 2
				o.Section.Min, o.Section.Max = time.Second, time.Second
				o.Schedule = &nemesis.Schedule{Steps: []nemesis.Step{{
					Fault: "clock", Target: "majority", Step: nemesis.Span{Leases: 1, Plus: 10 * time.Second},
					When: nemesis.WhenHolding, For: nemesis.Span{Plus: time.Second},
				}}}
			},
			want: checker.Violation, check: func(t *testing.T, r checker.Results) {
				if r.Overlaps.DoubleGrantsHealthy == 0 {
					t.Errorf("overlaps %+v: want a double grant of a healthy holder", r.Overlaps)
				}
			},
		},
		{
			// Other permits would have used up this name of the lock before the lease of this permit ends.
			name: "pauses of a holder of a permit",
			change: func(o *Options) {
				o.Lock, o.Workload, o.TTL, o.TimeLimit, o.Section = "memory-semaphore", "semaphore", time.Second, 10*time.Second, DefaultSection()
			},
			want: checker.Violation,
		},
		{name: "pauses with a match of the last reader", change: func(o *Options) { o.Guard = "match" }, want: checker.Valid, check: tolerated},
		{
			name: "leases that always run out, with a version check",
			change: func(o *Options) {
				o.Guard, o.Nemesis, o.TTL, o.TimeLimit = "cas", "none", 200*time.Millisecond, 4*time.Second
				o.Section.Min, o.Section.Max = 250*time.Millisecond, 300*time.Millisecond
			},
			want: checker.Valid, check: tolerated,
		},
		{name: "pauses, the service asked", change: func(o *Options) { o.Guard = "ask" }, want: checker.Valid, check: func(t *testing.T, r checker.Results) {
			tolerated(t, r)
			if r.Fence.Unanswered != 0 {
				t.Errorf("%d questions had no answer", r.Fence.Unanswered)
			}
		}},
		{
			name: "a stopped service, asked in vain",
			change: func(o *Options) {
				o.Guard, o.TTL = "ask", 2*time.Second
				o.Schedule = &nemesis.Schedule{Steps: []nemesis.Step{{
					Fault: "pause", Target: "n1", When: nemesis.WhenHolding, For: nemesis.Span{Plus: 1500 * time.Millisecond},
				}}}
			},
			want: checker.Valid, check: func(t *testing.T, r checker.Results) {
				if r.Fence.Unanswered == 0 || r.Updates.Lost != 0 {
					t.Errorf("fence %+v, updates %+v: want accesses refused for want of an answer", r.Fence, r.Updates)
				}
			},
		},
		{
			// The holder waits for its renewal, not in its section, so there is no overlap.
			name: "a stopped service while the holder renews",
			change: func(o *Options) {
				o.Renew, o.TTL = true, 600*time.Millisecond
				o.Section.Min, o.Section.Max = 250*time.Millisecond, 250*time.Millisecond
				o.Schedule = &nemesis.Schedule{Steps: []nemesis.Step{{
					Fault: "pause", Target: "n1", When: nemesis.WhenHolding, For: nemesis.Span{Plus: 800 * time.Millisecond},
					Every: nemesis.Span{Plus: 1500 * time.Millisecond},
				}}}
			},
			want: checker.Valid,
		},
		{
			name:   "pauses with a fence, mutual exclusion required",
			change: func(o *Options) { o.Guard = "fence"; o.Require = []string{"mutual-exclusion"} },
			want:   checker.Violation,
		},
		{
			name:   "no lock",
			change: func(o *Options) { o.Lock, o.TTL, o.Nemesis, o.TimeLimit = "none", 0, "none", 4*time.Second },
			want:   checker.Violation,
			check: func(t *testing.T, r checker.Results) {
				if r.Updates.Lost == 0 || r.Finding(checker.Linearizability).Verdict != checker.Violation {
					t.Errorf("without a lock nothing was lost, or porcupine accepted it: %+v", r.Updates)
				}
			},
		},
		{
			name: "no lock, versions compared",
			change: func(o *Options) {
				o.Lock, o.TTL, o.Guard, o.TimeLimit = "none", 0, "cas", 6*time.Second
				o.Schedule = &nemesis.Schedule{Steps: []nemesis.Step{{
					Fault: "pause", Target: "holder", For: nemesis.Span{Plus: 300 * time.Millisecond}, Every: nemesis.Span{Plus: time.Second},
				}}}
			},
			want: checker.Valid, check: tolerated,
		},
		{
			name:   "too few operations",
			change: func(o *Options) { o.Nemesis, o.MinOps, o.TimeLimit = "none", 1_000_000, 4*time.Second },
			want:   checker.Undecided,
		},
		{
			name: "a pause that is never applied",
			change: func(o *Options) {
				o.Schedule = &nemesis.Schedule{Steps: []nemesis.Step{{
					Fault: "pause", Target: "w1", When: nemesis.WhenHolding, Into: nemesis.Span{Plus: 2 * time.Second}, For: nemesis.Span{Plus: time.Second},
				}}}
			},
			want: checker.Undecided, check: covered("skipped: nobody entered the section in time"),
		},
		{name: "pauses with a release in flight", change: atMoment(nemesis.WhenReleasing, "actor"), want: checker.Valid, check: inFlight("release")},
		{name: "pauses with an acquire in flight", change: atMoment(nemesis.WhenAcquiring, "actor"), want: checker.Valid, check: inFlight("acquire")},
		{name: "pauses with an acquire of a free lock in flight", change: atMoment(nemesis.WhenUncontended, "actor"), want: checker.Valid, check: inFlight("acquire")},
		{name: "pauses with a renewal in flight", change: atMoment(nemesis.WhenRenewing, "actor"), want: checker.Valid, check: inFlight("renew")},
		{name: "pauses of the service before a release", change: atMoment(nemesis.WhenReleasing, "n1"), want: checker.Valid, check: inFlight("release")},
		{name: "pauses of who was notified of the loss", change: atMoment(nemesis.WhenLost, "actor"), want: checker.Valid, check: soonAfter},
		{
			name: "pauses in the queue", want: checker.Valid, check: soonAfter,
			change: func(o *Options) {
				atMoment(nemesis.WhenQueued, "actor")(o)
				o.Lock, o.TTL, o.Guard, o.Renew = "queue", 0, "none", false
			},
		},
		{
			// w2 has had its only hold long before it is paused.
			name: "a pause that hits no holder",
			change: func(o *Options) {
				o.Concurrency, o.Workers = 2, []workloads.Use{{}, {Holds: 1}}
				o.Schedule = &nemesis.Schedule{Steps: []nemesis.Step{{
					Fault: "pause", Target: "w2", After: nemesis.Span{Plus: 2 * time.Second}, For: nemesis.Span{Plus: 200 * time.Millisecond},
				}}}
			},
			want: checker.Undecided, check: covered("no target held the lock"),
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel() // an embedded run leaves the machine idle most of the time
			outcome := verdictIs(t, test.want, options(t, test.change))
			if test.check != nil && !t.Failed() {
				test.check(t, outcome.Results)
			}
		})
	}
}

// covered checks that a fault does not count, and why.
func covered(why string) func(*testing.T, checker.Results) {
	return func(t *testing.T, r checker.Results) {
		t.Helper()
		if len(r.Faults) != 1 || r.Faults[0].Reason != why {
			t.Errorf("faults %+v, want one that does not count: %s", r.Faults, why)
		}
	}
}

func tolerated(t *testing.T, r checker.Results) {
	t.Helper()
	if f := r.Finding(checker.MutualExclusion); !f.Tolerated {
		t.Errorf("mutual exclusion: %+v, want tolerated overlaps", f)
	}
	if r.Fence.RefusedReads+r.Fence.RefusedWrites == 0 || r.Updates.Lost != 0 {
		t.Errorf("fence %+v, updates %+v: want refused accesses and nothing lost", r.Fence, r.Updates)
	}
}

func TestRunFolder(t *testing.T) {
	t.Parallel()
	o := options(t, func(o *Options) { o.TimeLimit = 5 * time.Second })
	outcome := runTest(t, o)
	for _, name := range []string{TestFile, HistoryFile, scheduleFile, ResultsFile, junitFile, ReportFile} {
		if !exists(filepath.Join(outcome.Folder, name)) {
			t.Errorf("%s is missing", name)
		}
	}
	again, err := Judge(filepath.Join(o.Store, latestLink))
	if err != nil {
		t.Fatal(err)
	}
	if again.Results.Sentence != outcome.Results.Sentence || again.Results.Verdict != outcome.Results.Verdict {
		t.Errorf("judged again: %s, not %s", again.Results.Sentence, outcome.Results.Sentence)
	}
	file, err := os.Open(filepath.Join(outcome.Folder, scheduleFile))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := nemesis.ReadSchedule(file); err != nil {
		t.Errorf("the stored schedule cannot be read: %v", err)
	}
}

// TestLogsOfDeadServers: the log of a server that dies at its start is kept, and the error says where.
func TestLogsOfDeadServers(t *testing.T) {
	const words = "cannot serve today"
	binary := filepath.Join(t.TempDir(), "lockcheck")
	script := fmt.Sprintf("#!/bin/sh\nif [ \"$1\" = server ]; then echo %s >&2; exit 1; fi\nexec %s \"$@\"\n", words, clustertest.Binary(t))
	if err := os.WriteFile(binary, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	outcome := runTest(t, options(t, func(o *Options) { o.Binary = binary }))
	keptLog(t, outcome, words)
}

// keptLog checks that a run is broken and has the log of its first server.
func keptLog(t *testing.T, outcome Outcome, words string) {
	t.Helper()
	folder := filepath.Join(outcome.Folder, logFolder)
	if why := broken(outcome.History); !strings.Contains(why, words) || !strings.Contains(why, folder) {
		t.Errorf("%q: want the last words of the server, and that its log is in %s", why, folder)
	}
	if log, err := os.ReadFile(filepath.Join(folder, "n1.log")); err != nil || !strings.Contains(string(log), words) {
		t.Errorf("log %q, %v", log, err)
	}
}

// TestJudgePrefix judges the history that a run leaves when it is killed at any line.
func TestJudgePrefix(t *testing.T) {
	t.Parallel()
	outcome := runTest(t, options(t, func(o *Options) { o.Nemesis = "none"; o.TimeLimit = 3 * time.Second }))
	content, err := os.ReadFile(filepath.Join(outcome.Folder, HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []int{len(content) / 3, len(content) / 2, len(content) - 2} {
		path := filepath.Join(t.TempDir(), HistoryFile)
		if err := os.WriteFile(path, content[:part], 0o644); err != nil {
			t.Fatal(err)
		}
		j, err := Judge(path)
		if err != nil {
			t.Fatalf("the first %d bytes: %v", part, err)
		}
		if j.Results.Verdict != checker.Broken {
			t.Errorf("the first %d bytes are %s, want broken", part, j.Results.Verdict)
		}
	}
}

func TestInterrupt(t *testing.T) {
	clustertest.StartsServers(t)
	interrupt := make(chan struct{})
	o := options(t, func(o *Options) { o.TimeLimit = 5 * time.Minute })
	o.Schedule = &nemesis.Schedule{Steps: []nemesis.Step{{Fault: "pause", Target: "holder", For: nemesis.Span{Plus: 2 * time.Minute}}}}
	progress := onStep{logged{t}, func(text string) {
		if strings.Contains(text, "proven") {
			close(interrupt)
		}
	}}
	outcome, err := Test(context.Background(), o, interrupt, progress)
	if err != nil {
		t.Fatal(err)
	}
	if !outcome.Interrupted || len(outcome.Results.Faults) != 1 || !outcome.Results.Faults[0].Healed {
		t.Errorf("interrupted %t, faults %+v: want one, healed", outcome.Interrupted, outcome.Results.Faults)
	}
	if f := outcome.Results.Finding(checker.Assumptions); f.Verdict != checker.Undecided {
		t.Errorf("assumptions of an interrupted run: %s, %s", f.Verdict, f.Summary)
	}
	if !outcome.Results.Interrupted {
		t.Error("the results do not say that the run was interrupted")
	}
}

// TestInterruptInSection: an interrupted run does not wait for a worker in a long critical section. That
// worker was granted the lock, and the outcome of its update stays unknown. A worker that ends in time is
// recorded completely.
func TestInterruptInSection(t *testing.T) {
	t.Parallel()
	clustertest.StartsServers(t)
	for _, c := range []struct {
		section  time.Duration
		released bool
	}{{5 * time.Minute, false}, {100 * time.Millisecond, true}} {
		t.Run(c.section.String(), func(t *testing.T) {
			interrupt := make(chan struct{})
			o := options(t, func(o *Options) {
				o.Nemesis, o.TimeLimit, o.TTL, o.Concurrency = "none", 30*time.Minute, 10*time.Second, 1
				o.Section.Min, o.Section.Max = c.section, c.section
			})
			progress := onStatus{logged{t}, sync.OnceFunc(func() { close(interrupt) })}
			outcome, err := Test(context.Background(), o, interrupt, progress)
			if err != nil {
				t.Fatal(err)
			}
			if why := broken(outcome.History); why != "" || !outcome.Interrupted || !outcome.Results.Interrupted {
				t.Errorf("interrupted %t, broken: %q", outcome.Interrupted, why)
			}
			granted, released, final := false, false, false
			for _, e := range outcome.History.Events {
				granted = granted || e.F == history.Acquire && e.Type == history.OK
				released = released || e.F == history.Release
				final = final || e.F == history.Final
			}
			if !granted || released != c.released || !final {
				t.Errorf("granted %t, released %t, final state %t; want a release: %t", granted, released, final, c.released)
			}
		})
	}
}

// TestCountFromFirst: progress that can count counts time from the first event of a run.
func TestCountFromFirst(t *testing.T) {
	p := &counting{logged: logged{t}}
	observe := (&session{progress: p}).countFromFirst()
	if p.started != 0 {
		t.Error("the count starts without an event")
	}
	for range 3 {
		observe(history.Event{})
	}
	if p.started != 1 {
		t.Errorf("the count started %d times, want once", p.started)
	}
	(&session{progress: Silent{}}).countFromFirst()(history.Event{})
}

// counting counts how often the progress is told to start counting time.
type counting struct {
	logged
	started int
}

func (c *counting) StartCount() { c.started++ }

// onStatus acts when the lock has been granted.
type onStatus struct {
	logged
	granted func()
}

func (o onStatus) Status(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); strings.Contains(text, " holds, ") && !strings.Contains(text, ": 0 holds, ") {
		o.granted()
	}
}

// onStep acts on a line of progress.
type onStep struct {
	logged
	act func(text string)
}

func (o onStep) Step(format string, args ...any) {
	o.logged.Step(format, args...)
	o.act(fmt.Sprintf(format, args...))
}

func TestWorkerDies(t *testing.T) {
	clustertest.StartsServers(t)
	o := options(t, nil)
	killed := false
	progress := onStep{logged{t}, func(text string) {
		if killed || !strings.Contains(text, "proven") {
			return
		}
		killed = true
		entries := journalOfChildren(t)
		// The last process in the journal is the last worker that was started.
		if err := syscall.Kill(entries[len(entries)-1].PID, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}}
	outcome, err := Test(context.Background(), o, nil, progress)
	if err != nil {
		t.Fatal(err)
	}
	if outcome.Results.Verdict == checker.Valid || !strings.Contains(broken(outcome.History), "ended: signal: killed") {
		t.Errorf("%s, %q: want a broken run that names the worker", outcome.Results.Verdict, broken(outcome.History))
	}
}

// broken returns why the run is broken.
func broken(h *history.History) string {
	for _, e := range h.Events {
		if e.F == history.Phase && e.Note == history.PhaseBroken {
			return e.Error
		}
	}
	return ""
}

// journalOfChildren returns the process entries in the journal of this process' only run.
func journalOfChildren(t *testing.T) []cleanup.Entry {
	t.Helper()
	me, err := cleanup.Self()
	if err != nil {
		t.Fatal(err)
	}
	all, err := cleanup.Journals()
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range all {
		entries, err := cleanup.ReadJournal(run)
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) > 0 && entries[0].Owner == me.String() {
			return slices.DeleteFunc(entries, func(e cleanup.Entry) bool { return e.PID == 0 })
		}
	}
	t.Fatal("this process has no run")
	return nil
}

// TestKilled kills lockcheck itself while a worker is paused. Nothing may be left.
func TestKilled(t *testing.T) {
	t.Parallel()
	run := killInMidRun(t, "--ttl", "500ms", "--time-limit", "60s")
	if len(run.processes) != 7 || len(run.folders) != 1 {
		t.Errorf("the journal had %d processes and %d folders: want server, resource, 5 workers, and their folder", len(run.processes), len(run.folders))
	}
}

// gone waits until a process no longer exists.
func gone(t *testing.T, process cleanup.Entry) {
	t.Helper()
	clustertest.Eventually(t, time.Minute, func() error {
		if process.Runs() {
			return fmt.Errorf("process %d still runs", process.PID)
		}
		return nil
	})
}

// awaitEvent waits until a history that is being written has a wanted event.
func awaitEvent(t *testing.T, path string, wanted func(line string) bool) {
	t.Helper()
	clustertest.Eventually(t, 60*time.Second, func() error {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			if wanted(lines.Text()) {
				return nil
			}
		}
		return errors.New("the event did not come")
	})
}

// atMoment aims short pauses at a moment, under a fence, because a paused holder may lose its lease. With
// WhenLost, leases are short, so that a paused holder loses its lease now and then.
func atMoment(moment, target string) func(*Options) {
	return func(o *Options) {
		o.Guard, o.Renew, o.TTL = "fence", moment == nemesis.WhenRenewing, time.Second
		o.Schedule = &nemesis.Schedule{Steps: []nemesis.Step{{
			ID: "aimed", Fault: "pause", Target: target, When: moment,
			For: nemesis.Span{Plus: 300 * time.Millisecond}, Every: nemesis.Span{Plus: 600 * time.Millisecond},
		}}}
		if moment == nemesis.WhenRenewing {
			o.Section = workloads.Range{Min: 700 * time.Millisecond, Max: 900 * time.Millisecond}
		}
		if moment == nemesis.WhenLost {
			o.TTL, o.Section = 200*time.Millisecond, workloads.Range{Min: 150 * time.Millisecond, Max: 300 * time.Millisecond}
		}
	}
}

// TestUncontended: acquires that a fault strikes begin while no worker has the lock. They are granted unless
// the other worker gets the lock while they are paused before their request is sent. While one worker is in
// its section, the other tries about 16 times and is refused, so few acquires struck at random times would be
// granted.
func TestUncontended(t *testing.T) {
	t.Parallel()
	o := options(t, atMoment(nemesis.WhenUncontended, "actor"))
	o.Concurrency, o.Section = 2, workloads.Range{Min: 400 * time.Millisecond, Max: 400 * time.Millisecond}
	var all []struckAcquire
	patiently(t, func(t *testing.T, o Options) Outcome {
		outcome := runTest(t, o)
		all = append(all, struckAcquires(outcome.History.Events)...)
		return outcome
	}, o, func(checker.Results) bool { return len(all) >= 8 })
	free, granted := 0, 0
	for _, a := range all {
		if a.free {
			free++
		}
		if a.granted {
			granted++
		}
	}
	if n := len(all); n < 8 || 2*free < n || granted == 0 {
		t.Errorf("of %d acquires that were struck %d came while nobody had the lock, and %d were granted", n, free, granted)
	}
}

// struckAcquire is an acquire in flight when a fault struck: whether no worker had the lock when its worker
// was paused, and whether it was granted.
type struckAcquire struct{ free, granted bool }

func struckAcquires(events []history.Event) (all []struckAcquire) {
	caught, granted, released := make(map[string]history.Event), make(map[string]int64), make(map[string]int64)
	for _, e := range events {
		switch {
		case e.F == history.Caught:
			caught[e.Process+e.Note] = e // the last one counts: earlier ones were let go
		case e.F == history.Acquire && e.Type == history.OK:
			granted[e.Grant] = e.Time
		case e.F == history.Release && e.Type == history.Invoke:
			released[e.Grant] = e.Time
		}
	}
	for _, e := range events {
		if e.Fault == nil || e.Fault.Stage != history.Applied {
			continue
		}
		aimed := caught[e.Fault.Actor+e.Fault.ID]
		a := struckAcquire{free: true}
		for grant, from := range granted {
			to, over := released[grant]
			a.free = a.free && !(from < aimed.Time && (!over || to > aimed.Time))
			a.granted = a.granted || grant == aimed.Grant
		}
		all = append(all, a)
	}
	return all
}

// soonAfter checks that a fault that came too late does not count and says why. On a busy machine a fault at
// such a moment may come too late. At least one fault must come in time.
func soonAfter(t *testing.T, r checker.Results) {
	struck := 0
	for _, f := range r.Faults {
		switch {
		case !f.Applied:
		case f.Since <= 0 || f.Actor == "" || !f.Counts() && f.Reason == "":
			t.Errorf("%+v", f)
		case f.Counts():
			struck++
		}
	}
	if struck == 0 {
		t.Errorf("no fault came in time: %+v", r.Faults)
	}
}

// inFlight checks that each fault that began came at its moment, and says how long after it.
func inFlight(call string) func(*testing.T, checker.Results) {
	return func(t *testing.T, r checker.Results) {
		struck := 0
		for _, f := range r.Faults {
			if !f.Applied {
				continue
			}
			struck++
			if !f.Counts() || f.Since <= 0 || f.Actor == "" {
				t.Errorf("%+v", f)
			}
			if text := strings.Join(f.Evidence, " "); call != "" && !strings.Contains(text, "its "+call) {
				t.Errorf("evidence %q of a %s", text, call)
			}
		}
		if struck == 0 {
			t.Errorf("no fault was begun: %+v", r.Faults)
		}
	}
}
