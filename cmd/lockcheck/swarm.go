package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockcheck/checker"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/runs"
	"lockcheck/internal/swarm"
)

// swarmFlags say how a command is spread over a Docker Swarm.
type swarmFlags struct {
	parts         int
	image, listen string
}

func (f *swarmFlags) add(flags flags) {
	flags.number(&f.parts, "swarm", 0)
	flags.text(&f.image, "swarm-image", "")
	flags.text(&f.listen, "swarm-listen", "")
}

// check refuses what cannot be spread.
func (f *swarmFlags) check(flags *pflag.FlagSet) error {
	switch {
	case f.parts == 0 && (f.image != "" || f.listen != ""):
		return runs.Usagef("--swarm-image and --swarm-listen need --swarm")
	case f.parts > 0:
		return exclusive(flags, "swarm", "resume", "shard")
	}
	return least("swarm", f.parts, 0)
}

// forwarded are the flags that were set, except some, as arguments.
func forwarded(flags *pflag.FlagSet, except ...string) (arguments []string) {
	flags.Visit(func(f *pflag.Flag) {
		if !slices.Contains(except, f.Name) {
			arguments = append(arguments, "--"+f.Name+"="+f.Value.String())
		}
	})
	return arguments
}

// lockFolders are the folders of lock files by their relative path, where a task finds them, too.
func lockFolders(locks ...string) (map[string]string, error) {
	folders := make(map[string]string)
	for _, lock := range locks {
		if !lockfile.IsPath(lock) {
			continue
		}
		folder := filepath.Dir(lock)
		if !filepath.IsLocal(folder) || folder == "." {
			return nil, runs.BadFlag("swarm", nil, "%s is copied to other machines with everything next to it; put it into its own folder within this one", lock)
		}
		real, err := filepath.EvalSymlinks(folder)
		if err != nil {
			return nil, &runs.UsageError{Err: err}
		}
		folders[folder] = real
	}
	return folders, nil
}

// spread makes the parts of a job and merges their folders into out, which must not exist yet. Parts
// that did not come back are missing in the whole.
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
		return errors.Join(err, fmt.Errorf("the parts are in %s; put them together with lockcheck %s merge --out %s %s", job.Folder, job.Arguments[0], out, filepath.Join(job.Folder, "*")))
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
					cancel() // the command of the task then ends cleanly
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
	cmd.Flags().StringVar(&clean, "clean", "", "remove what the tasks of this job left here")
	return cmd
}

// suiteFile is the name under which tasks find the suite of a comparison.
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
	folder, err := os.MkdirTemp("", "lockcheck-suite-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if err := runs.WriteFile(folder, suiteFile, suite.Write); err != nil {
		return err
	}
	files[suiteFile] = filepath.Join(folder, suiteFile)
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
func (s *system) spreadHunt(cmd *cobra.Command, f *huntFlags, expect checker.Verdict) error {
	if _, err := f.Plan.Ready(); err != nil {
		return err
	}
	files, err := lockFolders(f.Lock)
	if err != nil {
		return err
	}
	out, err := newFolderAt(f.out, f.store, runs.HuntFolder)
	if err != nil {
		return err
	}
	return s.spread(cmd, f.swarm, swarm.Job{Arguments: huntOfTask(cmd.Flags()), Files: files}, out, func(ctx context.Context, parts []string) error { return s.mergeHunt(ctx, out, expect, parts) })
}

// huntOfTask is the command of a task, to which the swarm adds the task's part.
func huntOfTask(flags *pflag.FlagSet) []string {
	return append([]string{"hunt"}, forwarded(flags, "swarm", "swarm-image", "swarm-listen", "out", "store", "expect")...)
}

// newFolderAt is the path for a whole: the named folder, or a new one in the store. The folder does not exist
// afterwards.
func newFolderAt(out, store, kind string) (string, error) {
	if out == "" {
		path, err := runs.NewFolder(filepath.Join(store, kind))
		if err != nil {
			return "", err
		}
		return path, os.Remove(path) // Merge makes the folder again
	}
	if _, err := os.Stat(out); err == nil {
		return "", runs.BadFlag("out", out, "it exists already")
	}
	return out, nil
}
