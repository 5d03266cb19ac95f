package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/internal/buildinfo"
	"lockcheck/internal/runs"
	"lockcheck/internal/spelling"
	"lockcheck/internal/suites"
	"lockcheck/internal/suites/remedied"
	"lockcheck/nemesis"
	"lockcheck/reports"
	"lockcheck/workloads"
)

// testFlags are the flags of "lockcheck test".
type testFlags struct {
	runs.Options
	app       string
	schedule  string
	images    []string
	expect    string
	count     int
	lockDelay time.Duration
	remedies  bool
	think     workloads.Range
}

func testCommand(s *system) *cobra.Command {
	f := new(testFlags)
	cmd := &cobra.Command{
		Use:   "test",
		Short: "test a lock under faults and print a verdict",
		Long: `Start the servers of a lock, let workers update data under the lock, inject faults, and judge the record. Without --lock this tests the embedded lock, which needs no Docker.

With --app it tests an application of your own, as an app file describes it: are its invariants true while its replicas are paused, killed and cut off?

With --with-remedies, a run that ends in a violation is repeated with each remedy that the lock supports: same seed, faults and options, one change. One page shows all results side by side. The exit code is that of the first run.

` + exitCodes,
		Example: `  lockcheck test --expect violation
  lockcheck test --guard fence
  lockcheck test --with-remedies
  lockcheck test --lock redis --nemesis pause --workload counter
  lockcheck test --lock redlock --nemesis clock,partition
  lockcheck test --app app.yaml --nemesis pause,kill`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return s.test(cmd, f) },
	}
	f.add(flagsOf(cmd))
	return cmd
}

func (f *testFlags) add(flags flags) {
	f.Section = runs.DefaultSection()
	flags.alsoCalled(map[string]string{"skip-unavailable": "skip-unsupported"})
	flags.text(&f.Lock, "lock", "memory")
	flags.text(&f.app, "app", "")
	flags.text(&f.Workload, "workload", "set")
	flags.text(&f.Guard, "guard", "none")
	flags.text(&f.Nemesis, "nemesis", "pause")
	flags.length(&f.Interval, "nemesis-interval", runs.DefaultInterval)
	flags.length(&f.Pause, "pause", 0)
	flags.text(&f.schedule, "schedule", "")
	flags.yes(&f.SkipUnsupported, "skip-unsupported")
	flags.length(&f.TimeLimit, "time-limit", 0)
	flags.number(&f.Concurrency, "concurrency", runs.DefaultConcurrency)
	flags.share(&f.Rate, "rate", 0)
	flags.text(&f.ServerVersion, "version", "")
	flags.number(&f.Nodes, "nodes", 0)
	flags.yes(&f.Pin, "pin")
	flags.length(&f.Wait, "wait", 0)
	flags.length(&f.lockDelay, "lock-delay", 0)
	flags.length(&f.TTL, "ttl", 0)
	flags.number(&f.Permits, "permits", 0)
	flags.value(&f.Section, "section")
	flags.number(&f.Updates, "updates", 0)
	flags.value(&f.think, "think")
	flags.yes(&f.Renew, "renew")
	flags.yes(&f.CheckBeforeWrite, "check-before-write")
	flags.yes(&f.ExitOnLoss, "exit-on-loss")
	flags.yes(&f.IgnoreFailedAcquire, "ignore-failed-acquire")
	flags.Int64Var(&f.MinOps, "min-ops", runs.DefaultMinOps, flags.describe("min-ops").usage)
	flags.list(&f.Require, "require")
	flags.length(&f.Handover, "handover", 0)
	flags.seed(&f.Seed, "seed", 0)
	flags.StringArrayVar(&f.images, "image", nil, flags.describe("image").usage)
	flags.text(&f.Store, "store", "store")
	flags.number(&f.count, "test-count", 1)
	flags.yes(&f.remedies, "with-remedies")
	flags.text(&f.expect, "expect", "")
	flags.otherwise("pause", "longer than the lease", "time-limit", "20s, or more if the lease or the faults need it",
		"nodes", "the lock's usual number", "wait", "5s, or until the lease ends if each attempt restarts it", "lock-delay", "15s",
		"ttl", "the lock's usual lease", "permits", "2 with --workload semaphore, else 1", "updates", "1, or 10 with --workload election", "think", "0s-10ms", "seed", "random")
}

