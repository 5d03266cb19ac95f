package workloads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lockcheck/clients"
	"lockcheck/clusters"
	"lockcheck/clusters/clustertest"
	"lockcheck/history"
)

// working is a worker in this process, on its own standard input.
type working struct {
	t      *testing.T
	out    lockedBuffer
	input  *io.PipeWriter
	finish func() []history.Event // ends its input and returns its record
}

// runWorker starts a worker with short times, as far as the test says nothing else.
func runWorker(t *testing.T, config WorkerConfig) *working {
	t.Helper()
	const ms = time.Millisecond
	if config.Name == "" {
		config.Name, config.Index = "w1", 1
	}
	if config.Lock == "" {
		config.Lock = "none"
	}
	if config.Workload == "" {
		config.Workload = "set"
	}
	if config.Timeout == 0 {
		config.Timeout = 5 * time.Second
	}
	if config.Idle == (Range{}) {
		config.Idle = Range{Min: ms, Max: ms}
	}
	if config.Retry == (Range{}) {
		config.Retry = Range{Min: 5 * ms, Max: 5 * ms}
	}
	input, end := io.Pipe()
	w := &working{t: t, input: end}
	done := make(chan error, 1)
	go func() {
		done <- RunWorker(context.WithoutCancel(t.Context()), config, input, &w.out)
		_ = input.Close() // so that no write to it hangs
	}()
	stop := sync.OnceFunc(func() {
		_ = end.Close()
		if err := <-done; err != nil {
			t.Errorf("worker: %v", err)
		}
	})
	t.Cleanup(stop)
	w.finish = func() []history.Event {
		stop()
		return w.out.events(t)
	}
	return w
}

func (w *working) begin() *working {
	w.t.Helper()
	if _, err := io.WriteString(w.input, CommandGo+"\n"); err != nil {
		w.t.Fatal(err)
	}
	return w
}

// await waits until the worker has recorded n events of the kind.
func (w *working) await(n int, typ history.Type, f history.Function) []history.Event {
	w.t.Helper()
	var found []history.Event
	clustertest.Eventually(w.t, patience, func() error {
		found = only(w.out.events(w.t), typ, f)
		if len(found) < n {
			return fmt.Errorf("%d × %s %s, want %d", len(found), f, typ, n)
		}
		return nil
	})
	return found
}

// only picks the events of a kind.
func only(events []history.Event, typ history.Type, f history.Function) []history.Event {
	var found []history.Event
	for _, e := range events {
		if e.Type == typ && e.F == f {
			found = append(found, e)
		}
	}
	return found
}

// of picks the events of one grant, as words.
func of(events []history.Event, grant string) string {
	var words []string
	for _, e := range events {
		if e.Grant == grant {
			words = append(words, string(e.F)+" "+string(e.Type))
		}
	}
	return strings.Join(words, ", ")
}

