package checker

import (
	"cmp"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"

	"lockcheck/history"
)

// Locks that are not plain mutexes: a semaphore that several workers may hold, a lock that readers share,
// and, in imported histories, a reentrant lock that one worker may hold several times. The transition rules
// of semaphores and reentrant locks follow Jepsen's Hazelcast suite.

// permits is how many workers may hold a key at once.
func permits(h history.Header) int { return max(1, h.Permits) }

// readWrite says that readers share the lock with each other, and writers share it with nobody.
func readWrite(h history.Header) bool { return h.Workload == history.WorkloadReadWrite }

// shares says that two attempts may rightly hold the lock at once.
func (a *attempt) shares(b *attempt) bool { return a.shared && b.shared }

// exclusive says that a key is held at most once at a time. Only then does the order of grants decide whether
// the answers can be put in order.
func exclusive(h history.Header) bool { return h.Permits <= 1 && h.Reentrant <= 1 && !readWrite(h) }

// sharedState is who holds the lock, and what the holders of a reentrant lock know of its token.
type sharedState struct {
	held    string // grants, four bytes each, sorted
	worker  worker // holder of a reentrant lock
	token   uint64 // of that hold, 0 if it is not known
	highest uint64
	writer  bool // the holder shares the lock with nobody
}

const grantBytes = 4

func encoded(g grant) string {
	return string([]byte{byte(g >> 24), byte(g >> 16), byte(g >> 8), byte(g)})
}

// at returns the offset of a grant in the state, -1 if it is not held.
func (s sharedState) at(g grant) int {
	for i := 0; i < len(s.held); i += grantBytes {
		if s.held[i:i+grantBytes] == encoded(g) {
			return i
		}
	}
	return -1
}

func (s sharedState) holds() int { return len(s.held) / grantBytes }

// with adds a grant. Grants are kept sorted, so that states with the same grants are equal.
func (s sharedState) with(g grant) sharedState {
	i := 0
	for i < len(s.held) && s.held[i:i+grantBytes] < encoded(g) {
		i += grantBytes
	}
	s.held = s.held[:i] + encoded(g) + s.held[i:]
	return s
}

func (s sharedState) without(i int) sharedState {
	s.held = s.held[:i] + s.held[i+grantBytes:]
	if s.held == "" {
		s.worker, s.token, s.writer = 0, 0, false
	}
	return s
}

// shared is the model of a semaphore, of a lock that readers share, or of a reentrant lock. A reentrant lock
// with tokens is fenced.
func (r *run) shared() porcupine.Model {
	return porcupine.Model{
		Partition: partition,
		Init:      func() any { return sharedState{} },
		Step: func(state, input, _ any) (bool, any) {
			s, o := state.(sharedState), input.(step)
			at := s.at(o.grant)
			switch o.kind {
			case stepAcquire:
				return r.admit(s, o)
			case stepPerhapsAcquire:
				_, s = r.admit(s, o)
				return true, s
			case stepPerhapsEnd:
				if at >= 0 {
					s = s.without(at)
				}
				return true, s
			case stepBusy:
				return at >= 0, s
			case stepNotHeld:
				return at < 0, s
			}
			if at < 0 {
				return false, s
			}
			return true, s.without(at)
		},
		DescribeOperation: func(input, _ any) string { return r.stepText(input.(step)) },
	}
}

// admit says whether an acquire is legal, and returns the next state.
func (r *run) admit(s sharedState, o step) (bool, sharedState) {
	fenced := ranked(r.header) && o.token != 0
	nested := s.holds() > 0 && s.worker == o.worker && r.header.Reentrant > 1
	switch {
	case nested && s.holds() >= r.header.Reentrant, nested && o.next != 0 && s.at(o.next) >= 0:
		return false, s
	case nested && fenced && s.token != 0 && o.token != s.token:
		return false, s
	case readWrite(r.header) && s.holds() > 0:
		if s.writer || !o.shared {
			return false, s
		}
	case !nested && s.holds() >= permits(r.header):
		return false, s
	case !nested && fenced && o.token <= s.highest:
		return false, s
	}
	s = s.with(o.grant)
	s.writer = readWrite(r.header) && !o.shared
	if ranked(r.header) {
		s.highest = max(s.highest, o.token)
	}
	if r.header.Reentrant > 1 { // other locks never read these fields, which would only make equal states differ
		s.worker, s.token = o.worker, cmp.Or(s.token, o.token)
	}
	return true, s
}

