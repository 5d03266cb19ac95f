package runs

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

	"lockcheck/clusters"
	"lockcheck/history"
	"lockcheck/nemesis"
)

// watch makes the unexpected end of a process a failure of the run.
func (r *session) watch(node *clusters.Node) {
	exited := make(chan clusters.Exit, 1)
	r.exits[node] = exited
	go func() {
		exit, ended := r.awaitExit(node)
		for ended && exit.Killed && node.CanRestart() == nil {
			exit, ended = r.awaitExit(node) // the end of its next life
		}
		if !ended {
			return // the process outlasts the run
		}
		switch {
		case exit.Killed:
			exit.Clean = true // a fault killed it
		case !Closed(r.stopping):
			r.fail(fmt.Errorf("%s ended: %s%s", node.Name, exit.Reason, r.lastWords(node)))
			exit = clusters.Exit{Clean: true} // reported already
		}
		exited <- exit
	}()
}

// awaitExit waits for the end of a process, or of the run.
func (r *session) awaitExit(node *clusters.Node) (exit clusters.Exit, ended bool) {
	select {
	case exit = <-node.Exited:
		return exit, true
	case <-r.over:
		return exit, false
	}
}

const (
	// lastLines is how many lines of a log the report of a death includes.
	lastLines  = 10
	logTimeout = 5 * time.Second
)

