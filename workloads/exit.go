package workloads

import (
	"encoding/json"
	"fmt"
	"os"
	"syscall"
	"time"

	"lockcheck/clients"
	"lockcheck/history"
	"lockcheck/internal/processes"
)

// progressVariable is the environment variable that passes a worker's progress to the program that replaces it.
const progressVariable = "LOCKCHECK_PROGRESS"

// progress is where a worker continues after a restart, so that no number occurs twice in its record.
type progress struct {
	Ops      int64 `json:"ops"`
	Attempts int   `json:"attempts"`
	Held     int   `json:"held"`
	Updates  int64 `json:"updates"`
}

// startedAgain returns the progress that the previous program has left, and whether there is any.
func startedAgain() (p progress, again bool, err error) {
	text, again := os.LookupEnv(progressVariable)
	if again {
		err = json.Unmarshal([]byte(text), &p)
	}
	return p, again, err
}

// reopen retries to open a client, because the fault that cost the worker its lock may still be in force. The
// error is that of the last try before the end of the run.
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

// startAgain replaces the program of this process. The process keeps its number, its input and its output, so
// faults still hit it. All connections and everything in progress end. It returns only if it fails.
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
	path, err := os.Executable()
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		path = "/proc/self/exe"
	}
	command := processes.Launched(append([]string{path}, os.Args[1:]...))
	return syscall.Exec(command[0], command, os.Environ())
}

// exit ends a process that has lost its lock, at once, and starts it again. The caller has locked exiting,
// which is never unlocked. It does not return.
func (w *worker) exit(grant clients.Grant, cause string) {
	w.record.End("its process ended", lostEvent(grant, cause))
	err := w.restart(w.config, progress{w.ops.last.Load(), w.attempts, w.held, w.updates.Load()})
	fmt.Fprintf(os.Stderr, "worker %s cannot start again: %v\n", w.config.Name, err)
	os.Exit(1)
}

// exitOnLoss ends the process as soon as the holder is notified of a loss, whatever it is doing. The caller
// calls over at the end of the hold.
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
