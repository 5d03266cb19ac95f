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

	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/internal/suites/guide"
	"lockcheck/internal/suites/matrix"
	"lockcheck/internal/suites/sweep"
	"lockcheck/reports"
	"lockcheck/workloads"
)

// compareFlags are the flags of "lockcheck compare": those of all kinds of comparisons.
type compareFlags struct {
	file, resume, out, store, shard, baseline string

	locks, faults, guards                  []string
	seeds, clusterSeeds, parallel, confirm int
	concurrency, steps                     int
	workload, version, load                string
	ttl, pause, section                    span
	think                                  workloads.Range
	renew, checkBeforeWrite                bool
	seed                                   uint64
	timeLimit, budget                      time.Duration
	swarm                                  swarmFlags
}

func compareCommand(s *system) *cobra.Command {
	f := new(compareFlags)
	cmd := &cobra.Command{
		Use:   "compare",
		Short: "compare locks, sweep leases, measure load",
		Long: `Attack every lock in every way that is known to break some, and show the results side by side, the locks that least breaks first. An attack aims a fault at a role and a moment, as in: the holder is paused past its lease, before its write ("lockcheck list attacks"). A cell is twenty short trials on servers that are kept. A cell says how often the attack broke the lock, what was lost, and which command shows it. If no trial broke the lock, the cell says which failure rate these trials cannot rule out.

Random faults: with --faults as in none,pause:holder each cell is one longer run or more, with faults at random moments, latencies, failover time and availability. A cell stays empty if the servers do not support its fault.

A suite file (-f) can also set thresholds, which makes the comparison a test for CI: a threshold replaces the property that it bounds. --resume continues a comparison that was stopped. --shard makes one part of it, and "compare merge" puts the parts together and judges them; --swarm does both on a Docker Swarm.

Sweep: with a range for --ttl, --pause or --section (two dots), one lock is tested between both bounds. Holders are paused, and the chart shows where the lock loses updates. A sweep starts with a coarse grid and spends the rest of its --budget where neighbours differ. Its exit code is 0 whatever the lock did.

Load profile: with --load, more and more workers take the lock without faults, each a lock of its own and all the same lock. The profile shows holds per second, the time from the first attempt to the grant, and fairness. --time-limit then excludes start and recovery. Keep the machine idle.

The most telling verdict of all cells makes the exit code.

` + exitCodes,
		Example: `  lockcheck compare
  lockcheck compare --locks redis,etcd --trials 5
  lockcheck compare --locks redis --faults holder-paused,server-restarted
  lockcheck compare --locks redis,etcd --faults none,pause:holder
  lockcheck compare -f suite.yaml
  lockcheck compare -f suite.yaml --shard 2/8
  lockcheck compare merge --out whole part-*
  lockcheck compare --resume store/compare/latest
  lockcheck compare --lock redis --ttl 500ms..30s --pause 100ms..30s
  lockcheck compare --locks redis,etcd --load 1..64`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return s.compare(cmd, f) },
	}
	f.add(flagsOf(cmd))
	cmd.AddCommand(s.compareMergeCommand())
	return cmd
}