func (s *system) test(cmd *cobra.Command, f *testFlags) error {
	expect, err := parseVerdict(f.expect)
	if err != nil {
		return err
	}
	if f.app != "" {
		return s.testApplication(cmd, f, expect)
	}
	o, err := f.options(cmd.Flags())
	if err != nil {
		return err
	}
	s.tellFaultless(f, o.Schedule)
	if o.Concurrency == 1 {
		fmt.Fprintln(s.stderr, "lockcheck: a single worker has no competitor, so this run cannot show mutual exclusion; write --concurrency 2 or more")
	}
	if err := least("test-count", f.count, 1); err != nil {
		return err
	}
	if f.count > 1 && f.remedies {
		return exclusive(cmd.Flags(), "with-remedies", "test-count")
	}
	if err := s.machine(&o.Machine); err != nil {
		return err
	}
	return f.inFile(s.testWith(cmd.Context(), o, f, expect))
}

// tellFaultless says before anything starts that a schedule has no faults: a valid run would show nothing of them. It is
// no error, for it repeats a run without faults.
func (s *system) tellFaultless(f *testFlags, schedule *nemesis.Schedule) {
	if schedule != nil && len(schedule.Steps) == 0 {
		fmt.Fprintf(s.stderr, "lockcheck: %s has no steps: this run injects no faults, as with --nemesis none; list faults under steps, or write --nemesis pause instead of --schedule\n", f.schedule)
	}
}

// inFile names the schedule file in an error about its steps.
func (f *testFlags) inFile(err error) error {
	var usage *runs.UsageError
	if f.schedule == "" || !errors.As(err, &usage) || usage.About != "schedule" {
		return err
	}
	return &runs.UsageError{Err: fmt.Errorf("%s: %w", f.schedule, err), About: usage.About}
}

// testWith makes the runs that the flags ask for.
func (s *system) testWith(ctx context.Context, o runs.Options, f *testFlags, expect checker.Verdict) error {
	ctx, interrupt, release := s.interruptible(ctx)
	defer release()
	switch {
	case f.remedies:
		return s.testWithRemedies(ctx, o, expect, interrupt)
	case f.count > 1:
		return s.testMany(ctx, o, f.count, expect, interrupt)
	}
	outcome, err := s.runTest(ctx, o, interrupt)
	if outcome.History == nil {
		return err
	}
	return s.concludeRun(commandOf(o), outcome, expect, err)
}

// testWithRemedies runs a test, and repeats it with each remedy if it ends in a violation. The
// exit code is that of the first run.
func (s *system) testWithRemedies(ctx context.Context, o runs.Options, expect checker.Verdict, interrupt <-chan struct{}) error {
	plan, err := remedied.New(o)
	if err != nil {
		return err
	}
	outcome, err := s.runTest(ctx, plan.Plain, interrupt)
	if outcome.History == nil {
		return err
	}
	failed := alsoFailed(verdictError(outcome, expect), err)
	if outcome.Interrupted || outcome.Results.Verdict != checker.Violation {
		fmt.Fprintf(s.stdout, "\nNo remedies were tried: the run is %s.\n", outcome.Results.Verdict)
		return failed
	}
	progress := s.progress()
	tried, interrupted, err := plan.Run(ctx, o.Machine, outcome.Judgement, progress, interrupt)
	progress.Done()
	if interrupted {
		failed = &exitError{code: exitInterrupted}
	}
	fmt.Fprintln(s.stdout)
	err = errors.Join(err, tried.Terminal().WriteTerminal(s.stdout, s.terminalOptions()))
	fmt.Fprintf(s.stdout, "folder  %s\npage    %s\n", plan.Path, filepath.Join(plan.Path, runs.RemediesFile))
	return alsoFailed(failed, err)
}

// testMany makes several runs and adds up their results. The most telling exit code counts.
func (s *system) testMany(ctx context.Context, o runs.Options, count int, expect checker.Verdict, interrupt <-chan struct{}) error {
	var all []checker.Results
	var worst error
	for range count {
		outcome, err := s.runTest(ctx, o, interrupt)
		if outcome.History == nil { // an earlier violation stands
			worst = s.moreTellingOf(worst, err)
			if len(all) == 0 {
				return worst
			}
			break
		}
		outcome.Results.Holds = nil // they would fill the memory
		all = append(all, outcome.Results)
		worst = s.moreTellingOf(worst, s.concludeRun(commandOf(o), outcome, expect, err))
		if runs.Closed(interrupt) { // perhaps after the run was complete
			worst = s.moreTellingOf(worst, codeOnly(exitInterrupted))
			break
		}
		o.Seed++
		if o.Schedule != nil {
			schedule := *o.Schedule
			schedule.Seed = o.Seed
			o.Schedule = &schedule
		}
	}
	return errors.Join(worst, reports.Pooled(s.stdout, checker.PoolOf(all), s.terminalOptions()))
}

