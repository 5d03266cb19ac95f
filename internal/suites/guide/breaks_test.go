package guide

import (
	"slices"
	"testing"

	"lockcheck/checker"
)

// TestBreaks: a fault under which the lock held is not a break. A break that the guard does not prevent comes
// first, then what the lock does wrong itself.
func TestBreaks(t *testing.T) {
	run := func(fault, guard string, causes ...string) Run {
		r := Run{Lock: "etcd", Guard: guard, Faults: []Fault{{Name: fault, Asked: 1, Met: 1}}, Verdict: checker.Valid}
		for _, cause := range causes {
			r.Verdict, r.Violated = checker.Violation, []checker.Property{checker.NoLostUpdate}
			r.Causes = map[string]int64{cause: 1}
		}
		return r
	}
	paused, lost, stopped := run("pause:holder", "none", checker.CausePaused), run("kill:one server", "none", checker.CauseServerLost), run("pause:one server", "none", checker.CauseServerFault)
	for _, c := range []struct {
		name string
		runs Evidence
		want []string
	}{
		{"nothing", nil, nil},
		{"it held", Evidence{run("pause:holder", "none")}, nil},
		{"another lock", Evidence{{Lock: "redis", Guard: "none", Faults: paused.Faults, Verdict: checker.Violation}}, nil},
		{"the lock's own fault first", Evidence{paused, lost}, []string{"kill:one server", "pause:holder"}},
		{"behind the guard, too", Evidence{lost, stopped, paused, run("pause:holder", "fence", checker.CausePaused)}, []string{"pause:holder", "pause:one server", "kill:one server"}},
		{"behind another guard", Evidence{run("pause:holder", "cas", checker.CausePaused)}, nil},
		{"only behind the guard", Evidence{run("pause:holder", "fence", checker.CausePaused)}, []string{"pause:holder"}},
	} {
		var got []string
		for _, b := range c.runs.Breaks("etcd", "fence") {
			got = append(got, b.Worst().Fault)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if n := (Evidence{paused, run("pause:holder", "fence"), run("pause:holder", "cas")}).Runs("etcd", "fence"); n != 2 {
		t.Errorf("%d runs", n)
	}
}
