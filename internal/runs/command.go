package runs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Arguments are the arguments of lockcheck that run only this test: "test" and its flags, without those at
// their defaults. They are nil if no arguments can ask for the test, for example because it has its own
// schedule. They do not say where runs are stored.
func (o Options) Arguments() []string {
	if o.Schedule != nil || o.EndEarly || o.EndRecovered || o.UntilViolation || o.ResultsOnly || o.UntilOverlap || o.NoKeepAlive || o.Bare || len(o.Workers) > 0 || o.After != 0 || o.Holds != 0 {
		return nil
	}
	args := []string{"test", "--lock", o.Lock, "--nemesis", o.Nemesis}
	add := func(set bool, flag string, value any) {
		if set {
			args = append(args, "--"+flag, fmt.Sprint(value))
		}
	}
	add(o.Guard != "none", "guard", o.Guard)
	add(o.Workload != "set", "workload", o.Workload)
	add(o.Permits != 0, "permits", o.Permits)
	add(o.ServerVersion != "", "version", o.ServerVersion)
	add(o.Nodes != 0, "nodes", o.Nodes)
	add(o.Concurrency != DefaultConcurrency, "concurrency", o.Concurrency)
	add(o.Rate != 0, "rate", o.Rate)
	// A suite sets these for all of its runs, and a test without faults refuses them.
	faults := o.Nemesis != "" && o.Nemesis != "none"
	add(faults && o.Interval != DefaultInterval, "nemesis-interval", o.Interval)
	add(faults && o.Pause != 0, "pause", o.Pause)
	add(o.TimeLimit != 0, "time-limit", o.TimeLimit)
	add(o.TTL != 0, "ttl", o.TTL)
	add(o.Section != DefaultSection(), "section", o.Section)
	add(o.Updates != 0, "updates", o.Updates)
	if o.Think != nil {
		add(true, "think", *o.Think)
	}
	add(o.Wait != 0, "wait", o.Wait)
	if o.LockDelay != nil {
		add(true, "lock-delay", *o.LockDelay)
	}
	add(o.MinOps != DefaultMinOps, "min-ops", o.MinOps)
	add(len(o.Require) > 0, "require", strings.Join(o.Require, ","))
	add(o.Handover != 0, "handover", o.Handover)
	for _, name := range slices.Sorted(maps.Keys(o.Images)) {
		add(true, "image", name+"="+o.Images[name])
	}
	for _, flag := range []struct {
		set  bool
		name string
	}{{o.Pin, "pin"}, {o.Renew, "renew"}, {o.CheckBeforeWrite, "check-before-write"}, {o.ExitOnLoss, "exit-on-loss"}, {o.IgnoreFailedAcquire, "ignore-failed-acquire"}, {o.SkipUnsupported, "skip-unsupported"}} {
		if flag.set {
			args = append(args, "--"+flag.name)
		}
	}
	return append(args, "--seed", fmt.Sprint(o.Seed))
}
