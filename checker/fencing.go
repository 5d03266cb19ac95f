package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// tokenOrder is the class of tokens that did not increase.
const tokenOrder = "token order"

// fencingFaults finds tokens that did not increase. Two grants whose acquires
// were open at the same time may be stamped in either order; equal tokens are
// wrong in any case. Waiters in a queue are open at the same time as a rule: what
// orders them is when their predecessor let go, and that is what conflicts know.
func fencingFaults(r *run, conflicts map[string][]Incident) []Incident {
	if !r.header.Tokens {
		return nil
	}
	found := r.tokensOutOfOrder()
	known := make(map[string]bool)
	for _, i := range found {
		known[pairOf(i)] = true
	}
	for _, key := range sortedKeys(conflicts) {
		for _, i := range conflicts[key] {
			if i.Class == tokenOrder && !known[pairOf(i)] {
				found = append(found, i)
			}
		}
	}
	return found
}

// pairOf names the grants of an incident, whichever came first.
func pairOf(i Incident) string {
	return strings.Join(slices.Sorted(slices.Values(i.Grants)), " ")
}

// tokensOutOfOrder compares each grant with those that were complete before it
// was asked for.
func (r *run) tokensOutOfOrder() []Incident {
	byKey := make(map[string][]*attempt)
	for _, a := range r.attempts {
		if a.granted() && a.acquire.token != 0 {
			byKey[a.key] = append(byKey[a.key], a)
		}
	}
	var found []Incident
	for _, key := range sortedKeys(byKey) {
		found = append(found, r.fencingOf(byKey[key])...)
	}
	return found
}

func (r *run) fencingOf(grants []*attempt) []Incident {
	byInvoke := slices.SortedStableFunc(slices.Values(grants), func(a, b *attempt) int {
		return cmp.Or(cmp.Compare(a.acquire.invoke, b.acquire.invoke), cmp.Compare(a.grant, b.grant))
	})
	byDone := slices.SortedStableFunc(slices.Values(grants), func(a, b *attempt) int {
		return cmp.Or(cmp.Compare(a.acquire.done, b.acquire.done), cmp.Compare(a.grant, b.grant))
	})
	var found []Incident
	var highest *attempt // of the grants that were complete before b was asked for
	same := make(map[uint64]*attempt)
	complete := 0
	for _, b := range byInvoke {
		for complete < len(byDone) && byDone[complete].acquire.done < b.acquire.invoke {
			if a := byDone[complete]; highest == nil || a.acquire.token > highest.acquire.token {
				highest = a
			}
			complete++
		}
		twin := same[b.acquire.token]
		same[b.acquire.token] = b
		switch {
		case highest != nil && highest.acquire.token > b.acquire.token:
			found = append(found, r.fencingFault(highest, b))
		case twin != nil:
			found = append(found, r.fencingFault(twin, b))
		}
	}
	return found
}

func (r *run) fencingFault(a, b *attempt) Incident {
	how := "lower than"
	if a.acquire.token == b.acquire.token {
		how = "the same as"
	}
	return Incident{
		Key: b.key, From: b.acquire.invoke, To: b.acquire.done, Class: tokenOrder,
		What: fmt.Sprintf("%s got token %d for %s, %s %s's %d before it",
			b.worker, b.acquire.token, b.key, how, a.worker, a.acquire.token),
		Workers: []string{a.worker, b.worker},
		Grants:  []string{a.grant, b.grant},
		Faults:  r.inForce(b.acquire.invoke, b.acquire.done),
	}
}

// fencingOrder judges that tokens increase in grant order (M. Kleppmann, "How to
// do distributed locking", 2016). A lock without tokens has none, which is not
// passing, and neither is a grant that came without one: nothing protects what is
// done under it. A dead grant has its own property.
func fencingOrder(r *run, found []Incident) judged {
	j := judge(FencingOrder, found)
	tokens, missing := 0, 0
	for _, h := range r.holds {
		switch {
		case h.Token != 0:
			tokens++
		case !r.byGrant[h.Grant].acquire.dead:
			missing++
		}
	}
	switch {
	case !r.header.Tokens:
		j.Verdict, j.Summary = NotApplicable, "this lock has no tokens"
	case len(found) > 0:
		j.clause = "a token did not increase " + times(len(found))
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
