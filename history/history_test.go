package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var header = Header{Workers: []string{"w1", "w2"}, Lock: "memory", Workload: "set"}

func create(t *testing.T) (*Writer, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "history.jsonl")
	w, err := Create(path, header)
	if err != nil {
		t.Fatal(err)
	}
	return w, path
}

func TestWriterReader(t *testing.T) {
	w, path := create(t)
	long := json.RawMessage("[" + strings.Repeat("1,", 200_000) + "1]")
	for i, e := range []Event{
		{Time: 5, Process: "w1", Type: Invoke, F: Acquire, Key: "k0", Op: 1, Grant: "g1"},
		{Time: 7, Process: "w1", Type: OK, F: Acquire, Key: "k0", Op: 1, Grant: "g1", Token: 3},
		{Time: 9, Process: Resource, Type: OK, F: Final, Key: "k0", Value: long},
	} {
		got, err := w.Append(e)
		if err != nil || got.Index != int64(i) {
			t.Fatalf("event %d: index %d, error %v", i, got.Index, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	h, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if h.Header.Lock != "memory" || h.Header.Schema != SchemaVersion || len(h.Events) != 3 || h.Truncated != 0 {
		t.Fatalf("read %+v, %d events, truncated %d", h.Header, len(h.Events), h.Truncated)
	}
	if h.Events[1].Token != 3 || !bytes.Equal(h.Events[2].Value, long) {
		t.Error("events changed on the way")
	}
	if err := Validate(h); err != nil {
		t.Error(err)
	}
}

func TestWriterNeverOverwrites(t *testing.T) {
	w, path := create(t)
	defer w.Close()
	if _, err := Create(path, header); !errors.Is(err, os.ErrExist) {
		t.Errorf("second Create: %v", err)
	}
}

func TestWriterFailsForGood(t *testing.T) {
	w, _ := create(t)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := w.Append(Event{}); !errors.Is(err, os.ErrClosed) {
			t.Errorf("append after close: %v", err)
		}
	}
}

func TestWriterConcurrent(t *testing.T) {
	w, path := create(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if _, err := w.Append(Event{Time: 1, Process: Harness, Type: Info, F: Phase, Note: PhaseReady}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	h, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := Validate(h); err != nil || len(h.Events) != 400 {
		t.Errorf("%d events, %v", len(h.Events), err)
	}
}

const head = `{"format":"lockcheck-history","schema":2,"workers":["w1","w2"]}` + "\n"

func TestRead(t *testing.T) {
	const good = `{"index":0,"time":1,"process":"harness","type":"info","f":"phase","note":"ready"}`
	for _, c := range []struct {
		name, text string
		line       int // of the error, 0 for none
		events     int
		truncated  int
	}{
		{"empty file", "", 1, 0, 0},
		{"header only", head, 0, 0, 0},
		{"header cut off", head[:20], 1, 0, 0},
		{"foreign format", `{"format":"jepsen","schema":1}` + "\n", 1, 0, 0},
		{"newer schema", `{"format":"lockcheck-history","schema":99}` + "\n", 1, 0, 0},
		{"no schema", `{"format":"lockcheck-history"}` + "\n", 1, 0, 0},
		{"one event", head + good + "\n", 0, 1, 0},
		{"whole last line without newline", head + good, 0, 1, 0},
		{"cut off in mid-write", head + good + "\n" + good[:30], 0, 1, 3},
		{"cut off at once", head + "{", 0, 0, 2},
		{"malformed last line with newline", head + good + "\n" + good[:30] + "\n", 3, 0, 0},
		{"malformed in the middle", head + good + "\n" + "oops\n" + good + "\n", 3, 0, 0},
		{"empty line", head + "\n" + good + "\n", 2, 0, 0},
		{"null", head + "null\n", 2, 0, 0},
		{"two objects on a line", head + good + good + "\n", 2, 0, 0},
		{"wrong type of a field", head + `{"index":"x"}` + "\n", 2, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := ReadAll(strings.NewReader(c.text))
			var syntax *SyntaxError
			if c.line > 0 {
				if !errors.As(err, &syntax) || syntax.Line != c.line || syntax.Reason == "" {
					t.Fatalf("got %v, want a syntax error on line %d", err, c.line)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(h.Events) != c.events || h.Truncated != c.truncated {
				t.Errorf("%d events, truncated %d", len(h.Events), h.Truncated)
			}
		})
	}
}

// TestReadLongLine: reading a file without newlines is given up before it fills the memory. A line as long as
// that of a large set is read.
func TestReadLongLine(t *testing.T) {
	const good = `{"index":0,"time":1,"process":"harness","type":"info","f":"phase","note":"ready"}` + "\n"
	for _, c := range []struct {
		name, before string
		line         int
	}{{"a header", "", 1}, {"the first event", head, 2}, {"a later event", head + good + good, 4}} {
		input := &endless{}
		_, err := ReadAll(io.MultiReader(strings.NewReader(c.before), input))
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || syntax.Line != c.line || !strings.Contains(syntax.Reason, "longer than") {
			t.Errorf("%s: got %v, want a syntax error on line %d", c.name, err, c.line)
		}
		if input.read > maxLine+2*blockSize {
			t.Errorf("%s: read %d bytes", c.name, input.read)
		}
	}
	long := strings.Replace(good, "ready", strings.Repeat("x", 3*blockSize), 1)
	if h, err := ReadAll(strings.NewReader(head + good + long + good)); err != nil || len(h.Events) != 3 {
		t.Errorf("a long line is read as %v, %v", h, err)
	}
}

// endless is a line without an end.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	e.read += len(p)
	return len(p), nil
}

func TestReaderPassesOnErrors(t *testing.T) {
	_, err := ReadAll(io.MultiReader(strings.NewReader(head), brokenReader{}))
	if !errors.Is(err, errDisk) {
		t.Errorf("got %v", err)
	}
}

var errDisk = errors.New("disk on fire")

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errDisk }

func TestValidate(t *testing.T) {
	acquire := func(at int64, p string, typ Type, op int64, grant string) Event {
		return Event{Time: at, Process: p, Type: typ, F: Acquire, Key: "k0", Op: op, Grant: grant}
	}
	in := func(at int64, f Function, typ Type, op int64) Event {
		return Event{Time: at, Process: "w1", Type: typ, F: f, Key: "k0", Op: op, Grant: "g1"}
	}
	access := func(seq int64) Event {
		return Event{Time: 9, Process: Resource, Type: OK, F: Write, Key: "k0", Client: "w1", Seq: seq}
	}
	with := func(e Event, change func(*Event)) Event {
		change(&e)
		return e
	}
	faultAt := Event{Time: 9, Process: Nemesis, Type: Info, F: FaultPhase, Fault: &Fault{ID: "f1", Kind: "pause", Stage: Applied}}
	hold := []Event{acquire(1, "w1", Invoke, 1, "g1"), acquire(2, "w1", OK, 1, "g1")}
	for _, c := range []struct {
		name   string
		events []Event
		line   int // 0: valid
	}{
		{"nothing", nil, 0},
		{"a hold", append(hold[:2:2], in(3, Release, Invoke, 2), in(4, Release, OK, 2)), 0},
		{"killed in mid-acquire", hold[:1], 0},
		{"renew next to a write", append(hold[:2:2], in(3, Renew, Invoke, 2), in(3, Write, Invoke, 3), in(4, Renew, OK, 2), in(4, Write, OK, 3)), 0},
		{"lost", append(hold[:2:2], in(3, Lost, Info, 0)), 0},
		{"lost as an operation", append(hold[:2:2], in(3, Lost, Invoke, 0)), 4},
		{"caught", append(hold[:2:2], in(3, Release, Invoke, 2), with(in(4, Caught, Info, 2), func(e *Event) { e.Note = "f1" }), in(5, Release, OK, 2)), 0},
		{"caught by nothing", append(hold[:2:2], in(3, Release, Invoke, 2), in(4, Caught, Info, 2)), 5},
		{"caught as an operation", append(hold[:2:2], with(in(4, Caught, Invoke, 2), func(e *Event) { e.Note = "f1" })), 4},
		{"client", []Event{{Time: 1, Process: "w1", Type: Info, F: Client, Note: "x 1.0"}, {Time: 2, Process: "w1", Type: Info, F: Client, Error: "it ended"}, {Time: 2, Process: Resource, Type: Info, F: Client, Error: "it ended"}}, 0},
		{"client that says nothing", []Event{{Time: 1, Process: "w1", Type: Info, F: Client}}, 2},
		{"client as an operation", []Event{{Time: 1, Process: "w1", Type: OK, F: Client, Note: "x 1.0"}}, 2},
		{"client of the harness", []Event{{Time: 1, Process: Harness, Type: Info, F: Client, Note: "x 1.0"}}, 2},
		{"processes out of order", []Event{acquire(5, "w1", Invoke, 1, "g1"), acquire(2, "w2", Invoke, 1, "g2")}, 0},
		{"a process out of order", []Event{acquire(5, "w1", Invoke, 1, "g1"), acquire(4, "w1", OK, 1, "g1")}, 3},
		{"time zero", []Event{acquire(0, "w1", Invoke, 1, "g1")}, 2},
		{"unknown process", []Event{acquire(1, "w9", Invoke, 1, "g1")}, 2},
		{"unknown function", []Event{with(hold[0], func(e *Event) { e.F = "grab" })}, 2},
		{"unknown type", []Event{with(hold[0], func(e *Event) { e.Type = "maybe" })}, 2},
		{"worker does a final", []Event{with(hold[0], func(e *Event) { e.F = Final })}, 2},
		{"no grant", []Event{with(hold[0], func(e *Event) { e.Grant = "" })}, 2},
		{"no key", []Event{with(hold[0], func(e *Event) { e.Key = "" })}, 2},
		{"completion without invocation", hold[1:], 2},
		{"completed twice", append(hold[:2:2], hold[1]), 4},
		{"completed as something else", append(hold[:1:1], with(hold[1], func(e *Event) { e.F = Release })), 3},
		{"completed for another grant", append(hold[:1:1], with(hold[1], func(e *Event) { e.Grant = "g2" })), 3},
		{"completed on another key", append(hold[:1:1], with(hold[1], func(e *Event) { e.Key = "k1" })), 3},
		{"operation used twice", append(hold[:2:2], in(3, Read, Invoke, 1)), 4},
		{"same operation number of two workers", append(hold[:1:1], acquire(1, "w2", Invoke, 1, "g2")), 0},
		{"grant of two workers", append(hold[:2:2], acquire(3, "w2", Invoke, 1, "g1")), 4},
		{"grant asked for twice", append(hold[:2:2], acquire(3, "w1", Invoke, 2, "g1")), 4},
		{"two acquires at once", append(hold[:1:1], acquire(3, "w1", Invoke, 2, "g2")), 3},
		{"accesses in sequence", []Event{access(1), access(2)}, 0},
		{"first access missing", []Event{access(2)}, 2},
		{"gap in the sequence", []Event{access(1), access(3)}, 3},
		{"access of a stranger", []Event{with(access(1), func(e *Event) { e.Client = "w9" })}, 2},
		{"access of unknown outcome", []Event{with(access(1), func(e *Event) { e.Type = Info })}, 2},
		{"acquire at the resource", []Event{with(access(1), func(e *Event) { e.F = Acquire })}, 2},
		{"final", []Event{{Time: 1, Process: Resource, Type: OK, F: Final, Key: "k0"}}, 0},
		{"final without key", []Event{{Time: 1, Process: Resource, Type: OK, F: Final}}, 2},
		{"claim", []Event{{Time: 1, Process: Service, Type: Info, F: Claimed, Key: "k0", Token: 7}, {Time: 2, Process: Service, Type: Info, F: Dropped, Key: "k0", Token: 7}}, 0},
		{"claim without a token", []Event{{Time: 1, Process: Service, Type: Info, F: Claimed, Key: "k0"}}, 2},
		{"claim as an operation", []Event{{Time: 1, Process: Service, Type: OK, F: Claimed, Key: "k0", Token: 7}}, 2},
		{"observer writes", []Event{{Time: 1, Process: Service, Type: Info, F: Write, Key: "k0", Token: 7}}, 2},
		{"end of observation", []Event{{Time: 1, Process: Service, Type: Info, F: Unobserved}}, 0},
		{"fault", []Event{faultAt}, 0},
		{"fault without description", []Event{with(faultAt, func(e *Event) { e.Fault = nil })}, 2},
		{"fault without id", []Event{with(faultAt, func(e *Event) { e.Fault = &Fault{Kind: "pause", Stage: Applied} })}, 2},
		{"fault without stage", []Event{with(faultAt, func(e *Event) { e.Fault = &Fault{ID: "f1", Kind: "pause"} })}, 2},
		{"fault as an operation", []Event{with(faultAt, func(e *Event) { e.Type = OK })}, 2},
		{"phase", []Event{{Time: 1, Process: Harness, Type: Info, F: Phase, Note: PhaseEnd}}, 0},
		{"unknown phase", []Event{{Time: 1, Process: Harness, Type: Info, F: Phase, Note: "lunch"}}, 2},
		{"stall", []Event{{Time: 2, Process: Harness, Type: Info, F: Stalled, From: 1}}, 0},
		{"stall of no length", []Event{{Time: 2, Process: Harness, Type: Info, F: Stalled, From: 2}}, 2},
		{"stall of no beginning", []Event{{Time: 2, Process: Harness, Type: Info, F: Stalled}}, 2},
		{"harness writes", []Event{{Time: 1, Process: Harness, Type: Info, F: Write}}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &History{Header: header, Events: append([]Event(nil), c.events...)}
			for i := range h.Events {
				h.Events[i].Index = int64(i)
			}
			err := Validate(h)
			var invalid *InvalidError
			if c.line == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.As(err, &invalid) || invalid.Line != c.line || invalid.Reason == "" {
				t.Errorf("got %v, want an error on line %d", err, c.line)
			}
		})
	}
}

// TestValidateWakes: only completions of acquires count notifications, and only for locks that count them.
func TestValidateWakes(t *testing.T) {
	woken := func(typ Type, f Function, wakes int64) Event {
		return Event{Index: 1, Time: 2, Process: "w1", Type: typ, F: f, Key: "k0", Op: 1, Grant: "g1", Wakes: wakes}
	}
	for _, c := range []struct {
		name    string
		counted bool
		event   Event
		valid   bool
	}{
		{"granted", true, woken(OK, Acquire, 2), true},
		{"given up", true, woken(Fail, Acquire, 2), true},
		{"of unknown outcome", true, woken(Info, Acquire, 2), true},
		{"never woken", false, woken(OK, Acquire, 0), true},
		{"not counted", false, woken(OK, Acquire, 2), false},
		{"negative", true, woken(OK, Acquire, -1), false},
		{"of a release", true, woken(OK, Release, 2), false},
		{"before the answer", true, woken(Invoke, Acquire, 2), false},
	} {
		h := &History{Header: header, Events: []Event{woken(Invoke, c.event.F, 0), c.event}}
		h.Header.Wakes, h.Events[0].Index = c.counted, 0
		if c.event.Type == Invoke {
			h.Events[1].Op, h.Events[1].Grant, h.Events[0].F = 2, "g2", Read // which is open, too
		}
		err := Validate(h)
		if invalid := new(InvalidError); c.valid != (err == nil) || !c.valid && (!errors.As(err, &invalid) || invalid.Line != 3) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestValidateShared: shared is allowed in one workload only, and only on the invocation of an acquire.
func TestValidateShared(t *testing.T) {
	for _, c := range []struct {
		name, workload string
		f              Function
		typ            Type
		valid          bool
	}{
		{"a reader", WorkloadReadWrite, Acquire, Invoke, true},
		{"a lock that nobody shares", WorkloadSet, Acquire, Invoke, false},
		{"a read", WorkloadReadWrite, Read, Invoke, false},
		{"a notification", WorkloadReadWrite, Lost, Info, false},
	} {
		h := &History{Header: header, Events: []Event{
			{Time: 1, Process: "w1", Type: c.typ, F: c.f, Key: "k0", Op: 1, Grant: "g1", Shared: true},
		}}
		h.Header.Workload = c.workload
		if err := Validate(h); (err == nil) != c.valid {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestValidateIndex(t *testing.T) {
	h := &History{Header: header, Events: []Event{{Index: 1, Time: 1, Process: Harness, Type: Info, F: Phase, Note: PhaseReady}}}
	var invalid *InvalidError
	if err := Validate(h); !errors.As(err, &invalid) || invalid.Line != 2 {
		t.Errorf("got %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(head))
	f.Add([]byte(head + `{"index":0,"time":1,"process":"w1","type":"invoke","f":"acquire","key":"k","grant":"g"}` + "\n{"))
	f.Add([]byte(head + `{"fault":{"targets":null},"process":"nemesis"}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := ReadAll(bytes.NewReader(data))
		if (h == nil) == (err == nil) {
			t.Fatalf("history %v with error %v", h, err)
		}
		if err == nil {
			_ = Validate(h) // must not panic
		}
	})
}
