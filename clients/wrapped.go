package clients

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"lockcheck/history"
)

// wrapped is one worker's use of a lock that is a command, such as flock(1). The command acquires the lock,
// runs a child under it, and releases the lock when the child has ended. The child is Hold. The worker holds
// the lock from the time the child connects until it tells the child to end.
type wrapped struct {
	Definition
	config Config
	binary string // path of lockcheck's binary
	// runs has, by attempt, the commands that were started and whose end was not yet awaited.
	runs   handles[*wrappedRun]
	failed atomic.Pointer[error]
}

// errWrappedGone is the outcome of releasing an attempt that was never granted. Only the command could have
// known what the attempt left behind, and the command has ended.
var errWrappedGone = errors.New("the command of the attempt has ended, and did not tell whether it left anything behind")

func (d Definition) openWrapped(c Config) (Lock, error) {
	if c.Folder == "" {
		return nil, errors.New("a command that wraps its child needs a folder for sockets")
	}
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return &wrapped{Definition: d, config: c, binary: binary}, nil
}

// Acquire starts the command and waits until its child runs. If the context ends first, Acquire terminates the
// command, and kills it if necessary.
func (w *wrapped) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	asked := history.Now()
	run, err := w.start(a)
	if err != nil {
		w.failed.Store(&err)
		return Grant{}, &NoEffectError{Err: err}
	}
	w.runs.put(a.ID, run)
	select {
	case <-run.settled:
	case <-run.command.Ended:
	case <-ctx.Done():
	}
	if !run.refuse() {
		byItself := run.command.HasEnded()
		run.end()
		w.runs.take(a.ID)
		return Grant{}, w.outcome(run, byItself)
	}
	grant := Grant{Key: a.Key, ID: a.ID, Lost: run.lost}
	if a.TTL != 0 && !w.Session {
		grant.Until = asked + a.TTL.Nanoseconds()
	}
	return grant, nil
}

// outcome classifies a command that ended before it ran its child. Its exit status says something about the
// lock only if the command ended by itself.
func (w *wrapped) outcome(run *wrappedRun, byItself bool) error {
	if byItself && w.BusyStatus != 0 && run.command.Status() == w.BusyStatus {
		return &BusyError{}
	}
	return fmt.Errorf("the command ended before its child began: %s", run.exit())
}

// Release tells the child to end, and waits for the command to end. Only exit status 0, after the child has
// ended, means that the lock was released.
func (w *wrapped) Release(_ context.Context, g Grant) error {
	run, there := w.runs.get(g.ID)
	// If the worker abandoned the attempt, Acquire may still be ending the command.
	if !there || !run.refuse() {
		return errWrappedGone
	}
	early := run.command.HasEnded() && !run.childHasEnded()
	run.release()
	w.runs.take(g.ID)
	switch {
	case early:
		return fmt.Errorf("the command had ended while its child went on, so that nobody knows since when the lock is free: %s", run.exit())
	case run.command.Status() != 0:
		return fmt.Errorf("the command failed: %s", run.exit())
	}
	return nil
}

// Failed implements Failing: a command that cannot be started makes the client unusable.
func (w *wrapped) Failed() error {
	if err := w.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Close ends all commands that still run.
func (w *wrapped) Close() error {
	for _, run := range w.runs.takeAll() {
		run.refuse()
		run.end()
	}
	return nil
}

// ttlSeconds rounds a lease up to whole seconds, as commands take it.
func ttlSeconds(ttl time.Duration) int64 { return int64((ttl + time.Second - 1) / time.Second) }
