package checker

import (
	"fmt"
	"strings"
	"time"

	"lockcheck/history"
	"lockcheck/internal/stats"
)

// Classes of overlaps: the first differs between locks, the second is inherent
// in leases (docs/verdicts.md).
const (
	BrokenPromise = "broken promise"
	OutlivedLease = "outlived lease"
	// Unclassified is that of a history whose lease is not known.
	Unclassified = "overlap"
)

// leaseUnknown says that a history of others does not say how long a grant lasts: what
// was promised, and what ended it, cannot be said.
func leaseUnknown(h history.Header) bool { return h.Imported != "" && h.Lease <= 1 }

// overlap is a time in which two processes believed to hold one key.
type overlap struct {
	earlier, later *attempt
	from, to       int64
	class          string
	state          holderState
	early          bool // it began before the service can have ended the grants by itself
}

// holderState is what kept the earlier holder from noticing.
type holderState string

const (
	healthy holderState = "healthy"
	paused  holderState = "paused"
	cutOff  holderState = "cut off"
)

// overlaps sweeps each key by start. A worker holds a key once at a time, so that
// few holds are active at any moment.
func (r *run) overlaps(yield func(overlap) bool) {
	if permits(r.header) > 1 {
		r.crowded(yield)
		return
	}
	var active []*attempt
	for i, h := range r.holds {
		if i > 0 && r.holds[i-1].key != h.key {
			active = active[:0]
		}
		kept := active[:0]
		for _, a := range active {
			if a.holdEnd <= h.acquire.done {
				continue
			}
			kept = append(kept, a)
			if a.worker != h.worker && h.holdEnd > h.acquire.done && !yield(r.overlap(a, h)) {
				return
			}
		}
		active = append(kept, h)
	}
}

// overlap describes that of two holds of which a began first.
func (r *run) overlap(a, b *attempt) overlap {
	o := overlap{from: max(a.acquire.done, b.acquire.done), to: min(a.holdEnd, b.holdEnd), class: OutlivedLease}
	if min(a.deadline, b.deadline) > o.from {
		o.class = BrokenPromise
	}
	if leaseUnknown(r.header) {
		o.class = Unclassified
	}
	o.earlier, o.later, _ = r.inOrder(a, b)
	o.state = r.state(o.earlier, o.later)
	o.early = min(a.serviceEnd(r.header.Lease), b.serviceEnd(r.header.Lease)) > o.from
	return o
}

// inOrder returns the older of two grants first, and whether that is certain. It is the
// one whose answer came before the other was asked for. Of two that were open at once, of
// which either answer may have been read late, it is the one with the lower token; else
// the one that can have ended by the time that the other was answered, if only one of them
// can. If both can, the one whose promise was over by then is the more likely one.
func (r *run) inOrder(a, b *attempt) (earlier, later *attempt, certain bool) {
	if b.acquire.done < a.acquire.done {
		a, b = b, a
	}
	first, second := r.canHaveEndedBy(a, b.acquire.done), r.canHaveEndedBy(b, a.acquire.done)
	switch {
	case a.acquire.done < b.acquire.invoke:
		return a, b, true
	case ranked(r.header) && a.token != 0 && b.token != 0 && a.token != b.token:
		if b.token < a.token {
			return b, a, true
		}
		return a, b, true
	case second && !first:
		return b, a, true
	case second && b.until != 0 && b.until < a.acquire.done:
		return b, a, false
	}
	return a, b, !second
}

// canHaveEndedBy says whether the service can have ended a grant by a time, by itself or
// by a release.
func (r *run) canHaveEndedBy(a *attempt, at int64) bool {
	if c := a.released(); c != nil {
		return c.invoke <= at
	}
	return a.serviceEnd(r.header.Lease) <= at
}

// state looks from the end of the earlier promise, or from the later grant if
// that came first: a holder that slept through its deadline and woke up just
// before somebody else was granted the lock was not a healthy one.
func (r *run) state(earlier, later *attempt) holderState {
	from, to := r.exposed(earlier, later)
	w := r.byWorker[earlier.worker]
	switch {
	case len(meeting(w.stops, from, to)) > 0:
		return paused
	case len(meeting(w.cutOffs, from, to)) > 0:
		return cutOff
	}
	return healthy
}

// exposed is the time to look at for what kept the earlier holder from noticing.
func (r *run) exposed(earlier, later *attempt) (from, to int64) {
	return min(earlier.deadline, later.acquire.done), later.acquire.done
}

