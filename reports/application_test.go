package reports

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/checker/application"
	"lockcheck/history"
	"lockcheck/present"
)

// billing is a judged run of an application: b1 is paused in its hold, b2 takes over, and a job is billed twice.
func billing(t *testing.T, more ...history.Event) (*history.History, checker.Results) {
	t.Helper()
	at := func(ms int) int64 { return int64(time.Second) + int64(ms)*int64(time.Millisecond) }
	h := &history.History{Header: history.Header{
		Format: history.Format, Schema: history.SchemaVersion, Version: "test", Lock: "billing <b>", Workload: history.WorkloadApplication, Faults: []string{history.Pause},
		Application: &history.Application{
			Replicas:   []string{"b1", "b2"},
			Invariants: []history.Invariant{{Name: "billed", Kind: history.InvariantOnce, Question: "SELECT job, n <b> FROM bills", On: "postgres"}, {Name: "paid", Kind: history.InvariantKept}},
			Says:       map[history.Function][]string{history.Holding: nil, history.Releasing: nil, history.Did: nil, history.Accepted: nil},
		},
	}}
	says := func(ms int, replica string, e history.Event) {
		e.Process, e.Type, e.From, e.Time = replica, history.Info, at(ms), at(ms)
		h.Events = append(h.Events, e)
	}
	answer := func(ms int, name string, outcome history.Type, rows ...string) {
		e := history.Event{Process: history.Asker, Type: outcome, F: history.Asked, Key: name, From: at(ms), Time: at(ms)}
		if e.Error = "connection refused"; outcome != history.Info {
			e.Answer, e.Error = &history.Answer{Rows: rows, Columns: []string{"job", "n"}, Count: int64(len(rows))}, ""
		}
		h.Events = append(h.Events, e)
	}
	for _, stage := range []history.Stage{history.Requested, history.Applied, history.Proven, history.Healed, history.ProvenHealed} {
		ms := 20
		if stage == history.Healed || stage == history.ProvenHealed {
			ms = 60
		}
		h.Events = append(h.Events, history.Event{Process: history.Nemesis, Type: history.Info, F: history.FaultPhase, Time: at(ms),
			Fault: &history.Fault{ID: "f1", Kind: history.Pause, Stage: stage, Targets: []string{"b1"}, From: at(ms), To: at(ms)}})
	}
	for ms, phase := range map[int]string{1: history.PhaseReady, 80: history.PhaseRecovery, 90: history.PhaseFinal, 99: history.PhaseEnd} {
		h.Events = append(h.Events, history.Event{Process: history.Harness, Type: history.Info, F: history.Phase, Note: phase, Time: at(ms)})
	}
	says(2, "b1", history.Event{F: history.Started})
	says(3, "b2", history.Event{F: history.Started})
	says(10, "b1", history.Event{F: history.Holding, Key: "nightly"})
	says(40, "b2", history.Event{F: history.Holding, Key: "nightly"})
	says(45, "b2", history.Event{F: history.Did, ID: "job-17"})
	says(50, "b2", history.Event{F: history.Releasing, Key: "nightly"})
	says(65, "b1", history.Event{F: history.Did, ID: "job-17"})
	says(70, "b1", history.Event{F: history.Releasing, Key: "nightly"})
	h.Events = append(h.Events, history.Event{Process: history.Load, Type: history.OK, F: history.Accepted, ID: "job-17", From: at(5), Time: at(5)},
		history.Event{Process: history.Load, Type: history.OK, F: history.Accepted, ID: "job-18", From: at(6), Time: at(6)})
	answer(12, "billed", history.OK)
	answer(30, "billed", history.Info)
	answer(72, "billed", history.Fail, "job-17\t2 <i>")
	answer(73, "paid", history.OK)
	answer(92, "billed", history.Fail, "job-17\t2 <i>")
	answer(93, "paid", history.OK, "job-17")
	h.Events = append(h.Events, more...)
	slices.SortStableFunc(h.Events, func(a, b history.Event) int { return cmp.Compare(a.Time, b.Time) })
	for i := range h.Events {
		h.Events[i].Index = int64(i)
	}
	if err := history.Validate(h); err != nil {
		t.Fatal(err)
	}
	r := application.Check(h)
	present.Render(&r, h.Header)
	return h, r
}