// permitted is a hold of a semaphore, with precomputed facts for the comparison with each later hold.
type permitted struct {
	*attempt
	believed   int64 // grantEnd.byBelief; math.MinInt64 if the grant had expired when it arrived
	unreleased int64 // grantEnd.unreleased
	refused    bool  // the service said that the grant was gone before it could have been
}

func (r *run) permitted(a *attempt) permitted {
	e := r.endOf(a)
	p := permitted{attempt: a, believed: e.byBelief(), unreleased: e.unreleased()}
	for c := range a.releases {
		// The release may have ended the grant itself, if the failure answers its second request.
		p.refused = p.refused || c.failed() && (c.done < p.believed || c.invoke == p.believed)
	}
	if a.expired {
		p.believed = math.MinInt64
	}
	return p
}

// inForceRank ranks how surely a grant was still in force at the next grant. It is 0 if the grant can have
// ended by itself before, 1 if the service said too early that it was gone, and else 2.
func (p permitted) inForceRank(next *attempt) int {
	switch {
	case p.believed <= next.acquire.done:
		return 0
	case p.refused:
		return 1
	}
	return 2
}

// certainlyHolds says that a holder certainly had its permit, within its validity, at the next grant.
func (p permitted) certainlyHolds(next *attempt) bool {
	return p.inForceRank(next) == 2 && p.deadline > next.acquire.done
}

// crowded yields an overlap for each hold of a semaphore that exceeds the permits. The other side of the
// overlap is the hold to blame: one that was over by then, as far as the record tells; if there is none, one that a
// fault of the servers can have ended; and among several the one whose validity ended first.
func (r *run) crowded(yield func(overlap) bool) {
	var active []permitted
	var ends []int64 // of the active holds, sorted
	for i, h := range r.holds {
		if i > 0 && r.holds[i-1].key != h.key {
			active, ends = active[:0], ends[:0]
		}
		now := h.acquire.done
		active = slices.DeleteFunc(active, func(a permitted) bool { return a.holdEnd <= now })
		ends = ends[len(ends)-len(active):]
		along, alongEnds := active, ends
		if h.holdEnd == now {
			along = slices.DeleteFunc(slices.Clone(active), func(a permitted) bool { return !h.beginsWithin(a.attempt) })
			alongEnds = nil
			for _, a := range along {
				alongEnds = append(alongEnds, a.holdEnd)
			}
			slices.Sort(alongEnds)
		}
		if len(along) >= permits(r.header) && !yield(r.oneTooMany(along, alongEnds, h)) {
			return
		}
		active = append(active, r.permitted(h))
		at, _ := slices.BinarySearch(ends, h.holdEnd)
		ends = slices.Insert(ends, at, h.holdEnd)
	}
}

// oneTooMany describes the overlap of a hold with the active holds, whose ends are sorted.
func (r *run) oneTooMany(active []permitted, ends []int64, h *attempt) overlap {
	least, standing, certain := permits(r.header), 0, 0
	for _, a := range active {
		if a.certainlyHolds(h) {
			standing++
		}
		if a.unreleased > h.acquire.done { // it cannot have ended by itself
			certain++
		}
	}
	// If the holds that cannot have ended are too many by themselves, no other hold is to blame.
	crowded := standing >= least
	var first *permitted
	compare := func(a, b *permitted) int {
		explained := func(p *permitted) int { // a fault can have ended that hold
			if crowded && r.endedEarly(p.attempt, h.acquire.done).fault != nil {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.inForceRank(h), b.inForceRank(h)), cmp.Compare(explained(a), explained(b)), cmp.Compare(a.deadline, b.deadline))
	}
	for i := range active {
		a := &active[i]
		if crowded && !a.certainlyHolds(h) {
			continue
		}
		if first == nil || compare(a, first) < 0 {
			first = a
		}
	}
	// If no active hold was over, the last worker may have read its answer late.
	for i := range active {
		if a := &active[i]; crowded && a.acquire.done >= h.acquire.invoke && a.certainlyHolds(h) {
			if earlier, _, certain := r.inOrder(a.attempt, h); certain && earlier == h {
				first = a
			}
		}
	}
	o := r.overlap(first.attempt, h)
	if r.endOf(h).unreleased() > h.acquire.done {
		certain++
	}
	o.early = certain > least
	// The overlap ends when the number of holders falls to the permits. A longer excess is due to a later
	// hold and counted with that; an excess without this hold was counted before.
	at := len(active) - least
	o.to = min(h.holdEnd, ends[at])
	if at > 0 {
		o.to = min(h.holdEnd, max(ends[at-1], o.to))
	}
	return o
}
