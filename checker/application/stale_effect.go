package application

import (
	"sort"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
)

// noStaleEffect judges that a holder does nothing more in its hold once another one, which began to hold the key later, has
// said so.
func noStaleEffect(r *run) checker.Finding {
	if f, is := r.unsaid(checker.NoStaleEffect, history.Holding); is {
		return f
	}
	if f, is := r.undescribed(checker.NoStaleEffect); is {
		return f
	}
	var found checker.Incidents
	inside := int64(0)
	for _, d := range r.effects {
		if d.hold == nil {
			continue
		}
		inside++
		if later := r.replacedBefore(d); later != nil {
			r.stale(&found, d, later)
		}
	}
	f := found.Finding(checker.NoStaleEffect)
	switch {
	case found.Total() > 0:
		because(&f, checker.Violation, checker.Fact{Kind: FactStaleEffects, N: found.Total()})
	case !r.ends():
		because(&f, checker.Undecided, checker.Fact{Kind: FactEndsUnsaid})
	case inside == 0:
		because(&f, checker.NotApplicable, checker.Fact{Kind: FactNoEffectHeld})
	default:
		because(&f, checker.Valid, checker.Fact{Kind: FactEffectsCurrent, N: inside})
	}
	return f
}

// replacedBefore returns the first hold of the same key by somebody else that began after the hold of an effect and before
// the effect itself, nil if there is none. By its token a hold may have been granted before, and only said so late.
func (r *run) replacedBefore(d *effect) *hold {
	h, all := d.hold, r.byKey[d.hold.key]
	for i := sort.Search(len(all), func(i int) bool { return all[i].start > h.start }); i < len(all) && all[i].start < d.from; i++ {
		o := all[i]
		late := h.token != 0 && o.token != 0 && o.token <= h.token
		if o.holder != h.holder && o.from > h.start && !o.again && !late {
			return o
		}
	}
	return nil
}

func (r *run) stale(found *checker.Incidents, d *effect, later *hold) {
	h := d.hold
	faults := r.between(h, later)
	state, cause, hit := r.whyUnnoticed(h, later, faults)
	if hit == later { // the lease of the later holder was over, so the effect is not stale
		return
	}
	found.Add(h.key, d.time, cause, func() checker.Incident {
		return checker.Incident{
			Kind: KindStaleEffect, Key: h.key, From: d.time, Cause: cause, Workers: []string{h.String(), later.String()}, Faults: ids(faults),
			Figures: checker.IncidentFigures{Holder: state, Length: time.Duration(d.from - later.start), ID: d.id},
		}
	})
}
