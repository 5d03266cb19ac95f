package workloads

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lockcheck/clients"
	"lockcheck/clusters/clustertest"
	"lockcheck/history"
)

// TestUnknownAttemptIsTakenBack: an attempt whose answer was lost may have left a holder behind, so it is
// released. An attempt that was never sent is not.
func TestUnknownAttemptIsTakenBack(t *testing.T) {
	for _, c := range []struct {
		name   string
		listen bool
		want   string
	}{
		{"reply lost", true, "acquire invoke, acquire info, release invoke, release info"},
		{"never sent", false, "acquire invoke, acquire fail"},
	} {
		t.Run(c.name, func(t *testing.T) {
			service := filepath.Join(socketFolder(t), "n1")
			if c.listen {
				hangUp(t, service)
			}
			r := runResource(t, ResourceConfig{})
			w := runWorker(t, WorkerConfig{Lock: "memory", Nodes: []string{service}, Socket: r.socket, Use: Use{TTL: time.Second}}).begin()
			w.await(3, history.Invoke, history.Acquire)
			events := w.finish()
			validate(t, events, r.finish())
			attempts := only(events, history.Invoke, history.Acquire)
			// The last attempt may have been cancelled by the end of the worker.
			for _, e := range attempts[:len(attempts)-1] {
				if got := of(events, e.Grant); got != c.want {
					t.Errorf("attempt %s: %s", e.Grant, got)
				}
			}
		})
	}
}

// TestIgnoreFailedAcquire: a worker that ignores the error of its acquire executes its section without the
// lock. It does not if another client holds the lock, or without the option.
func TestIgnoreFailedAcquire(t *testing.T) {
	const section = "read invoke, read ok, write invoke, write ok"
	for _, c := range []struct {
		name   string
		ignore bool
		err    error
		want   string
	}{
		{"unknown outcome", true, errors.New("reset"), "acquire invoke, acquire info, " + section + ", release invoke, release ok"},
		{"never sent", true, &clients.NoEffectError{Err: errors.New("refused")}, "acquire invoke, acquire fail, " + section},
		{"taken", true, &clients.BusyError{}, "acquire invoke, acquire fail"},
		{"looked at", false, errors.New("reset"), "acquire invoke, acquire info, release invoke, release ok"},
		{"granted", true, nil, "acquire invoke, acquire ok, " + section + ", release invoke, release ok"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := runResource(t, ResourceConfig{})
			var out lockedBuffer
			w := r.worker(&out, history.WorkloadSet, refusing{err: c.err}, Use{IgnoreFailedAcquire: c.ignore, Renew: true, TTL: time.Minute})
			if _, err := w.attempt(t.Context(), t.Context()); err != nil {
				t.Fatal(err)
			}
			events := out.events(t)
			validate(t, events, r.finish())
			if got := of(events, "w1-1"); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// refusing is a lock whose attempts end with err, or are granted if err is nil.
type refusing struct {
	clients.Lock
	err error
}

func (l refusing) Acquire(_ context.Context, a clients.Attempt) (clients.Grant, error) {
	return clients.Grant{Key: a.Key, ID: a.ID}, l.err
}

func (refusing) Release(context.Context, clients.Grant) error { return nil }

// woken is a lock whose attempts are woken twice, and then end with err or are granted.
type woken struct {
	clients.Lock
	err error
}

func (w woken) Acquire(context.Context, clients.Attempt) (clients.Grant, error) {
	return clients.Grant{Wakes: 2}, w.err
}

// TestWakes: the number of wakes is recorded with an attempt's completion, whatever its outcome, and not with
// its invocation.
func TestWakes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want history.Type
	}{
		{nil, history.OK},
		{&clients.BusyError{}, history.Fail},
		{errors.New("lost"), history.Info},
	} {
		var out lockedBuffer
		w := &worker{config: WorkerConfig{Name: "w1", Timeout: time.Minute}, lock: woken{err: c.err}, record: NewEmitter("w1", &out), catches: newCatches(1)}
		w.acquire(t.Context(), clients.Attempt{Key: "k0", ID: "w1-1"})
		events := out.events(t)
		if len(events) != 2 || events[0].Wakes != 0 || events[1].Type != c.want || events[1].Wakes != 2 {
			t.Errorf("%v: %+v", c.err, events)
		}
	}
}

// hangUp is a server that closes each connection after the first byte.
func hangUp(t *testing.T, socket string) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1))
			_ = conn.Close()
		}
	}()
}

// TestGuardRefusal: an access that the guard refuses is recorded as failed, and the lock is released all the
// same.
func TestGuardRefusal(t *testing.T) {
	r := runResource(t, ResourceConfig{Guard: Fence})
	// An earlier access had a higher token than the service will ever issue.
	r.access(t, Access{Key: "k0", Client: "w9", Grant: "w9-1", Token: 1 << 40})
	w := runWorker(t, WorkerConfig{Lock: "memory", Nodes: []string{memoryService(t)}, Socket: r.socket, Use: Use{TTL: time.Minute}}).begin()
	w.await(2, history.OK, history.Release)
	events := w.finish()
	validate(t, events, r.finish())
	for _, e := range only(events, history.OK, history.Acquire) {
		if got := of(events, e.Grant); got != "acquire invoke, acquire ok, read invoke, read fail, release invoke, release ok" {
			t.Errorf("hold %s: %s", e.Grant, got)
		}
	}
}

