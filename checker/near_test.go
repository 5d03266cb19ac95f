package checker

import (
	"slices"
	"testing"

	"lockcheck/history"
)

// TestNearHolds: in a run of 10 s with an overlap at 5 s, the holds next to the overlap are described,
// including those that it names. So is a hold whose claim lasted until then.
func TestNearHolds(t *testing.T) {
	overlap := func(s *script) *script {
		return s.acquire("w1", "a", 5000, 5001).acquire("w2", "b", 5020, 5021).release("b", 5030, 5031).release("a", 5040, 5041)
	}
	one := func(s *script, grant string, at float64) *script {
		return s.acquireToken("w3", grant, at, at+1, uint64(at)).release(grant, at+2, at+3)
	}
	service := func(s *script, f history.Function, at float64, token uint64) *script {
		s.add(at, history.Event{Process: history.Service, Type: history.Info, F: f, Key: "k0", Token: token})
		return s
	}
	claimed := func() *script { return service(one(newScript(), "early", 100), history.Claimed, 101, 100) }
	for _, c := range []struct {
		name string
		s    *script
		want []string
	}{
		{"no incident", one(newScript(), "early", 100), nil},
		{"an incident", overlap(newScript()), []string{"a", "b"}},
		{"far away", one(overlap(one(newScript(), "early", 100)), "late", 8000), []string{"a", "b"}},
		{"next to it", one(overlap(one(newScript(), "before", 4900)), "after", 5100), []string{"before", "a", "b", "after"}},
		{"still on record", overlap(claimed()), []string{"early", "a", "b"}},
		{"no more on record", overlap(service(claimed(), history.Dropped, 110, 100)), []string{"a", "b"}},
	} {
		h := c.s.end().history(t)
		var got []string
		for _, hold := range Check(h, Options{NearHolds: true}).Holds {
			got = append(got, hold.Grant)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