// memoryService runs the embedded lock and returns its socket.
func memoryService(t *testing.T) string {
	t.Helper()
	socket := filepath.Join(socketFolder(t), "n1")
	input, end := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- clusters.ServeEmbedded(context.WithoutCancel(t.Context()), "memory", socket, input) }()
	t.Cleanup(func() {
		_ = end.Close()
		if err := <-done; err != nil {
			t.Errorf("memory: %v", err)
		}
	})
	clustertest.Eventually(t, patience, func() error {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
	return socket
}

// memoryLock is the test's own handle on the embedded lock.
func memoryLock(t *testing.T, socket string) clients.Lock {
	t.Helper()
	info, _ := clients.ByName("memory")
	lock, err := info.Open(clients.Config{Worker: "w9", Nodes: []string{socket}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Close() })
	return lock
}

// TestWorker: one hold after the other, each complete and in order, and the
// resource has what the worker says that it wrote.
func TestWorker(t *testing.T) {
	const update = "acquire invoke, acquire ok, read invoke, read ok, write invoke, write ok, release invoke, release ok"
	const look = "acquire invoke, acquire ok, read invoke, read ok, read invoke, read ok, release invoke, release ok"
	for _, c := range []struct {
		workload, hold string
		final          func(writes []history.Event) string
	}{
		{"set", update, func(writes []history.Event) string {
			var elements []int64
			for _, e := range writes {
				elements = append(elements, e.Element)
			}
			text, _ := json.Marshal(elements)
			return string(text)
		}},
		{"counter", update, func(writes []history.Event) string { return fmt.Sprint(len(writes)) }},
		{"mutex", look, func([]history.Event) string { return "" }},
	} {
		t.Run(c.workload, func(t *testing.T) {
			r := runResource(t, ResourceConfig{})
			w := runWorker(t, WorkerConfig{Workload: c.workload, Socket: r.socket}).begin()
			w.await(5, history.OK, history.Release)
			events := w.finish()
			accesses := r.finish()
			validate(t, events, accesses)
			for _, e := range only(events, history.OK, history.Acquire) {
				if got := of(events, e.Grant); got != c.hold {
					t.Errorf("hold %s: %s", e.Grant, got)
				}
			}
			final := accesses[len(accesses)-1]
			if want := c.final(only(events, history.OK, history.Write)); final.F != history.Final || string(final.Value) != want {
				t.Errorf("final %s, want %s", final.Value, want)
			}
		})
	}
}

// TestWorkerFinishesItsSection: the end of the input comes while it is in there.
func TestWorkerFinishesItsSection(t *testing.T) {
	r := runResource(t, ResourceConfig{})
	section := Range{Min: 400 * time.Millisecond, Max: 400 * time.Millisecond}
	w := runWorker(t, WorkerConfig{Socket: r.socket, Section: section}).begin()
	w.await(1, history.OK, history.Read)
	events := w.finish()
	validate(t, events)
	if last := events[len(events)-1]; last.F != history.Release || last.Type != history.OK {
		t.Errorf("ends with %s %s", last.F, last.Type)
	}
	if invoked, done := len(only(events, history.Invoke, history.Write)), len(only(events, history.OK, history.Write)); done == 0 || done != invoked {
		t.Errorf("%d of %d writes done", done, invoked)
	}
}

func TestWorkerWaitsForGo(t *testing.T) {
	for _, c := range []struct {
		name, input string
		works       bool
	}{
		{"nothing", "", false},
		{"something else", "stop\n\ngo!\n", false},
		{"go", "go\n", true},
		{"go twice", "go\ngo\n", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := runResource(t, ResourceConfig{})
			w := runWorker(t, WorkerConfig{Socket: r.socket})
			if _, err := io.WriteString(w.input, c.input); err != nil {
				t.Fatal(err)
			}
			if c.works {
				w.await(1, history.OK, history.Release)
			}
			if events := w.finish(); (len(events) > 0) != c.works {
				t.Errorf("%d events", len(events))
			}
		})
	}
}

// TestWorkerRotates: a worker goes to the key that the resource names.
func TestWorkerRotates(t *testing.T) {
	r := runResource(t, ResourceConfig{Rotate: 2})
	w := runWorker(t, WorkerConfig{Socket: r.socket}).begin()
	w.await(6, history.OK, history.Release)
	events := w.finish()
	validate(t, events, r.finish())
	for i, e := range only(events, history.Invoke, history.Acquire) {
		if want := keyName(i / 2); e.Key != want {
			t.Errorf("hold %d is of %s, want %s", i, e.Key, want)
		}
	}
}