func (r *run) overlapIncident(o overlap) Incident {
	return Incident{
		Key: r.name(o.earlier.key), From: o.from, To: o.to, Class: o.class,
		What:    r.describe(o),
		Workers: r.nameAll(o.earlier.worker, o.later.worker),
		Grants:  r.nameAll(o.earlier.grant, o.later.grant),
		Faults:  r.inForce(min(o.earlier.deadline, o.from), o.to),
	}
}

func (r *run) describe(o overlap) string {
	promise := "the lock had promised it to both"
	switch {
	case o.class == Unclassified:
		promise = "its lease is not known"
	case o.class == BrokenPromise:
	case o.earlier.deadline < o.from:
		promise = "its lease had run out " + dur(o.from-o.earlier.deadline) + " before"
	default:
		promise = "its lease ran out just then"
	}
	earlier := r.name(o.earlier.worker)
	return fmt.Sprintf("%s and %s both held %s for %s (%s was %s; %s)",
		earlier, r.name(o.later.worker), r.name(o.earlier.key), dur(o.to-o.from), earlier, o.state, promise)
}

// together is what all overlaps of a run amount to.
type together struct {
	incidents
	summary OverlapSummary
	notices NoticeSummary
	told    stats.Histogram
	early   map[string]overlap // by key, the first that began before either grant can have ended
}

func findOverlaps(r *run) together {
	t := together{early: make(map[string]overlap)}
	for o := range r.overlaps {
		t.summary.add(o)
		if late, told := t.notices.add(o); told {
			t.told.Add(late)
		}
		key := r.name(o.earlier.key)
		if o.class == Unclassified {
			t.incidents.add(key, o.from, func() Incident { return r.overlapIncident(o) })
			continue
		}
		c := r.whyReplaced(o.earlier, o.later)
		t.because(c.class)
		t.incidents.add(key, o.from, func() Incident {
			i := r.overlapIncident(o)
			i.Cause, i.Why = c.class, r.tell(c, o.earlier, o.later)
			return i
		})
		if _, seen := t.early[key]; !seen && o.early {
			t.early[key] = o
		}
	}
	return t
}

// mutualExclusion judges that no two processes hold a key at once.
func mutualExclusion(r *run, t together) judged {
	j := judge(MutualExclusion, t.incidents)
	switch {
	case t.total > 0:
		j.clause = heldAtOnce(t.total)
		j.Summary = fmt.Sprintf("%s of holders (%s); longest %s", count(t.total, "overlap", "overlaps"), t.summary.kinds(), dur(int64(t.summary.Longest)))
	case len(r.holds) == 0:
		j.Verdict, j.Summary = Undecided, "nobody ever held the lock"
	case len(r.header.Workers) == 1:
		j.Verdict, j.Summary = Undecided, "a single worker cannot overlap with anybody"
	default:
		j.Summary = count(len(r.holds), "hold", "holds") + ", never two at once"
	}
	return j
}

func heldAtOnce(n int) string {
	if n == 1 {
		return "two workers once held the lock at the same time"
	}
	return "two workers held the lock at once " + times(n)
}

func (s *OverlapSummary) add(o overlap) {
	all, broken := &s.EarlierHealthy, &s.BrokenHealthy
	switch o.state {
	case paused:
		all, broken = &s.EarlierPaused, &s.BrokenPaused
	case cutOff:
		all, broken = &s.EarlierCutOff, &s.BrokenCutOff
	}
	*all++
	switch o.class {
	case BrokenPromise:
		s.BrokenPromises++
		*broken++
	case OutlivedLease:
		s.OutlivedLeases++
	default:
		s.Unclassified++
	}
	length := time.Duration(o.to - o.from)
	s.Longest = max(s.Longest, length)
	s.Sum += length
}

func (s OverlapSummary) kinds() string {
	var kinds []string
	if s.BrokenPromises > 0 {
		kinds = append(kinds, count(s.BrokenPromises, "broken promise", "broken promises"))
	}
	if s.OutlivedLeases > 0 {
		kinds = append(kinds, count(s.OutlivedLeases, "outlived lease", "outlived leases"))
	}
	if s.Unclassified > 0 {
		kinds = append(kinds, fmt.Sprintf("%d of unknown kind", s.Unclassified))
	}
	return strings.Join(kinds, ", ")
}
