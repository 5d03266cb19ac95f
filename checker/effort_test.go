package checker

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"lockcheck/history"
)

// withoutAnswer has attempts whose answers and releases were lost. Each was seen as the holder in the same
// time, so the attempts may have followed each other in any order.
func withoutAnswer(n int) *script {
	s := newScript().with(func(h *history.Header) { h.Workers = nil })
	worker := func(i int) string {
		name := fmt.Sprintf("w%d", i)
		s.header.Workers = append(s.header.Workers, name)
		return name
	}
	for i := range n {
		s.try(worker(2*i+1), fmt.Sprintf("u%d", i), 10, -1, history.Event{})
		s.busy(worker(2*i+2), fmt.Sprintf("b%d", i), 20, 60, fmt.Sprintf("u%d", i))
	}
	return s.with(func(h *history.Header) { h.Workers = append(h.Workers, "x1", "x2") })
}

// TestHopeless: porcupine does not try all orders of lost answers if another proof exists. Short keys are
// searched to the end.
func TestHopeless(t *testing.T) {
	double := func(s *script) *script { return s.acquire("x1", "x", 70, 71).acquire("x2", "y", 72, 73) }
	for _, c := range []struct {
		name    string
		script  *script
		answer  porcupine.CheckResult
		verdict Verdict
	}{
		{"double grant after many lost answers", double(withoutAnswer(18)), porcupine.Unknown, Violation},
		{"after a few", double(withoutAnswer(6)), porcupine.Illegal, Violation},
		{"no double grant", withoutAnswer(18).acquire("x1", "x", 70, 71), porcupine.Unknown, Valid},
		{"nor after a few", withoutAnswer(6).acquire("x1", "x", 70, 71), porcupine.Ok, Valid},
	} {
		h := c.script.end().history(t)
		if lines := len(h.Events) + 1; lines > 60 {
			t.Errorf("%s: %d lines", c.name, lines)
		}
		r := newRun(h)
		o := secondOpinion(r, time.Hour) // it ends long before
		if o.results["k0"] != c.answer {
			t.Errorf("%s: porcupine says %s, want %s", c.name, o.results["k0"], c.answer)
		}
		j := linearizability(o)
		if silent := strings.Contains(factsText(j.Facts), "kind:porcupine-silent,keys:[k0]"); j.Verdict != c.verdict || silent != (c.answer == porcupine.Unknown) {
			t.Errorf("%s: %s: %s", c.name, j.Verdict, factsText(j.Facts))
		}
		if err := Visualize(h, &bytes.Buffer{}, time.Hour); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
