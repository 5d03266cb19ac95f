package guide

import (
	"bytes"
	"reflect"
	"testing"

	"lockcheck/checker"
)

// TestWith: runs are identified by ID, and none is dropped. A run that was judged worse since replaces
// itself, in any order of arrival.
func TestWith(t *testing.T) {
	a, b := heldRun("a", clock), brokenRun("b", clock)
	worseA := changed(a, func(r *Run) { r.Verdict = checker.Violation })
	for _, c := range []struct {
		name       string
		have, more Evidence
		want       Evidence
	}{
		{"new", Evidence{a}, Evidence{b}, Evidence{a, b}},
		{"again", Evidence{a, b}, Evidence{b, a}, Evidence{a, b}},
		{"nothing", Evidence{a, b}, nil, Evidence{a, b}},
		{"judged worse", Evidence{a}, Evidence{worseA}, Evidence{worseA}},
		{"judged better", Evidence{worseA}, Evidence{a}, Evidence{worseA}},
		{"in order", Evidence{b}, Evidence{a}, Evidence{a, b}},
	} {
		if got := c.have.With(c.more); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestRead: written evidence can be read back, and an error names the broken line.
func TestRead(t *testing.T) {
	lost := changed(expiredRun("b", "pause:holder"), func(r *Run) {
		r.Updates = &Updates{Acknowledged: 7, Lost: 2, Over: checker.OverRuns, Units: units{{K: 2, N: 3}, {K: 0, N: 4}}}
	})
	want := Evidence{heldRun("a", clock), lost}
	var b bytes.Buffer
	if err := want.Write(&b); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(&b); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := Read(bytes.NewBufferString("{}\nx\n")); err == nil || err.Error()[:16] != "evidence: line 2" {
		t.Errorf("error %v", err)
	}
}

// TestKnown: the embedded evidence is sorted and has each run once.
func TestKnown(t *testing.T) {
	known, err := Known()
	if err != nil {
		t.Fatal(err)
	}
	if again := known.With(nil); !reflect.DeepEqual(again, known) {
		t.Error("the evidence is not in its order")
	}
	seen := make(map[string]bool)
	for _, run := range known {
		if run.ID == "" || run.Lock == "" || run.Command() == "" || seen[run.ID] {
			t.Errorf("run %q of %q: without a name, or twice", run.ID, run.Lock)
		}
		seen[run.ID] = true
	}
}
