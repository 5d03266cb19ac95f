package checker

import (
	"cmp"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"

	"lockcheck/history"
)

// Locks that are not plain mutexes: a semaphore that several may hold, a lock that readers
// share, and, in histories of others, a reentrant lock that one worker may hold several times.
// Transition rules of the first and the last after Jepsen's Hazelcast suite.

// permits is how many may hold a key at once.
func permits(h history.Header) int { return max(1, h.Permits) }

// readWrite says that readers share the lock with each other, and writers with nobody.
func readWrite(h history.Header) bool { return h.Workload == history.WorkloadReadWrite }

// shares says that two may hold the lock at once by right.
func (a *attempt) shares(b *attempt) bool { return a.shared && b.shared }

// exclusive says that a key is held once at a time: then the order of grants decides
// whether its answers can be put in order.
func exclusive(h history.Header) bool { return h.Permits <= 1 && h.Reentrant <= 1 && !readWrite(h) }

// sharedState is who holds the lock, in the order of grants, and what the holders of a
// reentrant lock know of its token.
type sharedState struct {
	held    string // of grants, four bytes each
	worker  worker // of a reentrant lock that is held
	token   uint64 // of that hold, 0 if it is not known
	highest uint64
	writer  bool // whoever holds it shares it with nobody
}

const grantBytes = 4

func encoded(g grant) string {
	return string([]byte{byte(g >> 24), byte(g >> 16), byte(g >> 8), byte(g)})
}

// at returns where in the state a grant is, -1 if it is not held.
func (s sharedState) at(g grant) int {
	for i := 0; i < len(s.held); i += grantBytes {
		if s.held[i:i+grantBytes] == encoded(g) {
			return i
		}
	}
	return -1
}

func (s sharedState) holds() int { return len(s.held) / grantBytes }

// with adds a grant. The order of grants says nothing: equal states must be equal.
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

// shared is the model of a semaphore, of a lock that readers share, or of a reentrant lock,
// which with tokens is fenced.
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

// admit says whether an acquire is legal, and what follows.
func (r *run) admit(s sharedState, o step) (bool, sharedState) {
	fenced := ranked(r.header) && o.token != 0
	nested := s.holds() > 0 && s.worker == o.worker && r.header.Reentrant > 1
	switch {
	case nested && s.holds() >= r.header.Reentrant:
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
	if r.header.Reentrant > 1 { // what others never look at would only tell equal states apart
		s.worker, s.token = o.worker, cmp.Or(s.token, o.token)
	}
	return true, s
}

// permitted is a hold of a semaphore, with what is asked of it for each hold that follows.
type permitted struct {
	*attempt
	believed   int64 // grantEnd.byBelief; the least time if it had expired when it arrived
	unreleased int64 // grantEnd.unreleased
	refused    bool  // the service said that it was gone before it can have been
}

func (r *run) permitted(a *attempt) permitted {
	e := r.endOf(a)
	p := permitted{attempt: a, believed: e.byBelief(), unreleased: e.unreleased()}
	for c := range a.releases {
		// It can have ended the grant itself, if that was its second request.
		p.refused = p.refused || c.failed() && (c.done < p.believed || c.invoke == p.believed)
	}
	if a.expired {
		p.believed = math.MinInt64
	}
	return p
}

// lastsAlong is 0 for a grant that can have ended by itself before another one, 1 for one
// that the service said was gone before it can have, and else 2.
func (p permitted) lastsAlong(next *attempt) int {
	switch {
	case p.believed <= next.acquire.done:
		return 0
	case p.refused:
		return 1
	}
	return 2
}

// stands says that a holder had its permit for certain, within its validity, when another one was
// granted one.
func (p permitted) stands(next *attempt) bool {
	return p.lastsAlong(next) == 2 && p.deadline > next.acquire.done
}

// crowded reports the holds with which there are more than a semaphore permits, each
// next to the one of the others that is too many: one that was over by then, as far as the
// record tells, and of several the one whose validity ended first.
func (r *run) crowded(yield func(overlap) bool) {
	var active []permitted
	var ends []int64 // of the active ones, in order
	for i, h := range r.holds {
		if i > 0 && r.holds[i-1].key != h.key {
			active, ends = active[:0], ends[:0]
		}
		now := h.acquire.done
		active = slices.DeleteFunc(active, func(a permitted) bool { return a.holdEnd <= now })
		ends = ends[len(ends)-len(active):]
		along, alongEnds := active, ends
		if h.holdEnd == now {
			along = slices.DeleteFunc(slices.Clone(active), func(a permitted) bool { return !h.within(a.attempt) })
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

// oneTooMany describes the overlap of a hold with those that are active already, of which the ends are
// in order.
func (r *run) oneTooMany(active []permitted, ends []int64, h *attempt) overlap {
	least, standing, certain := permits(r.header), 0, 0
	for _, a := range active {
		if a.stands(h) {
			standing++
		}
		if a.unreleased > h.acquire.done { // it cannot have ended by itself
			certain++
		}
	}
	// Where there are too many of those alone who cannot have ended, no other one is to blame.
	crowded := standing >= least
	var first *permitted
	for i := range active {
		a := &active[i]
		if crowded && !a.stands(h) {
			continue
		}
		if first == nil || cmp.Or(cmp.Compare(a.lastsAlong(h), first.lastsAlong(h)), cmp.Compare(a.deadline, first.deadline)) < 0 {
			first = a
		}
	}
	// If none of the others was over, the answer to who came last may have been read late.
	for i := range active {
		if a := &active[i]; crowded && a.acquire.done >= h.acquire.invoke && a.stands(h) {
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
	// With those who come later there are too many for longer, which is counted with them, and
	// without this one it was before.
	at := len(active) - least
	o.to = min(h.holdEnd, ends[at])
	if at > 0 {
		o.to = min(h.holdEnd, max(ends[at-1], o.to))
	}
	return o
}
