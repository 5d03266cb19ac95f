package checker

import "math"

// past returns what had become of a granted attempt at a given time.
func (r *run) past(a *attempt, time int64) Past {
	granted := r.granted(a)
	p := Past{Granted: &granted, Fate: FateNotReleased}
	killed := r.byWorker[a.worker].killed
	switch c := a.released(); {
	case c != nil:
		p.Fate, p.Asked, p.At = FateReleased, c.invoke, c.done
	case a.triedRelease && a.release.failed():
		p.Fate, p.At = FateGone, a.release.done
	case a.triedRelease:
		p.Fate, p.Asked = FateUnanswered, a.release.invoke
	case killed != 0 && killed <= time:
		p.Fate, p.At = FateKilled, killed
	}
	return p
}

// between is the last other attempt that may explain why b was granted after a, nil if there is none. It
// prefers a holder that the service named although no worker had been granted that. Otherwise it is the last
// attempt that a worker gave up or whose release it sent: what that left behind or removed may be the reason.
// If several workers may hold the lock, releases are excluded, because they rightly let the next worker in.
func (r *run) between(a, b *attempt) *Past {
	k, from, to := r.byKey[b.key], a.acquire.done, b.acquire.done
	if holder := r.namedHolder(k, from, to, false); holder != nil {
		return holder
	}
	var last *attempt
	var at int64
	for _, other := range k.attempts {
		left := r.leftAt(other)
		if other != a && other != b && from < left && left < to && left > at && (!other.granted() || exclusive(r.header)) {
			last, at = other, left
		}
	}
	if last == nil {
		return nil
	}
	return r.pastOf(last, to)
}

// pastOf is past for an attempt that may not have been granted.
func (r *run) pastOf(a *attempt, time int64) *Past {
	if !a.granted() {
		return &Past{Granted: &Granted{Worker: r.name(a.worker), Grant: r.name(a.grant)}, Fate: FateGaveUp, At: r.gaveUp(a)}
	}
	p := r.past(a, time)
	return &p
}

// leftAt is when a worker gave an attempt up, or sent the release of its grant; 0 for neither. An attempt that
// was refused because the lock is held leaves nothing behind.
func (r *run) leftAt(a *attempt) int64 {
	switch {
	case !a.asked || a.busy:
		return 0
	case !a.granted():
		return r.gaveUp(a)
	case a.triedRelease:
		return a.release.invoke
	}
	return 0
}

// namedHolder is the last grant in a time that the service named as the holder when it refused an attempt for
// a key. If granted is false, only grants count that no worker is known to have.
func (r *run) namedHolder(k *keyed, from, to int64, granted bool) *Past {
	var last *attempt
	for _, a := range k.attempts {
		if !a.namesHolder() || a.acquire.done <= from || a.acquire.done > to || last != nil && a.acquire.done <= last.acquire.done {
			continue
		}
		if h := r.attempt(a.holder); h == nil || r.byKey[h.key] == k && (granted || !h.granted()) {
			last = a
		}
	}
	if last == nil {
		return nil
	}
	p := &Past{Granted: &Granted{Grant: r.name(last.holder)}, Fate: FateNamed, At: last.acquire.done}
	switch h := r.attempt(last.holder); {
	case h != nil && h.granted():
		*p.Granted = r.granted(h)
	case h != nil:
		p.Granted.Worker, p.Granted.RefusedByItself = r.name(h.worker), h.busy && h.holder == h.grant
	}
	return p
}

// firstClaim returns the claim that was first in the service's queue at a time, as the observer saw it. The
// queue is ordered by tokens, so the first claim has the lowest token. It is nil if no claim was observed.
func (r *run) firstClaim(k *keyed, time int64) *Past {
	first := uint64(math.MaxUint64)
	for token, dropped := range k.dropped {
		if token < first && (dropped > time || dropped == 0 && r.unobserved == 0) {
			first = token
		}
	}
	if first == math.MaxUint64 {
		return nil
	}
	p := &Past{Granted: &Granted{Token: first}, Fate: FateClaimed, At: time}
	for _, h := range k.holds {
		if h.token == first {
			*p.Granted = r.granted(h)
		}
	}
	return p
}

// lastHold describes the last hold of a key before a time in which nobody could acquire it, what became of
// it, and what may have blocked the key since.
func (r *run) lastHold(k *keyed, s span) *LastHold {
	var last LastHold
	asked := int64(math.MinInt64)
	if i := k.firstHoldAfter(s.from) - 1; i >= 0 {
		last.Past, asked = r.past(k.holds[i], s.from), k.holds[i].acquire.invoke
	}
	if last.Since = r.namedHolder(k, s.from, s.to, true); last.Since == nil {
		last.Since = r.firstClaim(k, s.from+s.length()/2)
	}
	if last.Since != nil {
		return &last
	}
	var before *attempt
	for _, a := range k.attempts {
		at := r.leftAt(a)
		if !a.granted() && asked < at && at <= s.from && (before == nil || at > r.leftAt(before)) {
			before = a
		}
	}
	if before != nil {
		last.Since = r.pastOf(before, s.from)
	}
	return &last
}