// TestApplicationReports: every report of a run of an application says what happened to it, and nothing of locks.
func TestApplicationReports(t *testing.T) {
	h, r := billing(t)
	for name, write := range map[string]func(io.Writer) error{
		"page":     func(w io.Writer) error { return HTML(w, h, r) },
		"terminal": func(w io.Writer) error { return Terminal(w, r, TerminalOptions{Width: 400, Header: h.Header}) },
		"junit":    func(w io.Writer) error { return JUnit(w, h.Header, r) },
		"json":     func(w io.Writer) error { return JSON(w, h.Header, r) },
	} {
		var out bytes.Buffer
		if err := write(&out); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text := out.String()
		for _, want := range []string{"nvariant billed did not hold", "job job-17, n 2", "job-17 was done by b2, and again 20 ms later by b1"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", name, want, text)
			}
		}
		if name == "page" && !strings.Contains(text, "<code>SELECT job, n &lt;b&gt; FROM bills (on postgres)</code>") {
			t.Errorf("the page lacks the question of an invariant:\n%s", text)
		}
		if name == "json" {
			continue // the figures of locks are there, and zero
		}
		if _, body, is := strings.Cut(text, "</style>"); is {
			text, _, _ = strings.Cut(body, "<script")
			if strings.Contains(text, "<i>") || strings.Contains(text, "g <b>") {
				t.Errorf("%s has the text of the run as it is", name)
			}
		}
		for _, unwanted := range []string{"acquire", "validity", "worker", "0 holds"} {
			if i := strings.Index(text, unwanted); i >= 0 {
				t.Errorf("%s says %q: …%s", name, unwanted, text[max(0, i-100):min(len(text), i+100)])
			}
		}
	}
	var junit bytes.Buffer
	if err := JUnit(&junit, h.Header, r); err != nil || xml.Unmarshal(junit.Bytes(), new(struct{})) != nil {
		t.Errorf("%v: %s", err, junit.String())
	}
}

// TestApplicationTimeline: replicas with their holds and effects, and invariants that turn red.
func TestApplicationTimeline(t *testing.T) {
	h, r := billing(t)
	p, drawn := applicationTimeline(newRecord(h, r), h, r)
	if !drawn {
		t.Fatal("nothing is drawn")
	}
	count := make(map[string]int)
	for _, s := range p.Shapes {
		count[s.Class]++
	}
	for class, want := range map[string]int{"held": 2, "did": 2, "kept": 2, "red": 2, "effect": 1, "fault": 1, "overlap": 1} {
		if count[class] != want {
			t.Errorf("%d of %s, want %d: %v", count[class], class, want, count)
		}
	}
	var names []string
	for _, s := range p.Strips {
		names = append(names, s.Label)
	}
	if want := []string{"b1", "b2", "billed", "paid", "pause"}; !slices.Equal(names, want) {
		t.Errorf("rows %q, want %q", names, want)
	}
	empty := &history.History{Header: h.Header}
	none := application.Check(empty)
	present.Render(&none, h.Header)
	if err := HTML(io.Discard, empty, none); err != nil {
		t.Error(err)
	}
}

// TestOverwrittenReport: the page tells an update that was lost in the resource by who read what and who wrote in between.
func TestOverwrittenReport(t *testing.T) {
	at := func(ms int64) int64 { return int64(time.Second) + ms*int64(time.Millisecond) }
	h := &history.History{Header: history.Header{
		Format: history.Format, Schema: history.SchemaVersion, Lock: "counter", Workload: history.WorkloadApplication,
		Application: &history.Application{Replicas: []string{"c1", "c2"}, Resource: true},
	}}
	for n, e := range []history.Event{
		{F: history.Write, Client: "c1", Version: 1}, {F: history.Read, Client: "c1", Version: 1}, {F: history.Write, Client: "c2", Version: 2, ID: "<i>"}, {F: history.Write, Client: "c1", Version: 3},
	} {
		e.Index, e.Process, e.Type, e.Key, e.Seq, e.From, e.Time = int64(n), history.Resource, history.OK, "balance", int64(n+1), at(int64(10*n)), at(int64(10*n))
		h.Events = append(h.Events, e)
	}
	if err := history.Validate(h); err != nil {
		t.Fatal(err)
	}
	r := application.Check(h)
	present.Render(&r, h.Header)
	p, _ := applicationTimeline(newRecord(h, r), h, r)
	var titles []string
	for _, s := range p.Shapes {
		titles = append(titles, s.Title)
	}
	if want := []string{"c1 wrote version 1 of balance at 0.000 s", "c2 appended <i> to balance at 0.020 s", "c1 wrote version 3 of balance at 0.030 s"}; !slices.Equal(titles, want) {
		t.Errorf("drawn: %q, want %q", titles, want)
	}
	for name, write := range map[string]func(io.Writer) error{
		"page":     func(w io.Writer) error { return HTML(w, h, r) },
		"terminal": func(w io.Writer) error { return Terminal(w, r, TerminalOptions{Width: 400, Header: h.Header}) },
	} {
		var out bytes.Buffer
		if err := write(&out); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		wants := []string{"c1 read version 1 of balance at 10 ms, c2 appended ", "and c1 then replaced it by version 3 without having seen version 2"}
		if name == "page" {
			wants = append(wants, "The counterexample", "Other writes")
		}
		for _, want := range wants {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s lacks %q:\n%s", name, want, out.String())
			}
		}
	}
}
