package checker

import (
	"slices"
	"sort"

	"lockcheck/history"
	"lockcheck/internal/stats"
)

// Classes of errors in a final state, as found in Incident.Class.
const (
	ClassLost       = "lost"
	ClassDuplicated = "duplicated"
	ClassPhantom    = "phantom" // nobody tried to write it, or the resource refused it
)

// updates collects what became of acknowledged updates. An update is acknowledged when the resource accepted
// its write, whatever became of the release. If the lock's own database keeps the data, an update also counts
// as acknowledged if the database answered its write and its release but has no record of it: an update that
// the database lost is in none of its records (docs/verdicts.md).
type updates struct {
	UpdateSummary
	incidents
	windows   lossWindows
	losses    []stats.Count // of the windows that had updates
	undecided []string      // keys whose final state was not read after all updates
	unjudged  int64         // acknowledged updates of the undecided keys
	differing []string      // keys whose final reads differ
}

func checkUpdates(r *run) updates {
	var u updates
	if history.WritesNothing(r.header.Workload) {
		return u
	}
	u.windows = r.lossWindows()
	for k := range r.dataKeys {
		judge, read := u.set, elements
		if r.header.Workload == history.WorkloadCounter {
			judge, read = u.counter, counted
		}
		states, err := k.finals.states(read)
		if err != nil || len(states) == 0 {
			u.unread(k, k.acknowledged())
			continue
		}
		judge(r, k, states)
		if r.header.Workload == history.WorkloadJobs {
			u.findRepeated(r, k)
		}
		if len(states) > 1 {
			u.differing = append(u.differing, k.name)
		}
		// The final state may rightly lack what was accepted after it was read.
		u.unread(k, k.late())
	}
	u.LossInterval, u.losses = u.windows.interval()
	return u
}

// accepted yields the accepted updates of a key, in the order in which the resource served them.
func (k *keyed) accepted(yield func(*access) bool) {
	for i := range k.accesses {
		if e := &k.accesses[i]; e.write && !e.refused && e.element != 0 && !yield(e) {
			return
		}
	}
}

// unread notes that some acknowledged updates of a key cannot be judged.
func (u *updates) unread(k *keyed, n int64) {
	if n > 0 {
		u.undecided = append(u.undecided, k.name)
		u.unjudged += n
	}
}

// acknowledged counts the acknowledged updates of a key.
func (k *keyed) acknowledged() int64 {
	n := int64(len(k.unrecorded))
	for range k.accepted {
		n++
	}
	return n
}

// late counts the updates that were accepted after the final state was read.
func (k *keyed) late() int64 {
	n := int64(0)
	for w := range k.accepted {
		if w.seq > k.finals.after {
			n++
		}
	}
	return n
}

// acknowledge counts the acknowledged updates of a key that its final state can tell of.
func (u *updates) acknowledge(k *keyed) int64 {
	n := int64(len(k.unrecorded))
	for w := range k.accepted {
		if w.seq <= k.finals.after {
			u.windows.of(w.time).N++
			n++
		}
	}
	for i := range k.unrecorded {
		u.windows.of(k.unrecorded[i].time).N++
	}
	u.Acknowledged += n
	return n
}

// set compares a key that holds a set of elements with the acknowledged updates. If final reads differ, an
// element is lost only if no read has it. An element is there too often, or as a phantom, only if all reads
// say so.
func (u *updates) set(r *run, k *keyed, states [][]int64) {
	present, seen := common(states)
	var lost []*access
	for w := range k.accepted {
		if _, there := slices.BinarySearch(seen, w.element); !there && w.seq <= k.finals.after {
			lost = append(lost, w)
		}
	}
	vanished := slices.DeleteFunc(slices.Clone(k.unrecorded), func(w access) bool {
		_, there := slices.BinarySearch(seen, w.element)
		return there
	})
	u.acknowledge(k)
	u.Lost += int64(len(lost) + len(vanished))
	u.lose(r, k, lost)
	u.vanish(r, k, vanished)
	for i := 0; i < len(present); {
		x, n := present[i], 1
		for i+n < len(present) && present[i+n] == x {
			n++
		}
		i += n
		if n > 1 {
			u.Duplicated++
			u.found(k, x, ClassDuplicated, KindDuplicated, IncidentFigures{N: int64(n)})
		}
		kind := KindPhantom
		if _, refused := slices.BinarySearch(k.refused, x); refused {
			kind = KindRefusedPhantom
		}
		if _, legal := slices.BinarySearch(k.legal, x); !legal {
			u.Phantom++
			u.found(k, x, ClassPhantom, kind, IncidentFigures{})
		}
	}
}

