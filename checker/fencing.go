package checker

import (
	"cmp"
	"fmt"

	"lockcheck/history"
)

// tokenOrder is the class of tokens that did not increase.
const tokenOrder = "token order"

// stamped is a grant with its token, and what is known of when it was in force: some
// step of it was over at first, and some step began at last.
type stamped struct {
	*attempt
	first, last int64
}

// before says that a was in force before b, and that nothing says the opposite, as of
// two who held the lock at once.
func (a stamped) before(b stamped) bool { return a.first < b.last && a.last <= b.first }

// ranked says that the order of tokens means anything. That of a semaphore does not: a
// holder is not replaced by the next one, and each permit may count tokens of its own.
func ranked(h history.Header) bool { return h.Tokens && permits(h) == 1 }

// tokensOutOfOrder finds tokens that did not increase: each grant whose token is not
// higher than that of a grant before it. One that was answered before another was asked
// for was before it. Waiters in a queue are open at the same time as a rule; what orders
// them is when their predecessor let go, which the steps of grants tell. Equal tokens
// are wrong in any order. Blocks are nil where they tell nothing.
func (r *run) tokensOutOfOrder(k *keyed, blocks []block, found *incidents) {
	if !ranked(r.header) {
		return
	}
	wrong := make(map[*attempt]bool)
	// One after the other: of millions of grants each list is large.
	r.compareTokens(k.byAnswer(), wrong, found)
	r.compareTwins(k.byAnswer(), wrong, found)
	var bySteps []stamped
	for i := range blocks {
		if b := &blocks[i]; b.granted() && b.token != 0 {
			bySteps = append(bySteps, stamped{b.attempt, b.first, b.last})
		}
	}
	r.compareTokens(bySteps, wrong, found)
}

// byAnswer is when grants were in force as far as the answers to their acquires tell.
func (k *keyed) byAnswer() []stamped {
	all := make([]stamped, 0, len(k.holds))
	for _, h := range k.holds {
		if h.token != 0 {
			all = append(all, stamped{h, h.acquire.done, h.acquire.invoke})
		}
	}
	return all
}

// compareTwins finds tokens that were handed out twice.
func (r *run) compareTwins(all []stamped, wrong map[*attempt]bool, found *incidents) {
	sorted(all, func(a, b stamped) int {
		return cmp.Or(cmp.Compare(a.token, b.token), r.byInvocation(a.attempt, b.attempt))
	})
	for i := 1; i < len(all); i++ {
		a, b := all[i-1], all[i]
		if a.token == b.token && r.mustExceed(b, a) && !wrong[a.attempt] && !wrong[b.attempt] {
			wrong[b.attempt] = true
			r.fencingFault(a.attempt, b.attempt, found)
		}
	}
}

// compareTokens compares each grant with the two highest tokens of those before it; one
// of them may be that of the worker itself, who took a reentrant lock again.
func (r *run) compareTokens(all []stamped, wrong map[*attempt]bool, found *incidents) {
	sorted(all, func(a, b stamped) int {
		return cmp.Or(cmp.Compare(a.first, b.first), r.byInvocation(a.attempt, b.attempt))
	})
	byLast := make([]int32, len(all))
	for i := range byLast {
		byLast[i] = int32(i)
	}
	sorted(byLast, func(i, j int32) int { return cmp.Or(cmp.Compare(all[i].last, all[j].last), cmp.Compare(i, j)) })
	var highest [2]stamped
	next := 0
	for _, b := range all {
		for ; next < len(byLast) && all[byLast[next]].last <= b.first; next++ {
			highest = withHighest(highest, all[byLast[next]])
		}
		for _, a := range highest {
			if a.attempt != nil && a.attempt != b.attempt && a.before(b) && r.mustExceed(b, a) && !wrong[b.attempt] {
				wrong[b.attempt] = true
				r.fencingFault(a.attempt, b.attempt, found)
			}
		}
	}
}

func withHighest(highest [2]stamped, a stamped) [2]stamped {
	switch {
	case highest[0].attempt == nil || a.token > highest[0].token:
		return [2]stamped{a, highest[0]}
	case highest[1].attempt == nil || a.token > highest[1].token:
		return [2]stamped{highest[0], a}
	}
	return highest
}

// mustExceed says that the token of b is wrong if a was before it. A worker that takes a
// reentrant lock again is to get the same token.
func (r *run) mustExceed(b, a stamped) bool {
	again := r.header.Reentrant > 1 && a.worker == b.worker && a.token == b.token
	return b.token <= a.token && !again
}

func (r *run) fencingFault(a, b *attempt, found *incidents) {
	key := r.name(b.key)
	found.add(key, b.acquire.invoke, func() Incident {
		how := "lower than"
		if a.token == b.token {
			how = "the same as"
		}
		return Incident{
			Key: key, From: b.acquire.invoke, To: b.acquire.done, Class: tokenOrder,
			What: fmt.Sprintf("%s got token %d for %s, %s %s's %d before it",
				r.name(b.worker), b.token, key, how, r.name(a.worker), a.token),
			Workers: r.nameAll(a.worker, b.worker),
			Grants:  r.nameAll(a.grant, b.grant),
			Faults:  r.inForce(b.acquire.invoke, b.acquire.done),
		}
	})
}

// fencingOrder judges that tokens increase in grant order (M. Kleppmann, "How to
// do distributed locking", 2016). A lock without tokens has none, which is not
// passing, and neither is a grant that came without one: nothing protects what is
// done under it. A dead grant has its own property.
func fencingOrder(r *run, found incidents) judged {
	j := judge(FencingOrder, found)
	tokens, missing := 0, 0
	for _, h := range r.holds {
		switch {
		case h.token != 0:
			tokens++
		case !h.dead:
			missing++
		}
	}
	switch {
	case !r.header.Tokens:
		j.Verdict, j.Summary = NotApplicable, "this lock has no tokens"
	case !ranked(r.header):
		j.Verdict, j.Summary = NotApplicable, sharedByRight
	case found.total > 0:
		j.clause = "a token did not increase " + times(found.total)
		j.Summary = j.clause
	case tokens == 0:
		j.Verdict, j.Summary = Undecided, "no grant came with a token"
	case missing > 0:
		j.Verdict = Undecided
		j.Summary = fmt.Sprintf("%d of %s came without a token", missing, count(len(r.holds), "grant", "grants"))
	default:
		j.Summary = count(tokens, "token", "tokens") + ", always increasing"
		if r.header.Reentrant > 1 {
			j.Summary += " or those of a lock that its worker took again"
		}
	}
	return j
}
