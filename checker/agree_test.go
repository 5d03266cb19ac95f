package checker

import (
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"lockcheck/checker/simulation"
	"lockcheck/history"
)

// TestDisagreements forges porcupine's answers. Other tests show that the checkers agree; this one shows that
// a disagreement would be caught.
func TestDisagreements(t *testing.T) {
	twice := func() *script {
		return newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 30, 31).release("b", 40, 41)
	}
	overlap := func() *script { return twice().release("a", 50, 51) }
	useAfterExpiry := func() *script {
		return newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121).release("b", 140, 141).notHeld("a", 150, 151)
	}
	inTurn := func() *script {
		return newScript().acquire("w1", "a", 10, 11).release("a", 20, 21).acquire("w2", "b", 30, 31)
	}
	forgotten := func() *script { return newScript().acquire("w1", "a", 10, 11).notHeld("a", 50, 51) }
	for _, c := range []struct {
		name   string
		s      *script
		result porcupine.CheckResult
		forget bool // drop the conflicts
		want   FactKind
	}{
		{"overlap, illegal", overlap(), porcupine.Illegal, true, ""},
		{"overlap, unknown", overlap(), porcupine.Unknown, false, ""},
		{"early overlap, ok", overlap(), porcupine.Ok, true, FactLegalOverlap},
		{"late overlap, ok", useAfterExpiry(), porcupine.Ok, false, ""},
		{"late overlap, illegal", useAfterExpiry(), porcupine.Illegal, false, ""},
		{"no overlap, ok", inTurn(), porcupine.Ok, false, ""},
		{"no overlap, illegal", inTurn(), porcupine.Illegal, false, FactIllegalUnexplained},
		{"conflict, illegal", forgotten(), porcupine.Illegal, false, ""},
		{"conflict, ok", forgotten(), porcupine.Ok, false, FactLegalConflict},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRun(c.s.end().history(t))
			o := secondOpinion(r, time.Minute)
			o.results["k0"] = c.result
			if c.forget {
				o.conflicts = incidents{}
			}
			got := disagreements(r, o, findOverlaps(r), wrongReleases(r), o.tokens)
			if len(got) > 0 != (c.want != "") || len(got) > 0 && got[0].Kind != c.want {
				t.Errorf("got %s, want %q", factsText(got), c.want)
			}
			res := newRun(c.s.history(t)).weigh(o, Options{})
			if broken := res.Verdict == Broken && res.bug(); broken != (c.want != "") {
				t.Error(res.dump())
			}
		})
	}
}

// TestPorcupineGivesUp: the order of grants answers if porcupine does not, and what porcupine proves stays
// proven.
func TestPorcupineGivesUp(t *testing.T) {
	o := opinion{results: map[string]porcupine.CheckResult{"k0": porcupine.Unknown, "k1": porcupine.Ok}, steps: 3}
	if j := linearizability(o); j.Verdict != Valid || !strings.Contains(factsText(j.Facts), "kind:porcupine-silent,keys:[k0]") {
		t.Errorf("%s %s", j.Verdict, factsText(j.Facts))
	}
	o.results["k1"] = porcupine.Illegal
	if j := linearizability(o); j.Verdict != Violation || j.Total != 1 {
		t.Errorf("%s %d", j.Verdict, j.Total)
	}
	o.results["k1"] = porcupine.Ok
	o.conflicts.add("k0", 1, func() Incident { return Incident{Key: "k0", Kind: KindGrantedTwice} })
	if j := linearizability(o); j.Verdict != Violation || j.Total != 1 || !strings.Contains(factsText(j.Facts), "kind:not-linearizable,keys:[k0]") {
		t.Errorf("with a conflict: %s %d %s", j.Verdict, j.Total, factsText(j.Facts))
	}
}

// TestManyLost has the shape that takes a naive model half a minute and 2 GB (docs/verdicts.md): many lost
// answers, and the error near the end.
func TestManyLost(t *testing.T) {
	w := simulation.World{Workers: 4, Keys: 1, Attempts: 120, Lease: 100, Permits: 1, Reentrant: 1, Loss: 0.6, Workload: history.WorkloadSet}
	for seed := range uint64(5) {
		h, _ := simulation.Run(seed, w)
		s := newScript()
		s.header, s.events, s.op = h.Header, h.Events, 1e6
		last := float64(h.Events[len(h.Events)-1].Time)/1e6 + 300
		r := s.acquire("w1", "x", last, last+1).acquire("w2", "y", last+2, last+3).check(t)
		if got := r.of(Linearizability).Verdict; got != Violation || r.Operations.Unknown < 50 {
			t.Errorf("seed %d: %s with %d unknown", seed, got, r.Operations.Unknown)
		}
		noBug(t, r)
	}
}

func BenchmarkCheck(b *testing.B) {
	w := simulation.World{Workers: 4, Keys: 1, Attempts: 120, Lease: 100, Permits: 1, Reentrant: 1, Loss: 0.3, Workload: history.WorkloadSet}
	h, _ := simulation.Run(1, w)
	for b.Loop() {
		Check(h, Options{})
	}
}
