package checker

import (
	"testing"

	"lockcheck/history"
)

// term is a grant with a token.
func (s *script) term(worker, grant string, at float64, token uint64) *script {
	return s.acquireToken(worker, grant, at, at+1, token)
}

// updates makes n updates in a hold, 2 ms each, starting at a version. The element of an update is the
// version that it creates.
func (s *script) updates(grant string, at float64, n, version int64) *script {
	for i := range n {
		v := version + i
		s.read(grant, at+2*float64(i), v).write(grant, at+1+2*float64(i), v+1, v, v+1)
	}
	return s
}

// TestTerms judges leaders that make several updates in a term. The lease is 100 ms.
func TestTerms(t *testing.T) {
	type found struct {
		property Property
		n        int
	}
	election := func() *script {
		return tokenScript().with(func(h *history.Header) { h.Workload = history.WorkloadElection })
	}
	// w1 is stopped in its term, and w2 leads the next term meanwhile.
	deposed := func() *script {
		return election().term("w1", "a", 10, 1).updates("a", 12, 2, 0).read("a", 16, 2).pause("f1", 17, 140, "w1").
			term("w2", "b", 120, 2).updates("b", 122, 2, 2)
	}
	fenced := func(s *script) *script { return s.with(func(h *history.Header) { h.Guard = "fence" }) }
	for _, c := range []struct {
		name         string
		s            *script
		acknowledged int64
		incidents    int64
		found        []found // all other properties must have no violation
	}{
		{"two leaders, one after the other",
			election().term("w1", "a", 10, 1).updates("a", 12, 3, 0).release("a", 20, 21).
				term("w2", "b", 30, 2).updates("b", 32, 2, 3).release("b", 40, 41).final("k0", "[1,2,3,4,5]"), 5, 0, nil},
		{"the same leader again",
			election().term("w1", "a", 10, 1).updates("a", 12, 3, 0).release("a", 20, 21).
				term("w1", "b", 30, 2).updates("b", 32, 2, 3).release("b", 40, 41).final("k0", "[1,2,3,4,5]"), 5, 0, nil},
		{"deposed, told of it, and silent",
			election().term("w1", "a", 10, 1).updates("a", 12, 2, 0).lost("a", 115, history.ByService).notHeld("a", 116, 117).
				term("w2", "b", 120, 2).updates("b", 122, 2, 2).release("b", 130, 131).final("k0", "[1,2,3,4]"), 4, 0, nil},
		{"deposed, and told of it when it goes on",
			deposed().lost("a", 141, history.ByService).notHeld("a", 142, 143).release("b", 150, 151).final("k0", "[1,2,3,4]"),
			4, 1, []found{{MutualExclusion, 1}}},
		{"deposed, and goes on with what it had read",
			deposed().write("a", 141, 9, 2, 5).release("b", 150, 151).notHeld("a", 152, 153).final("k0", "[1,2,9]"),
			5, 1, []found{{MutualExclusion, 1}, {NoStaleWrite, 1}, {NoLostUpdate, 2}}},
		{"deposed, and goes on for two more updates",
			deposed().write("a", 141, 9, 2, 5).updates("a", 142, 1, 5).release("b", 150, 151).notHeld("a", 152, 153).final("k0", "[1,2,9,6]"),
			6, 1, []found{{MutualExclusion, 1}, {NoStaleWrite, 2}, {NoLostUpdate, 2}}},
		{"deposed, goes on, and the new leader writes last",
			deposed().read("b", 127, 4).write("a", 141, 9, 2, 5).write("b", 142, 10, 4, 6).release("b", 150, 151).notHeld("a", 152, 153).final("k0", "[1,2,3,4,10]"),
			6, 1, []found{{MutualExclusion, 1}, {NoStaleWrite, 1}, {NoLostUpdate, 1}}},
		{"deposed, goes on, and is refused",
			fenced(deposed().access(history.Write, history.Fail, "a", 141, 9, 2, 4).release("b", 150, 151).notHeld("a", 152, 153).final("k0", "[1,2,3,4]")),
			4, 1, []found{{MutualExclusion, 1}}},
		{"deposed, and refused once only",
			fenced(deposed().access(history.Write, history.Fail, "a", 141, 9, 2, 4).updates("a", 142, 1, 4).release("b", 150, 151).notHeld("a", 152, 153).final("k0", "[1,2,3,4,5]")),
			5, 1, []found{{MutualExclusion, 1}, {NoStaleWrite, 1}}},
		{"two leaders of one term, one after the other",
			election().term("w1", "a", 10, 1).updates("a", 12, 2, 0).release("a", 20, 21).
				term("w2", "b", 30, 1).updates("b", 32, 2, 2).release("b", 40, 41).final("k0", "[1,2,3,4]"), 4, 0, []found{{FencingOrder, 1}}},
		{"a term that goes back after a loss",
			election().term("w1", "a", 10, 7).updates("a", 12, 2, 0).lost("a", 115, history.ByService).notHeld("a", 116, 117).
				term("w2", "b", 120, 3).updates("b", 122, 2, 2).release("b", 130, 131).final("k0", "[1,2,3,4]"), 4, 0, []found{{FencingOrder, 1}}},
		{"a former leader resigns the term of the next",
			deposed().lost("a", 141, history.ByService).release("a", 142, 143).notHeld("b", 150, 151).final("k0", "[1,2,3,4]"),
			4, 1, []found{{MutualExclusion, 1}, {NoWrongRelease, 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.end().check(t)
			noBug(t, r)
			for _, p := range []Property{MutualExclusion, NoExpiredGrant, NoWrongRelease, NoStaleWrite, NoLostUpdate, FencingOrder} {
				n := 0
				for _, f := range c.found {
					if f.property == p {
						n = f.n
					}
				}
				if f := r.of(p); f.Total != n || (f.Verdict == Violation) != (n > 0) {
					t.Errorf("%s is %s with %d, want %d\n%s", p, f.Verdict, f.Total, n, r.dump())
				}
			}
			if r.Updates.Acknowledged != c.acknowledged || r.Measures.Work != c.acknowledged || r.Incidents != c.incidents {
				t.Errorf("%d updates, %d incidents, want %d and %d\n%s", r.Updates.Acknowledged, r.Incidents, c.acknowledged, c.incidents, r.dump())
			}
		})
	}
}