func (f *compareFlags) add(flags flags) {
	d := matrix.DefaultSuite()
	f.section.Range = d.Section
	flags.alsoCalled(map[string]string{"lock": "locks", "trials": "seeds"})
	flags.text(&f.file, "file", "")
	flags.list(&f.locks, "locks")
	flags.list(&f.faults, "faults", d.Faults...)
	flags.list(&f.guards, "guards", d.Guards...)
	flags.number(&f.seeds, "seeds", 0)
	flags.number(&f.clusterSeeds, "cluster-seeds", 0)
	flags.text(&f.workload, "workload", d.Workload)
	flags.number(&f.concurrency, "concurrency", d.Concurrency)
	flags.value(&f.ttl, "ttl")
	flags.value(&f.pause, "pause")
	flags.value(&f.section, "section")
	flags.number(&f.steps, "steps", 4)
	flags.seed(&f.seed, "seed", 1)
	flags.text(&f.version, "version", "")
	flags.text(&f.load, "load", "")
	flags.value(&f.think, "think")
	flags.yes(&f.renew, "renew")
	flags.yes(&f.checkBeforeWrite, "check-before-write")
	flags.length(&f.timeLimit, "time-limit", 0)
	flags.number(&f.parallel, "parallel", 0)
	flags.length(&f.budget, "budget", 0)
	flags.number(&f.confirm, "confirm", 0)
	flags.text(&f.baseline, "baseline", "")
	flags.text(&f.shard, "shard", "")
	f.swarm.add(flags)
	flags.text(&f.resume, "resume", "")
	flags.text(&f.out, "out", "")
	flags.text(&f.store, "store", "store")
	flags.otherwise("faults", "all attacks", "seeds", "20 trials of an attack, 1 run under random faults", "locks", "all; memory for a sweep or load profile", "cluster-seeds", "as --seeds", "ttl", "the lock's usual lease; 1s for a sweep",
		"pause", "100ms..5s for a sweep", "section", "20ms-60ms; 200ms for a sweep, 0s for a load profile", "time-limit", "by lock and fault; 5s for a load profile",
		"parallel", "as processors and memory allow; 2 for a sweep", "budget", "no limit; 15m for a sweep")
}

// kind is what a comparison varies, and the flags that make sense with it.
type kind struct {
	name  string
	asked string // what the user asked it with; "" for the default kind
	flags []string
	run   func(*system, *cobra.Command, *compareFlags) error
}

// The planOf functions list the flags that shape what is run. --resume excludes these flags, because its
// folder has a plan.
func planOfMatrix() []string { return append(planOfAttacks(), useOfRandom()...) }

func planOfAttacks() []string {
	return []string{"file", "locks", "faults", "guards", "seeds", "cluster-seeds", "confirm", "shard", "out"}
}

// useOfRandom lists flags for how locks are used under random faults. An attack sets these values itself.
func useOfRandom() []string {
	return []string{"workload", "concurrency", "ttl", "section", "renew", "check-before-write", "time-limit"}
}

func planOfSweep() []string {
	return []string{"locks", "version", "ttl", "pause", "section", "steps", "renew", "check-before-write", "seed", "out"}
}

func planOfLoad() []string {
	return []string{"locks", "load", "time-limit", "think", "section", "out"}
}

func kinds() (attacked, random, swept, profile kind) {
	common := []string{"parallel", "budget", "baseline", "swarm", "swarm-image", "swarm-listen", "resume", "store"}
	attacked = kind{"a comparison by attacks", "", slices.Concat(common, planOfAttacks()), (*system).compareFaults}
	random = kind{"a comparison under random faults", "--faults pause:holder", slices.Concat(common, planOfMatrix()), (*system).compareFaults}
	swept = kind{"a sweep", "a range, as in --pause 100ms..30s", append([]string{"parallel", "budget", "resume", "store"}, planOfSweep()...), (*system).sweep}
	profile = kind{"a load profile", "--load 1..64", append([]string{"store"}, planOfLoad()...), (*system).profile}
	return attacked, random, swept, profile
}

// kind finds out what is asked for, and refuses flags that make no sense with it.
func (f *compareFlags) kind(flags *pflag.FlagSet) (kind, error) {
	attacked, random, swept, profile := kinds()
	asked, others := attacked, []kind{random, swept, profile}
	if f.file != "" || f.resume != "" || slices.ContainsFunc(f.faults, isRandom) {
		asked, others = random, others[1:]
		asked.asked = ""
	}
	if ranged := f.ranged(flags); flags.Changed("load") {
		asked, others = profile, nil
		asked.asked = "--load " + f.load
	} else if ranged != "" {
		asked, others = swept, nil
		asked.asked = ranged
	}
	var refused error
	flags.Visit(func(flag *pflag.Flag) {
		takes := func(k kind) bool { return slices.Contains(k.flags, flag.Name) }
		if refused != nil || takes(asked) {
			return
		}
		for _, k := range others {
			if takes(k) {
				refused = runs.BadFlag(flag.Name, flag.Value, "only %s takes it; to get one, use %s", k.name, k.asked)
				return
			}
		}
		refused = runs.BadFlag(flag.Name, flag.Value, "%s asks for %s, which does not take --%s", asked.asked, asked.name, flag.Name)
	})
	return asked, refused
}

