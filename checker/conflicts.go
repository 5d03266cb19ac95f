package checker

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// The order of grants decides the same question as porcupine in another way, and explains the answer. Every
// grant is unique, so all steps that need a grant to hold the lock form a block, and no step of another block
// can lie between them. Only the order of whole blocks is open. Block a must come before b if some step of a
// was over before some step of b began (a.first < b.last), or if its token is lower. An order exists if and
// only if these constraints have no cycle, that is, if one can repeatedly take away a block that no remaining
// block must precede. (After P. Gibbons and E. Korach, "Testing shared memories", 1997.) Tokens have a
// separate checker that finds every wrong token; here one cycle may hide another.

// Classes of conflicting answers, in addition to tokenOrder.
const (
	classGrantedTwice  = "granted twice"
	classEndedEarly    = "ended early"
	classContradictory = "contradictory answers"
)

// block is all steps of one grant.
type block struct {
	*attempt
	first int64 // the earliest time at which one of its steps was over
	last  int64 // the latest time at which one of its steps began
	// If ends, the grant may have ended between these two times.
	endCall, endRet int64
	end             stepKind
	ends            bool // false if the grant was held to the end of the history
}

func (b *block) fold(s step) {
	switch s.kind {
	case stepNotHeld:
		if b.endRet = min(b.endRet, s.ret); b.ends {
			b.first = min(b.first, b.endRet)
		}
		return
	case stepRelease, stepEnd:
		b.ends, b.end, b.endCall, b.endRet = true, s.kind, s.call, min(b.endRet, s.ret)
	}
	b.first, b.last = min(b.first, s.ret), max(b.last, s.call)
}

// before says whether b must come before c.
func (b *block) before(c *block, fenced bool) bool {
	return b.first < c.last || fenced && b.token != 0 && c.token != 0 && b.ranksBefore(c.attempt)
}

// blocksOf returns the blocks of a key, and the number of their steps.
func (r *run) blocksOf(k *keyed) ([]block, int) {
	n, steps := 0, 0
	for _, a := range k.attempts {
		if a.modelled() {
			n++
		}
	}
	blocks := make([]block, 0, n)
	for _, a := range k.attempts {
		if !a.modelled() {
			continue
		}
		b := block{attempt: a, first: math.MaxInt64, last: math.MinInt64, endRet: math.MaxInt64}
		for s := range r.stepsOf(a) {
			b.fold(s)
			steps++
		}
		if !b.ends {
			b.last = math.MaxInt64
		}
		a.block = int32(len(blocks))
		blocks = append(blocks, b)
	}
	for _, a := range k.attempts {
		if h := r.refusedFor(a); h != nil && h.key == a.key {
			blocks[h.block].fold(r.refusal(a, h))
			steps++
		}
	}
	return blocks, steps
}

// findConflicts looks for answers about a key that no order of grants allows, and returns the number of steps.
func (o *opinion) findConflicts(r *run, k *keyed) int {
	wrong := r.tokensOutOfOrder(k, o)
	blocks, steps := r.blocksOf(k)
	for i := range blocks {
		for s := range r.stepsOf(blocks[i].attempt) {
			o.contradiction(r, &blocks[i], s)
		}
	}
	for _, a := range k.attempts {
		switch h := r.refusedFor(a); {
		case h == nil:
		case h.key != a.key:
			o.conflicts.add(k.name, a.acquire.invoke, func() Incident { return r.elsewhere(a, h) })
		default:
			o.contradiction(r, &blocks[h.block], r.refusal(a, h))
		}
	}
	if !exclusive(r.header) {
		// In a shared lock the steps of one holder say nothing about when others held it.
		return steps
	}
	r.doubtTokens(k, blocks, wrong, o)
	q := newQueue(r, blocks)
	for a, b := q.clash(); a != nil; a, b = q.clash() {
		o.clash(r, a, b)
	}
	return steps
}