// lose records lost updates, in the order in which the resource served them.
func (u *updates) lose(r *run, k *keyed, lost []*access) {
	counted := make(map[*access]bool)
	for i, by := range k.overwriters(lost) {
		w, c := lost[i], cause{class: CauseUnexplained}
		if by != nil && !leaseUnknown(r.header) {
			c = r.whyOverwritten(w, by)
		}
		if by == nil || !counted[by] {
			u.LossEvents++
			counted[by] = true
		}
		u.windows.of(w.time).K++
		u.because(c.class, 1)
		r.origins.count(c, r.replacedBehind(w, by))
		u.incidents.add(k.name, w.time, func() Incident { return r.lostUpdate(k, w, by, c) })
	}
}

// vanish records updates that the database lost after it had reported them as committed.
func (u *updates) vanish(r *run, k *keyed, vanished []access) {
	for i := range vanished {
		w := &vanished[i]
		u.LossEvents++
		u.windows.of(w.time).K++
		u.because(CauseUnexplained, 1)
		r.origins.count(cause{}, nil)
		u.incidents.add(k.name, w.time, func() Incident { return r.vanished(k, w) })
	}
}

// found records an error in the final state of a key.
func (u *updates) found(k *keyed, element int64, class string, kind IncidentKind, figures IncidentFigures) {
	u.incidents.add(k.name, k.finals.time(), func() Incident {
		return Incident{Kind: kind, Figures: figures, Key: k.name, From: k.finals.time(), Element: element, Class: class}
	})
}

// counter compares a key that counts with the number of its increments. Which increments are missing follows
// from the versions that writes were based on; how many follows from the final state. If final reads differ,
// the highest shows what is lost, and the lowest shows what is too much.
func (u *updates) counter(r *run, k *keyed, states [][]int64) {
	value, least := states[0][0], states[0][0]
	for _, s := range states[1:] {
		value, least = max(value, s[0]), min(least, s[0])
	}
	acknowledged := u.acknowledge(k)
	lost := max(0, acknowledged-max(0, value))
	u.Lost += lost
	vanished := k.unrecorded[:min(lost, int64(len(k.unrecorded)))]
	u.vanish(r, k, vanished)
	rest := lost - int64(len(vanished))
	gone := k.overwritten()
	u.lose(r, k, gone[:min(rest, int64(len(gone)))])
	if rest -= int64(len(gone)); rest > 0 {
		u.loseLast(k, gone, rest)
		u.found(k, 0, ClassLost, KindCountedLess, IncidentFigures{N: value, Of: acknowledged, Missing: rest})
	}
	if more := least - int64(len(k.legal)); more > 0 {
		u.Phantom += more
		kind := KindCountedMore
		if len(k.refused) > 0 {
			kind = KindCountedRefused
		}
		u.found(k, 0, ClassPhantom, kind, IncidentFigures{N: least, Missing: more})
	}
}

// loseLast assumes that, among the updates that no write overwrote, the last n were lost.
func (u *updates) loseLast(k *keyed, gone []*access, n int64) {
	for i := len(k.accesses) - 1; i >= 0 && n > 0; i-- {
		switch w := &k.accesses[i]; {
		case !w.write || w.refused || w.element == 0 || w.seq > k.finals.after:
		case len(gone) > 0 && gone[len(gone)-1] == w:
			gone = gone[:len(gone)-1]
		default:
			u.windows.of(w.time).K++
			n--
		}
	}
}

// overwritten returns the writes that the last one does not build upon, in order. The chain of versions from
// the last write back is what survived.
func (k *keyed) overwritten() []*access {
	var gone []*access
	var next int64
	begun := false
	for i := range slices.Backward(k.accesses) {
		w := &k.accesses[i]
		if !w.write || w.refused || w.element == 0 || w.seq > k.finals.after {
			continue
		}
		if !begun {
			begun, next = true, w.version
		}
		if w.version == next {
			next = w.base
			continue
		}
		gone = append(gone, w)
	}
	slices.Reverse(gone)
	return gone
}