// isRandom says whether a fault of a comparison comes at random moments.
func isRandom(fault string) bool {
	_, isAttack := matrix.AttackByName(fault)
	return !isAttack
}

// ranged is the part of the command line that asks for a sweep; "" for no sweep.
func (f *compareFlags) ranged(flags *pflag.FlagSet) string {
	for name, s := range map[string]span{"ttl": f.ttl, "pause": f.pause, "section": f.section} {
		if flags.Changed(name) && (s.sweeps || name != "section" && s.Min != s.Max) {
			return "--" + name + " " + s.String()
		}
	}
	if f.resume != "" && sweep.Holds(f.resume) {
		return "--resume " + f.resume
	}
	return ""
}

// span is a time, a random time as in 20ms-80ms, or, with two dots, a range to sweep.
type span struct {
	workloads.Range
	sweeps bool
}

// Set implements pflag.Value.
func (s *span) Set(text string) error {
	s.sweeps = strings.Contains(text, "..")
	return s.Range.Set(text)
}

func (s span) String() string {
	if s.sweeps {
		return s.Min.String() + ".." + s.Max.String()
	}
	return s.Range.String()
}

func (s *system) compare(cmd *cobra.Command, f *compareFlags) error {
	kind, err := f.kind(cmd.Flags())
	if err == nil {
		err = errors.Join(least("parallel", f.parallel, 0), least("budget", f.budget, 0))
	}
	if err != nil {
		return err
	}
	return kind.run(s, cmd, f)
}

// suite is the suite of the file, or the suite that the flags describe.
func (f *compareFlags) suite(flags *pflag.FlagSet) (matrix.Suite, error) {
	suite := matrix.DefaultSuite()
	if f.file != "" {
		if err := exclusive(flags, "file", "locks", "faults", "guards", "seeds", "cluster-seeds", "workload", "concurrency", "ttl", "section", "renew", "check-before-write", "time-limit"); err != nil {
			return suite, err
		}
		suite, err := readSuite(f.file)
		if flags.Changed("confirm") && err == nil {
			suite.Confirm = f.confirm
			err = suite.CheckFlags()
		}
		return suite, err
	}
	if err := least("cluster-seeds", f.clusterSeeds, 0); err != nil {
		return suite, err
	}
	if f.locks != nil {
		suite.Locks = f.locks
	}
	suite.Faults, suite.Guards, suite.Workload, suite.Concurrency = f.faults, f.guards, f.workload, f.concurrency
	if flags.Changed("seeds") {
		if err := least("seeds", f.seeds, 1); err != nil {
			return suite, err
		}
		suite.Seeds = matrix.CountSeeds(f.seeds)
	}
	suite.ClusterSeeds = matrix.CountSeeds(f.clusterSeeds)
	suite.TTL, suite.Section, suite.TimeLimit, suite.Confirm = f.ttl.Min, f.section.Range, f.timeLimit, f.confirm
	suite.Renew, suite.CheckBeforeWrite = f.renew, f.checkBeforeWrite
	return suite, suite.CheckFlags()
}

func readSuite(path string) (matrix.Suite, error) {
	file, err := os.Open(path)
	if err != nil {
		return matrix.Suite{}, &runs.UsageError{Err: err}
	}
	defer file.Close()
	suite, err := matrix.ReadSuite(file)
	if err != nil {
		return suite, &runs.UsageError{Err: fmt.Errorf("%s: %w", path, err)}
	}
	return suite, nil
}

// readBaseline reads the baseline at a path; nil for "".
func readBaseline(path string) (*matrix.Baseline, error) {
	if path == "" {
		return nil, nil
	}
	return matrix.ReadBaseline(path)
}

