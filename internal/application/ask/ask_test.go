package ask

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lockcheck/clusters/clustertest"
	"lockcheck/history"
	"lockcheck/workloads"
)

func TestMain(m *testing.M) { os.Exit(clustertest.Main(m)) }

// asker is one that runs, and what it has recorded.
type asker struct {
	*testing.T
	input  io.WriteCloser
	events <-chan history.Event
	ended  <-chan error
	seen   []history.Event
	header history.Header
}

// started runs an asker until the end of the test.
func started(t *testing.T, questions ...Question) *asker {
	t.Helper()
	input, toInput := io.Pipe()
	output, toOutput := io.Pipe()
	events, ended := make(chan history.Event, 10_000), make(chan error, 1)
	a := &asker{T: t, input: toInput, events: events, ended: ended, header: history.Header{
		Format: history.Format, Schema: history.SchemaVersion, Workload: history.WorkloadApplication, Application: &history.Application{},
	}}
	for _, q := range questions {
		a.header.Application.Invariants = append(a.header.Application.Invariants, q.Invariant)
	}
	go func() {
		err := Run(context.Background(), Config{Process: history.Asker, Every: 10 * time.Millisecond, Questions: questions}, input, toOutput)
		ended <- errors.Join(err, toOutput.Close())
	}()
	go func() {
		defer close(events)
		for lines := json.NewDecoder(output); ; {
			var e history.Event
			if lines.Decode(&e) != nil {
				return
			}
			events <- e
		}
	}()
	t.Cleanup(func() { a.stop() })
	return a
}

// next waits for an event of a question that fits.
func (a *asker) next(what, name string, fits func(history.Event) bool) history.Event {
	a.Helper()
	for limit := time.After(clustertest.Slow(time.Minute)); ; {
		select {
		case e, more := <-a.events:
			if !more {
				a.Fatalf("%s: %s: the asker has ended; last %+v", name, what, a.last(name))
			}
			e.Index = int64(len(a.seen))
			a.seen = append(a.seen, e)
			if e.Key == name && fits(e) {
				return e
			}
		case <-limit:
			a.Fatalf("%s: %s did not come; last %+v", name, what, a.last(name))
		}
	}
}

// last is the last event of a question that was seen.
func (a *asker) last(name string) history.Event {
	for _, e := range slices.Backward(a.seen) {
		if e.Key == name {
			return e
		}
	}
	return history.Event{}
}

// answers waits for an event of a type.
func (a *asker) answers(name string, want history.Type) history.Event {
	a.Helper()
	return a.next(string(want), name, func(e history.Event) bool { return e.Type == want })
}

// stop ends the input, and with it the asker. It returns an error if the events are not a history.
func (a *asker) stop() {
	a.Helper()
	_ = a.input.Close()
	a.wait()
	if err := history.Validate(&history.History{Header: a.header, Events: a.seen}); err != nil {
		a.Error(err)
	}
}

// wait waits for the end of the asker.
func (a *asker) wait() {
	a.Helper()
	if a.ended == nil {
		return
	}
	select {
	case err := <-a.ended:
		a.ended = nil
		if err != nil {
			a.Error(err)
		}
	case <-time.After(clustertest.Slow(time.Minute)):
		a.Fatal("the asker does not end")
	}
	for e := range a.events {
		e.Index = int64(len(a.seen))
		a.seen = append(a.seen, e)
	}
}

// question is one of a kind, named after it.
func question(invariant, kind, url, text string) Question {
	return Question{Invariant: history.Invariant{Name: invariant, Kind: invariant}, Kind: kind, URL: url, Text: text}
}

// outcome is what is expected of one asking.
type outcome struct {
	kind  history.Type
	rows  []string
	count int64
	error string // part of it
}

// asked asks once and compares.
func asked(t *testing.T, q Question, want outcome) history.Event {
	t.Helper()
	a := started(t, q)
	defer a.stop()
	got := a.next("an event", q.Invariant.Name, func(history.Event) bool { return true })
	answer := history.Answer{}
	if got.Answer != nil {
		answer = *got.Answer
	}
	if got.Type != want.kind || !slices.Equal(answer.Rows, want.rows) || answer.Count != cmp.Or(want.count, int64(len(want.rows))) ||
		(want.error == "") != (got.Error == "") || !strings.Contains(got.Error, want.error) {
		t.Errorf("%s %s: got %s, %q, %+v, want %+v", q.Invariant.Kind, q.Text, got.Type, got.Error, answer, want)
	}
	return got
}

