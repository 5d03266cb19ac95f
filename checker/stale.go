package checker

import (
	"iter"
	"slices"
	"time"

	"lockcheck/history"
)

// staleWrites finds writes that the resource accepted from a holder after it had accepted an access from a
// certainly later grant of the same key (see replacedBy). Accesses under a grant that the history lacks are
// left out.
//
// If a guard makes each write build on the latest version, only a write of the later grant counts, and only
// against a write that was computed from an older version: a worker that has read what the later grant wrote
// overwrites nothing. A fence on writes only is no such guard, because what the later grant has read, it will
// write back whatever happened since. A holder that rightly shares the lock, or took it twice, was not
// replaced.
func staleWrites(r *run) stale {
	var found stale
	if permits(r.header) > 1 {
		return found
	}
	for k := range r.dataKeys {
		found.withoutLock(r, k)
		before := found.total
		if buildsOnLatest(r.header.Guard) {
			found.outdated(r, k)
			continue
		}
		found.late(r, k)
		if found.total == before && r.tookTurns(k) {
			found.undecided = append(found.undecided, k.name)
		}
	}
	return found
}

// buildsOnLatest says that a guard accepts a write only if nothing was written since its writer has read.
func buildsOnLatest(guard string) bool {
	return slices.Contains([]string{history.GuardVersions, history.GuardMatch, history.GuardIdempotency}, guard)
}

// stale are the writes of replaced holders.
type stale struct {
	incidents
	unlocked int // of these, the writes of workers that had not been granted the lock
	// undecided are keys that two holders wrote to in turns. One of the holders must have been replaced, but
	// the history does not tell which.
	undecided []string
}

// held yields the accesses that the resource accepted from holders of the key, each with its grant.
func (r *run) held(k *keyed) iter.Seq2[*access, *attempt] {
	return func(yield func(*access, *attempt) bool) {
		for i := range k.accesses {
			e := &k.accesses[i]
			if a := r.holder(k, e); a != nil && !yield(e, a) {
				return
			}
		}
	}
}

// holder is the grant of the key under which the resource accepted an access, nil if it did not, or if the
// history lacks that grant.
func (r *run) holder(k *keyed, e *access) *attempt {
	if a := r.attempt(e.grant); !e.refused && a != nil && a.granted() && r.byKey[a.key] == k {
		return a
	}
	return nil
}

// late finds the writes of holders that had been replaced.
func (s *stale) late(r *run, k *keyed) {
	inForce, all := users{run: r}, users{run: r, expired: true}
	for e, a := range r.held(k) {
		seen := &inForce
		if a.expired {
			seen = &all
		}
		if e.write {
			if later := seen.after(a); later != nil {
				s.found(r, e, a, later)
			}
		}
		inForce.add(a)
		all.add(a)
	}
}

// outdated finds writes that were computed from an older version than one that a later holder had written.
func (s *stale) outdated(r *run, k *keyed) {
	for i := range k.accesses {
		e := &k.accesses[i]
		a := r.holder(k, e)
		for j := i - 1; j >= 0 && e.write && a != nil; j-- {
			w := &k.accesses[j]
			if !w.write || w.refused {
				continue
			}
			if w.version <= e.base {
				break // all earlier versions are lower, too
			}
			if later := r.holder(k, w); later != nil && r.replacedBy(a, later) {
				s.found(r, e, a, later)
				break
			}
		}
	}
}

func (s *stale) found(r *run, e *access, a, later *attempt) {
	c := r.whyOverwritten(&access{grant: later.grant, time: e.time}, e)
	s.because(c.class, 1)
	earlier, _, _ := r.inOrder(a, later)
	r.origins.count(c, earlier)
	s.add(r.name(a.key), e.time, func() Incident { return r.staleWrite(e, a, later, c) })
}

// tookTurns says that two holders each wrote after the other one had used the data. If the order of their
// grants were certain, one of the writes would have been found stale.
func (r *run) tookTurns(k *keyed) bool {
	if !r.interleaved(k) {
		return false
	}
	type use struct {
		by           *attempt
		first, wrote int64 // sequence numbers
	}
	place := make(map[*attempt]int)
	var uses []use // sorted by their first access
	for e, a := range r.held(k) {
		i, known := place[a]
		if !known {
			i = len(uses)
			place[a], uses = i, append(uses, use{by: a, first: e.seq})
		}
		if e.write {
			uses[i].wrote = e.seq
		}
	}
	var last, other use // last is the last writer; other is the last writer of another worker, for reentrant locks
	for _, u := range uses {
		if u.wrote == 0 {
			continue
		}
		before := last
		if last.by != nil && r.reentered(last.by, u.by) {
			before = other
		}
		switch {
		case u.first < before.wrote:
			return true
		case u.wrote > last.wrote && before == last:
			last, other = u, last
		case u.wrote > last.wrote:
			last = u
		case u.wrote > other.wrote && before == last:
			other = u
		}
	}
	return false
}

// interleaved says that a holder came back to the data after another one had used them.
func (r *run) interleaved(k *keyed) bool {
	var last *attempt
	for _, a := range r.held(k) {
		if a != last && a.usedData {
			return true
		}
		a.usedData, last = true, a
	}
	return false
}

func (r *run) staleWrite(e *access, a, latest *attempt, c cause) Incident {
	key := r.name(a.key)
	earlier, later, _ := r.inOrder(a, latest)
	return Incident{
		Kind: KindStaleWrite, Figures: IncidentFigures{Length: time.Duration(max(0, e.time-latest.acquire.done))},
		Cause: c.class, Explanation: r.explain(c, earlier, later),
		Key: key, From: e.time, To: e.time, Class: "stale write",
		Workers: r.nameAll(a.worker, latest.worker),
		Grants:  r.nameAll(a.grant, latest.grant),
		Element: e.element,
		Faults:  r.inForce(a.acquire.done, e.time),
	}
}

func noStaleWrite(r *run, found stale) (judged, FenceSummary) {
	j := judge(NoStaleWrite, found.incidents)
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
		j.because(NotApplicable, Fact{Kind: FactSharedByRight})
	case found.total > 0:
		if n := found.total - found.unlocked; n > 0 {
			j.because(Violation, Fact{Kind: FactStaleWrites, N: int64(n)})
		}
		if found.unlocked > 0 {
			j.because(Violation, Fact{Kind: FactUnlockedWrites, N: int64(found.unlocked)})
		}
	case writes == 0 && history.WritesNothing(r.header.Workload):
		j.because(NotApplicable, Fact{Kind: FactWritesNothing})
	case writes == 0:
		j.because(Undecided, Fact{Kind: FactNoWrite})
	case len(found.undecided) > 0:
		j.because(Undecided, Fact{Kind: FactTookTurns, Keys: found.undecided})
	default:
		j.because(Valid, Fact{Kind: FactWrites, N: writes})
	}
	return j, fence
}
