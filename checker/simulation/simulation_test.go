package simulation

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"lockcheck/history"
)

// TestHistories: a simulation gives a valid history, the same one each time. Without bugs the service does
// nothing wrong by itself.
func TestHistories(t *testing.T) {
	wrong := 0
	for seed := range uint64(500) {
		w := Random(rand.New(rand.NewPCG(seed, 2)), seed%2 == 0)
		h, truth := Run(seed, w)
		if err := history.Validate(h); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if again, _ := Run(seed, w); !reflect.DeepEqual(again, h) {
			t.Fatalf("seed %d: not the same history again", seed)
		}
		if !truth.Right() {
			wrong++
		}
		for what := range truth.Wrong {
			// The nemesis moves clocks and empties servers; both are no error of the service.
			if seed%2 == 0 && what != string(Stepped) && what != string(Wiped) {
				t.Errorf("seed %d: a right service: %s", seed, what)
			}
		}
	}
	if wrong < 100 || wrong > 250 {
		t.Errorf("%d of 500 went wrong", wrong)
	}
}
