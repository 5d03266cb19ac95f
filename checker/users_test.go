package checker

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"lockcheck/history"
)

// TestUsersAgainstPairs: a user that was certainly granted the lock after a holder is found if and only if
// comparing the holder with each user finds one.
func TestUsersAgainstPairs(t *testing.T) {
	replaced, not := 0, 0
	for seed := range histories(3000) {
		rng := rand.New(rand.NewPCG(seed, 13))
		r := newRun(anyHolds(rng).history(t))
		inForce, all := users{run: r}, users{run: r, expired: true}
		for i, a := range r.holds {
			var want []*attempt
			for _, b := range r.holds[:i] {
				if r.replacedBy(a, b) {
					want = append(want, b)
				}
			}
			got := inForce.after(a)
			if a.expired {
				got = all.after(a)
			}
			if (got != nil) != (len(want) > 0) || got != nil && !r.replacedBy(a, got) {
				t.Fatalf("seed %d: %s was replaced by %v, not by %v", seed, r.name(a.grant), want, got)
			}
			if got == nil {
				not++
			} else {
				replaced++
			}
			inForce.add(a)
			all.add(a)
		}
	}
	if !testing.Short() && (replaced < 1000 || not < 1000) {
		t.Errorf("%d replaced and %d not: this compares little", replaced, not)
	}
}

// anyHolds are grants of one key in arbitrary order, with or without tokens. Some of them are expired on
// arrival, and the lock may be reentrant.
func anyHolds(rng *rand.Rand) *script {
	s := newScript()
	s.header.Tokens, s.header.Reentrant = rng.IntN(2) == 0, rng.IntN(3)
	some := func(most int) float64 { return float64(1 + rng.IntN(most)) }
	for w := range 4 {
		at := some(150)
		for i := range 1 + rng.IntN(4) {
			g, done := fmt.Sprintf("%c%d", 'a'+w, i), at+some(1+rng.IntN(200))
			e := history.Event{Type: history.OK, Expired: rng.IntN(8) == 0}
			if s.header.Tokens && rng.IntN(5) > 0 {
				e.Token = uint64(some(9))
			}
			s.try(fmt.Sprintf("w%d", w+1), g, at, done, e)
			if at = done + some(20); rng.IntN(3) > 0 {
				s.release(g, at-1, at)
			}
		}
	}
	return s
}
