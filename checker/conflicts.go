package checker

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// conflicts explains why a key is not linearizable, by the steps that cannot be
// put in order. It decides the same question as porcupine by another way, in
// polynomial time: since every grant is unique, all steps that need a grant to
// hold the lock form a block, nothing of another block can lie between them, and
// so only the order of whole blocks is open. Block a must come before b if some
// step of a was over before some step of b began (a.first < b.last), or if its
// token is lower. Without tokens a cycle of such demands always contains a pair
// that demands both: let a have the least first of a cycle without such a pair,
// k before it and j before k. Then k.first < a.last, and as a does not demand to
// be before k, k.last <= a.first; but j demands j.first < k.last, so j.first <
// a.first. (After P. Gibbons and E. Korach, "Testing shared memories", 1997.)
func conflicts(r *run, key string, steps []step) []Incident {
	blocks := blocksOf(steps)
	var found []Incident
	for _, b := range blocks {
		found = append(found, b.contradictions(r, key)...)
	}
	for i, a := range blocks {
		for _, b := range blocks[i+1:] {
			if a.before(b, r.header.Tokens) && b.before(a, r.header.Tokens) {
				found = append(found, clash(r, key, a, b))
			}
		}
	}
	if len(found) == 0 && r.header.Tokens {
		if a, b, cyclic := cycle(blocks); cyclic {
			found = append(found, clash(r, key, a, b))
		}
	}
	return found
}

// block is all steps of one grant.
type block struct {
	grant, worker string
	token         uint64
	acquire       step
	holding       []step // acquire, answers that named it, its end
	refused       []step // releases answered "not held"
	end           *step  // nil: it was held to the end of the history
	first         int64  // the earliest time at which one of its steps was over
	last          int64  // the latest time at which one of its steps began
}

func blocksOf(steps []step) []*block {
	byGrant := make(map[string]*block)
	var blocks []*block
	for _, s := range steps {
		b := byGrant[s.grant]
		if b == nil {
			b = &block{grant: s.grant, first: math.MaxInt64, last: math.MinInt64}
			byGrant[s.grant] = b
			blocks = append(blocks, b)
		}
		b.add(s)
	}
	for _, b := range blocks {
		b.bound()
	}
	slices.SortStableFunc(blocks, func(a, b *block) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.grant, b.grant))
	})
	return blocks
}

func (b *block) add(s step) {
	switch s.kind {
	case stepNotHeld:
		b.refused = append(b.refused, s)
		return
	case stepAcquire:
		b.acquire, b.worker, b.token = s, s.worker, s.token
	case stepRelease, stepEnd:
		b.end = &s
	}
	b.holding = append(b.holding, s)
}

// bound computes first and last. A release that was refused came after the end.
func (b *block) bound() {
	if b.end != nil {
		for _, s := range b.refused {
			b.end.ret = min(b.end.ret, s.ret)
		}
		b.first = b.end.ret
	}
	for _, s := range b.holding {
		b.first, b.last = min(b.first, s.ret), max(b.last, s.call)
	}
	if b.end == nil {
		b.last = math.MaxInt64
	}
}

func (b *block) before(c *block, fenced bool) bool {
	return b.first < c.last || fenced && b.token != 0 && c.token != 0 && b.token <= c.token
}

// contradictions are answers about one grant that exclude each other.
func (b *block) contradictions(r *run, key string) []Incident {
	var found []Incident
	report := func(s step, class, what string) {
		found = append(found, Incident{
			Key: key, From: b.acquire.call, To: s.ret, Class: class, What: what,
			Workers: []string{b.worker, s.worker}, Grants: []string{b.grant},
			Faults: r.inForce(b.acquire.call, s.ret),
		})
	}
	for _, s := range b.refused {
		switch {
		case b.end == nil:
			report(s, "ended early", fmt.Sprintf("the service no longer knew the lock of %s on %s, which cannot have ended by itself", b.worker, key))
		case b.end.call > s.ret:
			report(s, "ended early", fmt.Sprintf("the service no longer knew the lock of %s on %s, %s before it can have ended by itself", b.worker, key, dur(b.end.call-s.ret)))
		}
	}
	for _, s := range b.holding {
		switch {
		case s.kind != stepAcquire && s.ret < b.acquire.call:
			report(s, "contradictory answers", fmt.Sprintf("%s was answered that %s held %s before that one had asked for it", s.worker, b.worker, key))
		case b.end != nil && s.kind != b.end.kind && b.end.ret < s.call:
			report(s, "contradictory answers", fmt.Sprintf("%s was answered that %s held %s after the service had said that it no longer did", s.worker, b.worker, key))
		}
	}
	return found
}

// clash describes two grants of which each must have come before the other.
func clash(r *run, key string, a, b *block) Incident {
	from, to := max(a.acquire.call, b.acquire.call), max(a.first, b.first)
	i := Incident{
		Key: key, From: from, To: to, Class: "granted twice",
		What: fmt.Sprintf("the service let %s have %s before the grant of %s can have ended",
			b.worker, key, a.worker),
		Workers: []string{a.worker, b.worker}, Grants: []string{a.grant, b.grant},
		Faults: r.inForce(from, to),
	}
	if !a.before(b, false) || !b.before(a, false) {
		i.Class = tokenOrder
		i.What = fmt.Sprintf("the tokens of %s and %s for %s, %d and %d, contradict the order in which they can have had it",
			a.worker, b.worker, key, a.token, b.token)
	}
	return i
}

// cycle finds two neighbours of a cycle of demands. Only tokens can make one
// that has no pair which demands both orders.
func cycle(blocks []*block) (*block, *block, bool) {
	const (
		unseen = iota
		open
		closed
	)
	state := make(map[*block]int)
	var visit func(*block) (*block, *block, bool)
	visit = func(a *block) (*block, *block, bool) {
		state[a] = open
		for _, b := range blocks {
			if a == b || !a.before(b, true) || state[b] == closed {
				continue
			}
			if state[b] == open {
				return a, b, true
			}
			if x, y, ok := visit(b); ok {
				return x, y, true
			}
		}
		state[a] = closed
		return nil, nil, false
	}
	for _, b := range blocks {
		if state[b] == unseen {
			if x, y, ok := visit(b); ok {
				return x, y, true
			}
		}
	}
	return nil, nil, false
}
