package workloads

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/clients"
	"lockcheck/clusters/clustertest"
	"lockcheck/history"
)

// leading is a lock that returns a fixed grant, and whose releases find it not held.
type leading struct {
	clients.Lock
	grant clients.Grant
}

func (l leading) Acquire(_ context.Context, a clients.Attempt) (clients.Grant, error) {
	grant := l.grant
	grant.Key, grant.ID = a.Key, a.ID
	return grant, nil
}

func (leading) Release(context.Context, clients.Grant) error { return clients.ErrNotHeld }

// TestTerm: the updates of a hold follow each other under one grant, each computed from its own read. They end
// early if the lock is lost, an access is refused, or the run ends.
func TestTerm(t *testing.T) {
	const acquire, release = "acquire invoke, acquire ok", ", release invoke, release fail"
	const update = ", read invoke, read ok, write invoke, write ok"
	over, lasting := alreadyClosed, make(chan struct{})
	for _, c := range []struct {
		name   string
		use    Use
		stop   <-chan struct{}
		grant  clients.Grant
		before func(r *running) // accesses before the hold
		want   string
		final  string
	}{
		{"as many as the workload says", Use{}, lasting, clients.Grant{}, nil, acquire + strings.Repeat(update, termUpdates) + release,
			"[10000001,10000002,10000003,10000004,10000005,10000006,10000007,10000008,10000009,10000010]"},
		{"as many as it is told", Use{Updates: 2}, lasting, clients.Grant{}, nil, acquire + update + update + release, "[10000001,10000002]"},
		{"the run has ended", Use{}, over, clients.Grant{}, nil, acquire + update + release, "[10000001]"},
		{"the lock is lost", Use{}, lasting, clients.Grant{Lost: over}, nil, acquire + ", read invoke, read ok, lost info" + release, "null"},
		{"the deadline is over", Use{CheckBeforeWrite: true}, lasting, clients.Grant{Until: 1}, nil, acquire + ", read invoke, read ok, lost info" + release, "null"},
		{"refused by the fence", Use{}, lasting, clients.Grant{Token: 1}, func(r *running) {
			r.access(t, Access{Key: "k0", Client: "w2", Grant: "w2-1", Token: 2})
		}, acquire + ", read invoke, read fail" + release, "null"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := runResource(t, ResourceConfig{Guard: Fence})
			if c.before != nil {
				c.before(r)
			}
			var out lockedBuffer
			w := r.worker(&out, history.WorkloadElection, leading{grant: c.grant}, c.use)
			w.stop = c.stop
			if _, err := w.attempt(t.Context(), t.Context()); err != nil {
				t.Fatal(err)
			}
			events, accesses := out.events(t), r.finish()
			validate(t, events, accesses)
			if got := of(events, "w1-1"); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
			if got := string(accesses[len(accesses)-1].Value); got != c.final && !(got == "" && c.final == "null") {
				t.Errorf("final %s, want %s", got, c.final)
			}
		})
	}
}

// TestTermLost: a leader that is notified of a loss during its term makes no more updates.
func TestTermLost(t *testing.T) {
	service := memoryService(t)
	r := runResource(t, ResourceConfig{})
	w := runWorker(t, WorkerConfig{
		Workload: history.WorkloadElection, Lock: "memory", Nodes: []string{service}, Socket: r.socket,
		Use: Use{TTL: 600 * time.Millisecond, Section: Range{Min: 10 * time.Millisecond, Max: 10 * time.Millisecond}, Updates: 1 << 20, Renew: true},
	}).begin()
	granted := w.await(1, history.OK, history.Acquire)[0]
	w.await(3, history.OK, history.Write)
	if err := memoryLock(t, service).Release(t.Context(), clients.Grant{Key: granted.Key, ID: granted.Grant}); err != nil {
		t.Fatal(err)
	}
	lost := w.await(1, history.Info, history.Lost)[0]
	clustertest.Eventually(t, patience, func() error {
		if n := len(only(w.out.events(t), history.OK, history.Acquire)); n < 2 {
			return fmt.Errorf("%d terms", n)
		}
		return nil
	})
	events := w.finish()
	validate(t, events, r.finish())
	at := slices.IndexFunc(events, func(e history.Event) bool { return e.F == history.Lost })
	if lost.Grant != granted.Grant || lost.Error != history.ByService {
		t.Errorf("lost: %+v", lost)
	}
	for _, e := range events[at:] {
		if e.Grant == granted.Grant && (e.F == history.Read || e.F == history.Write) {
			t.Errorf("%s %s under a grant that is lost", e.F, e.Type)
		}
	}
}
