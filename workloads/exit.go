package workloads

import (
	"encoding/json"
	"fmt"
	"os"
	"syscall"
	"time"

	"lockcheck/clients"
	"lockcheck/history"
)

// progressVariable carries the progress of a worker into the program that takes its place.
const progressVariable = "LOCKCHECK_PROGRESS"

// progress is what a worker that starts again goes on from, so that no number of its record
// comes twice.
type progress struct {
	Ops      int64 `json:"ops"`
	Attempts int   `json:"attempts"`
	Held     int   `json:"held"`
	Updates  int64 `json:"updates"`
}

// startedAgain returns the progress that this program was left, and whether it was.
func startedAgain() (p progress, again bool, err error) {
	text, again := os.LookupEnv(progressVariable)
	if again {
		err = json.Unmarshal([]byte(text), &p)
	}
	return p, again, err
}

// reopen opens a client again and again until it opens: the fault that cost a worker its lock may
// still be in force. Its error is that of the last time before the end of the run.
func reopen(info clients.Info, c clients.Config) (clients.Lock, error) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		lock, err := info.Open(c)
		if err == nil {
			return lock, nil
		}
		select {
		case <-c.Stop:
			return nil, err
		case <-ticker.C:
		}
	}
}

// startAgain puts a new program into this process, which keeps its number, its input and its
// output, so that faults still meet it; connections end, and all that was in progress with them.
// It returns only if it could not.
func startAgain(c WorkerConfig, p progress) error {
	for variable, value := range map[string]any{configVariable: c, progressVariable: p} {
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if err := os.Setenv(variable, string(text)); err != nil {
			return err
		}
	}
	if path, err := os.Executable(); err == nil {
		_ = syscall.Exec(path, os.Args, os.Environ()) // by its name, unless that is gone
	}
	return syscall.Exec("/proc/self/exe", os.Args, os.Environ())
}

// exit ends a process whose lock is lost, at once, and starts it again. Whoever calls it has locked
// exiting, for good: it does not return.
func (w *worker) exit(grant clients.Grant, cause string) {
	w.record.End("its process ended", lostEvent(grant, cause))
	err := w.restart(w.config, progress{w.ops.last.Load(), w.attempts, w.held, w.updates.Load()})
	fmt.Fprintf(os.Stderr, "worker %s cannot start again: %v\n", w.config.Name, err)
	os.Exit(1)
}

// exitOnLoss ends the process as soon as the holder is notified, whatever it does, until the hold
// is over.
func (w *worker) exitOnLoss(grant clients.Grant, l *lease) (over func()) {
	done := make(chan struct{})
	go func() {
		select {
		case <-l.notified:
		case <-l.refused:
		case <-done:
			return
		}
		w.exiting.Lock()
		select {
		case <-done:
			w.exiting.Unlock()
		default:
			w.exit(grant, history.ByService)
		}
	}()
	return func() {
		w.exiting.Lock()
		defer w.exiting.Unlock()
		close(done)
	}
}

func lostEvent(grant clients.Grant, cause string) history.Event {
	return history.Event{Type: history.Info, F: history.Lost, Key: grant.Key, Grant: grant.ID, Token: grant.Token, Error: cause}
}
