package workloads

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lockcheck/history"
)

// TestNextJob: the next job is the first one that is not done, whichever others are.
func TestNextJob(t *testing.T) {
	for done, want := range map[string]int64{"": 1, "null": 1, "[]": 1, "[1]": 2, "[2]": 1, "[3,1,2]": 4, "[1,3]": 2, "[1,1,2]": 3} {
		if got, err := nextJob(json.RawMessage(done)); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", done, got, err, want)
		}
	}
	if _, err := nextJob(json.RawMessage("7")); err == nil {
		t.Error("a number is a list of jobs")
	}
}

func TestUpdate(t *testing.T) {
	for _, c := range []struct {
		workload, value, want string // want "" for an error
	}{
		{"set", "", "[7]"},
		{"set", "null", "[7]"},
		{"set", "[1,2]", "[1,2,7]"},
		{"set", "[7]", "[7,7]"}, // only the checker detects a duplicate
		{"set", "3", ""},
		{"counter", "", "1"},
		{"counter", "null", "1"},
		{"counter", "41", "42"},
		{"counter", "[1]", ""},
		{"counter", "{", ""},
	} {
		t.Run(c.workload+" "+c.value, func(t *testing.T) {
			w, ok := ByName(c.workload)
			if !ok {
				t.Fatal("no such workload")
			}
			got, err := w.Update(json.RawMessage(c.value), 7)
			if string(got) != c.want || (err != nil) != (c.want == "") {
				t.Errorf("got %s, %v; want %s", got, err, c.want)
			}
		})
	}
	if w, ok := ByName("mutex"); !ok || w.Update != nil {
		t.Error("the workload mutex must exist and not update")
	}
	if _, ok := ByName("no such workload"); ok {
		t.Error("an unknown workload is found")
	}
	if !slices.Equal(Names(), []string{"set", "counter", "jobs", "election", "read-write", "mutex", "semaphore"}) {
		t.Errorf("names %v", Names())
	}
}

// TestGuards applies the same accesses to each guard, by an old owner with token 1 and a new one with token 2.
// Each accepted write makes a new version.
func TestGuards(t *testing.T) {
	read := func(token uint64) Access { return Access{Token: token} }
	write := func(token uint64, base int64) Access { return Access{Write: true, Token: token, Base: base} }
	for _, c := range []struct {
		name                     string
		accesses                 []Access
		none, fence, writes, cas string // one character per access: + accepted, - refused
	}{
		{"one owner", []Access{read(1), write(1, 0)}, "++", "++", "++", "++"},
		{"two owners, one after the other", []Access{read(1), write(1, 0), read(2), write(2, 1)}, "++++", "++++", "++++", "++++"},
		{"a stale write after the new owner's read", []Access{read(1), read(2), write(1, 0), write(2, 0)}, "++++", "++-+", "++++", "+++-"},
		{"a stale write after the new owner's write", []Access{read(1), read(2), write(2, 0), write(1, 0)}, "++++", "+++-", "+++-", "+++-"},
		{"a stale read", []Access{read(2), read(1)}, "++", "+-", "++", "++"},
		{"a refused access does not move the fence", []Access{read(2), read(1), read(2)}, "+++", "+-+", "+++", "+++"},
		{"a refused write makes no version", []Access{write(1, 0), write(1, 5), write(1, 1)}, "+++", "+++", "+++", "+-+"},
		{"a write of the same owner, twice", []Access{write(1, 0), write(1, 0)}, "++", "++", "++", "+-"},
		{"a stale write after the new owner's write, and its read", []Access{read(1), read(2), write(2, 0), read(1), write(1, 1)}, "+++++", "+++--", "++++-", "+++++"},
		{"no tokens", []Access{read(0), read(0), write(0, 0), write(0, 0)}, "++++", "++++", "++++", "+++-"},
		{"no token after one", []Access{read(1), read(0)}, "++", "+-", "++", "++"},
	} {
		for guard, want := range map[Guard]string{NoGuard: c.none, Fence: c.fence, FenceWrites: c.writes, CompareAndSet: c.cas} {
			t.Run(c.name+" "+string(guard), func(t *testing.T) {
				var got strings.Builder
				state := new(keyState)
				for _, a := range c.accesses {
					if !guard.admit(state, a) {
						got.WriteByte('-')
						continue
					}
					got.WriteByte('+')
					if a.Write {
						state.version++
					}
				}
				if got.String() != want {
					t.Errorf("got %s, want %s", got.String(), want)
				}
			})
		}
	}
	if !slices.Equal(Guards(), []string{"none", "fence", "fence-writes", "ask", "database", "cas", "match", "idempotency-key"}) {
		t.Errorf("guards %v", Guards())
	}
}

