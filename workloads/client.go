package workloads

import (
	"cmp"
	"context"
	"errors"

	"lockcheck/clients"
	"lockcheck/history"
)

// introduce records that the client of a lock of the user's own has begun, and what it is
// called: its program, if it does not say.
func introduce(record *Emitter, about clients.Definition, lock clients.Lock) {
	name := ""
	if client, can := lock.(clients.Named); can {
		name = client.ClientName()
	}
	record.Emit(history.Event{Type: history.Info, F: history.Client, Note: cmp.Or(name, about.Program.Args[0])})
}

// clientFailed records why a client can do nothing more, and waits for the end of the run,
// which that brings. One that had not begun by then has done nothing wrong.
func clientFailed(record *Emitter, err error, stop <-chan struct{}) error {
	if !errors.Is(err, context.Canceled) {
		record.Emit(history.Event{Type: history.Info, F: history.Client, Error: err.Error()})
	}
	<-stop
	return record.Err()
}

// failed says whether the client of the lock can do nothing more, and records why when it
// is asked for the first time after that.
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

// closeLock does not wait for long: what a connection that hangs holds up ends with the
// process. The client of a user's own is waited for, which has a bound of its own, and what it
// did wrong until then is recorded.
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