// TestWorkerBusy: the lock is in other hands, and later it is not.
func TestWorkerBusy(t *testing.T) {
	service := memoryService(t)
	other := memoryLock(t, service)
	grant, err := other.Acquire(t.Context(), clients.Attempt{Key: "k0", ID: "w9-1", TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	r := runResource(t, ResourceConfig{Guard: Fence})
	w := runWorker(t, WorkerConfig{Lock: "memory", Nodes: []string{service}, Socket: r.socket, TTL: time.Minute}).begin()
	for _, e := range w.await(3, history.Fail, history.Acquire) {
		if e.Holder != "w9-1" || e.Error != "busy" || e.Token != 0 {
			t.Errorf("refused with %+v", e)
		}
		if got := of(w.out.events(t), e.Grant); got != "acquire invoke, acquire fail" {
			t.Errorf("after a refusal: %s", got)
		}
	}
	if events := w.out.events(t); len(only(events, history.OK, history.Acquire)) > 0 {
		t.Fatal("acquired what another one holds")
	}
	if err := other.Release(t.Context(), grant); err != nil {
		t.Fatal(err)
	}
	w.await(2, history.OK, history.Release)
	events := w.finish()
	validate(t, events, r.finish())
	last := grant.Token
	for _, e := range only(events, history.OK, history.Acquire) {
		if e.Token <= last || e.Until <= e.Time {
			t.Errorf("granted %+v after token %d", e, last)
		}
		last = e.Token
	}
}

// TestWorkers: two of them keep each other out, and nothing is lost.
func TestWorkers(t *testing.T) {
	service := memoryService(t)
	r := runResource(t, ResourceConfig{})
	config := WorkerConfig{Lock: "memory", Nodes: []string{service}, Socket: r.socket, Workload: "counter", TTL: time.Minute}
	var both []*working
	for i, name := range []string{"w1", "w2"} {
		config.Name, config.Index = name, i+1
		both = append(both, runWorker(t, config).begin())
	}
	var records [][]history.Event
	for _, w := range both {
		w.await(5, history.OK, history.Write)
	}
	written := 0
	for _, w := range both {
		records = append(records, w.finish())
		written += len(only(records[len(records)-1], history.OK, history.Write))
	}
	accesses := r.finish()
	validate(t, append(records, accesses)...)
	if final := accesses[len(accesses)-1]; string(final.Value) != fmt.Sprint(written) {
		t.Errorf("the counter is %s after %d updates", final.Value, written)
	}
}

// TestCheckBeforeWrite: with it, a worker whose lease has run out does not
// write; without it, it does, as most code would.
func TestCheckBeforeWrite(t *testing.T) {
	const lost = "acquire invoke, acquire ok, read invoke, read ok, lost info, release invoke, release fail"
	const wrote = "acquire invoke, acquire ok, read invoke, read ok, write invoke, write ok, release invoke, release fail"
	const kept = "acquire invoke, acquire ok, read invoke, read ok, write invoke, write ok, release invoke, release ok"
	for _, c := range []struct {
		name    string
		ttl     time.Duration
		section time.Duration
		check   bool
		renew   bool
		want    string // of the first hold, renewals left out
	}{
		{"lease over, looks", 30 * time.Millisecond, 120 * time.Millisecond, true, false, lost},
		{"lease over, does not look", 30 * time.Millisecond, 120 * time.Millisecond, false, false, wrote},
		{"lease in force, looks", time.Minute, time.Millisecond, true, false, kept},
		{"lease over but for its renewal, looks", 1200 * time.Millisecond, 1500 * time.Millisecond, true, true, kept},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := runResource(t, ResourceConfig{})
			w := runWorker(t, WorkerConfig{
				Lock: "memory", Nodes: []string{memoryService(t)}, Socket: r.socket, TTL: c.ttl,
				Section: Range{Min: c.section, Max: c.section}, CheckBeforeWrite: c.check, Renew: c.renew,
			}).begin()
			clustertest.Eventually(t, patience, func() error {
				hold := slices.DeleteFunc(w.out.events(t), func(e history.Event) bool { return e.F == history.Renew })
				if got := of(hold, "w1-1"); got != c.want {
					return fmt.Errorf("first hold: %s", got)
				}
				return nil
			})
			events := w.finish()
			validate(t, events, r.finish())
			for _, e := range only(events, history.Info, history.Lost) {
				if e.Error != history.ByDeadline || e.Key == "" || e.Token == 0 {
					t.Errorf("lost: %+v", e)
				}
			}
		})
	}
}

