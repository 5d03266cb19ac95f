package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/internal/runs"
)

// aimed is a run whose faults all strike at one moment.
type aimed struct {
	moment, lock, fault string
	flags               []string
	// first is a step that brings the moment about, where it does not come by itself.
	first string
	// whom is the target; actor for "".
	whom string
}

// everyMoment lists each moment with a fault that stops a worker, and with one that comes before
// the request is sent.
func everyMoment() []aimed {
	const (
		endLease  = "{fault: pause, target: holder, for: lease+300ms, every: 3s}"
		endLeader = "{fault: kill, target: leader, for: 2s, every: 6s}"
	)
	renewed := []string{"--renew", "--section", "1s-2s"}
	var all []aimed
	for _, fault := range []string{"pause", "one-way"} {
		all = append(all,
			aimed{moment: "acquiring", lock: "redis", fault: fault},
			aimed{moment: "renewing", lock: "redis", fault: fault, flags: renewed},
			aimed{moment: "releasing", lock: "redis", fault: fault},
			aimed{moment: "holding", lock: "redis", fault: fault},
			aimed{moment: "queued", lock: "etcd", fault: fault},
			aimed{moment: "lost", lock: "redis", fault: fault, first: endLease},
			aimed{moment: "failover", lock: "etcd", fault: fault, first: endLeader, whom: "leader"},
		)
	}
	return all
}

// moments measures how long after the event that it waits for a fault is in force.
func (b *bench) moments(ctx context.Context) error {
	fmt.Fprint(b.out, "\n| moment | lock | fault | begun | proven, and met somebody | in force after, median | longest |\n",
		"| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, a := range everyMoment() {
		faults, err := b.aim(ctx, a)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", a.moment, a.fault, err)
		}
		var counted int
		var since []time.Duration
		for _, f := range faults {
			if f.Counts() {
				counted++
				since = append(since, f.Since)
			}
		}
		if counted == 0 {
			return fmt.Errorf("%s, %s: none of %d faults counts", a.moment, a.fault, len(faults))
		}
		slices.Sort(since)
		fmt.Fprintf(b.out, "| %s | %s | %s | %d | %d | %s | %s |\n", a.moment, a.lock, a.fault, len(faults), counted,
			inMilliseconds(since[len(since)/2]), inMilliseconds(since[len(since)-1]))
	}
	return nil
}

func inMilliseconds(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1e3) }

// schedule is that of the run.
func (a aimed) schedule() string {
	whom := a.whom
	if whom == "" {
		whom = "actor"
	}
	var b strings.Builder
	b.WriteString("seed: 1\nsteps:\n")
	if a.first != "" {
		fmt.Fprintf(&b, "  - %s\n", a.first)
	}
	// A cut is proven before the call goes on, which takes a third of a second.
	fmt.Fprintf(&b, "  - {id: strike, fault: %s, target: %s, when: %s, for: 1s, every: 2s}\n", a.fault, whom, a.moment)
	return b.String()
}

// aim makes the run, and returns its faults at the moment that began.
func (b *bench) aim(ctx context.Context, a aimed) ([]checker.FaultCoverage, error) {
	folder, err := os.MkdirTemp("", "lockcheck-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	schedule := filepath.Join(folder, "schedule.yaml")
	if err := os.WriteFile(schedule, []byte(a.schedule()), 0o644); err != nil {
		return nil, err
	}
	args := append([]string{"test", "--lock", a.lock, "--schedule", schedule, "--time-limit", "45s", "--store", folder}, a.flags...)
	said, err := exec.CommandContext(ctx, b.binary, args...).CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !(errors.As(err, &exit) && exit.ExitCode() <= 2) {
		return nil, fmt.Errorf("%w\n%s", err, said)
	}
	found, err := filepath.Glob(filepath.Join(folder, "*", "*", runs.ResultsFile))
	if err != nil || len(found) == 0 {
		return nil, fmt.Errorf("no results: %w\n%s", err, said)
	}
	d, err := runs.ReadResults(filepath.Dir(found[0]))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(d.Results.Faults, func(f checker.FaultCoverage) bool { return f.Moment != a.moment || !f.Applied }), nil
}
