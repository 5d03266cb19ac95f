package checker

import (
	"cmp"
	"fmt"

	"lockcheck/history"
)

// staleWrites finds writes that the resource accepted from a holder after it
// had accepted an access from a later grant of the same key. Grants are ordered
// by their acquire ok; accesses under a grant that the history lacks are left out.
// Where the resource compares versions only a write of the later grant counts, and
// only against one that was computed from an older version: whoever has read what
// the later grant wrote overwrites nothing.
// A fence on writes only is no such reason: what the later grant has read, it
// will write back whatever happened since.
func staleWrites(r *run) []Incident {
	var found []Incident
	for _, key := range sortedKeys(r.accesses) {
		var latest *attempt
		var written int64 // version that the last write of latest made
		for _, e := range r.accesses[key] {
			a := r.byGrant[e.Grant]
			if e.Type != history.OK || a == nil || !a.granted() || a.key != key {
				continue
			}
			if r.header.Guard == guardVersions && e.F != history.Write {
				continue
			}
			switch {
			case latest == nil || a.acquire.done >= latest.acquire.done:
				latest, written = a, e.Version
			case e.F == history.Write && (r.header.Guard != guardVersions || e.Base < written):
				found = append(found, r.staleWrite(e, a, latest))
			}
		}
	}
	return found
}

func (r *run) staleWrite(e history.Event, a, latest *attempt) Incident {
	return Incident{
		Key: a.key, From: e.Time, To: e.Time, Class: "stale write",
		What: fmt.Sprintf("the resource accepted a write to %s from %s, %s after %s had been granted the lock and used it",
			a.key, a.worker, dur(max(0, e.Time-latest.acquire.done)), latest.worker),
		Workers: []string{a.worker, latest.worker},
		Grants:  []string{a.grant, latest.grant},
		Element: e.Element,
		Faults:  r.inForce(a.acquire.done, e.Time),
	}
}

func noStaleWrite(r *run, found []Incident) (judged, FenceSummary) {
	j := judge(NoStaleWrite, found)
	var writes int64
	var fence FenceSummary
	for _, accesses := range r.accesses {
		for _, e := range accesses {
			switch {
			case e.Type == history.OK && e.F == history.Write:
				writes++
			case e.Type == history.Fail && e.F == history.Write:
				fence.RefusedWrites++
			case e.Type == history.Fail && e.F == history.Read:
				fence.RefusedReads++
			}
		}
	}
	switch {
	case len(found) > 0:
		j.clause = count(len(found), "write was", "writes were") + " accepted from a holder that a later one had replaced"
		j.Summary = j.clause
	case writes == 0 && r.header.Workload == workloadMutex:
		j.Verdict, j.Summary = NotApplicable, "the workload writes nothing"
	case writes == 0:
		j.Verdict, j.Summary = Undecided, "no write was accepted"
	default:
		j.Summary = count(writes, "write", "writes") + " accepted, none from a replaced holder"
	}
	return j, fence
}

// refused says what the guard did, or "" if it did nothing.
func (f FenceSummary) refused(guard string) string {
	n := f.RefusedReads + f.RefusedWrites
	if n == 0 {
		return ""
	}
	name := cmp.Or(map[string]string{guardVersions: "version check", guardFenceWrites: "fence on writes"}[guard], guard)
	return fmt.Sprintf("the %s refused %s", name, count(n, "stale access", "stale accesses"))
}
