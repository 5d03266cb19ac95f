package checker

import (
	"cmp"
	"math"
	"slices"
	"time"

	"lockcheck/history"
	"lockcheck/internal/stats"
)

// Classes of overlaps. Locks differ in double grants; uses after expiry are inherent in leases
// (docs/verdicts.md).
const (
	DoubleGrant    = "double grant"
	UseAfterExpiry = "use after expiry"
	// Unclassified is the class of overlaps in a history whose lease is not known.
	Unclassified = "overlap"
)

// leaseUnknown says that an imported history does not tell how long a grant lasts. Then neither the validity
// of a grant nor the cause of its end can be computed.
func leaseUnknown(h history.Header) bool { return h.Imported != "" && h.Lease <= 1 }

// overlap is a time in which two processes believed that they hold one key.
type overlap struct {
	earlier, later *attempt
	from, to       int64
	class          string
	state          HolderState
	early          bool // it began before the service could have ended either grant by itself
}

// sweep compares the holds of a key, by start, with the holds that are active then. A worker holds a key once
// at a time, so usually few holds are active. From crowdFrom active holds a crowd continues.
func (t *together) sweep(r *run, holds []*attempt, crowdFrom int) {
	var active []*attempt
	for i := 0; i < len(holds); {
		h := holds[i]
		active = slices.DeleteFunc(active, func(a *attempt) bool { return a.holdEnd <= h.acquire.done })
		if len(active) >= crowdFrom {
			i = t.countCrowd(r, active, holds, i)
			active = active[:0]
			continue
		}
		for _, a := range active {
			if a.worker != h.worker && !a.shares(h) && (h.holdEnd > h.acquire.done || h.beginsWithin(a)) {
				t.add(r, r.overlap(a, h))
			}
		}
		active = append(active, h)
		i++
	}
}

// beginsWithin says that a hold without length began while another one lasted. A hold has no length if its worker
// gave the lock up when it was told of the grant, or if nothing more is known of it. A grant that was given
// up before the answer came never was a hold.
func (a *attempt) beginsWithin(b *attempt) bool {
	at := a.acquire.done
	return !a.wasGivenUp() && b.acquire.done < at && at < b.holdEnd
}

// wasGivenUp says that the worker of an attempt had given it up before the answer came.
func (a *attempt) wasGivenUp() bool {
	at := a.acquire.done
	for c := range a.releases {
		if c.invoke < at {
			return true
		}
	}
	return slices.ContainsFunc(a.notifications(), func(n notification) bool { return n.time < at })
}

// overlap describes the overlap of two holds; a began first.
func (r *run) overlap(a, b *attempt) overlap {
	o := overlap{from: max(a.acquire.done, b.acquire.done), to: min(a.holdEnd, b.holdEnd), class: UseAfterExpiry}
	if a.deadline > o.from && (b.deadline > o.from || b.deadline == o.from && o.to == o.from) {
		o.class = DoubleGrant
	}
	if leaseUnknown(r.header) {
		o.class = Unclassified
	}
	o.earlier, o.later, _ = r.inOrder(a, b)
	o.state = r.state(o.earlier, o.later.acquire.done)
	o.early = min(r.endOf(a).unreleased(), r.endOf(b).unreleased()) > o.from
	return o
}

// inOrder returns the older of two grants first, and whether that is certain.
//
// A grant is certainly older if its answer came before the other was asked for. If both acquires were open at
// once, either answer may have been read late. Then the lower token decides. Without tokens, the older grant
// is the one that may have ended by the time that the other was answered, if only one can. If both can, the
// grant that was answered first is more likely the older one. The exception is that the other grant's
// validity ended first, and before the answer to the first one, and that its worker may have read its answer
// late. If neither can, the lock was granted twice, and the record does not say to whom first.
func (r *run) inOrder(a, b *attempt) (earlier, later *attempt, certain bool) {
	if b.acquire.done < a.acquire.done {
		a, b = b, a
	}
	switch {
	case a.acquire.done < b.acquire.invoke:
		return a, b, true
	case r.rankedByToken(a) && r.rankedByToken(b):
		if b.token < a.token {
			return b, a, true
		}
		return a, b, a.token < b.token
	}
	first, second := r.endOf(a).orReleased() <= b.acquire.done, r.endOf(b).orReleased() <= a.acquire.done
	switch {
	case second && !first:
		return b, a, true
	case second && b.until != 0 && b.until < min(a.acquire.done, cmp.Or(a.until, math.MaxInt64)) && !r.promptSince(b, a.acquire.done):
		return b, a, false
	}
	return a, b, first && !second
}

