//go:build mutants

package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/clients"
	"lockcheck/history"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/nemesis"
	"lockcheck/workloads"
)

func main() {
	binary := flag.String("lockcheck", "./lockcheck", "the binary whose processes do the work")
	seeds := flag.Int("seeds", 20, "how many seeds to run each correct mutant with")
	wrong := flag.Int("wrong-seeds", 3, "how many seeds to run each wrong mutant with")
	side := flag.Int("parallel", 4, "how many runs to make side by side")
	only := flag.String("only", "", "run this mutant alone")
	workload := flag.String("workload", history.WorkloadSet, "what workers do; of one with several updates in a hold the sections are the shorter")
	trials := flag.Int("hunt", 0, "hunt for each mutant with so many trials at most, in place of running it")
	flag.Parse()
	if *trials > 0 {
		h := hunts{binary: *binary, trials: *trials, seeds: *wrong, side: *side, only: *only}
		if err := h.run(context.Background(), os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "mutants:", err)
			os.Exit(1)
		}
		return
	}
	chosen, known := workloads.ByName(*workload)
	if !known {
		fmt.Fprintf(os.Stderr, "mutants: -workload %s: there is no such workload\n", *workload)
		os.Exit(1)
	}
	r := &runner{binary: *binary, side: *side, workload: chosen}
	if err := r.run(os.Stdout, *only, *seeds, *wrong); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// runner runs mutants, some of them in parallel.
type runner struct {
	binary string
	store  string
	side   int
	// workload is the workload of all runs; zero for the set.
	workload workloads.Workload
}

// tally has the results of the runs of one mutant.
type tally struct {
	mutant
	runs, asExpected int
	// undecided counts runs of a correct mutant in which a kind of fault happened to hit no worker.
	undecided int
	words     []string // what is wrong with the other runs
	longest   time.Duration
}

func (r *runner) run(out io.Writer, only string, correct, wrong int) (err error) {
	if r.binary, err = filepath.Abs(r.binary); err != nil {
		return err
	}
	if r.store, err = os.MkdirTemp("", "lockcheck-mutants-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.store)
	var tallies []*tally
	bad := 0
	for _, a := range mutants() {
		if only != "" && a.name != only {
			continue
		}
		n := wrong
		if a.guilty == "" && a.control == "" {
			n = correct
		}
		t, err := r.runAll(a, n)
		if err != nil {
			return err
		}
		tallies = append(tallies, t)
		if t.asExpected+t.undecided < t.runs || t.asExpected == 0 {
			bad++
		}
		fmt.Fprintf(os.Stderr, "%-20s %s %s\n", a.name, t, strings.Join(t.words, "; "))
	}
	if len(tallies) == 0 {
		return fmt.Errorf("-only %s: there is no such mutant", only)
	}
	table(out, tallies)
	if bad > 0 {
		return fmt.Errorf("%d of %d mutants were not judged as they should be", bad, len(tallies))
	}
	return nil
}

func table(out io.Writer, tallies []*tally) {
	fmt.Fprintf(out, "| mutant | what it does | to be found guilty of | as expected | longest run |\n| --- | --- | --- | --- | --- |\n")
	for _, t := range tallies {
		guilty := string(t.guilty)
		if guilty == "" {
			guilty = "nothing"
		}
		if t.control != "" {
			guilty += ": " + t.control
		}
		fmt.Fprintf(out, "| `%s` | %s | %s | %s | %.0f s |\n", t.name, t.does, guilty, t, t.longest.Seconds())
	}
}

func (t *tally) String() string {
	text := fmt.Sprintf("%d of %d", t.asExpected, t.runs)
	if t.undecided > 0 {
		text += fmt.Sprintf(", %d undecided", t.undecided)
	}
	return text
}

// runAll runs a mutant with n seeds.
func (r *runner) runAll(a mutant, n int) (*tally, error) {
	t := &tally{mutant: a, runs: n}
	var jobs []suites.Job
	for seed := range uint64(n) {
		o, err := r.options(a, seed+1)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.name, err)
		}
		outline, err := runs.OutlineOf(o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.name, err)
		}
		jobs = append(jobs, suites.Job{Name: fmt.Sprintf("%s, seed %d", a.name, o.Seed), Options: o, Outline: outline})
	}
	suite := suites.Runner{
		Machine: runs.Machine{Store: r.store, Binary: r.binary, Command: []string{"mutants"}},
		Slots:   r.side, Progress: runs.Silent{},
		Done: func(i int, m suites.Made) error {
			t.add(jobs[i].Options.Seed, m)
			return nil
		},
	}
	_, err := suite.Run(context.Background(), jobs, nil)
	return t, err
}