// TestOptimistic: a worker whose write is refused for its stale version retries at once with a fresh read, and
// pauses only after a success. The refusal of another guard is followed by the usual pause.
func TestOptimistic(t *testing.T) {
	const refused = "acquire invoke, acquire ok, read invoke, read ok, write invoke, write fail, release invoke, release ok"
	const done = "acquire invoke, acquire ok, read invoke, read ok, write invoke, write ok, release invoke, release ok"
	r := runResource(t, ResourceConfig{Guard: CompareAndSet})
	config := WorkerConfig{
		Socket: r.socket, Workload: "counter", Idle: Range{Min: time.Hour, Max: time.Hour},
		Use: Use{Section: Range{Min: 300 * time.Millisecond, Max: 300 * time.Millisecond}},
	}
	w := runWorker(t, config).begin()
	w.await(1, history.OK, history.Read)
	if got := r.access(t, Access{Write: true, Key: "k0", Client: "w9", Grant: "w9-1", Value: json.RawMessage("1")}); got.Refused != "" {
		t.Fatalf("the other one's write: %+v", got)
	}
	w.await(1, history.OK, history.Write)
	events := w.finish()
	validate(t, events, r.finish())
	var holds []string
	for _, e := range only(events, history.OK, history.Acquire) {
		holds = append(holds, of(events, e.Grant))
	}
	if want := []string{refused, done}; !slices.Equal(holds, want) {
		t.Errorf("holds %q, want %q", holds, want)
	}

	fenced := runResource(t, ResourceConfig{Guard: Fence})
	fenced.access(t, Access{Key: "k0", Client: "w9", Grant: "w9-1", Token: 1})
	config.Socket = fenced.socket
	w = runWorker(t, config).begin()
	w.await(1, history.OK, history.Release)
	if n := len(only(w.finish(), history.OK, history.Acquire)); n != 1 {
		t.Errorf("%d attempts, want one and then none", n)
	}
}

// TestWorkerCannotWork: a worker whose record would be incomplete, or that cannot work, returns an error. It
// must not look like a run in which nothing happened.
func TestWorkerCannotWork(t *testing.T) {
	r := runResource(t, ResourceConfig{})
	r.access(t, Access{Write: true, Key: "k0", Client: "w9", Value: json.RawMessage(`"no number"`)})
	for _, c := range []struct {
		name   string
		config WorkerConfig
		output io.Writer
		want   string
	}{
		{"unknown lock", WorkerConfig{Lock: "chain and padlock", Workload: "set"}, io.Discard, "chain and padlock"},
		{"unknown workload", WorkerConfig{Lock: "none", Workload: "sleep"}, io.Discard, "sleep"},
		{"no server", WorkerConfig{Lock: "memory-redlock", Workload: "set"}, io.Discard, "odd number of servers"},
		{"no database for the data", WorkerConfig{Lock: "none", Workload: "set", Socket: r.socket, InDatabase: true}, io.Discard, "lock none has no database for the data"},
		{"value that it does not understand", WorkerConfig{Lock: "none", Workload: "counter", Socket: r.socket}, io.Discard, "no number"},
		{"record that nobody receives", WorkerConfig{Lock: "none", Workload: "mutex", Socket: r.socket}, &fullAfter{left: 3}, errFull.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.config.Name, c.config.Timeout = "w1", time.Second
			input, end := io.Pipe()
			defer end.Close()
			go func() { _, _ = io.WriteString(end, CommandOpen+"\n"+CommandGo+"\n") }()
			if err := RunWorker(t.Context(), c.config, input, c.output); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
			_ = input.Close()
		})
	}
}

// TestLeaseWait: how a worker learns of a loss during its section.
func TestLeaseWait(t *testing.T) {
	closed := make(chan struct{})
	close(closed)
	past, future := history.Now()-1, history.Now()+time.Hour.Nanoseconds()
	for _, c := range []struct {
		name     string
		notified <-chan struct{}
		refused  bool
		check    bool
		deadline int64
		section  time.Duration
		cause    string
	}{
		{"nothing happens", nil, false, true, future, 0, ""},
		{"the library tells", closed, false, false, 0, time.Hour, history.ByService},
		{"the library tells as the section ends", closed, false, false, 0, 0, history.ByService},
		{"a renewal is refused", nil, true, false, future, time.Hour, history.ByService},
		{"the deadline has passed", nil, false, true, past, 0, history.ByDeadline},
		{"the deadline has passed, nobody looks", nil, false, false, past, 0, ""},
		{"no deadline to look at", nil, false, true, 0, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &lease{check: c.check, notified: c.notified, refused: make(chan struct{})}
			if c.refused {
				close(l.refused)
			}
			l.deadline.Store(c.deadline)
			passed := make(chan error)
			if c.section == 0 {
				close(passed)
			}
			if cause, over, _ := l.wait(passed); cause != c.cause || over != (c.cause != "") {
				t.Errorf("got %q, %v; want %q", cause, over, c.cause)
			}
		})
	}
}

