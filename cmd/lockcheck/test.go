package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/internal/runs"
	"lockcheck/internal/spelling"
	"lockcheck/internal/suites"
	"lockcheck/nemesis"
	"lockcheck/reports"
	"lockcheck/workloads"
)

// testFlags are the flags of "lockcheck test".
type testFlags struct {
	runs.Options
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
	f.Section = runs.DefaultSection()
	cmd := &cobra.Command{
		Use:   "test",
		Short: "run one test: a lock, a workload, faults, a verdict",
		Long: `Start the servers of a lock, let workers update data under it while faults are
inflicted, and judge the record. Without --lock it tests the embedded lock,
which needs no Docker.

With --with-remedies a run that ends in a violation is made again with each
remedy that the lock supports: the same seed, faults and options but for that
one change. All are put side by side, in one folder. The exit code is that of
the first run, the one that was asked for.

` + exitCodes,
		Example: `  lockcheck test --expect violation
  lockcheck test --guard fence
  lockcheck test --with-remedies
  lockcheck test --lock redis --nemesis pause --workload counter
  lockcheck test --lock redlock --nemesis clock,partition --time-limit 30s`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return s.test(cmd, f) },
	}
	f.add(cmd.Flags())
	return cmd
}

func (f *testFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.SetNormalizeFunc(presentName)
	flags.StringVarP(&f.Lock, "lock", "l", "memory", "`name` of the lock under test, with options as in etcd+watch-session (see \"lockcheck list locks\"), or a lock file of your own")
	flags.StringVarP(&f.Workload, "workload", "w", "set", "what workers do: set, counter, jobs, election, read-write, mutex or semaphore")
	flags.StringVar(&f.Guard, "guard", "none", "what the resource checks: none, fence, fence-writes, ask, database, cas, match or idempotency-key")
	flags.StringVar(&f.Nemesis, "nemesis", "pause", "`faults`, as in pause,clock or \"pause:one server\"; none: without faults")
	flags.DurationVar(&f.Interval, "nemesis-interval", runs.DefaultInterval, "mean time from one fault to the next")
	flags.DurationVar(&f.Pause, "pause", 0, "length of the pauses among the faults (default: longer than the lease)")
	flags.StringVar(&f.schedule, "schedule", "", "`file` with a schedule of faults, in place of --nemesis")
	flags.BoolVar(&f.SkipUnsupported, "skip-unsupported", false, "leave out faults that are not supported on these servers")
	flags.DurationVar(&f.TimeLimit, "time-limit", 0, "length of the run, the recovery period at its end included (default: 20s, more for long leases and many faults)")
	flags.IntVarP(&f.Concurrency, "concurrency", "c", runs.DefaultConcurrency, "number of workers")
	flags.Float64Var(&f.Rate, "rate", 0, "holds per second of all workers together; 0: no limit")
	flags.StringVar(&f.ServerVersion, "version", "", "`version` of the servers, see \"lockcheck list locks\"")
	flags.IntVar(&f.Nodes, "nodes", 0, "number of servers (default: that of the lock)")
	flags.BoolVar(&f.Pin, "pin", false, "tie each worker to one server, where one can serve it alone")
	flags.DurationVar(&f.Wait, "wait", 0, "how long an attempt waits in the queue of the lock (default: 5s, or as long as its lease takes to end where each attempt counts it anew)")
	flags.DurationVar(&f.lockDelay, "lock-delay", 0, "how long Consul withholds the lock of a lost session (default: 15s; 0: 1ms, the least that its library can ask for)")
	flags.DurationVar(&f.TTL, "ttl", 0, "lease of the lock (default: that of the lock)")
	flags.IntVar(&f.Permits, "permits", 0, "how many may hold a semaphore at once (default: 2 with workload semaphore, else 1)")
	flags.Var(&f.Section, "section", "time in the critical section, fixed or as in 20ms-80ms")
	flags.IntVar(&f.Updates, "updates", 0, "updates in one hold, each with a section of its own (default: 1; a term of election: 10)")
	flags.Var(&f.think, "think", "time between two holds of a worker, fixed or as in 20ms-80ms; 0: none")
	flags.Lookup("think").DefValue = "0s-10ms" // which the zero value stands for
	flags.BoolVar(&f.Renew, "renew", false, "renew the lease while in the section (a leader of election always does, if the lock lets it)")
	flags.BoolVar(&f.CheckBeforeWrite, "check-before-write", false, "look at the deadline before writing")
	flags.BoolVar(&f.ExitOnLoss, "exit-on-loss", false, "end the process of a worker that learns that its lock is lost, and start it again (not with a client of your own)")
	flags.BoolVar(&f.IgnoreFailedAcquire, "ignore-failed-acquire", false, "go on without the lock when an acquire fails (not when the lock is taken)")
	flags.Int64Var(&f.MinOps, "min-ops", runs.DefaultMinOps, "updates below which a run is undecided")
	flags.StringSliceVar(&f.Require, "require", nil, "`properties` to require in addition to the usual ones, as in mutual-exclusion")
	flags.Uint64Var(&f.Seed, "seed", 0, "seed of the schedule and of the workers (default: a new one)")
	flags.StringArrayVar(&f.images, "image", nil, "other `image` for the servers, as in redis=redis:7.2")
	flags.StringVar(&f.Store, "store", "store", "`folder` for runs")
	flags.IntVar(&f.count, "test-count", 1, "how many runs to make, each with the next seed")
	flags.BoolVar(&f.remedies, "with-remedies", false, "after a violation, run the same seed again with each remedy that the lock supports")
	flags.StringVar(&f.expect, "expect", "", "`verdict` that makes the exit code 0: valid, violation, undecided or broken")
}

