package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/internal/suites/guide"
	"lockcheck/internal/suites/matrix"
	"lockcheck/workloads"
)

// compareFlags are the flags of "lockcheck compare".
type compareFlags struct {
	file, resume, out, store, shard string
	baseline                        string
	locks, faults, guards           []string
	seeds, parallel, confirm        int
	clusterSeeds                    uint
	budget                          time.Duration
	workload                        string
	concurrency                     int
	timeLimit                       time.Duration
	section                         workloads.Range
	swarm                           swarmFlags
}

func compareCommand(s *system) *cobra.Command {
	f := &compareFlags{section: runs.DefaultSection()}
	cmd := &cobra.Command{
		Use:   "compare",
		Short: "put locks side by side: locks × faults × guards",
		Long: `Run every lock under every fault with every guard, several at a time, and put
the results into tables: verdicts, lost updates, overlaps, latencies,
failover time, availability. Faults that are not supported leave their cells
empty.

With a file of what to compare and thresholds to hold it to, it is a test for
CI: a threshold takes the place of the property that it bounds. A comparison
that was stopped goes on with --resume. Several machines share one with --shard,
and "lockcheck merge" puts their parts together; --swarm does both on a Docker
Swarm.

The most telling verdict of all cells makes the exit code. That of a part is 0
once its runs are made: "merge" judges them.

` + exitCodes,
		Example: `  lockcheck compare
  lockcheck compare --locks redis,etcd --faults none,pause:holder --seeds 3
  lockcheck compare -f suite.yaml
  lockcheck compare -f suite.yaml --shard 2/8
  lockcheck compare --resume store/compare/latest`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return s.compare(cmd, f) },
	}
	f.add(cmd.Flags())
	return cmd
}

func (f *compareFlags) add(flags *pflag.FlagSet) {
	d := matrix.DefaultSuite()
	flags.SortFlags = false
	flags.StringVarP(&f.file, "file", "f", "", "`file` with a suite: what to compare, and thresholds")
	flags.StringSliceVar(&f.locks, "locks", nil, "`names` of locks; etcd@3.5.15 for a version of the servers (default: all but those with another version of a library, and semaphores)")
	flags.StringSliceVar(&f.faults, "faults", nil, "`faults`, a column each (default: "+strings.Join(d.Faults, ", ")+")")
	flags.StringSliceVar(&f.guards, "guards", nil, "`guards` (default: "+strings.Join(d.Guards, ", ")+")")
	flags.IntVar(&f.seeds, "seeds", 1, "how many runs of each cell to make")
	flags.UintVar(&f.clusterSeeds, "cluster-seeds", 0, "how many runs of a cell to make whose lock has several servers (default: as --seeds)")
	flags.StringVarP(&f.workload, "workload", "w", d.Workload, "what workers do: set, counter, jobs, election, read-write, mutex or semaphore")
	flags.IntVarP(&f.concurrency, "concurrency", "c", d.Concurrency, "number of workers")
	flags.Var(&f.section, "section", "time in the critical section, fixed or as in 20ms-80ms")
	flags.DurationVar(&f.timeLimit, "time-limit", 0, "length of a run (default: by its lock and its fault)")
	flags.IntVar(&f.parallel, "parallel", 0, "how many runs of one server each to make at a time (default: as many as processors and memory allow)")
	flags.DurationVar(&f.budget, "budget", 0, "`time` after which no run may end: every cell gets its first run before any gets its second, and what is not made is undecided (default: as long as it takes)")
	flags.IntVar(&f.confirm, "confirm", 0, "how many `times` to make a cell again that is not valid, with other seeds (default: as the suite says, else none)")
	addBaseline(flags, &f.baseline)
	flags.StringVar(&f.shard, "shard", "", "make only this `part` of the runs, as in 2/8; or 1:8, counted from 0")
	f.swarm.add(flags)
	flags.StringVar(&f.resume, "resume", "", "go on with the comparison in this `folder`")
	flags.StringVar(&f.out, "out", "", "`folder` for the comparison (default: a new one in the store)")
	flags.StringVar(&f.store, "store", "store", "`folder` for runs")
}

func addBaseline(flags *pflag.FlagSet, path *string) {
	flags.StringVar(path, "baseline", "", "`folder` or comparison.json of a comparison: what is bad there, too, is not red unless it is worse now by more than chance")
}

// readBaseline reads the one that is named; nil for none.
func readBaseline(path string) (*matrix.Baseline, error) {
	if path == "" {
		return nil, nil
	}
	return matrix.ReadBaseline(path)
}