// commandOf is the command line that runs a test again.
func commandOf(o runs.Options) []string {
	if arguments := o.Arguments(); arguments != nil { // nil with a schedule from a file
		return append([]string{"lockcheck"}, arguments...)
	}
	return o.Command
}

// concludeRun turns a judged run and another error into the error of the command. It annotates an
// unexpected run on GitHub.
func (s *system) concludeRun(again []string, outcome runs.Outcome, expect checker.Verdict, err error) error {
	verdict := verdictError(outcome, expect)
	r, h := outcome.Results, outcome.History.Header
	annotate := func(w io.Writer) error { return reports.GitHubRun(w, r, h, again) }
	if verdict == nil {
		annotate = func(io.Writer) error { return nil }
	}
	told := s.tellGitHub(annotate, func(w io.Writer) error { return reports.RunSummary(w, r, h, again) })
	return alsoFailed(verdict, errors.Join(err, told))
}

// moreTelling returns the error with the more telling exit code: usage, then interrupted, then by
// verdict.
func moreTelling(a, b error) error {
	var order []int
	for _, v := range checker.Verdicts() {
		order = append(order, verdictCode(v))
	}
	order = append(order, exitInterrupted, exitUsage)
	if slices.Index(order, exitCode(b)) > slices.Index(order, exitCode(a)) {
		return b
	}
	return a
}

// moreTellingOf is moreTelling, and prints the other error, which would be lost.
func (s *system) moreTellingOf(a, b error) error {
	kept, other := moreTelling(a, b), a
	if kept == a {
		other = b
	}
	if other != nil && other.Error() != "" {
		fmt.Fprintf(s.stderr, "lockcheck: %v\n", other)
	}
	return kept
}