// planned is a comparison that is not on disk yet, or the one to continue.
func (f *compareFlags) planned(flags *pflag.FlagSet) (*matrix.Folder, error) {
	if f.resume != "" {
		if err := exclusive(flags, "resume", planOfMatrix()...); err != nil {
			return nil, err
		}
		return matrix.Open(f.resume)
	}
	suite, err := f.suite(flags)
	if err != nil {
		return nil, err
	}
	shard, err := suites.ParseShard(f.shard)
	return &matrix.Folder{Suite: suite, Shard: shard}, err
}

// withoutDocker says which locks cannot be tested without Docker; nil for none. It is an error if no other
// lock is left, or if Docker is there but the binary cannot run in containers.
func withoutDocker(ctx context.Context, planned *matrix.Folder, binary string) (leftOut *leftOutError, err error) {
	locks, others, err := planned.NeedDocker()
	if len(locks) == 0 || err != nil {
		return nil, err
	}
	err = runs.ReadyForDocker(ctx, binary)
	var noDocker *runs.NoDockerError
	if others && errors.As(err, &noDocker) {
		return &leftOutError{locks, noDocker}, nil
	}
	return nil, err
}

// leftOutError says which locks were left out of a comparison.
type leftOutError struct {
	locks []string
	why   error
}

func (e *leftOutError) Error() string {
	return fmt.Sprintf("left out: %s: %v", strings.Join(e.locks, ", "), e.why)
}

// compareFaults runs locks under faults.
func (s *system) compareFaults(cmd *cobra.Command, f *compareFlags) error {
	if err := f.swarm.check(cmd.Flags()); err != nil {
		return err
	}
	if f.swarm.parts > 0 {
		return s.spreadComparison(cmd, f)
	}
	planned, err := f.planned(cmd.Flags())
	if err != nil {
		return err
	}
	if f.baseline != "" && planned.Shard.String() != "" {
		return runs.BadFlag("baseline", nil, "a part is not judged; give the baseline to lockcheck compare merge")
	}
	baseline, err := readBaseline(f.baseline)
	if err != nil {
		return err
	}
	machine := matrix.Machine{Parallel: f.parallel, Budget: f.budget}
	if err := s.machine(&machine.Machine); err != nil {
		return err
	}
	leftOut, err := withoutDocker(cmd.Context(), planned, machine.Binary)
	if err != nil {
		return err
	}
	folder := planned
	if folder.Path == "" {
		path, err := newFolder(f.out, f.store, "compare")
		if err != nil {
			return err
		}
		if folder, err = matrix.Create(path, planned.Suite, planned.Shard); err != nil {
			return err
		}
	}
	again := s.terminalOptions().CommandLine("lockcheck compare --resume " + folder.Path)
	err = s.attended(cmd.Context(), func(ctx context.Context, progress *reports.Progress, interrupt <-chan struct{}) (bool, error) {
		machine.Progress, machine.WithoutDocker = progress, leftOut != nil
		if leftOut != nil {
			progress.Step("%v", leftOut)
		}
		return folder.Run(ctx, machine, interrupt)
	})
	if leftOut != nil {
		defer func() { fmt.Fprintf(s.stderr, "lockcheck: %v; then continue with %s\n", leftOut, again) }()
	}
	if exitCode(err) == exitInterrupted {
		fmt.Fprintf(s.stderr, "lockcheck: stopped; continue with %s\n", again)
	}
	return s.showComparison(folder, baseline, err)
}

// attended runs something with progress until it is done or the user interrupts it, which is then
// the exit code.
func (s *system) attended(ctx context.Context, run func(context.Context, *reports.Progress, <-chan struct{}) (interrupted bool, err error)) error {
	ctx, interrupt, release := s.interruptible(ctx)
	defer release()
	progress := s.progress()
	interrupted, err := run(ctx, progress, interrupt)
	progress.Done()
	if interrupted {
		err = errors.Join(err, &exitError{code: exitInterrupted})
	}
	return err
}

// newFolder is the named folder, or a new folder in the store.
func newFolder(out, store, kind string) (string, error) {
	if out != "" {
		return out, nil
	}
	return runs.NewFolder(filepath.Join(store, kind))
}

