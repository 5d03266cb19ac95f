package checker

import (
	"cmp"
	"fmt"
	"slices"
)

// tokenOrder is the class of tokens that did not increase.
const tokenOrder = "token order"

// fencingFaults finds tokens that did not increase. Two grants whose acquires
// were open at the same time may be stamped in either order; equal tokens are
// wrong in any case. Waiters in a queue are open at the same time as a rule: what
// orders them is when their predecessor let go, and that is what conflicts know.
func fencingFaults(r *run, conflicts incidents) incidents {
	var found incidents
	if !r.header.Tokens {
		return found
	}
	for _, key := range r.keys {
		r.fencingOf(r.byKey[key], &found)
	}
	for _, i := range conflicts.first() {
		if !found.keys[i.Key] {
			found.add(i.Key, i.From, func() Incident { return i })
		}
	}
	return found
}

// fencingOf compares each grant with those that were complete before it was asked for.
func (r *run) fencingOf(k *keyed, found *incidents) {
	byDone := slices.DeleteFunc(slices.Clone(k.holds), func(a *attempt) bool { return a.token == 0 })
	byInvoke := slices.Clone(byDone)
	sorted(byInvoke, r.byInvocation)
	var highest *attempt // of the grants that were complete before b was asked for
	same := sameTokens(byDone)
	complete := 0
	for _, b := range byInvoke {
		for complete < len(byDone) && byDone[complete].acquire.done < b.acquire.invoke {
			if a := byDone[complete]; highest == nil || a.token > highest.token {
				highest = a
			}
			complete++
		}
		twin := same[b.token]
		if twin != nil {
			same[b.token] = b
		}
		switch {
		case highest != nil && highest.token > b.token:
			r.fencingFault(highest, b, found)
		case twin != nil && twin != b && !(r.header.Reentrant > 1 && twin.worker == b.worker):
			r.fencingFault(twin, b, found)
		}
	}
}

// sameTokens returns for each token that was handed out more than once the first
// grant that came with it.
func sameTokens(holds []*attempt) map[uint64]*attempt {
	byToken := slices.Clone(holds)
	sorted(byToken, func(a, b *attempt) int {
		return cmp.Or(cmp.Compare(a.token, b.token), cmp.Compare(a.acquire.invoke, b.acquire.invoke), cmp.Compare(a.grant, b.grant))
	})
	same := make(map[uint64]*attempt)
	for i := 1; i < len(byToken); i++ {
		if a := byToken[i-1]; a.token == byToken[i].token && same[a.token] == nil {
			same[a.token] = a
		}
	}
	return same
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
	}
	return j
}
