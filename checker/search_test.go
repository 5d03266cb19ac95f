package checker

import (
	"math"
	"slices"

	"lockcheck/history"
)

// search tries all orders to decide whether the answers about one key may have come from one lock. It shares
// nothing with the checkers, keeps every operation, and lets optional operations (lost requests, ends) happen
// or not.
type search struct {
	header history.Header
	ops    []searchOp
	grants []*attempted
	seen   map[searchState]bool
	// exact says that the search allows no more than the model of the checkers. Otherwise only its "not
	// legal" is certain.
	exact, impossible bool
}

type searchOp struct {
	f        history.Function // acquire, release, busy, notHeld or end
	grant    int
	token    uint64
	from, to int64
	optional bool
	worker   string // of an acquire
	after    uint64 // the acquires that its worker had completed before
}

const (
	busy    = "busy"
	notHeld = "not held"
	end     = "end"
)

type searchState struct {
	done    uint64
	held    uint32 // bit set of grants
	highest uint64
}

// mostOps is the maximal number of operations of a search.
const mostOps = 20

// newSearch returns nil if the history of the key is too long.
func newSearch(r *record, key string) *search {
	n := &search{header: r.header, seen: make(map[searchState]bool), exact: true}
	places := make(map[string]int)
	for _, a := range r.grants {
		if a.key == key && a.asked >= 0 && a.outcome != history.Fail {
			places[a.id] = len(n.grants)
			n.grants = append(n.grants, a)
		}
	}
	if len(n.grants) > 32 {
		return nil
	}
	for i, a := range n.grants {
		n.life(r, i, a)
	}
	for _, a := range r.grants {
		if a.key != key || a.outcome != history.Fail {
			continue
		}
		if h := r.byID[a.holder]; h != nil && h.key != key && h.outcome != history.Fail {
			n.impossible = n.impossible || h.granted() // the holder of another key blocks nobody
			n.exact = false
		}
		if i, known := places[a.holder]; known {
			n.ops = append(n.ops, searchOp{f: busy, grant: i, from: a.asked, to: a.answered})
		}
	}
	if len(n.ops) > mostOps {
		return nil
	}
	n.inTurn()
	return n
}

// inTurn orders the acquires of a worker that takes a lock again: even at equal times the second follows the
// grant of the first.
func (n *search) inTurn() {
	for i := range n.ops {
		for j, o := range n.ops {
			inner := o.f == history.Acquire && n.ops[i].f == history.Acquire && o.worker == n.ops[i].worker
			if inner && !o.optional && o.from < n.ops[i].from && o.to <= n.ops[i].from {
				n.ops[i].after |= 1 << j
			}
		}
	}
}

// life adds the operations of one grant.
func (n *search) life(r *record, i int, a *attempted) {
	const never = math.MaxInt64
	if a.granted() {
		n.ops = append(n.ops, searchOp{f: history.Acquire, worker: a.worker, grant: i, token: a.token, from: a.asked, to: a.answered})
		if from := n.ends(r, a); from < never && a.released() == nil {
			n.ops = append(n.ops, searchOp{f: end, grant: i, from: max(from, a.asked), to: never, optional: true})
		}
		if n.releasedBefore(a) && a.released() == nil {
			n.ops = append(n.ops, searchOp{f: end, grant: i, from: a.asked, to: never, optional: true})
		}
	} else {
		n.ops = append(n.ops, searchOp{f: history.Acquire, worker: a.worker, grant: i, from: a.asked, to: never, optional: true},
			searchOp{f: end, grant: i, from: a.asked, to: never, optional: true})
	}
	for _, c := range a.releases {
		switch {
		case c.outcome == history.OK:
			n.ops = append(n.ops, searchOp{f: history.Release, grant: i, from: c.from, to: c.to})
		case c.outcome != history.Fail:
			n.ops = append(n.ops, searchOp{f: history.Release, grant: i, from: c.from, to: never, optional: true})
		case a.granted() && c.from > a.answered:
			// After an acquire without an answer, or one at the same time, a failed release says nothing: the
			// release may have arrived first.
			n.ops = append(n.ops, searchOp{f: notHeld, grant: i, from: c.from, to: c.to})
		}
	}
}

// releasedBefore says whether a release that was sent before a grant, and never answered, may still arrive and end it: the
// service gave the worker the same grant again.
func (n *search) releasedBefore(a *attempted) bool {
	return a.token != 0 && givenAgain(n.grants, a) && slices.ContainsFunc(n.grants, func(before *attempted) bool {
		return before.worker == a.worker && before.token == a.token && before.asked < a.asked &&
			slices.ContainsFunc(before.releases, func(c operation) bool {
				return c.outcome != history.OK && c.outcome != history.Fail && c.from < a.answered
			})
	})
}

// ends is the earliest time at which a grant may have ended by itself, whatever was said of it later.
func (n *search) ends(r *record, a *attempted) int64 {
	from := int64(math.MaxInt64)
	for _, e := range a.lost {
		if e.Error == history.ByService {
			from = min(from, e.Time)
		}
	}
	if len(r.order) > 0 && (n.header.Lease == 0 || n.header.Session) {
		n.exact = false // faults also end connections and sessions
		return a.asked
	}
	if lease := int64(n.header.Lease); lease > 0 {
		began := a.asked
		for _, c := range a.renewals {
			if c.outcome == history.OK {
				began = max(began, c.from)
			}
		}
		from = min(from, began+lease-lease/100-2e6)
	}
	return from
}

func (n *search) legal() bool { return !n.impossible && n.try(searchState{}) }

func (n *search) try(s searchState) bool {
	due, complete := int64(math.MaxInt64), true
	for i, o := range n.ops {
		if s.done&(1<<i) == 0 && !o.optional {
			due, complete = min(due, o.to), false
		}
	}
	if complete {
		return true
	}
	if n.seen[s] {
		return false
	}
	n.seen[s] = true
	for i, o := range n.ops {
		if s.done&(1<<i) != 0 || o.from > due || s.done&o.after != o.after {
			continue
		}
		next, legal := n.apply(s, o)
		next.done |= 1 << i
		if legal && n.try(next) {
			return true
		}
	}
	return false
}

func (n *search) apply(s searchState, o searchOp) (searchState, bool) {
	bit := uint32(1) << o.grant
	held := s.held&bit != 0
	switch o.f {
	case history.Acquire:
		return n.admit(s, o, bit)
	case busy:
		return s, held
	case notHeld:
		return s, !held
	}
	s.held &^= bit
	return s, held
}

// admit grants the lock to anybody while fewer than permitted hold it, and to the holder of a reentrant lock,
// which gets the same token.
func (n *search) admit(s searchState, o searchOp, bit uint32) (searchState, bool) {
	holders, writers, mine, token := 0, 0, 0, uint64(0)
	for i, g := range n.grants {
		if s.held&(1<<i) != 0 {
			holders++
			if !g.shared {
				writers++
			}
			if g.worker == n.grants[o.grant].worker {
				mine++
			}
			token = max(token, g.token)
		}
	}
	fenced := n.header.Tokens && n.header.Permits <= 1 && o.token != 0
	nested := n.header.Reentrant > 1 && mine > 0
	switch {
	case nested && (mine >= n.header.Reentrant || fenced && token != 0 && token != o.token):
		return s, false
	case n.grants[o.grant].shared && writers == 0: // shared with other readers
	case !nested && (holders >= max(1, n.header.Permits) || fenced && o.token <= s.highest && !(o.token == s.highest && givenAgain(n.grants, n.grants[o.grant]))):
		return s, false
	}
	s.held |= bit
	s.highest = max(s.highest, o.token)
	return s, true
}