// lines are the numbers from 1.
func numbers(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(i+1))
	}
	return all
}

// TestVerdict: what rows mean to each kind of invariant.
func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		kind        string
		empty, rows history.Type
	}{
		{history.InvariantOnce, history.OK, history.Fail}, {history.InvariantNever, history.OK, history.Fail},
		{history.InvariantAlways, history.Fail, history.OK}, {history.InvariantEventually, history.Fail, history.OK},
		{history.InvariantKept, history.OK, history.OK}, {history.InvariantWork, history.OK, history.OK}, {history.InvariantLeader, history.OK, history.OK},
	} {
		for text, want := range map[string]history.Type{"": c.empty, "\n \n": c.empty, "row": c.rows, "\nrow\n": c.rows} {
			a := &answer{kind: c.kind}
			if err := a.readLines(strings.NewReader(text)); err != nil || a.verdict() != want {
				t.Errorf("%s of %q: %s, %v, want %s", c.kind, text, a.verdict(), err, want)
			}
		}
	}
}

// TestColumns: the names of columns are kept of a counterexample, and only where they fit its rows.
func TestColumns(t *testing.T) {
	for _, c := range []struct {
		kind  string
		names []string
		want  string
	}{
		{history.InvariantOnce, []string{"job", "count"}, "job count"},
		{history.InvariantKept, []string{"job"}, ""},
		{history.InvariantOnce, []string{"a\tb", "c"}, ""},
		{history.InvariantOnce, []string{strings.Repeat("x", maxColumnName+1)}, ""},
		{history.InvariantOnce, slices.Repeat([]string{"x"}, maxColumns+1), ""},
	} {
		a := &answer{kind: c.kind}
		a.name(c.names)
		if err := a.add("row"); err != nil {
			t.Fatal(err)
		}
		a.verdict()
		if got := strings.Join(a.Columns, " "); got != c.want {
			t.Errorf("%s of %.40q: %q, want %q", c.kind, c.names, got, c.want)
		}
	}
}

// TestTooLarge: an answer beyond the bounds is one only where the rows that were read decide.
func TestTooLarge(t *testing.T) {
	rows := strings.Repeat("row\n", maxRows)
	for _, c := range []struct {
		name, text string
		count      int64
		large      bool
	}{
		{"as many rows as may be", rows, maxRows, false},
		{"one row more", rows + "row\n", maxRows, true},
		{"as long a line as may be", strings.Repeat("x", maxSize), 1, false},
		{"one byte more", strings.Repeat("x", maxSize+1), 1, true},
		{"nothing but blank lines", strings.Repeat("\n", maxSize+1), 0, true},
	} {
		for _, kind := range history.QuestionKinds() {
			a := &answer{kind: kind}
			err := a.bounded(a.readLines(strings.NewReader(c.text)))
			if a.Count != c.count {
				t.Errorf("%s, %s: %d rows, want %d", c.name, kind, a.Count, c.count)
			}
			unknown := c.large && (!firstRowDecides(kind) || c.count == 0)
			if errors.Is(err, errTooLarge) != unknown || a.cut != (c.large && !unknown) {
				t.Errorf("%s, %s: %v, cut %t", c.name, kind, err, a.cut)
			}
			if kept := kind == history.InvariantKept; !kept && (len(a.Rows) > shownRows || a.size > shownRows*(shownSize+len("…"))) {
				t.Errorf("%s, %s: %d rows and %d bytes are recorded", c.name, kind, len(a.Rows), a.size)
			}
		}
	}
}

