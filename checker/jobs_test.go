package checker

import (
	"testing"

	"lockcheck/history"
)

// TestJobs: a job must be done once, whichever worker does it, and the record that it is done must not be
// lost.
func TestJobs(t *testing.T) {
	jobs := func(guard string) *script {
		return newScript().with(func(h *history.Header) { h.Workload, h.Guard = history.WorkloadJobs, guard }).
			acquire("w1", "a", 10, 11).read("a", 12, 0)
	}
	refused := func(s *script, grant string, at float64, job, base, version int64) *script {
		return s.access(history.Write, history.Fail, grant, at, job, base, version)
	}
	for _, c := range []struct {
		name           string
		s              *script
		v              Verdict
		lost, repeated int64
		cause          string
	}{
		{"one after the other", jobs("none").write("a", 20, 1, 0, 1).release("a", 21, 22).acquire("w2", "b", 23, 24).read("b", 25, 1).write("b", 26, 2, 1, 2).final("k0", "[1,2]"), Valid, 0, 0, ""},
		{"the same job of two keys", jobs("none").write("a", 20, 1, 0, 1).release("a", 21, 22).acquire("w2", "b", 23, 24, "k1").read("b", 25, 0).write("b", 26, 1, 0, 1).final("k0", "[1]").final("k1", "[1]"), Valid, 0, 0, ""},
		{"done again after the lease", jobs("none").acquire("w2", "b", 120, 121).read("b", 122, 0).write("b", 123, 1, 0, 1).write("a", 130, 1, 0, 2).final("k0", "[1]"), Violation, 0, 1, CauseOutlasted},
		{"done again, and a later one forgotten", jobs("none").acquire("w2", "b", 120, 121).read("b", 122, 0).write("b", 123, 1, 0, 1).read("b", 124, 1).write("b", 125, 2, 1, 2).write("a", 130, 1, 0, 3).final("k0", "[1]"), Violation, 1, 1, ""},
		{"forgotten by the resource", jobs("none").write("a", 20, 1, 0, 1).final("k0", "[]"), Violation, 1, 0, ""},
		{"done again, and again", jobs("none").write("a", 20, 1, 0, 1).write("a", 21, 1, 0, 2).write("a", 22, 1, 0, 3).final("k0", "[1]"), Violation, 0, 2, ""},
		{"refused the second time", refused(jobs("idempotency-key").acquire("w2", "b", 120, 121).read("b", 122, 0).write("b", 123, 1, 0, 1), "a", 130, 1, 0, 1).final("k0", "[1]"), Valid, 0, 0, ""},
		{"accepted from the former holder, refused from the next", refused(jobs("idempotency-key").acquire("w2", "b", 120, 121).read("b", 122, 0).write("a", 123, 1, 0, 1), "b", 130, 1, 0, 1).final("k0", "[1]"), Valid, 0, 0, ""},
		{"a key that is not looked at", jobs("idempotency-key").acquire("w2", "b", 120, 121).read("b", 122, 0).write("b", 123, 1, 0, 1).write("a", 130, 1, 0, 2).final("k0", "[1]"), Violation, 0, 1, CauseOutlasted},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.end().check(t)
			f := r.of(NoLostUpdate)
			if f.Verdict != c.v || r.Updates.Lost != c.lost || r.Updates.Repeated != c.repeated || c.cause != "" && f.Causes[c.cause] == 0 {
				t.Errorf("%s, lost %d, done again %d, causes %v\n%s", f.Verdict, r.Updates.Lost, r.Updates.Repeated, f.Causes, r.dump())
			}
			// Without a violation of the data no write was stale either.
			if stale := r.of(NoStaleWrite); c.v == Valid && stale.Verdict != Valid {
				t.Errorf("%s: %s", stale.Verdict, factsText(stale.Facts))
			}
		})
	}
}