// lostUpdate describes a lost update, and the write that overwrote it unless by is nil.
func (r *run) lostUpdate(k *keyed, w, by *access, c cause) Incident {
	i := Incident{
		Kind: KindLostUnexplained, Figures: IncidentFigures{Version: w.version},
		Key: k.name, From: w.time, To: w.time, Element: w.element, Class: ClassLost, Cause: c.class,
		Workers: r.nameAll(w.client), Grants: r.nameAll(w.grant),
		Explanation: r.explainMixed(c, r.attempt(w.grant), r.holderBehind(by)),
	}
	if by != nil {
		i.Kind, i.Figures.Next, i.Figures.Base = KindOverwritten, by.version, by.base
		i.To = by.time
		i.Workers = append(i.Workers, r.name(by.client))
		i.Grants = append(i.Grants, r.name(by.grant))
	}
	i.Faults = r.inForce(w.time, i.To)
	return i
}

func (r *run) vanished(k *keyed, w *access) Incident {
	return Incident{
		Kind: KindVanished, Figures: IncidentFigures{Version: w.version},
		Key: k.name, From: w.time, To: w.time, Element: w.element, Class: ClassLost, Cause: CauseUnexplained,
		Workers: r.nameAll(w.client), Grants: r.nameAll(w.grant), Faults: r.inForce(w.time, w.time),
	}
}

// replacedBehind is the earlier of the two holders whose accesses got mixed. If either holder is not known,
// it is the holder of the lost update, which can be nil.
func (r *run) replacedBehind(lost, by *access) *attempt {
	a, b := r.attempt(lost.grant), r.holderBehind(by)
	if a == nil || b == nil || !a.granted() || !b.granted() {
		return a
	}
	earlier, _, _ := r.inOrder(a, b)
	return earlier
}

// holderBehind is the attempt of an access, nil for none.
func (r *run) holderBehind(e *access) *attempt {
	if e == nil {
		return nil
	}
	return r.attempt(e.grant)
}

// overwriters returns, for each of some accepted updates, the first later update that was computed without
// it, nil if there is none. The updates are in the order in which the resource served them.
func (k *keyed) overwriters(lost []*access) []*access {
	found := make([]*access, len(lost))
	// later is a stack of later updates, the nearest last. It omits updates with an update of a lower or
	// equal base before them, so the bases rise.
	var later []*access
	at := len(lost) - 1
	for i := len(k.accesses) - 1; i >= 0 && at >= 0; i-- {
		e := &k.accesses[i]
		if e == lost[at] {
			n := sort.Search(len(later), func(i int) bool { return later[i].base >= e.version })
			if n > 0 {
				found[at] = later[n-1]
			}
			at--
		}
		if !e.write || e.refused || e.element == 0 {
			continue
		}
		for len(later) > 0 && later[len(later)-1].base >= e.base {
			later = later[:len(later)-1]
		}
		later = append(later, e)
	}
	return found
}

func (u *updates) bad() int64 { return u.Lost + u.Duplicated + u.Repeated + u.Phantom }

// noLostUpdate judges that the final state has every acknowledged update exactly once, and nothing else.
func noLostUpdate(r *run, u updates) judged {
	j := judge(NoLostUpdate, u.incidents)
	j.Total = int(u.bad())
	switch {
	case history.WritesNothing(r.header.Workload):
		j.because(NotApplicable, Fact{Kind: FactWritesNothing})
	case u.bad() > 0:
		j.because(j.Verdict, Fact{Kind: FactUpdatesWrong})
	case len(u.undecided) > 0:
		j.because(Undecided, Fact{Kind: FactFinalUnread, Keys: u.undecided, N: u.unjudged})
	case len(u.differing) > 0:
		j.because(Undecided, Fact{Kind: FactFinalsDiffer, Keys: u.differing})
	case u.Acknowledged == 0:
		j.because(Undecided, Fact{Kind: FactNoUpdate})
	default:
		j.because(Valid, Fact{Kind: FactUpdatesKept})
	}
	return j
}
