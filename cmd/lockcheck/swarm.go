package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockcheck/internal/lockfile"
	"lockcheck/internal/runs"
	"lockcheck/internal/swarm"
)

// swarmFlags say how a command is spread over a Docker Swarm.
type swarmFlags struct {
	parts         int
	image, listen string
}

func (f *swarmFlags) add(flags *pflag.FlagSet) {
	flags.IntVar(&f.parts, "swarm", 0, "spread it over the nodes of the Docker Swarm that this node manages, in so many `parts`")
	flags.StringVar(&f.image, "swarm-image", "", "`image` of lockcheck, as all nodes can pull it (default: one of this binary, with which tasks run on this node alone)")
	flags.StringVar(&f.listen, "swarm-listen", "", "`address` and port of this node to which tasks bring what they made (default: a port of its own, where the swarm knows this node)")
}

// check refuses what cannot be spread.
func (f *swarmFlags) check(flags *pflag.FlagSet) error {
	switch {
	case f.parts < 0:
		return runs.Usagef("--swarm must not be negative")
	case f.parts == 0 && (f.image != "" || f.listen != ""):
		return runs.Usagef("--swarm-image and --swarm-listen are for --swarm")
	case f.parts == 0:
		return nil
	}
	for _, name := range []string{"resume", "shard"} {
		if flags.Changed(name) {
			return runs.Usagef("--swarm and --%s exclude each other", name)
		}
	}
	return nil
}

// forwarded are the flags that were set, but for some, as arguments.
func forwarded(flags *pflag.FlagSet, but ...string) (arguments []string) {
	left := make(map[string]bool)
	for _, name := range but {
		left[name] = true
	}
	flags.Visit(func(f *pflag.Flag) {
		if !left[f.Name] {
			arguments = append(arguments, "--"+f.Name+"="+f.Value.String())
		}
	})
	return arguments
}

// lockFolders are the folders of locks that are files, by their own path: there a task has it, too.
func lockFolders(locks ...string) (map[string]string, error) {
	folders := make(map[string]string)
	for _, lock := range locks {
		if !lockfile.IsPath(lock) {
			continue
		}
		folder := filepath.Dir(lock)
		if !filepath.IsLocal(folder) || folder == "." {
			return nil, runs.Usagef("--swarm: %s goes to other machines with all that is next to it: put it in a folder of its own within this one", lock)
		}
		real, err := filepath.EvalSymlinks(folder)
		if err != nil {
			return nil, &runs.UsageError{Err: err}
		}
		folders[folder] = real
	}
	return folders, nil
}

// spread makes the parts of a job, and hands their folders on to be put together in out, which is
// not there yet. Those that did not come back are missing there.
func (s *system) spread(cmd *cobra.Command, f swarmFlags, job swarm.Job, out string, merge func(ctx context.Context, parts []string) error) (err error) {
	job.Parts, job.Image, job.Listen, job.Folder = f.parts, f.image, f.listen, out+".parts"
	if job.Binary, err = s.binary(); err != nil {
		return err
	}
	if err := os.MkdirAll(job.Folder, 0o755); err != nil {
		return err
	}
	ctx, interrupt, release := s.interruptible(cmd.Context())
	defer release()
	progress := s.progress()
	job.Progress = progress.Step
	parts, err := job.Run(ctx, interrupt)
	progress.Done()
	select {
	case <-interrupt:
		err = errors.Join(err, &exitError{code: exitInterrupted})
	default:
	}
	if len(parts) > 0 {
		err = errors.Join(err, merge(cmd.Context(), parts))
	}
	if _, missing := os.Stat(out); missing != nil && len(parts) > 0 {
		return errors.Join(err, fmt.Errorf("the parts are in %s; lockcheck merge --out %s %s puts them together", job.Folder, out, filepath.Join(job.Folder, "*")))
	}
	return errors.Join(err, os.RemoveAll(job.Folder))
}

