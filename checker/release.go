package checker

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// wrongReleases finds releases that succeeded although another process held the lock by then. The other
// process must certainly have been granted the lock after the released grant. Its hold must have begun before
// the release was sent and ended after the release was answered, and nothing else could have ended its grant by
// then: a worker may still believe in an older grant that has expired. One release can take the lock from
// several workers but counts as one incident. releasedBy records the victims, to explain what follows. If
// several workers may hold a key, the release of one takes nothing from another.
func wrongReleases(r *run) incidents {
	var found incidents
	if permits(r.header) > 1 {
		return found
	}
	for _, key := range r.keys {
		k := r.byKey[key]
		releases := k.released()
		var active []lasting // holds that began before the release was sent
		next := 0
		for _, a := range releases {
			c := a.released()
			for ; next < len(k.holds) && k.holds[next].acquire.done < c.invoke; next++ {
				active = append(active, r.lasting(k.holds[next]))
			}
			active = slices.DeleteFunc(active, func(h lasting) bool { return h.until <= c.invoke })
			gone := r.goneAtFirst(a)
			var released []*attempt
			for _, l := range active {
				other := l.attempt
				if (gone <= other.acquire.done || other.reportedGone()) && other.worker != a.worker && !a.shares(other) && r.tookLock(a, c, other) {
					released = append(released, other)
					if r.releasedBy[other] == nil { // releases are sorted: the first one did it
						r.releasedBy[other] = a
					}
				}
			}
			if len(released) > 0 {
				found.add(k.name, c.invoke, func() Incident { return r.wrongRelease(a, c, released) })
			}
		}
	}
	return found
}

// lasting is a hold, and the time until which it is open and certainly in force. No release that is sent
// later is wrong to it. The time is precomputed because thousands of holds may be compared with each release.
type lasting struct {
	*attempt
	until int64
}

func (r *run) lasting(a *attempt) lasting {
	end := r.endOf(a).byService()
	if r.header.Session && a.until == 0 {
		end = max(end, a.deadline)
	}
	return lasting{a, min(a.holdEnd, end)}
}

// goneAtFirst is a lower bound: goneBy is false for grants before that time, unless their worker was told
// that its grant is gone.
func (r *run) goneAtFirst(a *attempt) int64 {
	if !a.granted() || r.releasedBy[a] != nil {
		return math.MinInt64
	}
	return r.endUnrenewed(a, math.MinInt64).likelyByService()
}

// reportedGone says that the service reported that the hold was over.
func (a *attempt) reportedGone() bool { return a.ended == atRelease || a.ended == byNotification }

// released returns the attempts with an acknowledged release, by the invocation of that release.
func (k *keyed) released() []*attempt {
	var all []*attempt
	for _, a := range k.attempts {
		if a.released() != nil {
			all = append(all, a)
		}
	}
	sorted(all, func(a, b *attempt) int { return cmp.Compare(a.released().invoke, b.released().invoke) })
	return all
}

func (r *run) tookLock(a *attempt, c *call, other *attempt) bool {
	if other.acquire.done >= c.invoke || other.holdEnd <= c.done || other.expired {
		return false
	}
	// An acquire of unknown outcome may have taken effect at any time up to its release. So the release is
	// wrong only if the other grant certainly lasted beyond it. Later renewals are no evidence of that.
	end := r.endUnrenewed(other, c.done).byService()
	if a.granted() && r.header.Session && other.until == 0 {
		end = other.deadline
	}
	return end > c.done && (!a.granted() || r.replacedBy(a, other) && r.goneBy(a, other)) && !r.disturbed(other.acquire.invoke, c.done)
}

// goneBy says that a grant may have been gone when another one was given: by itself, or because another
// worker had released it. Otherwise the lock was granted to two workers at once. Then only a report of the
// service that the other grant is gone shows whose record the release freed.
func (r *run) goneBy(a, other *attempt) bool {
	granted := other.acquire.done
	if r.endUnrenewed(a, granted).likelyByService() <= granted {
		return true
	}
	if releaser := r.releasedBy[a]; releaser != nil && releaser.released().invoke <= granted {
		return true
	}
	return r.releasedBy[other] == nil && other.reportedGone()
}

// wrongRelease describes a release that took the lock from others, the first victim first.
func (r *run) wrongRelease(a *attempt, c *call, released []*attempt) Incident {
	key, first := r.name(a.key), released[0]
	i := Incident{
		Kind: KindWrongRelease, Figures: IncidentFigures{Length: time.Duration(c.invoke - first.acquire.done)},
		Key: key, From: c.invoke, To: c.done, Class: "wrong release",
		Workers: r.nameAll(a.worker), Grants: r.nameAll(a.grant),
		Faults: r.inForce(first.acquire.done, c.done),
	}
	for _, other := range released {
		i.Workers, i.Grants = append(i.Workers, r.name(other.worker)), append(i.Grants, r.name(other.grant))
	}
	return i
}

func noWrongRelease(r *run, found incidents) judged {
	j := judge(NoWrongRelease, found)
	released := 0
	for a := range r.attempts.each {
		if a.released() != nil {
			released++
		}
	}
	switch {
	case permits(r.header) > 1:
		j.because(NotApplicable, Fact{Kind: FactSharedByRight})
	case found.total > 0:
		j.because(Violation, Fact{Kind: FactWrongReleases, N: int64(found.total)})
	case released == 0:
		j.because(Undecided, Fact{Kind: FactNoRelease})
	default:
		j.because(Valid, Fact{Kind: FactReleases, N: int64(released)})
	}
	return j
}

// earlierRelease returns an unanswered release of an earlier attempt that may have ended this grant: it had not arrived
// when the service gave the same grant again. nil if there is none.
func (a *attempt) earlierRelease() *call {
	if a.rare == nil {
		return nil
	}
	return a.rare.earlier
}
