package workloads

import (
	"cmp"
	"context"
	"errors"

	"lockcheck/clients"
	"lockcheck/history"
)

// introduce records that a user's own client has started, and its name. A client that states no name is named
// after its program.
func introduce(record *Emitter, about clients.Definition, lock clients.Lock) {
	name := ""
	if client, can := lock.(clients.Named); can {
		name = client.ClientName()
	}
	record.Emit(history.Event{Type: history.Info, F: history.Client, Note: cmp.Or(name, about.Program.Args[0])})
}

// clientFailed records why a client can no longer be used, and waits for the end of the run, which the record
// causes. A client whose start was cancelled by the end of the run has done nothing wrong.
func clientFailed(record *Emitter, err error, stop <-chan struct{}) error {
	if !errors.Is(err, context.Canceled) {
		record.Emit(history.Event{Type: history.Info, F: history.Client, Error: err.Error()})
	}
	<-stop
	return record.Err()
}

// failed reports whether the lock's client can no longer be used. The first time, it records why.
func (w *worker) failed() bool {
	client, can := w.lock.(clients.Failing)
	if !can || client.Failed() == nil {
		return false
	}
	w.complain(client.Failed())
	return true
}

func (w *worker) complain(err error) {
	w.complained.Do(func() {
		w.record.Emit(history.Event{Type: history.Info, F: history.Client, Error: err.Error()})
	})
}

// closeLock closes the lock, but does not wait for long: whatever a hanging connection delays ends with the
// process. It does wait for a user's own client, whose Close has a limit of its own, and records what that
// client did wrong.
func (w *worker) closeLock(ctx context.Context) {
	if _, can := w.lock.(clients.Failing); can {
		if err := w.lock.Close(); err != nil {
			w.complain(err)
		}
		return
	}
	_, _ = bounded(ctx, w.config.Timeout, alreadyClosed, func(context.Context) (struct{}, error) {
		return struct{}{}, w.lock.Close()
	})
}
