package workloads

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lockcheck/clients"
	"lockcheck/history"
)

// renewed is a lock with slow renewals. It counts the renewals in progress, and the calls that overlapped with
// one.
type renewed struct {
	refusing
	takes          time.Duration
	open, together atomic.Int64
}

func (r *renewed) Renew(context.Context, clients.Grant, time.Duration) (int64, error) {
	r.together.Add(r.open.Add(1) - 1)
	defer r.open.Add(-1)
	time.Sleep(r.takes)
	return 0, nil
}

func (r *renewed) Release(context.Context, clients.Grant) error {
	r.together.Add(r.open.Load())
	return nil
}

// TestRenewalBeforeRelease: no renewal of a grant begins after its release, and the release is sent only when
// the last renewal was answered. A renewal is due every TTL/3, here 100 ms. It coincides with the end of the
// section, or is due during a slow renewal that outlasts the section. If two timers fire at the same moment
// their order is random, so each case has many holds.
func TestRenewalBeforeRelease(t *testing.T) {
	const ms, holds = time.Millisecond, 64
	for _, c := range []struct {
		name           string
		takes, section time.Duration
		renewals       int // at least, in each hold
	}{
		{"comes due as the section ends", 0, 200 * ms, 1},
		{"comes due behind a slow one", 250 * ms, 150 * ms, 1},
		{"comes due never", 0, 50 * ms, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out lockedBuffer
				lock := &renewed{takes: c.takes}
				w := new(running).worker(&out, history.WorkloadSet, lock, Use{
					TTL: 300 * ms, Renew: true, Bare: true, Section: Range{c.section, c.section},
				})
				for range holds {
					if _, err := w.attempt(t.Context(), t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				released, renewals := make(map[string]bool), 0
				for _, e := range out.events(t) {
					switch {
					case e.Type != history.Invoke:
					case e.F == history.Release:
						released[e.Grant] = true
					case e.F == history.Renew && released[e.Grant]:
						t.Errorf("a renewal of %s began after its release", e.Grant)
					case e.F == history.Renew:
						renewals++
					}
				}
				if len(released) != holds || renewals < c.renewals*holds {
					t.Errorf("%d releases and %d renewals of %d holds", len(released), renewals, holds)
				}
				if n := lock.together.Load(); n != 0 {
					t.Errorf("%d calls were sent while a renewal was open", n)
				}
			})
		})
	}
}