// presentName is what a flag is called today.
func presentName(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == "skip-unavailable" {
		name = "skip-unsupported"
	}
	return pflag.NormalizedName(name)
}

func (s *system) test(cmd *cobra.Command, f *testFlags) error {
	expect, err := parseVerdict(f.expect)
	if err != nil {
		return err
	}
	o, err := f.options(cmd)
	if err != nil {
		return err
	}
	if err := s.machine(&o.Machine); err != nil {
		return err
	}
	switch {
	case f.count < 1:
		return &runs.UsageError{Err: fmt.Errorf("--test-count %d: at least one run has to be made", f.count)}
	case f.count > 1 && f.remedies:
		return &runs.UsageError{Err: errors.New("--test-count and --with-remedies exclude each other")}
	case f.remedies:
		return s.testWithRemedies(cmd.Context(), o, expect)
	case f.count > 1:
		return s.testMany(cmd.Context(), o, f.count, expect)
	}
	ctx, interrupt, release := s.interruptible(cmd.Context())
	defer release()
	outcome, err := s.runTest(ctx, o, interrupt)
	if outcome.History == nil {
		return err
	}
	return s.concludeRun(o, outcome, expect, err)
}

// testMany makes several runs and adds up their results. The most telling exit code
// of all of them is that of the command.
func (s *system) testMany(ctx context.Context, o runs.Options, count int, expect checker.Verdict) error {
	ctx, interrupt, release := s.interruptible(ctx)
	defer release()
	var all []checker.Results
	var worst error
	for range count {
		outcome, err := s.runTest(ctx, o, interrupt)
		if outcome.History == nil { // a violation found before stands
			worst = s.moreTellingOf(worst, err)
			if len(all) == 0 {
				return worst
			}
			break
		}
		outcome.Results.Holds = nil // of many runs they would be many
		all = append(all, outcome.Results)
		worst = s.moreTellingOf(worst, s.concludeRun(o, outcome, expect, err))
		if runs.Closed(interrupt) { // at whatever time, so that the run may be whole
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

// concludeRun is how a run ends that has a verdict, after an error that came next to it. GitHub
// is told of one that is not as expected.
func (s *system) concludeRun(o runs.Options, outcome runs.Outcome, expect checker.Verdict, err error) error {
	verdict := verdictError(outcome, expect)
	again := append([]string{"lockcheck"}, o.Arguments()...)
	if o.Arguments() == nil { // it has a schedule of its own
		again = o.Command
	}
	r, h := outcome.Results, outcome.History.Header
	annotate := func(w io.Writer) error { return reports.GitHubRun(w, r, h, again) }
	if verdict == nil {
		annotate = func(io.Writer) error { return nil }
	}
	told := s.tellGitHub(annotate, func(w io.Writer) error { return reports.RunSummary(w, r, h, again) })
	return alsoFailed(verdict, errors.Join(err, told))
}

// moreTelling returns the error with the exit code that says more: a test that makes no
// sense, an interruption, else the more telling verdict.
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

// moreTellingOf prints what the other one says, which nobody else does.
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
func (f *testFlags) options(cmd *cobra.Command) (runs.Options, error) {
	o := f.Options
	if !cmd.Flags().Changed("seed") {
		o.Seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	o.Parameters = make(map[string]string)
	cmd.Flags().Visit(func(flag *pflag.Flag) { o.Parameters[flag.Name] = flag.Value.String() })
	if cmd.Flags().Changed("ttl") && f.TTL <= 0 {
		return o, &runs.UsageError{Err: fmt.Errorf("--ttl %s: a lease must be positive", f.TTL)}
	}
	if cmd.Flags().Changed("time-limit") && f.TimeLimit <= 0 {
		return o, runs.Usagef("--time-limit %s: it must be positive; leave it out for a run that is long enough for its faults", f.TimeLimit)
	}
	if err := f.unusedFlags(cmd.Flags()); err != nil {
		return o, err
	}
	if cmd.Flags().Changed("lock-delay") {
		o.LockDelay = &f.lockDelay
	}
	if cmd.Flags().Changed("think") {
		o.Think = &f.think
	}
	if f.schedule != "" {
		if cmd.Flags().Changed("nemesis") {
			return o, &runs.UsageError{Err: errors.New("--schedule and --nemesis exclude each other")}
		}
		schedule, err := readSchedule(f.schedule)
		if err != nil {
			return o, &runs.UsageError{Err: err}
		}
		o.Schedule = &schedule
		if cmd.Flags().Changed("seed") {
			o.Schedule.Seed = o.Seed
		}
		o.Seed = o.Schedule.Seed
	}
	o.Images = make(map[string]string)
	for _, text := range f.images {
		name, image, found := strings.Cut(text, "=")
		if !found || image == "" {
			return o, &runs.UsageError{Err: fmt.Errorf("--image %s: write NAME=IMAGE", text)}
		}
		o.Images[name] = image
	}
	return o, nil
}

// unusedFlags refuses what shapes random faults where there are none of that kind.
func (f *testFlags) unusedFlags(flags *pflag.FlagSet) error {
	requests, err := nemesis.ParseRequests(f.Nemesis)
	if err != nil {
		return &runs.UsageError{Err: err, About: "nemesis"}
	}
	stops := func(r nemesis.Request) bool { return history.Does(r.Fault, history.Stops) }
	for _, name := range []string{"pause", "nemesis-interval"} {
		switch {
		case !flags.Changed(name):
		case f.schedule != "":
			return runs.Usagef("--schedule and --%s exclude each other: the schedule says how long and how often", name)
		case len(requests) == 0:
			return runs.Usagef("--%s: --nemesis %s has no faults; name some, or leave out --%s", name, f.Nemesis, name)
		case name == "pause" && !slices.ContainsFunc(requests, stops):
			return runs.Usagef("--pause: no fault of --nemesis %s stops a process; write --nemesis pause,%s, or leave out --pause", f.Nemesis, f.Nemesis)
		}
	}
	return nil
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

// machine fills in which lockcheck this is.
func (s *system) machine(m *runs.Machine) error {
	binary, err := s.binary()
	if err != nil {
		return err
	}
	m.Binary, m.Version, m.Command = binary, thisBuild().short(), append([]string{"lockcheck"}, s.args...)
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

// alsoFailed adds what went wrong after a run was judged. The exit code of the
// verdict is the more telling one, unless it is 0.
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

// color follows the convention of NO_COLOR.
func (s *system) color(terminal bool) bool {
	return terminal && !s.dumb() && s.env("NO_COLOR") == ""
}

// dumb says that the terminal understands no escape sequences.
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
	switch v := checker.Verdict(text); v {
	case "", checker.Valid, checker.Violation, checker.Undecided, checker.Broken:
		return v, nil
	default:
		known := []string{string(checker.Valid), string(checker.Violation), string(checker.Undecided), string(checker.Broken)}
		return "", &runs.UsageError{Err: fmt.Errorf("--expect %s: no such verdict%s", text, spelling.Hint(text, known))}
	}
}

// verdictError turns a verdict into the exit code, without a message: the
// report has said it all.
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
	// A valid run is not what was expected, and 0 would say that it is.
	return &exitError{code: max(exitViolation, verdictCode(verdict)), err: fmt.Errorf("not as expected: %s", missed)}
}

// codeOnly is an error that carries a code and no message; nil for 0.
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
