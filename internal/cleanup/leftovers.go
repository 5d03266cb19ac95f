package cleanup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"syscall"
	"time"

	"lockcheck/clusters/engine"
	"lockcheck/internal/folders"
)

// Leftover counts what a dead run has left behind.
type Leftover struct {
	Run       string
	Processes int
	Objects   int      // containers, networks and volumes
	Undone    []string // how to undo the faults that the journal shows as still in force
}

// Clean removes what dead runs on this machine have left behind: their processes, their temporary folders and,
// with an engine, every object that carries their label. It leaves runs that are alive and runs of other
// machines alone.
//
// If the engine does not answer, unavailable says why. Without an engine, runs that may have objects there are
// left as they are.
func Clean(ctx context.Context, withEngine bool) (left []Leftover, unavailable, err error) {
	var docker *engine.Engine
	if withEngine {
		if docker, unavailable = engine.Connect(ctx); unavailable == nil {
			defer docker.Close()
		}
	}
	left, err = cleanDead(ctx, docker)
	return left, unavailable, err
}

func cleanDead(ctx context.Context, docker *engine.Engine) ([]Leftover, error) {
	me, err := Self()
	if err != nil {
		return nil, err
	}
	return sweepOver(ctx, docker, func(o Owner) bool { return o.dead(me) })
}

// RemoveOfHosts removes what is left of the runs on hosts for which is returns true. Only the caller that
// assigns these host names knows that the runs are over: a container that has the same name now cannot tell.
func RemoveOfHosts(ctx context.Context, docker *engine.Engine, is func(host string) bool) ([]Leftover, error) {
	return sweepOver(ctx, docker, func(o Owner) bool { return is(o.host) })
}

// sweepOver sweeps the runs whose owner is over. It finds them by the journals and by the labels on the engine.
// The error also names the runs whose owner could not be read.
func sweepOver(ctx context.Context, docker *engine.Engine, over func(Owner) bool) ([]Leftover, error) {
	owners, unread := ownersOf(ctx, docker)
	var runs []string
	for run, text := range owners {
		if o, err := parseOwner(text); err == nil && over(o) {
			runs = append(runs, run)
		}
	}
	swept, err := sweepAll(ctx, docker, runs)
	return swept, errors.Join(unread, err)
}

// sweepAll sweeps several runs, and returns those of which nothing is left. If one run cannot be swept, it
// continues with the others.
func sweepAll(ctx context.Context, docker *engine.Engine, runs []string) (swept []Leftover, err error) {
	for _, run := range runs {
		leftover, failed := sweep(ctx, docker, run)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("run %s: %w", run, failed))
			continue
		}
		swept = append(swept, leftover)
	}
	return swept, err
}

// ownersOf maps each run to its owner. Even if there is an error, the map has the owners that could be read.
func ownersOf(ctx context.Context, docker *engine.Engine) (map[string]string, error) {
	owners := make(map[string]string)
	journaled, err := Journals()
	if err != nil {
		return nil, err
	}
	for _, run := range journaled {
		entries, unreadable := ReadJournal(run)
		if unreadable != nil {
			err = errors.Join(err, fmt.Errorf("journal of run %s: %w", run, unreadable))
			continue
		}
		if len(entries) > 0 && (docker != nil || !entries[0].Docker) {
			owners[run] = entries[0].Owner
		}
	}
	if docker != nil {
		runs, err := docker.Runs(ctx)
		if err != nil {
			return nil, err
		}
		for _, run := range runs {
			if isID(run.ID) {
				owners[run.ID] = run.Owner
			}
		}
	}
	return owners, err
}

// sweep removes everything that is left of a run; docker may be nil.
func sweep(ctx context.Context, docker *engine.Engine, run string) (Leftover, error) {
	left := Leftover{Run: run}
	entries, err := ReadJournal(run)
	if err != nil {
		return left, err
	}
	if bootedSince(entries) {
		entries = slices.DeleteFunc(entries, func(e Entry) bool { return e.PID != 0 })
	}
	if left.Processes, err = killProcesses(run, entries); err != nil {
		return left, err
	}
	// Folders come after the processes, which could have written into them until now. A folder that stays, such
	// as one in another TMPDIR, does not keep the containers from being removed.
	path, err := journalPath(run)
	if err != nil {
		return left, err
	}
	kept := removeFolders(entries, path)
	left.Undone = openFaults(entries)
	if docker != nil {
		left.Objects, err = removeObjects(ctx, docker, run)
	}
	if err := errors.Join(kept, err); err != nil {
		return left, err // the journal stays, so the next sweep tries again
	}
	return left, removeIfThere(path)
}

