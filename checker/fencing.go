package checker

import (
	"cmp"
	"sort"

	"lockcheck/history"
)

// tokenOrder is the class of tokens that did not increase.
const tokenOrder = "token order"

// stamped is a grant with its token, and bounds on when it was in force. The grant had been given by first.
// At last it was still in force or had not yet been given. Grant a came before grant b if a.first < b.last
// and nothing shows the opposite order. If two workers held the lock at once, b.first < a.last shows the
// opposite order.
type stamped struct {
	*attempt
	first, last int64
}

// ranked says that the order of tokens means anything. It means nothing for a semaphore: a holder is not
// replaced by the next one, and each permit may count its own tokens. It means nothing for a lock that
// readers share either.
func ranked(h history.Header) bool { return h.Tokens && permits(h) == 1 && !readWrite(h) }

// tokensOutOfOrder finds grants whose token is not higher than that of an earlier grant. A grant that was
// answered before another was asked for is earlier, whatever the service did. Equal tokens are wrong in any
// order.
func (r *run) tokensOutOfOrder(k *keyed, o *opinion) misordered {
	wrong := make(misordered)
	if !ranked(r.header) {
		return wrong
	}
	found := o.tokens.total
	// The lists are built one after the other, because each is large for millions of grants.
	r.compareTokens(k.byAnswer(), wrong, func(a, b stamped) { r.fencingFault(a.attempt, b.attempt, &o.tokens) })
	r.compareTwins(k.byAnswer(), wrong, &o.tokens) // of two equal tokens only one is wrong if their grants have an order
	if o.tokens.total > found {
		r.misranked[r.names.Of(k.name)] = true
	}
	return wrong
}

// misordered are the grants whose tokens are known to be wrong.
type misordered map[*attempt]bool

// doubtTokens finds tokens that did not increase unless the lock was granted to two workers at once. Waiters
// in a queue usually have open acquires at the same time. If the service acknowledged their releases, they
// had the lock one after the other. But if the lock was granted to two of them at once, the tokens may have
// been right.
func (r *run) doubtTokens(k *keyed, blocks []block, wrong misordered, o *opinion) {
	if !ranked(r.header) || r.releasedInDoubt(k) {
		return
	}
	doubts := o.doubts.total
	r.compareTokens(vouched(blocks), wrong, func(a, b stamped) {
		if !r.endedEarlyBy(b.attempt, a.first) {
			r.fencingFault(a.attempt, b.attempt, &o.doubts)
		}
	})
	if o.doubts.total > doubts {
		r.misranked[r.names.Of(k.name)] = true
	}
}

// vouched returns when grants were in force according to all answers of the service. A worker whose release
// the service acknowledged had the lock until then.
func vouched(blocks []block) []stamped {
	all := make([]stamped, 0, len(blocks))
	for i := range blocks {
		if b := &blocks[i]; b.granted() && b.token != 0 {
			all = append(all, stamped{b.attempt, b.first, b.last})
		}
	}
	return all
}

// endedEarlyBy says that the service may have ended a grant by a time, whatever it answered later. Reasons
// are that the service says that the grant was gone, that its lease may have run out, or a fault of the
// servers.
func (r *run) endedEarlyBy(a *attempt, at int64) bool {
	return a.expired || a.ended == atRelease || a.ended == byNotification || r.endOf(a).byBelief() <= at || r.disturbed(a.acquire.invoke, at)
}

// releasedInDoubt says that a release of a key may have taken the lock from another worker, because the
// released grant was over or never existed.
func (r *run) releasedInDoubt(k *keyed) bool {
	if k.doubted == nil {
		doubted := r.doubtsRelease(k)
		k.doubted = &doubted
	}
	return *k.doubted
}

func (r *run) doubtsRelease(k *keyed) bool {
	for _, a := range k.attempts {
		for c := range a.releases {
			if !c.failed() && (!a.granted() || c.unknown() || r.endOf(a).byBelief() < c.invoke) {
				return true
			}
		}
	}
	return false
}

// byAnswer returns when grants were in force according to the answers to their acquires.
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
func (r *run) compareTwins(all []stamped, wrong misordered, found *incidents) {
	sorted(all, func(a, b stamped) int {
		return cmp.Or(cmp.Compare(a.token, b.token), r.byInvocation(a.attempt, b.attempt))
	})
	var kept stamped // the last grant whose token is not wrong
	for _, b := range all {
		switch {
		case wrong[b.attempt]:
		case kept.attempt != nil && kept.token == b.token && r.mustExceed(b, kept):
			wrong[b.attempt] = true
			r.fencingFault(kept.attempt, b.attempt, found)
		default:
			kept = b
		}
	}
}

