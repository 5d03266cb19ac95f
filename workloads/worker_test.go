package workloads

import (
	"context"
	"encoding/json"
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

// working is a worker in this process, with its own standard input.
type working struct {
	t      *testing.T
	out    lockedBuffer
	input  *io.PipeWriter
	finish func() []history.Event // ends its input and returns its record
}

// runWorker starts a worker with short durations, except those that the test sets.
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
		_ = input.Close() // so that writes to it do not block
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
	if _, err := io.WriteString(w.input, CommandOpen+"\n"+CommandGo+"\n"); err != nil {
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

// only returns the events of a kind.
func only(events []history.Event, typ history.Type, f history.Function) []history.Event {
	var found []history.Event
	for _, e := range events {
		if e.Type == typ && e.F == f {
			found = append(found, e)
		}
	}
	return found
}

// of returns the events of one grant, as text.
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

// TestWorker: the holds follow each other, each complete and in order. The resource's final state is what the
// worker recorded as written.
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
		{"semaphore", look, func([]history.Event) string { return "" }},
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

// TestWorkerFinishesItsSection: the input ends while the worker is in its section.
func TestWorkerFinishesItsSection(t *testing.T) {
	r := runResource(t, ResourceConfig{})
	section := Range{Min: 400 * time.Millisecond, Max: 400 * time.Millisecond}
	w := runWorker(t, WorkerConfig{Socket: r.socket, Use: Use{Section: section}}).begin()
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
		{"open alone", "open\n", false},
		{"open, go", "open\ngo\n", true},
		{"each twice", "open\nopen\ngo\ngo\n", true},
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

// TestWorkerRotates: a worker moves to the key that the resource gives it.
func TestWorkerRotates(t *testing.T) {
	r := runResource(t, ResourceConfig{Rotate: 2})
	w := runWorker(t, WorkerConfig{Socket: r.socket}).begin()
	w.await(6, history.OK, history.Release)
	events := w.finish()
	validate(t, events, r.finish())
	for i, e := range only(events, history.Invoke, history.Acquire) {
		if want := keyName("", i/2); e.Key != want {
			t.Errorf("hold %d is of %s, want %s", i, e.Key, want)
		}
	}
}

// TestWorkerBusy: another client holds the lock, and later releases it.
func TestWorkerBusy(t *testing.T) {
	service := memoryService(t)
	other := memoryLock(t, service)
	grant, err := other.Acquire(t.Context(), clients.Attempt{Key: "k0", ID: "w9-1", TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	r := runResource(t, ResourceConfig{Guard: Fence})
	w := runWorker(t, WorkerConfig{Lock: "memory", Nodes: []string{service}, Socket: r.socket, Use: Use{TTL: time.Minute}}).begin()
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

// TestWorkers: two workers exclude each other, and no update is lost.
func TestWorkers(t *testing.T) {
	service := memoryService(t)
	r := runResource(t, ResourceConfig{})
	config := WorkerConfig{Lock: "memory", Nodes: []string{service}, Socket: r.socket, Workload: "counter", Use: Use{TTL: time.Minute}}
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

// TestCheckBeforeWrite: with the option, a worker whose lease has expired does not write. Without it, it does,
// as most code would.
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
		want    string // of the first hold, without renewals
	}{
		{"lease over, looks", 30 * time.Millisecond, 120 * time.Millisecond, true, false, lost},
		{"lease over, does not look", 30 * time.Millisecond, 120 * time.Millisecond, false, false, wrote},
		{"lease in force, looks", time.Minute, time.Millisecond, true, false, kept},
		{"lease over but for its renewal, looks", 1200 * time.Millisecond, 1500 * time.Millisecond, true, true, kept},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := runResource(t, ResourceConfig{})
			w := runWorker(t, WorkerConfig{
				Lock: "memory", Nodes: []string{memoryService(t)}, Socket: r.socket,
				Use: Use{TTL: c.ttl, Section: Range{Min: c.section, Max: c.section}, CheckBeforeWrite: c.check, Renew: c.renew},
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

// TestRenewal: a renewed lease outlasts its TTL many times. If the lock is removed, the worker is notified and
// leaves its section without writing.
func TestRenewal(t *testing.T) {
	service := memoryService(t)
	r := runResource(t, ResourceConfig{})
	w := runWorker(t, WorkerConfig{
		Lock: "memory", Nodes: []string{service}, Socket: r.socket,
		Use: Use{TTL: 2400 * time.Millisecond, Section: Range{Min: time.Hour, Max: time.Hour}, Renew: true, CheckBeforeWrite: true},
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
	// Another client removes the lock, as an operator might.
	if err := memoryLock(t, service).Release(t.Context(), clients.Grant{Key: granted.Key, ID: granted.Grant}); err != nil {
		t.Fatal(err)
	}
	lost := w.await(1, history.Info, history.Lost)[0]
	if lost.Error != history.ByService || lost.Grant != granted.Grant {
		t.Errorf("lost: %+v", lost)
	}
	w.await(1, history.Fail, history.Release)
	// The next section would take an hour, too, and is ended in the same way.
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

// TestBareWorker: a bare worker needs no resource. It only takes and releases its lock, either the common one
// or its own.
func TestBareWorker(t *testing.T) {
	for key, own := range map[string]bool{"k0": false, "k7": true} {
		w := runWorker(t, WorkerConfig{
			Name: "w7", Index: 7, Lock: "memory", Nodes: []string{memoryService(t)}, Use: Use{TTL: time.Minute, Bare: true, OwnKey: own},
		}).begin()
		grants := w.await(2, history.OK, history.Release)
		events := w.finish()
		for _, e := range events {
			if e.Key != key || e.F != history.Acquire && e.F != history.Release {
				t.Errorf("%s %s of %s", e.F, e.Type, e.Key)
			}
		}
		if want := "acquire invoke, acquire ok, release invoke, release ok"; of(events, grants[0].Grant) != want {
			t.Errorf("%s, want %s", of(events, grants[0].Grant), want)
		}
	}
}