// suite is that of the file, or that of the flags.
func (f *compareFlags) suite(flags *pflag.FlagSet) (matrix.Suite, error) {
	suite := matrix.DefaultSuite()
	if f.file != "" {
		for _, name := range []string{"locks", "faults", "guards", "seeds", "cluster-seeds", "workload", "concurrency", "section", "time-limit"} {
			if flags.Changed(name) {
				return suite, &runs.UsageError{Err: fmt.Errorf("--file and --%s exclude each other", name)}
			}
		}
		suite, err := readSuite(f.file)
		if flags.Changed("confirm") && err == nil {
			suite.Confirm = f.confirm
			err = suite.CheckFlags()
		}
		return suite, err
	}
	if f.locks != nil {
		suite.Locks = f.locks
	}
	if f.faults != nil {
		suite.Faults = f.faults
	}
	if f.guards != nil {
		suite.Guards = f.guards
	}
	suite.Seeds, suite.Workload, suite.Concurrency = matrix.CountSeeds(f.seeds), f.workload, f.concurrency
	suite.ClusterSeeds = matrix.CountSeeds(int(f.clusterSeeds))
	suite.Section, suite.TimeLimit, suite.Confirm = f.section, f.timeLimit, f.confirm
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

// planned is a comparison that is not on disk yet, or the one to go on with.
func (f *compareFlags) planned(flags *pflag.FlagSet) (*matrix.Folder, error) {
	if f.resume != "" {
		for _, name := range []string{"file", "locks", "faults", "guards", "seeds", "cluster-seeds", "workload", "concurrency", "section", "time-limit", "confirm", "shard", "out"} {
			if flags.Changed(name) {
				return nil, &runs.UsageError{Err: fmt.Errorf("--resume and --%s exclude each other", name)}
			}
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

// stored puts a planned comparison on disk.
func (f *compareFlags) stored(planned *matrix.Folder) (_ *matrix.Folder, err error) {
	if planned.Path != "" {
		return planned, nil
	}
	path := f.out
	if path == "" {
		if path, err = runs.NewFolder(filepath.Join(f.store, "compare")); err != nil {
			return nil, err
		}
	}
	return matrix.Create(path, planned.Suite, planned.Shard)
}

// withoutDocker says which locks are to be left out for want of Docker; nil for none. The
// error is for when nothing else is left, or the binary is to blame.
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

func (s *system) compare(cmd *cobra.Command, f *compareFlags) error {
	if f.parallel < 0 || f.budget < 0 {
		return &runs.UsageError{Err: errors.New("--parallel and --budget must not be negative")}
	}
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
		return &runs.UsageError{Err: errors.New("--baseline: a part is not judged; give it to lockcheck merge")}
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
	folder, err := f.stored(planned)
	if err != nil {
		return err
	}
	ctx, interrupt, release := s.interruptible(cmd.Context())
	defer release()
	progress := s.progress()
	machine.Progress = progress
	if leftOut != nil {
		machine.WithoutDocker = true
		progress.Step("%v", leftOut)
	}
	interrupted, err := folder.Run(ctx, machine, interrupt)
	progress.Done()
	if leftOut != nil {
		defer func() {
			fmt.Fprintf(s.stderr, "lockcheck: %v; then go on with %s %s\n", leftOut, s.terminalOptions().CommandLine("lockcheck compare --resume"), folder.Path)
		}()
	}
	if interrupted {
		fmt.Fprintf(s.stderr, "lockcheck: stopped; go on with %s %s\n", s.terminalOptions().CommandLine("lockcheck compare --resume"), folder.Path)
		err = errors.Join(err, &exitError{code: exitInterrupted})
	}
	return s.showComparison(folder, baseline, err)
}

// showComparison writes and prints what there is of a comparison, after an error too.
func (s *system) showComparison(folder *matrix.Folder, baseline *matrix.Baseline, failed error) error {
	m, err := folder.Comparison()
	if err != nil {
		return errors.Join(failed, err)
	}
	if baseline != nil {
		baseline.Hold(&m, folder.Suite)
	}
	known, err := guide.Known()
	known.Annotate(&m)
	err = errors.Join(err, folder.WriteReports(m), m.Terminal().WriteTerminal(s.stdout, s.terminalOptions()))
	if m.Shard == "" {
		err = errors.Join(err, s.tellGitHub(m.WriteAnnotations, m.Summary().WriteMarkdown))
	} else {
		fmt.Fprintf(s.stdout, "part %s: lockcheck merge judges the whole, so what was found here does not make the exit code\n", m.Shard)
	}
	fmt.Fprintf(s.stdout, "folder  %s\npage    %s\n", folder.Path, filepath.Join(folder.Path, matrix.HTMLFile))
	return concluded(comparisonCode(m), failed, err)
}

// concluded is how a comparison ends that has a code, after an error that ended it early,
// or with one of its reports. A violation stands, whatever failed after it.
func concluded(code int, failed, err error) error {
	if failed == nil || code == exitViolation && exitCode(failed) == exitBroken {
		return alsoFailed(codeOnly(code), errors.Join(failed, err))
	}
	return errors.Join(failed, err)
}

// comparisonCode is the exit code of a comparison. A part has done its work once its runs are
// made: of what it found only the whole goes red, so that one finding makes one job red.
func comparisonCode(m matrix.Comparison) int {
	if m.Shard != "" {
		return exitOK
	}
	return verdictCode(m.Verdict)
}

// tellGitHub writes what GitHub Actions shows of a job, when it runs there.
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