// hanging is a lock whose client never returns from its work.
type hanging struct {
	refusing
	asked chan struct{} // closed when Work was called
	ever  chan struct{}
}

func (h hanging) Work(context.Context, clients.Grant, time.Duration) error {
	close(h.asked)
	<-h.ever
	return nil
}

// TestWorkHangs: a client that does not return from its work does not delay the end of the run, and its update
// is not written.
func TestWorkHangs(t *testing.T) {
	r := runResource(t, ResourceConfig{})
	var out lockedBuffer
	h := hanging{asked: make(chan struct{}), ever: make(chan struct{})}
	t.Cleanup(func() { close(h.ever) })
	w := r.worker(&out, history.WorkloadSet, h, Use{Section: Range{time.Millisecond, time.Millisecond}})
	stop := make(chan struct{})
	w.stop, w.config.Definition = stop, &clients.Definition{Works: true}
	go func() {
		<-h.asked
		close(stop)
	}()
	if _, err := w.attempt(t.Context(), t.Context()); err != nil {
		t.Fatal(err)
	}
	events := out.events(t)
	validate(t, events, r.finish())
	if got, want := of(events, "w1-1"), "acquire invoke, acquire ok, read invoke, read ok, release invoke, release ok"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestBounded: a call that respects its context ends with it. A call that does not is awaited until patience is
// closed. Then it is abandoned, and its result is ignored.
func TestBounded(t *testing.T) {
	failed := errors.New("failed")
	var forEver chan struct{}
	for _, c := range []struct {
		name     string
		timeout  time.Duration
		patience <-chan struct{}
		call     func(ctx context.Context, released <-chan struct{}) (int, error)
		value    int
		err      error
	}{
		{"in time", time.Minute, alreadyClosed, func(context.Context, <-chan struct{}) (int, error) { return 1, nil }, 1, nil},
		{"fails in time", time.Minute, alreadyClosed, func(context.Context, <-chan struct{}) (int, error) { return 0, failed }, 0, failed},
		{"heeds its context", time.Millisecond, alreadyClosed, func(ctx context.Context, _ <-chan struct{}) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		}, 0, context.DeadlineExceeded},
		{"succeeds within the grace", time.Millisecond, alreadyClosed, func(ctx context.Context, _ <-chan struct{}) (int, error) {
			<-ctx.Done()
			return 2, nil
		}, 2, nil},
		{"ignores its context", time.Millisecond, alreadyClosed, func(_ context.Context, released <-chan struct{}) (int, error) {
			<-released
			return 3, nil
		}, 0, errOverrun},
		{"is waited for beyond the grace", time.Millisecond, forEver, func(ctx context.Context, _ <-chan struct{}) (int, error) {
			<-ctx.Done()
			<-time.After(2 * watchdogGrace)
			return 4, nil
		}, 4, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				released := make(chan struct{})
				defer close(released)
				value, err := bounded(t.Context(), c.timeout, c.patience, func(ctx context.Context) (int, error) { return c.call(ctx, released) })
				if value != c.value || !errors.Is(err, c.err) {
					t.Errorf("got %d, %v; want %d, %v", value, err, c.value, c.err)
				}
			})
		})
	}
	if clients.OutcomeOf(errOverrun) != clients.Unknown {
		t.Error("a call that was left behind may still have its effect")
	}
}

// TestOverrun: a service accepts connections and never answers, and a client ignores its context. A call is
// abandoned if the worker has a watchdog, or when its run ends.
func TestOverrun(t *testing.T) {
	clustertest.ClientLibraries(t)
	for _, c := range []struct {
		lock string
		typ  history.Type
		f    history.Function // observed before the run ends
	}{
		{"redis", history.Invoke, history.Acquire},
		{"redis+" + clients.Watchdog, history.Info, history.Release},
	} {
		t.Run(c.lock, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0") // its connections are never accepted
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = listener.Close() })
			r := runResource(t, ResourceConfig{})
			w := runWorker(t, WorkerConfig{
				Lock: c.lock, Nodes: []string{listener.Addr().String()}, Socket: r.socket, Use: Use{TTL: time.Second}, Timeout: 20 * time.Millisecond,
			}).begin()
			w.await(1, c.typ, c.f)
			events := w.finish()
			validate(t, events)
			for _, e := range events {
				// Started as the run ended, or, on a slow machine, not sent before its deadline.
				unsent := e.Type == history.Fail && (e.Error == context.Canceled.Error() || e.Error == context.DeadlineExceeded.Error())
				if e.Type != history.Invoke && e.Error != errOverrun.Error() && !unsent {
					t.Errorf("%s %s: %q", e.F, e.Type, e.Error)
				}
			}
		})
	}
}