// TestCheck: what cannot be asked is refused before anything is.
func TestCheck(t *testing.T) {
	good := question(history.InvariantNever, Shell, "", "true")
	for name, c := range map[string]struct {
		change func(*Question)
		want   string // "" for a good one
	}{
		"good":              {func(*Question) {}, ""},
		"no name":           {func(q *Question) { q.Invariant.Name = "" }, "without a name"},
		"unknown invariant": {func(q *Question) { q.Invariant.Kind = "sometimes" }, `"sometimes"`},
		"no command":        {func(q *Question) { q.Text = "" }, "nothing to ask"},
		"no host":           {func(q *Question) { q.Kind, q.URL = HTTP, "http:///x" }, "a host"},
		"no URL":            {func(q *Question) { q.Kind, q.URL = HTTP, "http://a b:pass" }, "malformed"},
		"a request":         {func(q *Question) { q.Kind, q.URL, q.Text = HTTP, "http://a/b", "" }, ""},
	} {
		q := good
		c.change(&q)
		err := q.Check()
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "pass")) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	for name, config := range map[string]Config{
		"no questions": {Every: time.Second}, "no interval": {Questions: []Question{good}},
		"a bad one": {Every: time.Second, Questions: []Question{good, {}}},
	} {
		if err := Run(t.Context(), config, strings.NewReader(""), io.Discard); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestNobodyListens: an asker whose events nobody takes ends with an error.
func TestNobodyListens(t *testing.T) {
	output, toOutput := io.Pipe()
	_ = output.Close()
	input, toInput := io.Pipe() // which does not end
	defer toInput.Close()
	config := Config{Process: history.Asker, Every: time.Millisecond, Questions: []Question{question(history.InvariantNever, Shell, "", "true")}}
	if err := Run(t.Context(), config, input, toOutput); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

// scripted is a source that is told what to answer.
type scripted struct {
	mu    sync.Mutex
	asked int
	rows  []string
	err   error
}

func (s *scripted) ready(context.Context) error  { return nil }
func (s *scripted) settle(context.Context, bool) {}
func (s *scripted) cut()                         {}

func (s *scripted) ask(_ context.Context, a *answer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	for _, row := range s.rows {
		if err := a.add(row); err != nil {
			return err
		}
	}
	return s.err
}

// loopOf asks a scripted source. It is to be used in a bubble of synctest.
func loopOf(kind string, s *scripted, final <-chan struct{}) (*loop, *bytes.Buffer) {
	record := new(bytes.Buffer)
	return &loop{
		question: question(kind, Shell, "", "x"), source: s, every: 250 * time.Millisecond,
		record: workloads.NewEmitter(history.Asker, record), final: final,
	}, record
}

// TestFinalEnds: the last asking of a question that is never answered ends after its limit, and of one that is
// answered at once.
func TestFinalEnds(t *testing.T) {
	for _, c := range []struct {
		err   error
		least time.Duration
		most  time.Duration
	}{{errors.New("refused"), finalLimit, finalLimit + time.Second}, {nil, 0, 0}} {
		synctest.Test(t, func(t *testing.T) {
			final := make(chan struct{})
			close(final)
			l, _ := loopOf(history.InvariantNever, &scripted{err: c.err}, final)
			began := time.Now()
			l.run(t.Context())
			if took := time.Since(began); took < c.least || took > c.most {
				t.Errorf("with error %v it takes %s, want %s to %s", c.err, took, c.least, c.most)
			}
		})
	}
}

// TestPause: a question with large answers is asked less often, so that the history stays small.
func TestPause(t *testing.T) {
	for _, c := range []struct {
		kind        string
		least, most int // askings in a minute
	}{{history.InvariantKept, 8, 12}, {history.InvariantOnce, 200, 241}} {
		synctest.Test(t, func(t *testing.T) {
			s := &scripted{rows: slices.Repeat([]string{strings.Repeat("x", 1<<20)}, 6)}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			l, record := loopOf(c.kind, s, nil)
			l.run(ctx)
			if s.asked < c.least || s.asked > c.most {
				t.Errorf("%s: asked %d times in a minute, want %d to %d", c.kind, s.asked, c.least, c.most)
			}
			if limit := 67 * recordedPerSecond; record.Len() > limit {
				t.Errorf("%s: %d bytes are recorded in a minute, more than %d", c.kind, record.Len(), limit)
			}
		})
	}
}