// options completes the flags.
func (f *testFlags) options(flags *pflag.FlagSet) (runs.Options, error) {
	o := f.Options
	if !flags.Changed("seed") {
		o.Seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	o.Parameters = make(map[string]string)
	flags.Visit(func(flag *pflag.Flag) { o.Parameters[flag.Name] = flag.Value.String() })
	if flags.Changed("ttl") && f.TTL <= 0 {
		return o, runs.BadFlag("ttl", f.TTL, "a lease must be positive, as in --ttl 2s")
	}
	if flags.Changed("time-limit") && f.TimeLimit <= 0 {
		return o, runs.BadFlag("time-limit", f.TimeLimit, "it must be positive; without it the run is long enough for its faults")
	}
	if err := f.unusedFlags(flags); err != nil {
		return o, err
	}
	if flags.Changed("lock-delay") {
		o.LockDelay = &f.lockDelay
	}
	if flags.Changed("think") {
		o.Think = &f.think
	}
	if f.schedule != "" {
		schedule, err := readSchedule(f.schedule)
		if err != nil {
			return o, &runs.UsageError{Err: err, About: "schedule"}
		}
		if flags.Changed("seed") {
			schedule.Seed = o.Seed
		}
		o.Schedule, o.Seed = &schedule, schedule.Seed
	}
	o.Images = make(map[string]string)
	for _, text := range f.images {
		name, image, found := strings.Cut(text, "=")
		if !found || image == "" {
			return o, runs.BadFlag("image", text, "write NAME=IMAGE")
		}
		o.Images[name] = image
	}
	return o, nil
}

// unusedFlags refuses flags that shape random faults if there are no such faults.
func (f *testFlags) unusedFlags(flags *pflag.FlagSet) error {
	if f.schedule != "" {
		return exclusive(flags, "schedule", "nemesis", "pause", "nemesis-interval")
	}
	requests, err := nemesis.ParseRequests(f.Nemesis)
	if err != nil {
		return &runs.UsageError{Err: err, About: "nemesis"}
	}
	stops := func(r nemesis.Request) bool { return history.Does(r.Fault, history.Stops) }
	for _, name := range []string{"pause", "nemesis-interval"} {
		switch {
		case !flags.Changed(name):
		case len(requests) == 0:
			return runs.BadFlag(name, nil, "--nemesis %s has no faults; name some, or omit --%s", f.Nemesis, name)
		case name == "pause" && !slices.ContainsFunc(requests, stops):
			return f.pausesNothing()
		}
	}
	return nil
}

// pausesNothing says that --pause has no effect. An error of the faults themselves comes first, because the
// advice repeats the faults and must work.
func (f *testFlags) pausesNothing() error {
	o := f.Options
	o.Pause = 0
	if _, err := runs.OutlineOf(o); err != nil {
		return err
	}
	return runs.BadFlag("pause", nil, "no fault of --nemesis %s stops a process; write --nemesis pause,%s, or omit --pause", f.Nemesis, f.Nemesis)
}

func readSchedule(path string) (nemesis.Schedule, error) {
	file, err := os.Open(path)
	if err != nil {
		return nemesis.Schedule{}, err
	}
	defer file.Close()
	schedule, err := nemesis.ReadSchedule(file)
	if err != nil {
		return schedule, fmt.Errorf("%s: %w", path, err)
	}
	return schedule, nil
}

// machine fills in the binary, its version and its command line.
func (s *system) machine(m *runs.Machine) error {
	binary, err := s.binary()
	if err != nil {
		return err
	}
	m.Binary, m.Version, m.Command = binary, buildinfo.This().Short(), append([]string{"lockcheck"}, s.args...)
	return nil
}

// runTest runs a test with progress and prints its report.
func (s *system) runTest(ctx context.Context, o runs.Options, interrupt <-chan struct{}) (runs.Outcome, error) {
	progress := s.progress()
	outcome, err := runs.Test(ctx, o, interrupt, progress)
	progress.Done()
	if outcome.History == nil {
		return outcome, err
	}
	return outcome, errors.Join(err, s.report(outcome.Judgement))
}

// alsoFailed joins the error of a verdict and an error after judging. The exit code of the verdict
// counts unless it is 0.
func alsoFailed(verdict, err error) error {
	switch {
	case err == nil:
		return verdict
	case verdict == nil:
		return err
	case verdict.Error() != "":
		err = errors.Join(verdict, err)
	}
	return &exitError{code: exitCode(verdict), err: err}
}

func (s *system) progress() *reports.Progress {
	return reports.NewProgress(s.stderr, s.progressTerminal && !s.dumb(), s.color(s.progressTerminal))
}

// color says whether to color what goes to a terminal (https://no-color.org).
func (s *system) color(terminal bool) bool {
	return terminal && !s.dumb() && s.env("NO_COLOR") == ""
}

// dumb says that the terminal has no escape sequences.
func (s *system) dumb() bool { return s.env("TERM") == "dumb" }

func (s *system) terminalOptions() reports.TerminalOptions {
	return reports.TerminalOptions{Width: s.width, Color: s.color(s.terminal), Program: s.program}
}

// report prints the report of a run.
func (s *system) report(j runs.Judgement) error {
	options := s.terminalOptions()
	options.Folder, options.Header = j.Folder, j.History.Header
	return reports.Terminal(s.stdout, j.Results, options)
}

func parseVerdict(text string) (checker.Verdict, error) {
	if v := checker.Verdict(text); text == "" || slices.Contains(checker.Verdicts(), v) {
		return v, nil
	}
	return "", runs.BadFlag("expect", text, "no such verdict%s", spelling.Hint(text, verdictNames()))
}

// verdictError turns a verdict into the exit code. Its message is empty unless an expectation was
// missed, because the report has said everything.
func verdictError(outcome runs.Outcome, expect checker.Verdict) error {
	verdict := outcome.Results.Verdict
	switch {
	case outcome.Interrupted:
		return &exitError{code: exitInterrupted}
	case expect == "":
		return codeOnly(verdictCode(verdict))
	}
	missed := suites.Expectation{Verdict: expect}.Missed(outcome.Results)
	if missed == "" {
		return nil
	}
	// The code of an unexpected valid run would be 0, which means as expected.
	return &exitError{code: max(exitViolation, verdictCode(verdict)), err: fmt.Errorf("not as expected: %s", missed)}
}

// codeOnly is an error with a code and no message; nil for 0.
func codeOnly(code int) error {
	if code == exitOK {
		return nil
	}
	return &exitError{code: code}
}

func verdictCode(v checker.Verdict) int {
	switch v {
	case checker.Valid:
		return exitOK
	case checker.Violation:
		return exitViolation
	case checker.Undecided:
		return exitUndecided
	default:
		return exitBroken
	}
}