// add counts a run as expected, as undecided because a kind of fault hit no worker, or as wrong.
func (t *tally) add(seed uint64, m suites.Made) {
	t.longest = max(t.longest, m.Took)
	if m.Err == nil && t.missedFault(m.Outcome.Results) {
		t.undecided++
		return
	}
	wrong := ""
	if m.Err != nil {
		wrong = m.Err.Error()
	} else {
		wrong = t.judge(m.Outcome.Results)
	}
	if wrong == "" {
		t.asExpected++
	} else {
		t.words = append(t.words, fmt.Sprintf("seed %d: %s", seed, wrong))
	}
}

// missedFault says whether a run of a correct mutant is undecided only because a fault hit no worker.
func (a mutant) missedFault(r checker.Results) bool {
	if a.guilty != "" || r.Verdict != checker.Undecided || r.Overlaps.DoubleGrants > 0 {
		return false
	}
	for _, f := range r.Findings {
		inherent := f.Property == checker.MutualExclusion || f.Property == checker.FaultEvidence
		if !inherent && f.Verdict != checker.Valid && f.Verdict != checker.NotApplicable {
			return false
		}
	}
	return true
}

// sharedByRight says whether several workers may hold the lock at once. For such a lock, no guard makes
// harmless what no lease can prevent.
func (a mutant) sharedByRight() bool { return a.workload != "" }

// options are the same for most mutants: every fault that an embedded lock can have, and a guard that makes
// harmless what no lease can prevent.
func (r *runner) options(a mutant, seed uint64) (runs.Options, error) {
	guard := workloads.Fence
	if a.guard != "" {
		guard = a.guard
	}
	section := workloads.Range{Min: 5 * time.Millisecond, Max: 40 * time.Millisecond}
	if a.section != (workloads.Range{}) {
		section = a.section
	}
	// A hold has the same length, whatever happens in it.
	each := time.Duration(r.workload.PerHold(workloads.Use{}))
	section = workloads.Range{Min: section.Min / each, Max: section.Max / each}
	o := runs.Options{
		Lock: clients.MutantPrefix + a.name, Workload: cmp.Or(r.workload.Name, history.WorkloadSet), Guard: string(guard),
		Nemesis: cmp.Or(a.faults, "pause:holder,kill:holder,delay-write"), Interval: 800 * time.Millisecond,
		TimeLimit: 15 * time.Second, Concurrency: 8, MinOps: 8,
		Use: workloads.Use{TTL: cmp.Or(a.ttl, 400*time.Millisecond), Section: section, Renew: a.renew}, Seed: seed,
	}
	if a.guilty == checker.NoUntrueLoss || a.guilty == checker.NoIdleLock {
		o.Require = []string{string(a.guilty)} // it is judged only then
	}
	if a.sharedByRight() {
		o.Workload, o.Guard, o.Nemesis = a.workload, string(workloads.NoGuard), cmp.Or(a.faults, "pause:holder,kill:holder")
	}
	if a.schedule == "" {
		return o, nil
	}
	o.MinOps = 2 // long sections and pauses leave time for few operations
	schedule, err := nemesis.ReadSchedule(strings.NewReader(a.schedule))
	schedule.Seed = seed
	o.Schedule = &schedule
	return o, err
}

// inherent says whether no lease can prevent a finding: holders were paused past their leases, or their
// writes were in flight.
func inherent(f checker.Finding) bool {
	for cause := range f.Causes {
		if cause != checker.CausePaused && cause != checker.CauseInFlight {
			return false
		}
	}
	return len(f.Causes) > 0
}

// judge says what is wrong with the results of a run; "" if nothing is.
func (a mutant) judge(r checker.Results) string {
	if a.guilty != "" {
		if f := r.Finding(a.guilty); f.Verdict != checker.Violation || a.guilty == checker.MutualExclusion && r.Overlaps.DoubleGrants == 0 {
			return fmt.Sprintf("%s is %s (%s); %s", a.guilty, f.Verdict, f.Summary, r.Sentence)
		}
		return ""
	}
	if r.Verdict != checker.Valid && !(a.sharedByRight() && r.Verdict == checker.Violation) {
		return string(r.Verdict) + ": " + r.Sentence
	}
	if r.Overlaps.DoubleGrants > 0 {
		return fmt.Sprintf("%d double grants", r.Overlaps.DoubleGrants)
	}
	for _, f := range r.Findings {
		// Overlaps after the end of a lease are inherent.
		if f.Verdict == checker.Violation && f.Property != checker.MutualExclusion && !(a.sharedByRight() && inherent(f)) {
			return fmt.Sprintf("accused of %s: %s", f.Property, f.Summary)
		}
	}
	return ""
}