func TestRange(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name     string
		r        Range
		min, max time.Duration
	}{
		{"fixed", Range{Min: 5 * ms, Max: 5 * ms}, 5 * ms, 5 * ms},
		{"zero", Range{}, 0, 0},
		{"spread", Range{Min: 5 * ms, Max: 9 * ms}, 5 * ms, 9 * ms},
		{"the wrong way round", Range{Min: 9 * ms, Max: 5 * ms}, 9 * ms, 9 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := make(map[time.Duration]bool)
			rng, again := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(1, 2))
			for range 100 {
				d := c.r.draw(rng)
				if d < c.min || d > c.max {
					t.Fatalf("drew %s", d)
				}
				if d != c.r.draw(again) {
					t.Fatal("the same seed drew something else")
				}
				seen[d] = true
			}
			if spread := c.max > c.min; spread != (len(seen) > 1) {
				t.Errorf("%d different values", len(seen))
			}
		})
	}
}

// lockedBuffer may be read while other goroutines write to it.
type lockedBuffer struct {
	mu   sync.Mutex
	text []byte
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p...)
	return len(p), nil
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}

// events decodes what was written so far, which must be whole lines.
func (b *lockedBuffer) events(t *testing.T) []history.Event {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	var events []history.Event
	for line := range bytes.Lines(b.text) {
		var e history.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		events = append(events, e)
	}
	return events
}

// validate validates the records of several processes as one history.
func validate(t *testing.T, records ...[]history.Event) {
	t.Helper()
	h := &history.History{Header: history.Header{
		Format: history.Format, Schema: history.SchemaVersion, Workers: []string{"w1", "w2", "w9"},
	}}
	h.Events = slices.Concat(records...)
	for i := range h.Events {
		h.Events[i].Index = int64(i)
	}
	if err := history.Validate(h); err != nil {
		t.Error(err)
	}
}

// TestEmitter: many goroutines write whole lines whose times never decrease.
func TestEmitter(t *testing.T) {
	var out lockedBuffer
	emitter := NewEmitter("w1", &out)
	before := history.Now()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				if at := emitter.Emit(history.Event{F: history.Read}); at < before {
					t.Errorf("stamped %d, before %d", at, before)
				}
			}
		})
	}
	all.Wait()
	events := out.events(t)
	if len(events) != 400 || emitter.Err() != nil {
		t.Fatalf("%d events, %v", len(events), emitter.Err())
	}
	last := before
	for i, e := range events {
		if e.Process != "w1" || e.Time < last {
			t.Fatalf("event %d: %+v after %d", i, e, last)
		}
		last = e.Time
	}
}

var errFull = errors.New("disk full")

// fullAfter is an output that accepts some writes and then fails.
type fullAfter struct {
	mu   sync.Mutex
	left int
}

func (f *fullAfter) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left == 0 {
		return 0, errFull
	}
	f.left--
	return len(p), nil
}

func TestEmitterKeepsItsError(t *testing.T) {
	emitter := NewEmitter("w1", &fullAfter{left: 1})
	for i, want := range []error{nil, errFull, errFull} {
		emitter.Emit(history.Event{})
		if err := emitter.Err(); !errors.Is(err, want) {
			t.Errorf("after event %d: %v, want %v", i, err, want)
		}
	}
}
