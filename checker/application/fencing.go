package application

import (
	"cmp"
	"slices"
	"sort"

	"lockcheck/checker"
)

// fencingOrder judges that each grant of a key has a greater token than those before it. That a line came later does not
// show that its grant did: a replica that is paused between the two says it late, with a token that is rightly lower. So
// two grants are in order for certain only if the first one had been said before the second one's holder gave up its
// last hold of the key, or began.
func fencingOrder(r *run) checker.Finding {
	f := checker.Finding{Property: checker.FencingOrder}
	var tokens, missing int64
	for _, h := range r.holds {
		switch {
		case h.again:
		case h.token != 0:
			tokens++
		default:
			missing++
		}
	}
	if tokens == 0 && !r.header.Tokens {
		because(&f, checker.NotApplicable, checker.Fact{Kind: checker.FactNoToken})
		return f
	}
	o := tokenOrder{run: r}
	for _, key := range r.keys() {
		o.judge(r.byKey[key])
	}
	f = o.found.Finding(checker.FencingOrder)
	switch {
	case o.found.Total() > 0:
		because(&f, checker.Violation, checker.Fact{Kind: checker.FactTokensWrong, N: o.found.Total()})
	case tokens == 0:
		because(&f, checker.Undecided, checker.Fact{Kind: checker.FactNoToken})
	case missing > 0:
		because(&f, checker.Undecided, checker.Fact{Kind: checker.FactTokensMissing, N: missing, Of: tokens + missing})
	case o.ordered == 0:
		because(&f, checker.Undecided, checker.Fact{Kind: FactTokensUnordered, N: tokens})
	default:
		because(&f, checker.Valid, checker.Fact{Kind: checker.FactTokensIncrease, N: tokens})
	}
	if o.late > 0 {
		because(&f, f.Verdict, checker.Fact{Kind: FactTokensLate, N: o.late})
	}
	return f
}

type tokenOrder struct {
	*run
	found         checker.Incidents
	ordered, late int64
}

// judge compares the holds of one key, by their starts, with the greatest token before each of them.
func (o *tokenOrder) judge(all []*hold) {
	holds := slices.DeleteFunc(slices.Clone(all), func(h *hold) bool { return h.again || h.token == 0 })
	greatest := make([]*hold, len(holds)) // up to each
	byToken := make(map[uint64]*hold)
	for i, h := range holds {
		greatest[i] = h
		if i > 0 && greatest[i-1].token >= h.token {
			greatest[i] = greatest[i-1]
		}
		before := func(time int64) *hold {
			n := sort.Search(i, func(j int) bool { return holds[j].start >= time })
			if n == 0 {
				return nil
			}
			return greatest[n-1]
		}
		certain, said := before(h.since), before(h.from)
		if certain != nil {
			o.ordered++
		}
		same := byToken[h.token]
		byToken[h.token] = cmp.Or(same, h)
		switch {
		case certain != nil && certain.token > h.token:
			o.wrong(checker.KindTokenLower, certain, h)
		case certain != nil && certain.token == h.token:
			o.wrong(checker.KindTokenSame, certain, h)
		case same != nil && same.holder != h.holder: // two grants, whichever was the first
			o.wrong(checker.KindTokenSame, same, h)
		case said != nil && said.token > h.token:
			o.late++
		}
	}
}

func (o *tokenOrder) wrong(kind checker.IncidentKind, earlier, later *hold) {
	o.found.Add(later.key, later.start, "", func() checker.Incident {
		return checker.Incident{
			Kind: kind, Key: later.key, From: later.start, Workers: []string{earlier.String(), later.String()},
			Faults: ids(o.between(earlier, later)), Figures: checker.IncidentFigures{Tokens: []uint64{earlier.token, later.token}},
		}
	})
}

func (r *run) keys() []string {
	var keys []string
	for k := range r.byKey {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// the order of effects is that of their lines, across replicas.
func (r *run) inOrder() []*effect {
	return slices.SortedStableFunc(slices.Values(r.effects), func(a, b *effect) int { return cmp.Compare(a.time, b.time) })
}