// rankedByToken says that the token of a grant orders it among others. Tokens of a key that contradict the
// order of its grants tell nothing.
func (r *run) rankedByToken(a *attempt) bool {
	return ranked(r.header) && a.token != 0 && !r.misranked[a.key]
}

// replacedBy says that a is for certain an older grant than b, and that b was in force when it arrived. It is
// false if one worker took a reentrant lock again. A grant that was not in force replaces nobody at the
// service, except another one that was not: then the worker that uses the resource second has replaced the
// first.
func (r *run) replacedBy(a, b *attempt) bool {
	earlier, _, certain := r.inOrder(a, b)
	return a != b && earlier == a && certain && (!b.expired || a.expired) && !r.reentered(a, b)
}

// reentered says that both grants can belong to one worker that holds a reentrant lock more than once.
func (r *run) reentered(a, b *attempt) bool {
	return r.header.Reentrant > 1 && a.worker == b.worker
}

// state says in what state the earlier holder was. It looks from the end of the earlier validity, or from the
// later grant if that came first. A holder that slept through its deadline and woke up just before another
// worker was granted the lock was not healthy.
func (r *run) state(earlier *attempt, granted int64) HolderState {
	from, to := earlier.exposure(granted)
	w := r.byWorker[earlier.worker]
	switch {
	case len(meeting(w.stops, from, to)) > 0:
		return HolderPaused
	case w.cutOffs.meets(from, to):
		return HolderCutOff
	}
	return HolderHealthy
}

// exposure is the time in which something must have kept a holder from noticing that another worker was
// granted the lock.
func (a *attempt) exposure(granted int64) (from, to int64) { return min(a.deadline, granted), granted }

func (r *run) overlapIncident(o overlap) Incident {
	return Incident{
		Kind: KindOverlap, Figures: IncidentFigures{Holder: o.state, Expired: time.Duration(max(0, o.from-o.earlier.deadline)), LaterOver: o.laterOver()},
		Key: r.name(o.earlier.key), From: o.from, To: o.to, Class: o.class,
		Workers: r.nameAll(o.earlier.worker, o.later.worker),
		Grants:  r.nameAll(o.earlier.grant, o.later.grant),
		Faults:  r.inForce(min(o.earlier.deadline, o.from), o.to),
	}
}

// laterOver says that the overlap is a use after expiry because of the later grant alone.
func (o overlap) laterOver() bool { return o.class == UseAfterExpiry && o.earlier.deadline > o.from }

// together is what all overlaps of a run amount to.
type together struct {
	incidents
	summary       OverlapSummary
	notifications LossNotificationSummary
	notified      stats.Histogram
	early         map[string]overlap // by key, the first overlap that began before either grant could have ended
	unseen        *Fact              // a grant that may have overlapped with another, nil for none
}

func findOverlaps(r *run) together {
	t := together{early: make(map[string]overlap)}
	t.find(r, crowdFrom)
	t.unseen = r.grantedMeanwhile()
	return t
}

// find counts all overlaps. If crowdFrom or more workers hold a key at once, a crowd counts them.
func (t *together) find(r *run, crowdFrom int) {
	if permits(r.header) > 1 {
		for o := range r.crowded {
			t.add(r, o)
		}
		return
	}
	for _, key := range r.keys {
		t.sweep(r, r.byKey[key].holds, crowdFrom)
	}
}

func (t *together) add(r *run, o overlap) {
	t.summary.add(o)
	t.notify(o)
	key := r.name(o.earlier.key)
	if o.class == Unclassified {
		r.origins.count(cause{}, o.earlier)
		t.incidents.add(key, o.from, func() Incident { return r.overlapIncident(o) })
		return
	}
	c := r.whyReplaced(o.earlier, o.later)
	t.because(c.class, 1)
	r.origins.count(c, o.earlier)
	t.incidents.add(key, o.from, func() Incident {
		i := r.overlapIncident(o)
		i.Cause, i.Explanation = c.class, r.explain(c, o.earlier, o.later)
		return i
	})
	if _, seen := t.early[key]; !seen && o.early {
		t.early[key] = o
	}
}

// notify records when the earlier holder of an overlap learned of it.
func (t *together) notify(o overlap) {
	if late, notified := t.notifications.add(o); notified {
		t.notified.Add(late)
	}
}

