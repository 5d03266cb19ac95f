package workloads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lockcheck/clients"
	"lockcheck/clients/unixrpc"
	"lockcheck/clusters/clustertest"
	"lockcheck/history"
)

const patience = 20 * time.Second

// socketFolder returns a short path, because the path of a Unix socket may have at most 107 bytes.
func socketFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "wl-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

// running is a resource in this process, with a real socket.
type running struct {
	socket string
	client *unixrpc.Client
	input  io.Writer
	out    lockedBuffer
	finish func() []history.Event // ends its input and returns its record
}

// worker returns a worker on this resource whose methods a test calls directly.
func (r *running) worker(out io.Writer, workload string, lock clients.Lock, use Use) *worker {
	w := &worker{
		catches: newCatches(1), lock: lock, resource: r.client, record: NewEmitter("w1", out),
		config: WorkerConfig{Name: "w1", Index: 1, Lock: "test", Socket: r.socket, Timeout: time.Minute, Use: use},
	}
	w.workload, _ = ByName(workload)
	return w
}

func runResource(t *testing.T, config ResourceConfig) *running {
	t.Helper()
	config.Socket = filepath.Join(socketFolder(t), "r")
	r := &running{socket: config.Socket, client: unixrpc.NewClient(config.Socket)}
	input, end := io.Pipe()
	r.input = end
	done := make(chan error, 1)
	go func() { done <- RunResource(context.WithoutCancel(t.Context()), config, input, &r.out) }()
	stop := sync.OnceFunc(func() {
		_ = end.Close()
		if err := <-done; err != nil {
			t.Errorf("resource: %v", err)
		}
	})
	r.finish = func() []history.Event {
		stop()
		return r.out.events(t)
	}
	t.Cleanup(func() { stop(); _ = r.client.Close() })
	clustertest.Eventually(t, patience, func() error {
		var answer KeyAnswer
		return r.client.Call(t.Context(), "key", KeyRequest{}, &answer)
	})
	return r
}