// lastWords returns the last lines that a process has written; "" for none.
func (r *session) lastWords(node *clusters.Node) string {
	var text string
	if node.Errors != nil {
		text = node.Errors.All()
	} else {
		ctx, cancel := context.WithTimeout(context.Background(), logTimeout)
		defer cancel()
		// An unreadable log must not hide the death.
		text, _ = r.cluster.Log(ctx, node.Name, clusters.LogPart{Tail: lastLines})
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	lines = lines[max(0, len(lines)-lastLines):]
	if len(lines) == 1 && lines[0] == "" {
		return ""
	}
	return "; its last lines:\n" + strings.Join(lines, "\n")
}

// collect ends the workers and then the resource, which reports the final state of the data when its input
// ends. When ctx is done, collect does not wait.
func (r *run) collect(ctx context.Context, interrupt <-chan struct{}) error {
	r.progress.Step("stopping the workers, final reads")
	r.stop()
	r.recorder.Phase(history.PhaseFinal, "")
	err := r.end(ctx, r.workers, interrupt)
	err = errors.Join(err, r.end(ctx, append(r.serviceObserver(), r.resource), nil))
	if err != nil {
		return err // the output of such a program may never end, so do not wait for it
	}
	return r.awaitOutputs(ctx)
}

// awaitOutputs waits until everything that the programs have written is recorded.
func (r *session) awaitOutputs(ctx context.Context) error {
	read := make(chan struct{})
	go func() {
		defer close(read)
		r.follow.Wait()
	}()
	select {
	case <-read:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end closes the inputs of programs and waits until they have ended. Some seconds after an interruption
// it kills the programs that still run. Their open calls never complete in the history, so that the
// outcome stays unknown.
func (r *session) end(ctx context.Context, programs []*clusters.Node, interrupt <-chan struct{}) error {
	for _, program := range programs {
		// If a program has died before, its death was reported.
		_ = program.Input.Close()
	}
	return r.awaitExits(ctx, programs, interrupt)
}

// awaitExits waits for the end of programs that were told to end. Interrupt, and what follows an
// interruption, are as for end.
func (r *session) awaitExits(ctx context.Context, programs []*clusters.Node, interrupt <-chan struct{}) error {
	limit := time.NewTimer(r.section + callsToTheirLimits)
	defer limit.Stop()
	told := time.NewTimer(waitUntold)
	defer told.Stop()
	if interrupt == nil { // the programs have no critical sections, and no Ctrl-C ends the wait
		told.Stop()
	}
	ticker := time.NewTicker(statusInterval)
	defer ticker.Stop()
	var cutShort <-chan time.Time
	var errs []error
	for len(programs) > 0 {
		program := programs[0]
		select {
		case exit := <-r.exits[program]:
			programs = programs[1:]
			if !exit.Clean {
				errs = append(errs, fmt.Errorf("%s: %s%s", program.Name, exit.Reason, r.lastWords(program)))
			}
		case <-interrupt:
			interrupt, cutShort = nil, time.After(interruptedPatience)
			told.Reset(waitUntold)
		case <-told.C:
			r.tellWait(r.unended(programs), interrupt, cutShort)
		case <-ticker.C:
			r.progress.Status("waiting for %s", names(r.unended(programs)))
		case <-cutShort:
			errs = append(errs, r.kill(ctx, r.unended(programs)))
		case <-limit.C:
			return errors.Join(append(errs, fmt.Errorf("%s did not end", program.Name))...)
		case <-ctx.Done():
			return errors.Join(append(errs, ctx.Err())...)
		}
	}
	return errors.Join(errs...)
}

const (
	// waitUntold is how long the run waits for programs before progress says so.
	waitUntold = time.Second
	// interruptedPatience is how long the workers of an interrupted run may take to end.
	interruptedPatience = 4 * time.Second
)

// unended returns the programs that are not known to have ended.
func (r *session) unended(programs []*clusters.Node) []*clusters.Node {
	return slices.DeleteFunc(slices.Clone(programs), func(p *clusters.Node) bool { return len(r.exits[p]) > 0 })
}

func names(programs []*clusters.Node) string {
	var list []string
	for _, p := range programs {
		list = append(list, p.Name)
	}
	return strings.Join(list, ", ")
}

// tellWait says which programs the run waits for, and what ends the wait. The observer and the resource have
// no critical sections, and an interruption does not end them.
func (r *session) tellWait(programs []*clusters.Node, interrupt <-chan struct{}, cutShort <-chan time.Time) {
	what := fmt.Sprintf("waiting for %s to end (a critical section lasts up to %s)", names(programs), r.section)
	switch {
	case cutShort != nil:
		r.progress.Step("%s; workers that have not ended in %s are killed", what, interruptedPatience-waitUntold)
	case interrupt != nil:
		r.progress.Step("%s; Ctrl-C ends the wait", what)
	default:
		r.progress.Step("waiting for %s to end", names(programs))
	}
}

// kill kills programs, whatever they are doing.
func (r *session) kill(ctx context.Context, programs []*clusters.Node) error {
	r.progress.Step("killing %s; the outcome of open calls stays unknown", names(programs))
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	var errs []error
	for _, p := range programs {
		if _, err := p.Kill(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s could not be killed: %w", p.Name, err))
		}
	}
	return errors.Join(errs...)
}

// killTimeout bounds the kill of all workers together.
const killTimeout = 5 * time.Second

// callsToTheirLimits is the total time of a worker's calls to its lock and to the resource if all of them
// time out.
const callsToTheirLimits = 15 * time.Second

// LongestSection is the longest time that a worker spends in its critical section.
func (o Options) LongestSection() time.Duration {
	longest := o.Section.Max
	for _, w := range o.Workers {
		longest = max(longest, w.Section.Max)
	}
	return longest
}

// finish records how the run ended.
func (r *session) finish(failure error, interrupted bool) {
	if interrupted {
		r.recorder.Phase(history.PhaseInterrupted, "")
	}
	switch {
	case failure != nil:
		r.recorder.Phase(history.PhaseBroken, failure.Error())
	case !interrupted:
		r.recorder.Phase(history.PhaseEnd, "")
	}
}

// save closes the history and stores the run's schedule and logs.
func (r *session) save(schedule nemesis.Schedule) error {
	// A full disk is reported once, not for every file.
	if err := r.recorder.failure(); err != nil {
		return errors.Join(fmt.Errorf("recorded only in part: %w", err), r.recorder.Close())
	}
	errs := []error{r.recorder.Close()}
	if r.nemesis != nil {
		schedule = r.nemesis.Executed()
	}
	errs = append(errs, writeSchedule(r.folder, schedule))
	if r.cluster != nil {
		errs = append(errs, r.saveLogs())
	}
	return errors.Join(errs...)
}

// saveLogs stores what servers and programs have written.
func (r *session) saveLogs() error {
	logs := serverLogs(r.cluster, r.site.since)
	for program := range r.exits {
		if program.Errors != nil {
			logs[program.Name] = program.Errors.String()
		}
	}
	return r.writeLogs(logs)
}

// keepLogs stores the logs of servers of a cluster that did not start, and adds their folder to the error.
func (r *session) keepLogs(logs map[string]string, err error) error {
	if len(logs) == 0 {
		return err
	}
	if unsaved := r.writeLogs(logs); unsaved != nil {
		return errors.Join(err, unsaved)
	}
	return fmt.Errorf("%w\nwhat the servers wrote is in %s", err, filepath.Join(r.folder, logFolder))
}

// serverLogs reads the logs that the started servers of a cluster have written since a time. For the zero
// time it reads everything.
func serverLogs(cluster clusters.Cluster, since time.Time) map[string]string {
	logs := make(map[string]string)
	for _, server := range cluster.Servers() {
		if server.Exited == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), logTimeout)
		text, err := cluster.Log(ctx, server.Name, clusters.LogPart{Since: since})
		cancel()
		if err != nil {
			text = "lockcheck could not read this log: " + err.Error()
		}
		if text != "" {
			logs[server.Name] = text
		}
	}
	return logs
}

func (r *session) writeLogs(logs map[string]string) error {
	folder := filepath.Join(r.folder, logFolder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	var errs []error
	for name, text := range logs {
		if text == "" {
			continue
		}
		errs = append(errs, WriteFile(folder, name+".log", func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		}))
	}
	return errors.Join(errs...)
}
