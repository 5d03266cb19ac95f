package matrix

import (
	"testing"
	"time"
)

// TestOptionsOf: the parameter of a run leads back to the options of the run.
func TestOptionsOf(t *testing.T) {
	s := DefaultSuite()
	s.Locks, s.Faults, s.Seeds = []string{"memory"}, []string{"pause:holder"}, CountSeeds(3)
	o, err := s.OptionsOf("memory, pause:holder, guard none, seed 3")
	if err != nil || o.Lock != "memory" || o.Nemesis != "pause:holder" || o.Guard != "none" || o.Seed != 3 || o.TimeLimit < 10*time.Second {
		t.Errorf("%+v, %v", o, err)
	}
	for _, text := range []string{"", "memory", "memory, pause:holder, guard none, seed x", "memory, clock, guard none, seed 1", "no-such, none, guard none, seed 1"} {
		if o, err := s.OptionsOf(text); err == nil {
			t.Errorf("%q: %+v", text, o)
		}
	}
}
