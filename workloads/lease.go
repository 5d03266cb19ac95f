package workloads

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"lockcheck/clients"
	"lockcheck/history"
)

// opCounter numbers the operations of a worker. Renewals run concurrently with the section, so two goroutines
// use the counter.
type opCounter struct{ last atomic.Int64 }

func (c *opCounter) next() int64 { return c.last.Add(1) }

// lease watches one hold: it renews its lease and detects its loss.
type lease struct {
	check    bool         // compare the deadline with the clock before the section continues
	deadline atomic.Int64 // 0 if the lock states no validity
	notified <-chan struct{}
	refused  chan struct{} // closed when a renewal was refused because the lock was no longer held
	cancel   context.CancelFunc
	renewing sync.WaitGroup
	ending   sync.Mutex // held while a renewal is recorded, and while the hold ends
}

// keep starts to watch a hold, and to renew it if the worker should. The caller calls end.
func (w *worker) keep(ctx context.Context, grant clients.Grant) *lease {
	ctx, cancel := context.WithCancel(ctx)
	l := &lease{
		check:    w.config.CheckBeforeWrite,
		notified: grant.Lost,
		refused:  make(chan struct{}),
		cancel:   cancel,
	}
	l.deadline.Store(grant.Until)
	renewer, can := w.lock.(clients.Renewer)
	if w.config.Renew && can && w.config.TTL > 0 {
		l.renewing.Go(func() { w.renew(ctx, renewer, grant, l) })
	}
	return l
}

// end makes sure that no further renewal begins. Without the mutex, a tick that coincided with the end of the
// section started a renewal after the release. If a renewal is an upsert, it would take back a lock that its
// holder had released.
func (l *lease) end() {
	l.ending.Lock()
	defer l.ending.Unlock()
	l.cancel()
}

// waitForRenewal waits for a renewal in progress.
func (l *lease) waitForRenewal() { l.renewing.Wait() }

// wait waits until the time of the section has passed. It reports whether the worker must regard its lock as
// lost, and how it learned of the loss. The error is the one that arrived from passed.
func (l *lease) wait(passed <-chan error) (cause string, over bool, err error) {
	select {
	case <-l.notified:
	case <-l.refused:
	case err = <-passed:
	}
	if l.lossKnown() {
		return history.ByService, true, err
	}
	if deadline := l.deadline.Load(); l.check && deadline != 0 && history.Now() >= deadline {
		return history.ByDeadline, true, err
	}
	return "", false, err
}

// lossKnown reports whether the worker knows by now that it has lost its lock.
func (l *lease) lossKnown() bool {
	select {
	case <-l.notified:
	case <-l.refused:
	default:
		return false
	}
	return true
}

// renew extends the lease every third of its length, until ctx ends or a renewal is refused.
func (w *worker) renew(ctx context.Context, lock clients.Renewer, grant clients.Grant, l *lease) {
	ticker := time.NewTicker(w.config.TTL / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		op, begun := w.beginRenewal(ctx, grant, l)
		if !begun {
			return
		}
		if w.completeRenewal(ctx, lock, grant, l, op) == clients.NotHeld {
			close(l.refused)
			return
		}
	}
}

// beginRenewal records the invocation of a renewal, unless the hold has ended.
func (w *worker) beginRenewal(ctx context.Context, grant clients.Grant, l *lease) (op history.Event, begun bool) {
	l.ending.Lock()
	defer l.ending.Unlock()
	if ctx.Err() != nil {
		return op, false
	}
	return w.begin(history.Event{F: history.Renew, Key: grant.Key, Grant: grant.ID, Token: grant.Token}), true
}

func (w *worker) completeRenewal(ctx context.Context, lock clients.Renewer, grant clients.Grant, l *lease, op history.Event) clients.Outcome {
	// Cancelling a renewal would only add an unknown outcome.
	ctx = context.WithoutCancel(ctx)
	until, err := atMoments(w, op, func() (int64, error) {
		return bounded(ctx, w.config.Timeout, w.patience, func(ctx context.Context) (int64, error) {
			return lock.Renew(ctx, grant, w.config.TTL)
		})
	})
	op.Until = until
	outcome := w.complete(op, err)
	if outcome == clients.Done {
		l.deadline.Store(until)
	}
	return outcome
}

// renewing records what the client itself sends to open a session or to keep it alive (clients.Config.Renewing). A fault
// waits only for the renewal of a hold.
func (w *worker) renewing(r clients.Renewal) (answered func(error)) {
	op, landed := history.Event{F: history.Renew, Key: r.Key, Grant: r.ID}, func() {}
	if r.Opens {
		op.Note = history.Opens
	}
	op = w.begin(op)
	if held := w.holding.Load(); !r.Opens && held != nil && (r.ID == "" || r.ID == *held) {
		landed = w.send(op)
	}
	return func(err error) {
		landed()
		w.complete(op, err)
	}
}
