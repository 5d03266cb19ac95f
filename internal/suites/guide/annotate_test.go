package guide

import (
	"testing"

	"lockcheck/checker"
	"lockcheck/internal/suites/matrix"
)

// TestAnnotate: a cell in which a comparison saw nothing says what is known of it; one that
// saw as bad itself, one of another guard and one that held elsewhere, too, say nothing.
func TestAnnotate(t *testing.T) {
	e := Evidence{
		changed(of("repro/redlock-clock-jump", clockRun("1", clock)), func(r *Run) { r.Lock, r.Line = "redlock", "lockcheck repro redlock-clock-jump" }),
		changed(held("2", "pause:one server"), func(r *Run) { r.Lock = "redlock" }),
	}
	for _, c := range []struct {
		name string
		cell matrix.Cell
		want string
	}{
		{"worse is known", matrix.Cell{Place: matrix.Place{Lock: "redlock", Fault: "clock", Guard: "none"}, Verdict: checker.Valid}, "failed by itself in 1 of 1 run: redlock-clock-jump"},
		{"as bad", matrix.Cell{Place: matrix.Place{Lock: "redlock", Fault: "clock", Guard: "none"}, Verdict: checker.Violation}, ""},
		{"nothing worse", matrix.Cell{Place: matrix.Place{Lock: "redlock", Fault: "pause:one server", Guard: "none"}, Verdict: checker.Valid}, ""},
		{"another guard", matrix.Cell{Place: matrix.Place{Lock: "redlock", Fault: "clock", Guard: "ask"}, Verdict: checker.Valid}, ""},
		{"another lock", matrix.Cell{Place: matrix.Place{Lock: "redsync", Fault: "clock", Guard: "none"}, Verdict: checker.Valid}, ""},
		{"not run yet", matrix.Cell{Place: matrix.Place{Lock: "redlock", Fault: "clock", Guard: "none"}}, "failed by itself in 1 of 1 run: redlock-clock-jump"},
		{"not supported", matrix.Cell{Place: matrix.Place{Lock: "redlock", Fault: "clock", Guard: "none"}, Unavailable: "x"}, ""},
	} {
		m := matrix.Comparison{Cells: []matrix.Cell{c.cell}}
		e.Annotate(&m)
		got := ""
		if known := m.Cells[0].Known; known != nil {
			got = known.Text
			if known.Line != "lockcheck repro redlock-clock-jump" {
				t.Errorf("%s: again by %q", c.name, known.Line)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
