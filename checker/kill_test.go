package checker

import (
	"testing"
	"time"

	"lockcheck/history"
)

// TestKilledHolder: the hold of a killed worker ends with the worker's last event, and the time until the
// next grant is reported.
func TestKilledHolder(t *testing.T) {
	kill := history.Fault{ID: "f1", Kind: "kill", Targets: []string{"w1"}}
	r := newScript().acquire("w1", "a", 10, 11).read("a", 12, 0).fault(kill, 20, 60).
		acquire("w2", "b", 105, 120).release("b", 121, 122).phase(5000, history.PhaseFinal).end().check(t)
	if h := r.Holds[0]; h.Ended != EndedWithoutTrace || h.End != ms(12) {
		t.Errorf("the hold ended %s at %d, want at its last access", h.Ended, h.End)
	}
	if f := r.Faults[0]; f.End != r.End || !f.Healed {
		t.Errorf("the kill ended at %d, healed %v, want that it lasts until %d", f.End, f.Healed, r.End)
	}
	if want := (OrphanSummary{Killed: 1, Longest: 100 * time.Millisecond, Victim: "w1"}); r.Orphans != want {
		t.Errorf("%+v, want %+v", r.Orphans, want)
	}
	if v := r.of(MutualExclusion).Verdict; v != Valid {
		t.Errorf("mutual exclusion is %s: the dead do not hold", v)
	}
	// Without the kill no worker died.
	r = newScript().acquire("w1", "a", 10, 11).release("a", 12, 13).acquire("w2", "b", 105, 120).release("b", 121, 122).end().check(t)
	if r.Orphans != (OrphanSummary{}) {
		t.Errorf("%+v, want none", r.Orphans)
	}
}

// TestServerStartsSlowly: until a killed server answers again, workers wait for the server and not for the
// lock.
func TestServerStartsSlowly(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers float64
		want    Verdict
	}{
		{"it answers late", 7000, Valid},
		{"it answers, and the lock stays away", 30, Violation},
	} {
		kill := func(stage history.Stage, at float64) history.Fault {
			return history.Fault{ID: "f1", Kind: "kill", Targets: []string{"n1"}, Stage: stage, From: ms(20), To: ms(at)}
		}
		r := newScript().servers("n1").acquire("w1", "a", 10, 11).release("a", 12, 13).
			stage(20, kill(history.Applied, 20)).stage(21, kill(history.Proven, 20)).
			stage(30, kill(history.Healed, 30)).stage(c.answers, kill(history.ProvenHealed, 30)).
			acquire("w2", "b", 50, 7100).
			phase(7200, history.PhaseFinal).end().check(t)
		if v := r.of(Liveness).Verdict; v != c.want {
			t.Errorf("%s: %s (%s)", c.name, v, factsText(r.of(Liveness).Facts))
		}
	}
}