// compareMergeCommand puts the parts of a comparison together.
func (s *system) compareMergeCommand() *cobra.Command {
	var baseline string
	cmd := s.mergeCommand("comparison", func(ctx context.Context, out string, parts []string) error {
		return s.mergeComparison(ctx, out, baseline, parts)
	})
	flagsOf(cmd).text(&baseline, "baseline", "")
	return cmd
}

// mergeCommand puts the parts of something together.
func (s *system) mergeCommand(what string, merge func(ctx context.Context, out string, parts []string) error) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "merge --out FOLDER PART...",
		Short: "put the parts of one " + what + " together",
		Long: "Put together the parts of one " + what + ` that --shard made: copy their runs into a new folder, and write its reports. Runs that no part has made leave the whole undecided.

` + exitCodes,
		DisableFlagsInUseLine: true,
		Args: usageArgs(func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name the folders of the parts")
			}
			return nil
		}),
		RunE: func(cmd *cobra.Command, parts []string) error {
			if out == "" {
				return runs.BadFlag("out", nil, "name a new folder for the merged result")
			}
			return s.untilInterrupted(cmd.Context(), func(ctx context.Context) error { return merge(ctx, out, parts) })
		},
	}
	flagsOf(cmd).text(&out, "out", "")
	return cmd
}

func (s *system) mergeComparison(ctx context.Context, out, against string, paths []string) error {
	baseline, err := readBaseline(against)
	if err != nil {
		return err
	}
	var parts []*matrix.Folder
	for _, path := range paths {
		part, err := matrix.Open(path)
		if err != nil {
			return err
		}
		parts = append(parts, part)
	}
	whole, err := matrix.Merge(ctx, out, parts)
	if err != nil {
		return err
	}
	return s.showComparison(whole, baseline, nil)
}

// showComparison writes and prints the results so far, even after an error.
func (s *system) showComparison(folder *matrix.Folder, baseline *matrix.Baseline, failed error) error {
	m, err := folder.Comparison()
	if err != nil {
		return errors.Join(failed, err)
	}
	if baseline != nil {
		baseline.Hold(&m, folder.Suite)
	}
	known, err := guide.Known()
	err = errors.Join(err, known.Annotate(&m), folder.WriteReports(m), m.Terminal().WriteTerminal(s.stdout, s.terminalOptions()))
	if m.Shard == "" {
		err = errors.Join(err, s.tellGitHub(m.WriteAnnotations, m.Summary().WriteMarkdown))
	} else {
		fmt.Fprintf(s.stdout, "part %s: its findings do not affect the exit code; lockcheck compare merge judges the whole\n", m.Shard)
	}
	fmt.Fprintf(s.stdout, "folder  %s\npage    %s\n", folder.Path, filepath.Join(folder.Path, matrix.HTMLFile))
	return concluded(comparisonCode(m), failed, err)
}

// concluded turns the code of a comparison, an error that ended it early, and an error of its reports
// into the error of the command. A violation stands, whatever failed after it.
func concluded(code int, failed, err error) error {
	if failed == nil || code == exitViolation && exitCode(failed) == exitBroken {
		return alsoFailed(codeOnly(code), errors.Join(failed, err))
	}
	return errors.Join(failed, err)
}

// comparisonCode is the exit code of a comparison. A part has done its work once its runs are made.
// Only the whole fails for its findings, so that one finding fails one CI job.
func comparisonCode(m matrix.Comparison) int {
	if m.Shard != "" {
		return exitOK
	}
	return verdictCode(m.Verdict)
}

// tellGitHub writes annotations and the summary of a job of GitHub Actions; nothing elsewhere.
func (s *system) tellGitHub(annotate, summarise func(io.Writer) error) error {
	if s.env("GITHUB_ACTIONS") != "true" {
		return nil
	}
	err := annotate(s.stdout)
	path := s.env("GITHUB_STEP_SUMMARY")
	if path == "" {
		return err
	}
	file, openErr := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if openErr != nil {
		return errors.Join(err, openErr)
	}
	return errors.Join(err, summarise(file), file.Close())
}