// compareTokens compares each grant with the highest tokens of the grants before it. Two times bound each
// grant, so "before" is not a total order: waiters at the same time get rising tokens. A grant must therefore
// not be dropped for another that only seems to be before it.
func (r *run) compareTokens(all []stamped, wrong misordered, found func(a, b stamped)) {
	sorted(all, func(a, b stamped) int {
		return cmp.Or(cmp.Compare(a.last, b.last), r.byInvocation(a.attempt, b.attempt))
	})
	byFirst := make([]int32, len(all))
	for i := range byFirst {
		byFirst[i] = int32(i)
	}
	sorted(byFirst, func(i, j int32) int { return cmp.Or(cmp.Compare(all[i].first, all[j].first), cmp.Compare(i, j)) })
	seen, next := newHighest(all), 0
	for _, b := range all {
		for ; next < len(byFirst) && all[byFirst[next]].first < b.last; next++ {
			seen.add(int(byFirst[next]))
		}
		for _, a := range seen.upTo(b.first) {
			if a.attempt != nil && r.mustExceed(b, a) && !wrong[b.attempt] {
				wrong[b.attempt] = true
				found(a, b)
			}
		}
	}
}

// highest finds the highest tokens among the grants whose last is not after a time. It keeps the tokens of
// two workers, because one of them may have taken a reentrant lock again. (After P. M. Fenwick, "A new data
// structure for cumulative frequency tables", 1994.)
type highest struct {
	all  []stamped // by last
	tree []tokens
}

// tokens are the 1-based indexes of two grants of different workers, the higher token first; 0 for none.
type tokens [2]int32

func newHighest(all []stamped) highest { return highest{all, make([]tokens, len(all)+1)} }

// add inserts a grant, given by its index.
func (h highest) add(i int) {
	for n := i + 1; n < len(h.tree); n += n & -n {
		h.tree[n] = h.with(h.tree[n], int32(i+1))
	}
}

// upTo returns the grants whose last is not after a time; the attempt is nil for none.
func (h highest) upTo(time int64) [2]stamped {
	var found tokens
	for n := sort.Search(len(h.all), func(i int) bool { return h.all[i].last > time }); n > 0; n &= n - 1 {
		for _, i := range h.tree[n] {
			found = h.with(found, i)
		}
	}
	var grants [2]stamped
	for n, i := range found {
		if i > 0 {
			grants[n] = h.all[i-1]
		}
	}
	return grants
}

func (h highest) with(t tokens, i int32) tokens {
	higher := func(i, j int32) bool { return j == 0 || h.all[i-1].token > h.all[j-1].token }
	same := func(i, j int32) bool { return j > 0 && h.all[i-1].worker == h.all[j-1].worker }
	switch {
	case i == 0:
	case higher(i, t[0]) && same(i, t[0]):
		t[0] = i
	case higher(i, t[0]):
		t = tokens{i, t[0]}
	case higher(i, t[1]) && !same(i, t[0]):
		t[1] = i
	}
	return t
}

// mustExceed says that the token of b is wrong if a was before b. A worker that takes a reentrant lock again, or is
// given the grant again that it could not release, gets the same token, which is right.
func (r *run) mustExceed(b, a stamped) bool {
	again := a.token == b.token && (a.sameGrant() == b.sameGrant() || r.header.Reentrant > 1 && a.worker == b.worker)
	return b.token <= a.token && !again
}

func (r *run) fencingFault(a, b *attempt, found *incidents) {
	key := r.name(b.key)
	found.add(key, b.acquire.invoke, func() Incident {
		kind := KindTokenLower
		if a.token == b.token {
			kind = KindTokenSame
		}
		return Incident{
			Kind: kind, Figures: IncidentFigures{Tokens: []uint64{a.token, b.token}},
			Key: key, From: b.acquire.invoke, To: b.acquire.done, Class: tokenOrder,
			Workers: r.nameAll(a.worker, b.worker),
			Grants:  r.nameAll(a.grant, b.grant),
			Faults:  r.inForce(b.acquire.invoke, b.acquire.done),
		}
	})
}

// fencingOrder judges that tokens increase in grant order (M. Kleppmann, "How to do distributed locking",
// 2016). A lock without tokens has no order, which is not a pass. Neither is a grant without a token, because
// nothing protects what is done under it. Expired grants have a property of their own.
func fencingOrder(r *run, o opinion) judged {
	j := judge(FencingOrder, o.tokens)
	tokens, missing := 0, 0
	for _, h := range r.holds {
		switch {
		case h.token != 0:
			tokens++
		case !h.expired:
			missing++
		}
	}
	switch {
	case !r.header.Tokens:
		j.because(NotApplicable, Fact{Kind: FactNoTokens})
	case !ranked(r.header):
		j.because(NotApplicable, Fact{Kind: FactSharedByRight})
	case o.tokens.total > 0:
		j.because(Violation, Fact{Kind: FactTokensWrong, N: int64(o.tokens.total)})
	case o.doubts.total > 0:
		j.because(Undecided, Fact{Kind: FactTokensDoubtful, Incident: &o.doubts.first()[0]})
	case tokens == 0:
		j.because(Undecided, Fact{Kind: FactNoToken})
	case missing > 0:
		j.because(Undecided, Fact{Kind: FactTokensMissing, N: int64(missing), Of: int64(len(r.holds))})
	default:
		j.because(Valid, Fact{Kind: FactTokensIncrease, N: int64(tokens)})
	}
	return j
}