// TestRenewal: a renewed lease outlives its TTL many times over; taken away, the
// worker is told and leaves its section without writing.
func TestRenewal(t *testing.T) {
	service := memoryService(t)
	r := runResource(t, ResourceConfig{})
	w := runWorker(t, WorkerConfig{
		Lock: "memory", Nodes: []string{service}, Socket: r.socket, TTL: 2400 * time.Millisecond,
		Section: Range{Min: time.Hour, Max: time.Hour}, Renew: true, CheckBeforeWrite: true,
	}).begin()
	granted := w.await(1, history.OK, history.Acquire)[0]
	renewed := w.await(2, history.OK, history.Renew)
	until := granted.Until
	for _, e := range renewed {
		if e.Grant != granted.Grant || e.Token != granted.Token || e.Until <= until {
			t.Errorf("renewed %+v, before until %d", e, until)
		}
		until = e.Until
	}
	if got := len(only(w.out.events(t), history.Info, history.Lost)); got != 0 {
		t.Error("lost although each renewal was granted")
	}
	// Somebody else removes the lock, as an operator might.
	if err := memoryLock(t, service).Release(t.Context(), clients.Grant{Key: granted.Key, ID: granted.Grant}); err != nil {
		t.Fatal(err)
	}
	lost := w.await(1, history.Info, history.Lost)[0]
	if lost.Error != history.ByService || lost.Grant != granted.Grant {
		t.Errorf("lost: %+v", lost)
	}
	w.await(1, history.Fail, history.Release)
	// The next section takes an hour too: it is ended in the same way.
	next := w.await(2, history.OK, history.Read)[1]
	if err := memoryLock(t, service).Release(t.Context(), clients.Grant{Key: next.Key, ID: next.Grant}); err != nil {
		t.Fatal(err)
	}
	events := w.finish()
	validate(t, events, r.finish())
	if writes := only(events, history.Invoke, history.Write); len(writes) != 0 {
		t.Errorf("wrote after the loss: %+v", writes)
	}
	if failed := only(events, history.Fail, history.Renew); len(failed) == 0 || failed[0].Error != clients.ErrNotHeld.Error() {
		t.Errorf("failed renewals: %+v", failed)
	}
}

// TestUnknownAttemptIsTakenBack: an attempt whose reply was lost may have made
// a holder that nobody is; one that was never sent cannot have.
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
			w := runWorker(t, WorkerConfig{Lock: "memory", Nodes: []string{service}, Socket: r.socket, TTL: time.Second}).begin()
			w.await(3, history.Invoke, history.Acquire)
			events := w.finish()
			validate(t, events, r.finish())
			attempts := only(events, history.Invoke, history.Acquire)
			// The last one may have been given up because the worker was to end.
			for _, e := range attempts[:len(attempts)-1] {
				if got := of(events, e.Grant); got != c.want {
					t.Errorf("attempt %s: %s", e.Grant, got)
				}
			}
		})
	}
}

// woken is a lock whose attempts are woken up twice, and then granted or not.
type woken struct {
	clients.Lock
	err error
}

func (w woken) Acquire(context.Context, clients.Attempt) (clients.Grant, error) {
	return clients.Grant{Wakes: 2}, w.err
}

// TestWakes: how often an attempt was woken up is recorded with its answer, whatever that
// is, and not before.
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
		w := &worker{config: WorkerConfig{Name: "w1", Timeout: time.Minute}, lock: woken{err: c.err}, record: NewEmitter("w1", &out)}
		w.acquire(t.Context(), "k0")
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

// TestGuardRefusal: a write that the guard refuses is recorded as failed, and
// the lock is given back all the same.
func TestGuardRefusal(t *testing.T) {
	r := runResource(t, ResourceConfig{Guard: Fence})
	// Somebody was here with a higher token than the service will ever give.
	r.access(t, Access{Key: "k0", Client: "w9", Grant: "w9-1", Token: 1 << 40})
	w := runWorker(t, WorkerConfig{Lock: "memory", Nodes: []string{memoryService(t)}, Socket: r.socket, TTL: time.Minute}).begin()
	w.await(2, history.OK, history.Release)
	events := w.finish()
	validate(t, events, r.finish())
	for _, e := range only(events, history.OK, history.Acquire) {
		if got := of(events, e.Grant); got != "acquire invoke, acquire ok, read invoke, read fail, release invoke, release ok" {
			t.Errorf("hold %s: %s", e.Grant, got)
		}
	}
}