// contradiction reports a step that another answer about the same grant excludes.
func (o *opinion) contradiction(r *run, b *block, s step) {
	class, kind, early := classEndedEarly, KindEndedEarly, time.Duration(0)
	switch {
	case s.kind == stepNotHeld && !b.ends:
		kind = KindEndedNever
	case s.kind == stepNotHeld && b.endCall > s.ret:
		early = time.Duration(b.endCall - s.ret)
	case s.kind == stepNotHeld:
		return
	case s.kind != stepAcquire && s.ret < b.acquire.invoke:
		class, kind = classContradictory, KindAnsweredBefore
	case b.ends && s.kind != b.end && b.endRet < s.call:
		class, kind = classContradictory, KindAnsweredAfter
	default:
		return
	}
	key := r.name(b.key)
	o.conflicts.add(key, b.acquire.invoke, func() Incident {
		return Incident{
			Kind: kind, Figures: IncidentFigures{Length: early},
			Key: key, From: b.acquire.invoke, To: s.ret, Class: class,
			Workers: r.nameAll(b.worker, s.worker), Grants: r.nameAll(b.grant),
			Faults: r.inForce(b.acquire.invoke, s.ret),
		}
	})
}

// elsewhere describes an attempt that was refused in favour of a grant of another key.
func (r *run) elsewhere(a, holder *attempt) Incident {
	return Incident{
		Kind: KindHeldElsewhere, Figures: IncidentFigures{OtherKey: r.name(holder.key)},
		Key: r.name(a.key), From: a.acquire.invoke, To: a.acquire.done, Class: classContradictory,
		Workers: r.nameAll(a.worker, holder.worker), Grants: r.nameAll(a.grant, holder.grant),
		Faults: r.inForce(a.acquire.invoke, a.acquire.done),
	}
}

// clash reports two grants of which each must have come before the other.
func (o *opinion) clash(r *run, a, b *block) {
	key := r.name(a.key)
	from, to := max(a.acquire.invoke, b.acquire.invoke), max(a.first, b.first)
	o.conflicts.add(key, from, func() Incident {
		i := Incident{
			Kind: KindGrantedTwice, Key: key, From: from, To: to, Class: classGrantedTwice,
			Workers: r.nameAll(a.worker, b.worker), Grants: r.nameAll(a.grant, b.grant), Faults: r.inForce(from, to),
		}
		if !a.before(b, false) || !b.before(a, false) {
			i.Kind, i.Class, i.Figures.Tokens = KindTokensContradict, tokenOrder, []uint64{a.token, b.token}
		}
		return i
	})
}

// queue takes blocks away in an order that the constraints allow. Looking at three blocks is enough each
// time. Let m be the block with the least first, c the block with the least last among those without a token,
// and t the block with the lowest token. If a block b can go, b.last is at most the first of all others. If b
// has a token, b is t. If b has no token and is not m, then c.last <= b.last <= m.first, so that c can go as
// well.
type queue struct {
	blocks  []block // by first
	byLast  []int32 // blocks without a token
	byToken []int32 // blocks with a token
	gone    []bool
	fenced  bool
	// Indexes of the first remaining block in each of these orders, and of the second one (m2, t2). They only
	// ever increase.
	m, m2, c, t, t2 int
}

func newQueue(r *run, blocks []block) *queue {
	sorted(blocks, func(a, b block) int {
		if c := cmp.Compare(a.first, b.first); c != 0 {
			return c
		}
		return cmp.Compare(r.name(a.grant), r.name(b.grant))
	})
	q := &queue{blocks: blocks, gone: make([]bool, len(blocks)), fenced: r.header.Tokens}
	for i := range blocks {
		if q.fenced && blocks[i].token != 0 {
			q.byToken = append(q.byToken, int32(i))
		} else {
			q.byLast = append(q.byLast, int32(i))
		}
	}
	sorted(q.byLast, func(i, j int32) int { return cmp.Compare(blocks[i].last, blocks[j].last) })
	sorted(q.byToken, func(i, j int32) int {
		return cmp.Or(cmp.Compare(blocks[i].token, blocks[j].token), cmp.Compare(blocks[i].timesResumed(), blocks[j].timesResumed()))
	})
	return q
}

