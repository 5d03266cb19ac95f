package runs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clients/clienttest"
	"lockcheck/clusters/clustertest"
	"lockcheck/history"
	"lockcheck/nemesis"
)

// lateWrite delays the write of a holder beyond its lease, although the holder checks its deadline before it
// writes.
func lateWrite(o *Options) {
	o.CheckBeforeWrite, o.EndEarly, o.TimeLimit = true, true, 30*time.Second
	o.Section.Min, o.Section.Max = 50*time.Millisecond, 50*time.Millisecond
	o.Schedule = &nemesis.Schedule{Steps: []nemesis.Step{{
		ID: "late", Fault: "delay-write", Target: "holder", For: nemesis.Span{Leases: 1, Plus: 500 * time.Millisecond},
		After: nemesis.Span{Plus: 500 * time.Millisecond}, Every: nemesis.Span{Plus: 2 * time.Second}, Times: 2,
	}}}
}

// TestDelayWrite: a late write overwrites newer data although the deadline was checked. A fence refuses the
// write. Without the fault the same run is valid.
func TestDelayWrite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*Options)
		want   checker.Verdict
	}{
		{"late", func(*Options) {}, checker.Violation},
		{"late, with a fence", func(o *Options) { o.Guard = "fence" }, checker.Valid},
		{"in time", func(o *Options) { o.Schedule, o.Nemesis, o.TimeLimit = nil, "none", 4*time.Second }, checker.Valid},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := verdictIs(t, c.want, options(t, func(o *Options) { lateWrite(o); c.change(o) })).Results
			if c.want == checker.Violation && (r.Finding(checker.NoStaleWrite).Verdict != checker.Violation || r.Overlaps.EarlierHealthy == 0) {
				t.Errorf("no stale write of a healthy holder: %+v", r.Overlaps)
			}
			if c.name == "in time" {
				return
			}
			late := 0
			for _, f := range r.Faults {
				switch {
				case f.Proven && f.Exercised && f.Outlasted && f.Healed:
					late++
				case f.Reason == "" || !f.Healed: // on a busy machine the hold can be over first, which is a reason
					t.Errorf("%+v", f)
				}
			}
			if late == 0 {
				t.Errorf("no write of a holder was late: %+v", r.Faults)
			}
		})
	}
}

// TestUnsupported: an unsupported fault ends a run before it begins, unless the fault may be left out. Then
// the history says so.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	with := func(change func(*Options)) Options {
		return options(t, func(o *Options) { o.Nemesis, o.TimeLimit = "pause,partition", 6*time.Second; change(o) })
	}
	var unsupported *nemesis.UnsupportedError
	var usage *UsageError
	_, err := prepare(with(func(*Options) {}))
	if !errors.As(err, &unsupported) || unsupported.Fault != "partition" || !errors.As(err, &usage) {
		t.Errorf("error %v, want that a partition is not supported", err)
	}
	if _, err := prepare(with(func(o *Options) { o.Nemesis, o.SkipUnsupported = "partition", true })); !errors.As(err, &unsupported) {
		t.Errorf("error %v, want that nothing is left", err)
	}
	if _, err := prepare(with(func(o *Options) { o.Nemesis, o.SkipUnsupported = "pause:w9", true })); !errors.As(err, &usage) {
		t.Errorf("error %v, want that there is no w9", err)
	}
	outcome := runTest(t, with(func(o *Options) { o.SkipUnsupported = true }))
	h := outcome.History.Header
	if len(h.Faults) != 1 || h.Faults[0] != "pause" || len(h.Unavailable) != 1 || !strings.Contains(h.Unavailable[0], "partition") {
		t.Errorf("faults %v, left out %v", h.Faults, h.Unavailable)
	}
	for _, f := range outcome.Results.Faults {
		if f.Kind != "pause" {
			t.Errorf("%+v", f)
		}
	}
}

// TestFreeze: freezing a holder beyond its lease has the same effect as pausing it.
func TestFreeze(t *testing.T) {
	t.Parallel()
	clustertest.Engine(t)
	outcome := verdictIs(t, checker.Violation, options(t, func(o *Options) {
		o.Lock, o.TTL, o.Nemesis, o.TimeLimit = "redis", 2*time.Second, "freeze", 16*time.Second
		// Sections are longer than the engine takes to freeze a container.
		o.Section.Min, o.Section.Max = 400*time.Millisecond, 600*time.Millisecond
	}))
	r := outcome.Results
	if r.Overlaps.EarlierPaused == 0 || r.Finding(checker.FaultEvidence).Verdict != checker.Valid {
		t.Errorf("%s: %s; %+v", r.Verdict, r.Sentence, r.Overlaps)
	}
	if err := clustertest.NothingLeft(outcome.History.Header.Run); err != nil {
		t.Error(err)
	}
}

// TestWorkerClock: a client of one's own, which judges leases by its wall clock, is granted the lock of a healthy
// holder while that clock is ahead. The worker itself tells its time before, meanwhile and afterwards.
func TestWorkerClock(t *testing.T) {
	t.Parallel()
	ahead := &nemesis.Schedule{Steps: []nemesis.Step{{
		ID: "ahead", Fault: history.Clock, Target: "w2", Step: nemesis.Span{Plus: 3 * time.Second},
		After: nemesis.Span{Plus: 300 * time.Millisecond}, For: nemesis.Span{Plus: 2 * time.Second},
	}}}
	r := verdictIs(t, checker.Violation, ofClient(t, "right-wall-clock", nil, func(o *Options) {
		o.Schedule, o.TimeLimit = ahead, 6*time.Second
	})).Results
	if got := r.Finding(checker.MutualExclusion).Causes[checker.CauseClock]; got == 0 {
		t.Errorf("no overlap has the clock as its cause: %+v", r.Finding(checker.MutualExclusion))
	}
	for _, f := range r.Faults {
		if !f.Proven || !f.Exercised || !f.Healed {
			t.Errorf("%+v", f)
		}
	}
	_, err := OutlineOf(options(t, func(o *Options) { o.Schedule = ahead }))
	var unsupported *nemesis.UnsupportedError
	if !errors.As(err, &unsupported) {
		t.Errorf("the clock of a client that does not look at it: %v, want it refused", err)
	}
}

// TestClockOfExecuted: what a client executes has true time, so that its clock is never proven moved.
func TestClockOfExecuted(t *testing.T) {
	t.Parallel()
	line := "exec " + strings.Join(clienttest.Command("right").Args, " ")
	script := filepath.Join(t.TempDir(), "client")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"+line+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string][]string{"script": {script}, "shell": {"sh", "-c", line}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := map[string]any{"command": command, "environment": clienttest.Environment("right")}
			r := runTest(t, ofClient(t, "right", clientLock{"client": client}, func(o *Options) {
				o.TimeLimit = 6 * time.Second
				o.Schedule = &nemesis.Schedule{Steps: []nemesis.Step{{
					ID: "ahead", Fault: history.Clock, Target: "w2", Step: nemesis.Span{Plus: 3 * time.Second}, For: nemesis.Span{Plus: 2 * time.Second},
				}}}
			})).Results
			if len(r.Faults) != 1 || r.Verdict == checker.Valid {
				t.Errorf("verdict %s, faults: %+v; want one, and not valid", r.Verdict, r.Faults)
			}
			for _, f := range r.Faults {
				if f.Proven || !f.Healed || !strings.Contains(f.Reason, "from true time, not +3.000 s") {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}
