package checker

import (
	"fmt"
	"strings"
	"time"

	"lockcheck/history"
)

// Classes of overlaps: the first differs between locks, the second is inherent
// in leases (docs/verdicts.md).
const (
	BrokenPromise = "broken promise"
	OutlivedLease = "outlived lease"
)

// overlap is a time in which two processes believed to hold one key.
type overlap struct {
	earlier, later Hold
	from, to       int64
	class          string
	state          holderState
}

// holderState is what kept the earlier holder from noticing.
type holderState string

const (
	healthy holderState = "healthy"
	paused  holderState = "paused"
	cutOff  holderState = "cut off"
)

// findOverlaps sweeps each key by start. A worker holds a key once at a time,
// so that few holds are active at any moment.
func findOverlaps(r *run) []overlap {
	var found []overlap
	var active []Hold
	for i, h := range r.holds {
		if i > 0 && r.holds[i-1].Key != h.Key {
			active = active[:0]
		}
		kept := active[:0]
		for _, a := range active {
			if a.End <= h.Start {
				continue
			}
			kept = append(kept, a)
			if a.Worker != h.Worker && h.End > h.Start {
				found = append(found, r.overlap(a, h))
			}
		}
		active = append(kept, h)
	}
	return found
}

// overlap describes that of two holds of which a began first.
func (r *run) overlap(a, b Hold) overlap {
	o := overlap{from: max(a.Start, b.Start), to: min(a.End, b.End), class: OutlivedLease}
	if min(a.Deadline, b.Deadline) > o.from {
		o.class = BrokenPromise
	}
	// A grant that was already dead when it arrived is the older one, though
	// its worker learned of it last.
	if b.Deadline < a.Start {
		a, b = b, a
	}
	o.earlier, o.later = a, b
	o.state = r.state(a, b)
	return o
}

// state looks from the end of the earlier promise, or from the later grant if
// that came first: a holder that slept through its deadline and woke up just
// before somebody else was granted the lock was not a healthy one.
func (r *run) state(earlier, later Hold) holderState {
	from := min(earlier.Deadline, later.Start)
	for i := range r.faults {
		f := &r.faults[i]
		if f.does(history.Stops) && f.hits(from, later.Start) && f.involves(earlier.Worker) {
			return paused
		}
	}
	for _, cut := range r.cutOffs(earlier.Worker) {
		if cut.meets(from, later.Start) {
			return cutOff
		}
	}
	return healthy
}

func (r *run) overlapIncident(o overlap) Incident {
	return Incident{
		Key: o.earlier.Key, From: o.from, To: o.to, Class: o.class,
		What:    o.describe(),
		Workers: []string{o.earlier.Worker, o.later.Worker},
		Grants:  []string{o.earlier.Grant, o.later.Grant},
		Faults:  r.inForce(min(o.earlier.Deadline, o.from), o.to),
	}
}

func (o overlap) describe() string {
	promise := "the lock had promised it to both"
	switch {
	case o.class == BrokenPromise:
	case o.earlier.Deadline < o.from:
		promise = "its lease had run out " + dur(o.from-o.earlier.Deadline) + " before"
	default:
		promise = "its lease ran out just then"
	}
	return fmt.Sprintf("%s and %s both held %s for %s (%s was %s; %s)",
		o.earlier.Worker, o.later.Worker, o.earlier.Key, dur(o.to-o.from), o.earlier.Worker, o.state, promise)
}

// mutualExclusion judges that no two processes hold a key at once.
func mutualExclusion(r *run, found []overlap) (judged, OverlapSummary) {
	var s OverlapSummary
	incidents := make([]Incident, 0, len(found))
	for _, o := range found {
		s.add(o)
		incidents = append(incidents, r.overlapIncident(o))
	}
	j := judge(MutualExclusion, incidents)
	switch {
	case len(found) > 0:
		j.clause = heldAtOnce(len(found))
		j.Summary = fmt.Sprintf("%s of holders (%s); longest %s", count(len(found), "overlap", "overlaps"), s.kinds(), dur(int64(s.Longest)))
	case len(r.holds) == 0:
		j.Verdict, j.Summary = Undecided, "nobody ever held the lock"
	case len(r.header.Workers) == 1:
		j.Verdict, j.Summary = Undecided, "a single worker cannot overlap with anybody"
	default:
		j.Summary = count(len(r.holds), "hold", "holds") + ", never two at once"
	}
	return j, s
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
	if o.class == BrokenPromise {
		s.BrokenPromises++
		*broken++
	} else {
		s.OutlivedLeases++
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
	return strings.Join(kinds, ", ")
}
