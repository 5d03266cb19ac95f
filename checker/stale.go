package checker

import (
	"cmp"
	"fmt"
	"strings"

	"lockcheck/history"
)

// staleWrites finds writes that the resource accepted from a holder after it
// had accepted an access from a later grant of the same key, for certain (see
// inOrder); accesses under a grant that the history lacks are left out.
// Where the resource compares versions only a write of the later grant counts, and
// only against one that was computed from an older version: whoever has read what
// the later grant wrote overwrites nothing.
// A fence on writes only is no such reason: what the later grant has read, it
// will write back whatever happened since.
// Whoever shares the lock by right, or took it twice, was not replaced.
func staleWrites(r *run) incidents {
	var found incidents
	if permits(r.header) > 1 {
		return found
	}
	for k := range r.dataKeys {
		var latest *attempt
		var used *access  // the last of latest
		var written int64 // version that it made, if it was a write
		for i := range k.accesses {
			e := &k.accesses[i]
			a := r.attempt(e.grant)
			if e.refused || a == nil || !a.granted() || r.byKey[a.key] != k {
				continue
			}
			if r.header.Guard == history.GuardVersions && !e.write {
				continue
			}
			switch {
			case latest == nil || r.follows(a, latest):
				latest, used, written = a, e, e.version
			case e.write && r.replacedBy(a, latest) && (r.header.Guard != history.GuardVersions || e.base < written):
				newest, c := latest, r.whyOverwritten(used, e)
				found.because(c.class)
				found.add(k.name, e.time, func() Incident { return r.staleWrite(e, a, newest, c) })
			}
		}
	}
	return found
}

// follows says that a is the later grant, or the same, as far as is known.
func (r *run) follows(a, b *attempt) bool {
	_, later, _ := r.inOrder(b, a)
	return later == a
}

// replacedBy says that a is for certain an older grant than b, and cannot write by right
// as one who took the lock twice.
func (r *run) replacedBy(a, b *attempt) bool {
	earlier, _, certain := r.inOrder(a, b)
	again := r.header.Reentrant > 1 && a.worker == b.worker
	return a != b && earlier == a && certain && !again
}

func (r *run) staleWrite(e *access, a, latest *attempt, c cause) Incident {
	key := r.name(a.key)
	earlier, later, _ := r.inOrder(a, latest)
	return Incident{
		Cause: c.class, Why: r.tell(c, earlier, later),
		Key: key, From: e.time, To: e.time, Class: "stale write",
		What: fmt.Sprintf("the resource accepted a write to %s from %s, %s after %s had been granted the lock and used it",
			key, r.name(a.worker), dur(max(0, e.time-latest.acquire.done)), r.name(latest.worker)),
		Workers: r.nameAll(a.worker, latest.worker),
		Grants:  r.nameAll(a.grant, latest.grant),
		Element: e.element,
		Faults:  r.inForce(a.acquire.done, e.time),
	}
}

func noStaleWrite(r *run, found incidents) (judged, FenceSummary) {
	j := judge(NoStaleWrite, found)
	var writes int64
	var fence FenceSummary
	for k := range r.dataKeys {
		for _, e := range k.accesses {
			if e.unanswered {
				fence.Unanswered++
			}
			switch {
			case e.write && !e.refused:
				writes++
			case e.write:
				fence.RefusedWrites++
			case e.refused:
				fence.RefusedReads++
			}
		}
	}
	switch {
	case permits(r.header) > 1:
		j.Verdict, j.Summary = NotApplicable, sharedByRight
	case found.total > 0:
		j.clause = count(found.total, "write was", "writes were") + " accepted from a holder that a later one had replaced"
		j.Summary = j.clause
	case writes == 0 && r.header.Workload == history.WorkloadMutex:
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
	var what []string
	if n := f.RefusedReads + f.RefusedWrites - f.Unanswered; n > 0 {
		what = append(what, count(n, "stale access", "stale accesses"))
	}
	if n := f.Unanswered; n > 0 {
		what = append(what, count(n, "access", "accesses")+" for want of an answer")
	}
	if len(what) == 0 {
		return ""
	}
	names := map[string]string{history.GuardVersions: "version check", history.GuardFenceWrites: "fence on writes", history.GuardAsk: "check with the service"}
	return fmt.Sprintf("the %s refused %s", cmp.Or(names[guard], guard), strings.Join(what, " and "))
}
