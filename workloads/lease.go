package workloads

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"lockcheck/clients"
	"lockcheck/history"
)

// opCounter numbers the operations of a worker. A renewal runs at the same time as the
// section, so two goroutines draw from it.
type opCounter struct{ last atomic.Int64 }

func (c *opCounter) next() int64 { return c.last.Add(1) }

// lease watches over one hold: it renews it and knows when it is gone.
type lease struct {
	check    bool         // look at the deadline before the section goes on
	deadline atomic.Int64 // 0 for a lock without any
	notified <-chan struct{}
	refused  chan struct{} // closed when a renewal found the lock gone
	cancel   context.CancelFunc
	renewing sync.WaitGroup
	ending   sync.Mutex // held while a renewal is recorded, and while the hold ends
}

// keep begins to watch over a hold. The caller stops it.
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

// end lets no more renewals begin. Without the lock, a tick that came together with the end of
// the section began a renewal after the release: where a renewal is an upsert, it would take a lock
// back that its holder had given away.
func (l *lease) end() {
	l.ending.Lock()
	defer l.ending.Unlock()
	l.cancel()
}

// waitForRenewal waits for the renewal that is in flight, if there is one.
func (l *lease) waitForRenewal() { l.renewing.Wait() }

// wait waits until the time of the section has passed and says whether the worker must
// regard its lock as lost, and how it learned of it. The error is that of what passed.
func (l *lease) wait(passed <-chan error) (cause string, over bool, err error) {
	select {
	case <-l.notified:
	case <-l.refused:
	case err = <-passed:
	}
	if l.told() {
		return history.ByService, true, err
	}
	if deadline := l.deadline.Load(); l.check && deadline != 0 && history.Now() >= deadline {
		return history.ByDeadline, true, err
	}
	return "", false, err
}

// told says whether the worker knows by now that its lock is gone.
func (l *lease) told() bool {
	select {
	case <-l.notified:
	case <-l.refused:
	default:
		return false
	}
	return true
}

// renew extends the lease each third of it until ctx is done or it is refused.
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

// beginRenewal records a renewal, unless the hold has ended.
func (w *worker) beginRenewal(ctx context.Context, grant clients.Grant, l *lease) (op history.Event, begun bool) {
	l.ending.Lock()
	defer l.ending.Unlock()
	if ctx.Err() != nil {
		return op, false
	}
	return w.begin(history.Event{F: history.Renew, Key: grant.Key, Grant: grant.ID, Token: grant.Token}), true
}

func (w *worker) completeRenewal(ctx context.Context, lock clients.Renewer, grant clients.Grant, l *lease, op history.Event) clients.Outcome {
	// A renewal that is cut short would be one more unknown outcome.
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
