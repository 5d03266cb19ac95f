package checker

import (
	"strings"
	"testing"

	"lockcheck/history"
)

// share begins an attempt of a reader.
func (s *script) share(worker, grant string, from, to float64) *script {
	s.acquire(worker, grant, from, to)
	for i := range s.events {
		if e := &s.events[i]; e.Grant == grant && e.F == history.Acquire && e.Type == history.Invoke {
			e.Shared = true
		}
	}
	return s
}

func readWriteScript() *script {
	return newScript().with(func(h *history.Header) { h.Workload = history.WorkloadReadWrite })
}

// TestReadersAndWriters: readers share the lock with each other, and a writer shares it with nobody.
func TestReadersAndWriters(t *testing.T) {
	for _, c := range []struct {
		name string
		s    *script
		n    int
	}{
		{"two readers", readWriteScript().share("w1", "a", 10, 11).share("w2", "b", 20, 21).release("a", 30, 31).release("b", 40, 41), 0},
		{"a writer after them", readWriteScript().share("w1", "a", 10, 11).share("w2", "b", 20, 21).release("a", 30, 31).release("b", 40, 41).acquire("w3", "c", 45, 46).release("c", 50, 51), 0},
		{"a writer among readers", readWriteScript().share("w1", "a", 10, 11).share("w2", "b", 20, 21).acquire("w3", "c", 25, 26).release("c", 28, 29).release("a", 30, 31).release("b", 40, 41), 2},
		{"a reader next to a writer", readWriteScript().acquire("w3", "c", 10, 11).share("w1", "a", 20, 21).release("a", 30, 31).release("c", 40, 41), 1},
		{"two writers", readWriteScript().acquire("w3", "c", 10, 11).acquire("w1", "a", 20, 21).release("a", 30, 31).release("c", 40, 41), 1},
		{"a writer after the lease of a reader", readWriteScript().share("w1", "a", 10, 11).acquire("w2", "b", 120, 121).release("b", 140, 141).notHeld("a", 150, 151), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.overlapping(t, c.n)
			if order := r.of(Linearizability).Verdict; (order == Violation) != (c.n > 0 && r.Overlaps.DoubleGrants > 0) {
				t.Errorf("linearizability: %s", order)
			}
		})
	}
}

// TestRefusedByReader: a busy answer may name any current reader, and no former one.
func TestRefusedByReader(t *testing.T) {
	readers := func() *script {
		return readWriteScript().share("w1", "a", 10, 11).share("w2", "b", 20, 21).release("a", 30, 31).release("b", 60, 61)
	}
	want(t, readers().busy("w3", "c", 40, 41, "b").end().check(t), Linearizability, Valid, 0)
	if r := readers().busy("w3", "c", 40, 41, "a").end().check(t); r.of(Linearizability).Verdict != Violation {
		t.Error(r.dump())
	}
}

func TestRepeatableRead(t *testing.T) {
	reader := func() *script { return readWriteScript().share("w1", "a", 10, 11) }
	written := func(s *script, at float64) *script { return s.write("c", at, 7, 0, 1) }
	for _, c := range []struct {
		name    string
		s       *script
		verdict Verdict
		n       int
		cause   string
		what    string
	}{
		{"read twice", reader().read("a", 12, 0).read("a", 20, 0).release("a", 30, 31), Valid, 0, "", ""},
		{"read once", reader().read("a", 12, 0).release("a", 30, 31), Undecided, 0, "", ""},
		{"written before", written(readWriteScript().acquire("w3", "c", 1, 2), 3).release("c", 5, 6).share("w1", "a", 10, 11).read("a", 12, 1).read("a", 20, 1).release("a", 30, 31), Valid, 0, "", ""},
		{"written after its lease", written(reader().read("a", 12, 0).acquire("w3", "c", 120, 121), 122).release("c", 125, 126).read("a", 130, 1).notHeld("a", 140, 141), Violation, 1, CauseOutlasted, "kind:changed-read,figures:{next:1},key:k0,from:122ms,to:130ms,class:changed read,cause:section outlasted the lease"},
		{"written by a second holder", written(reader().read("a", 12, 0).acquire("w3", "c", 15, 16), 17).release("c", 18, 19).read("a", 20, 1).release("a", 30, 31), Violation, 1, CauseTwice, ""},
		{"written late by the holder before", written(readWriteScript().acquire("w3", "c", 1, 2).release("c", 5, 6).share("w1", "a", 10, 11).read("a", 12, 0), 15).read("a", 20, 1).release("a", 30, 31), Violation, 1, CauseInFlight, ""},
		{"the writer itself reads again", written(readWriteScript().acquire("w3", "c", 10, 11).read("c", 12, 0), 15).read("c", 20, 1).release("c", 30, 31), Undecided, 0, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.final("k0", "[7]").end().check(t)
			want(t, r, RepeatableRead, c.verdict, c.n)
			noBug(t, r)
			if c.n == 0 || t.Failed() {
				return
			}
			if got := r.of(RepeatableRead).Violations[0]; got.Cause != c.cause || !strings.Contains(factsText(got), c.what) {
				t.Errorf("%s: %s", got.Cause, factsText(got))
			}
		})
	}
	if r := newScript().acquire("w1", "a", 10, 11).release("a", 30, 31).end().check(t); r.of(RepeatableRead).Property != "" {
		t.Error("judged of a lock that nobody shares")
	}
}

// TestReadOfDeadReader: a read that arrives after the death of its reader does not belong to its hold.
func TestReadOfDeadReader(t *testing.T) {
	for name, c := range map[string]struct {
		killed bool
		want   int
	}{"dead": {true, 0}, "alive": {false, 1}} {
		s := readWriteScript().share("w1", "a", 10, 11).read("a", 12, 0)
		if c.killed {
			s.fault(history.Fault{ID: "f1", Kind: history.Kill, Targets: []string{"w1"}}, 20, 20.5)
		}
		s.acquire("w2", "b", 22, 23).read("b", 23.5, 0).write("b", 24, 1, 0, 1).read("a", 25, 1).release("b", 30, 31)
		if f := s.numbered().end().check(t).of(RepeatableRead); f.Total != c.want {
			t.Errorf("%s: %d: %s", name, f.Total, factsText(f.Facts))
		}
	}
}
