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

// Leftover is what a dead run has left behind.
type Leftover struct {
	Run       string
	Processes int
	Objects   int      // containers, networks and volumes
	Undone    []string // faults that were still in force, as the journal has them
}

// Clean removes what dead runs of this machine have left: their processes, and
// on the Docker engine, where there is one, all that carries their label. Runs
// that are alive, and those of other machines, are left alone. Without the engine, or
// if it does not answer, which unavailable says, runs that may have something there are
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

// RemoveOfHosts removes what is left of the runs whose processes ran on hosts of such names:
// only who gives these names away knows that they are over, for a container of the same name
// cannot tell.
func RemoveOfHosts(ctx context.Context, docker *engine.Engine, is func(host string) bool) ([]Leftover, error) {
	return sweepOver(ctx, docker, func(o Owner) bool { return is(o.host) })
}

// sweepOver sweeps the runs whose owner is over, by the journals and the labels on the engine. An
// error says also of which runs this could not be told.
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

// sweepAll sweeps several runs, and returns those of which nothing is left. A run that cannot be
// swept is no reason to leave the others.
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

// ownersOf are the owners of all runs, by run. Beyond an error are those that could be read.
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

// sweep removes all that is left of a run; docker may be nil.
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
	// Only now: a process that still ran could have put something into them. One that stays, such as
	// in another TMPDIR, is no reason to leave containers.
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
		return left, err // the journal stays, for the next time
	}
	return left, removeIfThere(path)
}

// bootedSince says whether the machine was booted since the journal was begun: the same
// number and start time are another process then, which may be anybody's.
func bootedSince(entries []Entry) bool {
	me, err := Self()
	if err != nil || len(entries) == 0 {
		return false
	}
	owner, err := parseOwner(entries[0].Owner)
	return err == nil && owner.boot != me.boot
}

// killProcesses kills those that still run. SIGKILL ends a stopped process too. A group
// whose leader has ended is not killed by its number, which may be that of another one by now:
// its processes carry the name of the run.
func killProcesses(run string, entries []Entry) (int, error) {
	killed, err := mark(run).Kill()
	if err != nil {
		return len(killed), err
	}
	for _, e := range entries {
		if e.PID <= 1 || !e.Runs() { // -1 is not a group but all processes of this user
			continue
		}
		if err := syscall.Kill(-e.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return len(killed), err
		}
		killed[e.PID] = true
	}
	return len(killed), nil
}

// removeFolders removes the temporary folders, and nothing else that the entries of a journal may
// name.
func removeFolders(entries []Entry, journal string) error {
	var errs []error
	for _, e := range entries {
		_, err := os.Lstat(e.Folder)
		if e.Folder == "" || errors.Is(err, fs.ErrNotExist) { // it may have gone with the TMPDIR of its job
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

// openFaults lists how the faults that were still in force were to be undone.
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
	// sweepPause separates two looks at the engine, and sweepPasses is how many of
	// them must find nothing: a request of the dead run may still be under way.
	sweepPause  = 300 * time.Millisecond
	sweepPasses = 2
	// sweepFailures is how many looks may fail. A container that is still being made is
	// not listed yet, but keeps its network from being removed.
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

// reconnect waits for an engine that does not answer at the moment.
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

// Reap waits for the end of its input, which comes when the run's process ends,
// however that ended, and removes what is left of the run unless it was
// dismissed.
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