// key returns the key that the resource gives to a client.
func (r *running) key(t *testing.T, client string) string {
	t.Helper()
	var answer KeyAnswer
	if err := r.client.Call(t.Context(), "key", KeyRequest{Client: client}, &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Key
}

func (r *running) access(t *testing.T, a Access) Answer {
	t.Helper()
	var answer Answer
	if err := r.client.Call(t.Context(), "access", a, &answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

// TestResource: the answers, the record, and the final state.
func TestResource(t *testing.T) {
	r := runResource(t, ResourceConfig{Guard: Fence, Rotate: 100})
	write := func(token uint64, value string, element int64) Access {
		return Access{
			Write: true, Key: "k0", Client: "w1", Op: element, Grant: fmt.Sprint("w1-", element), Token: token,
			Element: element, Value: json.RawMessage(value),
		}
	}
	read := Access{Key: "k0", Client: "w2", Op: 9, Grant: "w2-1", Token: 2}
	for i, c := range []struct {
		access Access
		want   Answer
	}{
		{read, Answer{}},
		{write(2, "[1]", 1), Answer{Version: 1}},
		{write(1, "[2]", 2), Answer{Version: 1, Refused: "fence"}},
		{read, Answer{Version: 1, Value: json.RawMessage("[1]")}},
		{Access{Key: "k7", Client: "w2", Op: 10, Grant: "w2-2"}, Answer{}},
	} {
		got := r.access(t, c.access)
		if got.Version != c.want.Version || got.Refused != c.want.Refused || string(got.Value) != string(c.want.Value) {
			t.Errorf("access %d: got %+v, want %+v", i, got, c.want)
		}
	}
	events := r.finish()
	validate(t, events)
	var got []string
	for _, e := range events {
		got = append(got, fmt.Sprintf("%d %s %s %s %s v%d e%d %s%s", e.Seq, e.F, e.Type, e.Key, e.Grant, e.Version, e.Element, e.Value, e.Error))
	}
	want := []string{
		"1 read ok k0 w2-1 v0 e0 ",
		"2 write ok k0 w1-1 v1 e1 ",
		"3 write fail k0 w1-2 v1 e2 fence",
		"4 read ok k0 w2-1 v1 e0 ",
		"5 read ok k7 w2-2 v0 e0 ",
		"0 final ok k0  v1 e0 [1]",
		"0 final ok k7  v0 e0 ",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("recorded:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestMatch: a write is accepted only from the last reader, which is not always the latest holder.
func TestMatch(t *testing.T) {
	const former, holder = "w1-1", "w2-1"
	read := func(grant string) Access { return Access{Key: "k0", Client: "w1", Grant: grant} }
	write := func(grant string) Access {
		return Access{Key: "k0", Client: "w1", Grant: grant, Write: true, Value: json.RawMessage("1")}
	}
	for _, c := range []struct {
		name     string
		accesses []Access
		refused  string // one character per access: x if it is refused
	}{
		{"read, then written", []Access{read(holder), write(holder)}, ".."},
		{"written twice", []Access{read(holder), write(holder), write(holder)}, "..."},
		{"never read", []Access{write(former)}, "x"},
		{"read before another read", []Access{read(former), read(holder), write(former), write(holder)}, "..x."},
		{"read before another wrote", []Access{read(former), read(holder), write(holder), write(former)}, "...x"},
		{"a late read keeps the rightful holder out", []Access{read(holder), read(former), write(holder), write(former)}, "..x."},
		{"of another key", []Access{read(former), {Key: "k1", Client: "w2", Grant: holder}, write(former)}, "..."},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := runResource(t, ResourceConfig{Guard: Match})
			refused := ""
			for _, a := range c.accesses {
				mark := "."
				if r.access(t, a).Refused == "match" {
					mark = "x"
				}
				refused += mark
			}
			if refused != c.refused {
				t.Errorf("refused %s, want %s", refused, c.refused)
			}
		})
	}
}

// TestIdempotencyKey: a job that was done is refused again, for every client and every version. The same number
// under another key is another job.
func TestIdempotencyKey(t *testing.T) {
	r := runResource(t, ResourceConfig{Guard: IdempotencyKey})
	do := func(client, key string, job, base int64) string {
		return r.access(t, Access{Key: key, Client: client, Grant: client + "-1", Write: true, Element: job, Base: base, Value: json.RawMessage("1")}).Refused
	}
	for _, c := range []struct {
		client, key string
		job, base   int64
		refused     string
	}{
		{"w1", "k0", 1, 0, ""}, {"w1", "k0", 1, 0, "idempotency-key"}, {"w2", "k0", 1, 1, "idempotency-key"}, {"w2", "k0", 2, 0, ""}, {"w2", "k1", 1, 0, ""},
	} {
		if got := do(c.client, c.key, c.job, c.base); got != c.refused {
			t.Errorf("%+v: refused by %q", c, got)
		}
	}
}

func TestRotation(t *testing.T) {
	read, write := Access{Key: "k0", Client: "w1"}, Access{Write: true, Key: "k0", Client: "w1", Value: json.RawMessage("1")}
	stale := Access{Write: true, Key: "k0", Client: "w1", Base: 9}
	elsewhere := Access{Write: true, Key: "k5", Client: "w1"}
	for _, c := range []struct {
		name     string
		config   ResourceConfig
		accesses []Access
		want     string
	}{
		{"nothing yet", ResourceConfig{Rotate: 2}, nil, "k0"},
		{"not enough writes", ResourceConfig{Rotate: 2}, []Access{write, read, read, read}, "k0"},
		{"enough writes", ResourceConfig{Rotate: 2}, []Access{write, write}, "k1"},
		{"late writes to the former key", ResourceConfig{Rotate: 2}, []Access{write, write, write, write}, "k1"},
		{"another key does not count", ResourceConfig{Rotate: 2}, []Access{write, elsewhere, elsewhere}, "k0"},
		{"a refused write does not count", ResourceConfig{Rotate: 2, Guard: CompareAndSet}, []Access{write, stale, stale}, "k0"},
		{"reads", ResourceConfig{Rotate: 2, CountReads: true}, []Access{read, read}, "k1"},
		{"writes where reads count", ResourceConfig{Rotate: 2, CountReads: true}, []Access{write, write}, "k0"},
		{"each access", ResourceConfig{Rotate: 1}, []Access{write}, "k1"},
		{"never", ResourceConfig{}, []Access{write, write, write}, "k0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := runResource(t, c.config)
			for _, a := range c.accesses {
				r.access(t, a)
			}
			if got := r.key(t, "w1"); got != c.want {
				t.Errorf("now %s, want %s", got, c.want)
			}
		})
	}
}

// TestRotationWaits: a key that has had its share is kept until every client that got it before that has
// finished, or until Patience is over.
func TestRotationWaits(t *testing.T) {
	type step struct{ client, want string }
	const write = "write" // to the key of that step
	first := ""           // a worker that waits until the resource serves
	for _, c := range []struct {
		name     string
		patience time.Duration
		steps    []step
	}{
		{"all come back", time.Hour, []step{
			{"w1", "k0"}, {"w2", "k0"}, {write, "k0"}, {"w1", "k0"}, {first, "k0"}, {"w1", "k0"}, {"w2", "k1"},
			{"w1", "k1"}, {write, "k1"}, {"w1", "k1"}, {"w2", "k2"}, {first, "k2"},
		}},
		{"none who came too late is waited for", time.Hour, []step{{write, "k0"}, {"w1", "k0"}, {first, "k1"}}},
		{"a key gets too long", time.Hour, slices.Concat(
			[]step{{"w1", "k0"}}, slices.Repeat([]step{{write, "k0"}}, longestKey-1), []step{{"w2", "k0"}, {write, "k0"}, {"w2", "k1"}})},
		{"somebody does not", time.Nanosecond, []step{{"w1", "k0"}, {"w2", "k0"}, {write, "k0"}, {"w1", "k1"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := runResource(t, ResourceConfig{Rotate: 1, Patience: c.patience})
			for i, s := range c.steps {
				if s.client == write {
					r.access(t, Access{Write: true, Key: s.want, Client: "w1", Value: json.RawMessage("1")})
				} else if got := r.key(t, s.client); got != s.want {
					t.Errorf("step %d: %q is named %s, want %s", i, s.client, got, s.want)
				}
			}
		})
	}
}

// TestResourceOrder: numbers, record and values agree on one order.
func TestResourceOrder(t *testing.T) {
	r := runResource(t, ResourceConfig{Guard: CompareAndSet})
	const writers, each = 8, 20
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			client := unixrpc.NewClient(r.socket)
			defer client.Close()
			for done := 0; done < each; {
				var current, written Answer
				a := Access{Key: "k0", Client: "w1", Grant: fmt.Sprint("w1-", w)}
				if err := client.Call(t.Context(), "access", a, &current); err != nil {
					t.Error(err)
					return
				}
				value, err := increment(current.Value, 0)
				if err != nil {
					t.Error(err)
					return
				}
				a.Write, a.Base, a.Value = true, current.Version, value
				if err := client.Call(t.Context(), "access", a, &written); err != nil {
					t.Error(err)
					return
				}
				if written.Refused == "" {
					done++
				}
			}
		})
	}
	all.Wait()
	events := r.finish()
	validate(t, events) // Seq has no gaps
	version := int64(0)
	for _, e := range events {
		if e.F == history.Write && e.Type == history.OK {
			if version++; e.Version != version || e.Base != version-1 {
				t.Fatalf("write %+v makes version %d of base %d", e, version, version-1)
			}
		}
	}
	final := events[len(events)-1]
	if final.F != history.Final || string(final.Value) != fmt.Sprint(writers*each) {
		t.Errorf("final %+v, want %d", final, writers*each)
	}
}

func TestResourceFails(t *testing.T) {
	config := ResourceConfig{Socket: filepath.Join(t.TempDir(), "missing", "r")}
	input, end := io.Pipe()
	defer end.Close()
	if err := RunResource(t.Context(), config, input, io.Discard); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	config.Socket = filepath.Join(socketFolder(t), "r")
	if err := RunResource(t.Context(), config, strings.NewReader(""), io.Discard); err != nil {
		t.Errorf("control: %v", err)
	}
}