// clash takes away all blocks that can go. It returns two blocks that block each other, after taking one of
// them away. It returns nil when no blocks are left.
func (q *queue) clash() (*block, *block) {
	for {
		m, m2 := q.foremost()
		if m < 0 {
			return nil, nil
		}
		c := q.next(len(q.byLast), func(i int) int { return int(q.byLast[i]) }, &q.c)
		t, t2 := q.lowest()
		free := func(i int) bool {
			other := m
			if i == m {
				other = m2
			}
			return i >= 0 && (other < 0 || q.blocks[i].last <= q.blocks[other].first)
		}
		switch {
		case free(c):
			q.gone[c] = true
		case free(t) && (t2 < 0 || !q.blocks[t2].ranksBefore(q.blocks[t].attempt)):
			q.gone[t] = true
		case free(m) && !(q.fenced && q.blocks[m].token != 0):
			q.gone[m] = true
		default:
			return q.pair(m, m2, c, t, t2)
		}
	}
}

// pair returns two of the blocks that must each precede the other, the one with the earlier first before the
// other. Without tokens m and m2 are such a pair: c is neither, or it could go, and m.first < c.last <= m2.last.
// If no two of the blocks are such a pair, three of them form a cycle: t must precede m2 for its token, and for
// their times m2 must precede m, and m must precede t. Then the tokens are wrong.
func (q *queue) pair(m, m2, c, t, t2 int) (*block, *block) {
	candidates := []int{m, m2, c, t, t2}
	candidates = slices.DeleteFunc(candidates, func(i int) bool { return i < 0 })
	slices.Sort(candidates)
	candidates = slices.Compact(candidates)
	for n, i := range candidates {
		for _, j := range candidates[n+1:] {
			a, b := &q.blocks[i], &q.blocks[j]
			if a.before(b, q.fenced) && b.before(a, q.fenced) {
				q.gone[q.worse(i, j, candidates)] = true
				return a, b
			}
		}
	}
	q.gone[t] = true
	return &q.blocks[m2], &q.blocks[t]
}

// worse returns which of two clashing blocks to take away, so that one wrong grant is not counted again with
// each right one. It is the block that clashes with more of the others, or else the one that lasts longer.
func (q *queue) worse(i, j int, others []int) int {
	clashes := func(i int) int {
		n := 0
		for _, o := range others {
			a, b := &q.blocks[i], &q.blocks[o]
			if i != o && a.before(b, q.fenced) && b.before(a, q.fenced) {
				n++
			}
		}
		return n
	}
	if cmp.Or(cmp.Compare(clashes(i), clashes(j)), cmp.Compare(q.blocks[i].last, q.blocks[j].last)) < 0 {
		return j
	}
	return i
}

// foremost returns the two blocks with the least first, -1 for none.
func (q *queue) foremost() (int, int) {
	all := func(i int) int { return i }
	first := q.next(len(q.blocks), all, &q.m)
	q.m2 = max(q.m2, q.m+1)
	return first, q.next(len(q.blocks), all, &q.m2)
}

// lowest returns the two blocks with the lowest tokens, -1 for none.
func (q *queue) lowest() (int, int) {
	byToken := func(i int) int { return int(q.byToken[i]) }
	first := q.next(len(q.byToken), byToken, &q.t)
	q.t2 = max(q.t2, q.t+1)
	return first, q.next(len(q.byToken), byToken, &q.t2)
}

// next advances to the first remaining block of an order and returns it, -1 for none.
func (q *queue) next(n int, block func(int) int, at *int) int {
	for *at < n && q.gone[block(*at)] {
		*at++
	}
	if *at >= n {
		return -1
	}
	return block(*at)
}
