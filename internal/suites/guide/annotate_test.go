package guide

import (
	"strings"
	"testing"

	"lockcheck/checker"
	"lockcheck/internal/suites/matrix"
)

// TestAnnotate: a cell in which a comparison saw no violation says what other runs have shown. It says
// nothing if its own runs were as bad, if the other run had another guard, or if the lock held there too.
func TestAnnotate(t *testing.T) {
	e := Evidence{
		changed(of("repro/redlock-clock-jump", clockRun("1", clock)), func(r *Run) { r.Lock, r.Line = "redlock", "lockcheck repro redlock-clock-jump" }),
		changed(heldRun("2", "pause:one server"), func(r *Run) { r.Lock = "redlock" }),
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
		if err := e.Annotate(&m); err != nil {
			t.Fatal(err)
		}
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

// TestReproductionOfAttack: the reproduction for a cell that an attack broke has the fault, role and moment
// of the attack, whatever its position among the reproductions. Any other reproduction shows something else.
func TestReproductionOfAttack(t *testing.T) {
	shown := func(lock, name string, faults ...string) Run {
		return changed(of("repro/"+name, brokenRun(lock+name, faults...)), func(r *Run) { r.Lock = lock })
	}
	unanswered := shown("etcd+retry-unlock", "etcd-stale-unlock", "one-way:actor")
	for _, c := range []struct {
		name, lock, attack string
		evidence           Evidence
		want               string
	}{
		{"the first", "redlock", "clock-stepped", Evidence{shown("redlock", "redlock-clock-jump", "clock:one server")}, "redlock-clock-jump"},
		{"the second, after one of another fault", "redlock", "clock-stepped", Evidence{
			shown("redlock", "holder-pause-redlock", "clock:one server"), shown("redlock", "redlock-clock-jump", "clock:one server"),
		}, "redlock-clock-jump"},
		{"of another fault", "redlock", "clock-stepped", Evidence{shown("redlock", "holder-pause-redlock", "clock:one server")}, ""},
		{"of the moment", "etcd+retry-unlock", "release-unanswered", Evidence{unanswered}, "etcd-stale-unlock"},
		{"of another moment", "etcd+retry-unlock", "acquire-unanswered", Evidence{unanswered}, ""},
		{"of the role", "nats-kv-update", "holder-killed", Evidence{shown("nats-kv-update", "nats-kv-update", "kill:holder")}, "nats-kv-update"},
		{"of another role", "nats-kv-update", "holder-killed", Evidence{shown("nats-kv-update", "redis-restart-loss", "kill:holder")}, ""},
		{"a worker by name", "k8s-lease", "holder-cut", Evidence{shown("k8s-lease", "k8s-slow-loss", "partition:holder")}, "k8s-slow-loss"},
		{"a control", "redlock", "clock-stepped", Evidence{shown("redlock", "redlock-clock-jump/control", "clock:one server")}, ""},
	} {
		m := matrix.Comparison{Cells: []matrix.Cell{{Place: matrix.Place{Lock: c.lock, Fault: c.attack, Guard: "none"}, Verdict: checker.Violation}}}
		if err := c.evidence.Annotate(&m); err != nil {
			t.Fatal(err)
		}
		got := strings.TrimPrefix(strings.Join(m.Cells[0].Repro, " "), "lockcheck repro ")
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