// bootedSince reports whether the machine was rebooted since the journal was begun. After a reboot, a process
// with a recorded number and start time is a different one.
func bootedSince(entries []Entry) bool {
	me, err := Self()
	if err != nil || len(entries) == 0 {
		return false
	}
	owner, err := parseOwner(entries[0].Owner)
	return err == nil && owner.boot != me.boot
}

// killProcesses kills the run's processes that still run. SIGKILL also ends a stopped process.
//
// If the leader of a group has ended, the group is not killed by its number, which may belong to another group
// by now. The processes of such a group are found by the mark of the run in their environment.
func killProcesses(run string, entries []Entry) (int, error) {
	killed, err := mark(run).Kill()
	if err != nil {
		return len(killed), err
	}
	for _, e := range entries {
		if e.PID <= 1 || !e.Runs() { // kill(-1) would reach all processes of this user
			continue
		}
		if err := syscall.Kill(-e.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return len(killed), err
		}
		killed[e.PID] = true
	}
	return len(killed), nil
}

// removeFolders removes the temporary folders that the entries name. It removes nothing else, even if a journal
// names it.
func removeFolders(entries []Entry, journal string) error {
	var errs []error
	for _, e := range entries {
		_, err := os.Lstat(e.Folder)
		if e.Folder == "" || errors.Is(err, fs.ErrNotExist) { // it may have been removed with the TMPDIR of its CI job
			continue
		}
		if err == nil {
			err = folders.IsTemporary(e.Folder)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("not removed: %w; if that run had another TMPDIR, clean up with it, else delete the journal %s", err, journal))
			continue
		}
		errs = append(errs, os.RemoveAll(e.Folder))
	}
	return errors.Join(errs...)
}

// openFaults lists how to undo the faults that were still in force.
func openFaults(entries []Entry) []string {
	open := make(map[string]string)
	for _, e := range entries {
		if e.Begin != "" {
			open[e.Begin] = e.Undo
		}
		delete(open, e.End)
	}
	return slices.Sorted(maps.Values(open))
}

const (
	// sweepPause is the time between two looks at the engine. sweepPasses looks in a row must find nothing,
	// because a request of the dead run may still be in progress.
	sweepPause  = 300 * time.Millisecond
	sweepPasses = 2
	// sweepFailures is how many looks may fail. A container that is still being created is not listed yet, but
	// keeps its network from being removed.
	sweepFailures = 20
)

func removeObjects(ctx context.Context, docker *engine.Engine, run string) (total int, _ error) {
	for clean, failures := 0, 0; clean < sweepPasses; {
		removed, err := docker.RemoveRun(ctx, run)
		total += removed
		clean++
		if removed > 0 || err != nil {
			clean = 0
		}
		if err != nil {
			if failures++; failures == sweepFailures || errors.As(err, new(*engine.SilentError)) {
				return total, err
			}
		}
		select {
		case <-ctx.Done():
			return total, errors.Join(err, ctx.Err())
		case <-time.After(sweepPause):
		}
	}
	return total, nil
}

// reconnect waits until the engine answers.
func reconnect(ctx context.Context) (*engine.Engine, error) {
	for {
		docker, err := engine.Connect(ctx)
		if err == nil {
			return docker, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(sweepPause):
		}
	}
}

// reapTimeout bounds the work of a reaper.
const reapTimeout = time.Minute

// Reap waits for the end of its input, which comes when the run's process ends, for whatever reason. Unless the
// run has dismissed the reaper, Reap then removes what is left of the run.
func Reap(ctx context.Context, run string, onDocker bool, input io.Reader) error {
	said, err := io.ReadAll(input)
	if err != nil || string(said) == reaperDismissed {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, reapTimeout)
	defer cancel()
	var docker *engine.Engine
	if onDocker {
		if docker, err = reconnect(ctx); err != nil {
			return err // the journal stays, for the next run
		}
		defer docker.Close()
	}
	_, err = sweep(ctx, docker, run)
	return err
}
