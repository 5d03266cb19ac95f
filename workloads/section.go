package workloads

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"lockcheck/clients"
	"lockcheck/history"
)

// section makes the updates of a hold, one after the other. It ends early if an access is refused, the lock is
// lost, or the run ends.
func (w *worker) section(ctx context.Context, grant clients.Grant, lease *lease) error {
	for range w.workload.PerHold(w.config.Use) {
		lost, err := w.singleUpdate(ctx, grant, lease)
		if lost || err != nil || w.stopped() {
			return err
		}
	}
	return nil
}

// singleUpdate is a critical section with one update: read, think, write. It reports whether the worker learned that
// its lock is lost.
func (w *worker) singleUpdate(ctx context.Context, grant clients.Grant, lease *lease) (lost bool, err error) {
	var current Answer
	if !w.config.Bare {
		if current, err = w.access(ctx, grant, Access{}); err != nil {
			return false, err
		}
	}
	cause, over, err := lease.wait(w.work(ctx, grant))
	switch {
	case over:
		if w.config.ExitOnLoss {
			w.exiting.Lock()
			w.exit(grant, cause)
		}
		w.record.Emit(lostEvent(grant, cause))
		return true, nil
	case errors.Is(err, errOverrun):
		return false, nil // the run is over, and the client has not returned to write
	case w.config.Bare:
		return false, nil
	}
	if w.workload.Update == nil || grant.Shared {
		_, err := w.access(ctx, grant, Access{})
		return false, err
	}
	return false, w.update(ctx, grant, current)
}

// work spends the time of the critical section, and then closes the channel. If the client takes longer than
// asked, work waits for it until the run ends, as programs do. If the client still has not returned then, the
// channel delivers errOverrun.
func (w *worker) work(ctx context.Context, grant clients.Grant) <-chan error {
	d := w.config.Section.draw(w.rng)
	passed := make(chan error, 1)
	client, can := w.lock.(clients.Worker)
	switch {
	case d <= 0:
		close(passed)
	case can && w.config.works():
		go func() {
			defer close(passed)
			_, err := bounded(ctx, d, w.stop, func(ctx context.Context) (struct{}, error) {
				return struct{}{}, client.Work(ctx, grant, d)
			})
			passed <- err // any other error that matters is reported by Failed
		}()
	default:
		time.AfterFunc(d, func() { close(passed) })
	}
	return passed
}

// works reports whether the lock's client spends the time of the section.
func (c WorkerConfig) works() bool { return c.Definition != nil && c.Definition.Works }

// elementsPerWorker makes the elements of different workers distinct.
const elementsPerWorker = 10_000_000

func (w *worker) update(ctx context.Context, grant clients.Grant, current Answer) error {
	element, err := w.element(current.Value)
	if err != nil {
		return err
	}
	value, err := w.workload.Update(current.Value, element)
	if err != nil {
		return err
	}
	_, err = w.access(ctx, grant, Access{Write: true, Base: current.Version, Element: element, Value: value})
	return err
}

// element returns the element of the next update.
func (w *worker) element(value json.RawMessage) (int64, error) {
	if w.workload.Element != nil {
		return w.workload.Element(value)
	}
	return int64(w.config.Index)*elementsPerWorker + w.updates.Add(1), nil
}

func (w *worker) access(ctx context.Context, grant clients.Grant, a Access) (Answer, error) {
	f := history.Read
	if a.Write {
		f = history.Write
	}
	op := w.begin(history.Event{
		F: f, Key: grant.Key, Grant: grant.ID, Token: grant.Token, Base: a.Base, Element: a.Element,
	})
	a.Key, a.Client, a.Op, a.Grant, a.Token = grant.Key, w.config.Name, op.Op, grant.ID, grant.Token
	answer, err := w.accessData(ctx, grant, a)
	op.Version = answer.Version
	switch {
	case err != nil && w.store != nil:
		op.Type, op.Error = history.Info, err.Error()
		if clients.OutcomeOf(err) == clients.NoEffect {
			op.Type = history.Fail
		}
		err = &refusedError{Database}
	case err != nil:
		op.Type, op.Error = history.Info, err.Error()
	case answer.Refused != "":
		op.Type, op.Error, err = history.Fail, answer.Refused, &refusedError{Guard(answer.Refused)}
	default:
		op.Type = history.OK
	}
	w.record.Emit(op)
	return answer, err
}

// accessData performs an access where the data are stored.
func (w *worker) accessData(ctx context.Context, grant clients.Grant, a Access) (answer Answer, err error) {
	if w.store == nil {
		err = w.call(ctx, "access", a, &answer)
		return answer, err
	}
	data, err := bounded(ctx, w.config.Timeout, w.patience, func(ctx context.Context) (clients.Data, error) {
		return w.store.Access(ctx, grant, clients.DataAccess{
			Write: a.Write, Client: a.Client, Op: a.Op, Element: a.Element, Base: a.Base, At: history.Now(),
		}, a.Value)
	})
	return Answer{Version: data.Version, Value: json.RawMessage(data.Value)}, err
}