// swarmPartCommand is what a task of a swarm runs.
func swarmPartCommand(s *system) *cobra.Command {
	var clean string
	cmd := &cobra.Command{
		Use: swarm.Command, Hidden: true, Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			interruptible, interrupt, release := s.interruptible(cmd.Context())
			defer release()
			ctx, cancel := context.WithCancel(interruptible)
			defer cancel()
			go func() {
				select {
				case <-interrupt:
					cancel() // what the task runs ends in good order
				case <-ctx.Done():
				}
			}()
			if clean != "" {
				return swarm.Clean(ctx, clean)
			}
			binary, err := s.binary()
			if err != nil {
				return err
			}
			return swarm.Work(ctx, binary, s.env)
		},
	}
	cmd.Flags().StringVar(&clean, "clean", "", "remove what the tasks of this job have left here")
	return cmd
}

// suiteFile is what tasks know the suite of a comparison by.
const suiteFile = "suite.yaml"

// spreadComparison makes a comparison on a swarm.
func (s *system) spreadComparison(cmd *cobra.Command, f *compareFlags) error {
	suite, err := f.suite(cmd.Flags())
	if err != nil {
		return err
	}
	if _, err := readBaseline(f.baseline); err != nil {
		return err
	}
	files, err := lockFolders(suite.Locks...)
	if err != nil {
		return err
	}
	var text strings.Builder
	if err := suite.Write(&text); err != nil {
		return err
	}
	written, err := os.CreateTemp("", "lockcheck-suite-")
	if err != nil {
		return err
	}
	defer os.Remove(written.Name())
	_, err = written.WriteString(text.String())
	if err := errors.Join(err, written.Close()); err != nil {
		return err
	}
	files[suiteFile] = written.Name()
	arguments := []string{"compare", "--file", suiteFile}
	if f.parallel > 0 {
		arguments = append(arguments, fmt.Sprintf("--parallel=%d", f.parallel))
	}
	if f.budget > 0 {
		arguments = append(arguments, "--budget="+f.budget.String())
	}
	out, err := newFolderAt(f.out, f.store, "compare")
	if err != nil {
		return err
	}
	return s.spread(cmd, f.swarm, swarm.Job{Arguments: arguments, Files: files}, out, func(ctx context.Context, parts []string) error {
		return s.mergeComparison(ctx, out, f.baseline, parts)
	})
}

// spreadHunt makes a hunt on a swarm.
func (s *system) spreadHunt(cmd *cobra.Command, f *huntFlags) error {
	if _, err := f.Plan.Ready(); err != nil {
		return err
	}
	files, err := lockFolders(f.Lock)
	if err != nil {
		return err
	}
	expect, err := parseVerdict(f.expect)
	if err != nil {
		return err
	}
	out, err := newFolderAt(f.out, f.store, runs.HuntFolder)
	if err != nil {
		return err
	}
	return s.spread(cmd, f.swarm, swarm.Job{Arguments: huntOfTask(cmd.Flags()), Files: files}, out, func(ctx context.Context, parts []string) error { return s.mergeHunt(ctx, out, expect, parts) })
}

// huntOfTask is the command of a task, to which the swarm adds its part.
func huntOfTask(flags *pflag.FlagSet) []string {
	return append([]string{"hunt"}, forwarded(flags, "swarm", "swarm-image", "swarm-listen", "out", "store", "expect")...)
}

// newFolderAt is where a whole is to be put, which must not be there yet: the folder that is named,
// or a new one in the store.
func newFolderAt(out, store, kind string) (string, error) {
	if out == "" {
		path, err := runs.NewFolder(filepath.Join(store, kind))
		if err != nil {
			return "", err
		}
		return path, os.Remove(path) // made again once there is something for it
	}
	if _, err := os.Stat(out); err == nil {
		return "", runs.Usagef("--out %s: it is there already", out)
	}
	return out, nil
}