// TestOptimistic: a worker whose write is refused because its version is stale tries
// again at once with a fresh read, and only then is idle. Another guard's refusal does
// not hurry it.
func TestOptimistic(t *testing.T) {
	const refused = "acquire invoke, acquire ok, read invoke, read ok, write invoke, write fail, release invoke, release ok"
	const done = "acquire invoke, acquire ok, read invoke, read ok, write invoke, write ok, release invoke, release ok"
	r := runResource(t, ResourceConfig{Guard: CompareAndSet})
	config := WorkerConfig{
		Socket: r.socket, Workload: "counter", Idle: Range{Min: time.Hour, Max: time.Hour},
		Section: Range{Min: 300 * time.Millisecond, Max: 300 * time.Millisecond},
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

// TestWorkerCannotWork: what makes its record incomplete or its work
// impossible is an error; it must not look like a quiet run.
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
		{"no server", WorkerConfig{Lock: "redis", Workload: "set"}, io.Discard, "one Redis"},
		{"no database for the data", WorkerConfig{Lock: "none", Workload: "set", Socket: r.socket, InDatabase: true}, io.Discard, "lock none has no database for the data"},
		{"value that it does not understand", WorkerConfig{Lock: "none", Workload: "counter", Socket: r.socket}, io.Discard, "no number"},
		{"record that nobody receives", WorkerConfig{Lock: "none", Workload: "mutex", Socket: r.socket}, &fullAfter{left: 3}, errFull.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.config.Name, c.config.Timeout = "w1", time.Second
			input, end := io.Pipe()
			defer end.Close()
			go func() { _, _ = io.WriteString(end, "go\n") }()
			if err := RunWorker(t.Context(), c.config, input, c.output); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
			_ = input.Close()
		})
	}
}

// TestLeaseWait: what a worker learns while it is in its section.
func TestLeaseWait(t *testing.T) {
	closed := make(chan struct{})
	close(closed)
	past, future := history.Now()-1, history.Now()+time.Hour.Nanoseconds()
	for _, c := range []struct {
		name     string
		told     <-chan struct{}
		refused  bool
		check    bool
		deadline int64
		section  time.Duration
		cause    string
	}{
		{"nothing happens", nil, false, true, future, 0, ""},
		{"the library tells", closed, false, false, 0, time.Hour, history.ByService},
		{"a renewal is refused", nil, true, false, future, time.Hour, history.ByService},
		{"the deadline has passed", nil, false, true, past, 0, history.ByDeadline},
		{"the deadline has passed, nobody looks", nil, false, false, past, 0, ""},
		{"no deadline to look at", nil, false, true, 0, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &lease{check: c.check, told: c.told, refused: make(chan struct{})}
			if c.refused {
				close(l.refused)
			}
			l.deadline.Store(c.deadline)
			if cause, over := l.wait(c.section); cause != c.cause || over != (c.cause != "") {
				t.Errorf("got %q, %v; want %q", cause, over, c.cause)
			}
		})
	}
}

// TestBounded: a call that looks at its context ends with it; one that does not
// is left behind, and what it returns later is nobody's.
func TestBounded(t *testing.T) {
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	failed := errors.New("failed")
	for _, c := range []struct {
		name    string
		timeout time.Duration
		call    func(context.Context) (int, error)
		value   int
		err     error
	}{
		{"in time", time.Minute, func(context.Context) (int, error) { return 1, nil }, 1, nil},
		{"fails in time", time.Minute, func(context.Context) (int, error) { return 0, failed }, 0, failed},
		{"heeds its context", time.Millisecond, func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		}, 0, context.DeadlineExceeded},
		{"succeeds within the grace", time.Millisecond, func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 2, nil
		}, 2, nil},
		{"ignores its context", time.Millisecond, func(context.Context) (int, error) {
			<-release
			return 3, nil
		}, 0, errOverrun},
	} {
		t.Run(c.name, func(t *testing.T) {
			value, err := bounded(t.Context(), c.timeout, c.call)
			if value != c.value || !errors.Is(err, c.err) {
				t.Errorf("got %d, %v; want %d, %v", value, err, c.value, c.err)
			}
		})
	}
	if clients.OutcomeOf(errOverrun) != clients.Unknown {
		t.Error("a call that was left behind may still have its effect")
	}
}

// TestOverrun: a lock service that accepts and never answers.
func TestOverrun(t *testing.T) {
	service := filepath.Join(socketFolder(t), "n1")
	listener, err := net.Listen("unix", service) // whose connections nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	r := runResource(t, ResourceConfig{})
	w := runWorker(t, WorkerConfig{
		Lock: "memory", Nodes: []string{service}, Socket: r.socket, TTL: time.Second, Timeout: 20 * time.Millisecond,
	}).begin()
	w.await(2, history.Info, history.Release)
	events := w.finish()
	validate(t, events)
	if granted := slices.ContainsFunc(events, func(e history.Event) bool { return e.Type == history.OK }); granted {
		t.Error("something succeeded")
	}
}
