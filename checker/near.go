package checker

import (
	"cmp"
	"slices"
	"sort"
	"time"
)

// stretch is a time of one key, or of all keys if key is "".
type stretch struct {
	key      string
	from, to int64
}

const (
	// nearness is the margin of a close-up before and after an incident, in lengths of the incident.
	nearness = 5
	// nearest is added to that margin, so that an incident without length has one, too.
	nearest = 10 * int64(time.Millisecond)
	// maxNear limits the described holds, so that incidents that last as long as the run do not fill the
	// memory.
	maxNear = 500_000
)

// holdsNearIncidents describes the holds that a close-up of any listed incident can show, by key, then start. It returns
// none if they are too many.
func (r *run) holdsNearIncidents(findings []Finding) []Hold {
	named := r.named(findings)
	var all []stretch
	for _, f := range findings {
		for _, i := range f.Violations {
			all = append(all, r.closeUpOf(i, named))
		}
	}
	slices.SortFunc(all, func(a, b stretch) int { return cmp.Compare(a.from, b.from) })
	var out []Hold
	for _, k := range r.keys {
		parts := ofKey(all, r.name(k))
		for _, a := range r.byKey[k].holds {
			first := sort.Search(len(parts), func(i int) bool { return parts[i].to >= a.acquire.invoke })
			if first == len(parts) || parts[first].from > r.onRecord(r.byKey[k], a) {
				continue
			}
			if out = append(out, r.hold(a)); len(out) > maxNear {
				return nil
			}
		}
	}
	return out
}

// onRecord is the end of a hold, or of its claim at the service if that lasts longer.
func (r *run) onRecord(k *keyed, a *attempt) int64 {
	dropped, claimed := k.dropped[a.token]
	switch {
	case a.token == 0 || !claimed:
		return a.holdEnd
	case dropped == 0:
		return r.end
	}
	return max(a.holdEnd, dropped)
}

// named maps the grants that incidents name to their holds.
func (r *run) named(findings []Finding) map[string][]*attempt {
	out := make(map[string][]*attempt)
	for _, f := range findings {
		for _, i := range f.Violations {
			for _, g := range i.Grants {
				out[g] = nil
			}
		}
	}
	for _, a := range r.holds {
		name := r.name(a.grant)
		if _, is := out[name]; is {
			out[name] = append(out[name], a)
		}
	}
	return out
}

// closeUpOf is what a close-up of an incident shows. It has the incident and the holds that it names, or else
// the last hold before and the first hold after it, and a margin.
func (r *run) closeUpOf(i Incident, named map[string][]*attempt) stretch {
	s := stretch{i.Key, i.From, max(i.From, i.To)}
	var holds []*attempt
	for _, g := range i.Grants {
		holds = append(holds, named[g]...)
	}
	if len(holds) == 0 {
		holds = r.nextTo(s)
	}
	for _, a := range holds {
		s.from, s.to = min(s.from, a.acquire.done), max(s.to, a.holdEnd)
	}
	reach := nearness*(s.to-s.from) + nearest
	return stretch{i.Key, s.from - reach, s.to + reach}
}

// nextTo returns, for each key, the last hold that began before a stretch and the first one that began after
// it.
func (r *run) nextTo(s stretch) (out []*attempt) {
	for _, k := range r.keys {
		if s.key != "" && s.key != r.name(k) {
			continue
		}
		holds := r.byKey[k].holds
		if n := sort.Search(len(holds), func(i int) bool { return holds[i].acquire.done > s.from }); n > 0 {
			out = append(out, holds[n-1])
		}
		if n := sort.Search(len(holds), func(i int) bool { return holds[i].acquire.done >= s.to }); n < len(holds) {
			out = append(out, holds[n])
		}
	}
	return out
}

// ofKey selects the stretches that concern a key, and joins those that overlap. The input is in order.
func ofKey(all []stretch, key string) (out []stretch) {
	for _, s := range all {
		switch last := len(out) - 1; {
		case s.key != "" && s.key != key:
		case last >= 0 && s.from <= out[last].to:
			out[last].to = max(out[last].to, s.to)
		default:
			out = append(out, s)
		}
	}
	return out
}