// grantedMeanwhile finds a grant of a lock whose permits other workers had for certain, if nothing more is
// known of them: the history does not tell whether all held it at once.
func (r *run) grantedMeanwhile() *Fact {
	for _, key := range r.keys {
		k := r.byKey[key]
		silent := slices.DeleteFunc(slices.Clone(k.holds), func(h *attempt) bool { return h.ended != withoutTrace || r.heldUntil(h) < r.end })
		for i := range silent[:max(0, len(silent)-permits(r.header)+1)] {
			among := silent[i : i+permits(r.header)]
			last := among[len(among)-1]
			next := r.nextGrant(last)
			if next != nil && !slices.ContainsFunc(among, func(h *attempt) bool { return h.worker == next.worker || !r.stillHad(k, h, next) }) {
				return &Fact{Kind: FactGrantedMeanwhile, Keys: []string{k.name}, Workers: r.nameAll(next.worker, last.worker), At: next.acquire.done}
			}
		}
	}
	return nil
}

// stillHad says that grant h was certainly in force when grant next was given.
func (r *run) stillHad(k *keyed, h, next *attempt) bool {
	granted := next.acquire.done
	return !h.expired && !next.expired && r.endOf(h).byService() > granted && r.endOf(next).orReleased() > h.acquire.done &&
		!r.disturbed(h.acquire.invoke, granted) && !r.releasedInDoubt(k)
}

// disturbed says whether a fault that may end a grant early may have been in force in a time.
func (r *run) disturbed(from, to int64) bool { return r.serverFaults.first(from, to) >= 0 }

// mayEndGrants says that a fault hit the servers, the network between them, or a wall clock.
func (r *run) mayEndGrants(f *fault) bool { return r.amongServers(f) || f.does(history.Steps) }

// amongServers says that a fault hit the servers, or the network between them. It is false if the only server
// was stopped: it forgets nothing, and no other server takes its place.
func (r *run) amongServers(f *fault) bool {
	alone := len(r.header.Servers) == 1 && !f.doesAny(history.Steps, history.Ends, history.Impairs)
	return !alone && r.onServersAlone(f)
}

// onServersAlone says that a fault hit servers, and not the network between servers and workers.
func (r *run) onServersAlone(f *fault) bool {
	return slices.ContainsFunc(f.Targets, r.isServer) && (!f.separates() || slices.ContainsFunc(f.Peers, r.isServer))
}

// mutualExclusion judges that no two processes hold a key at once.
func mutualExclusion(r *run, t together) judged {
	j := judge(MutualExclusion, t.incidents)
	switch {
	case t.total > 0:
		j.because(Violation, Fact{Kind: FactOverlaps, N: int64(t.total)})
	case len(r.holds) == 0:
		j.because(Undecided, Fact{Kind: FactNeverHeld})
	case len(r.header.Workers) == 1:
		j.because(Undecided, Fact{Kind: FactSingleWorker})
	case len(r.header.Workers) <= permits(r.header) && r.header.Imported == "":
		j.because(Undecided, Fact{Kind: FactPermitsForAll})
	case t.unseen != nil:
		j.because(Undecided, *t.unseen)
	case r.onlyOneWorkerGranted():
		j.because(Undecided, Fact{Kind: FactNobodyTookTurns})
	default:
		j.because(Valid, Fact{Kind: FactHoldsApart, N: int64(len(r.holds))})
	}
	if r.header.Workload == history.WorkloadSemaphore {
		j.because(j.Verdict, r.witness())
	}
	return j
}

func (s *OverlapSummary) add(o overlap) {
	s.count(o.class, o.state, 1)
	length := time.Duration(o.to - o.from)
	s.Longest = max(s.Longest, length)
	s.Sum += length
}

// count counts overlaps without their lengths.
func (s *OverlapSummary) count(class string, state HolderState, n int64) {
	all, doubleGrants := &s.EarlierHealthy, &s.DoubleGrantsHealthy
	switch state {
	case HolderPaused:
		all, doubleGrants = &s.EarlierPaused, &s.DoubleGrantsPaused
	case HolderCutOff:
		all, doubleGrants = &s.EarlierCutOff, &s.DoubleGrantsCutOff
	}
	*all += n
	switch class {
	case DoubleGrant:
		s.DoubleGrants += n
		*doubleGrants += n
	case UseAfterExpiry:
		s.UsesAfterExpiry += n
	default:
		s.Unclassified += n
	}
}
