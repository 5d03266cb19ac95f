package checker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"lockcheck/history"
	"lockcheck/internal/stats"
)

// Classes of what can be wrong with a final state, as found in Incident.Class.
const (
	ClassLost       = "lost"
	ClassDuplicated = "duplicated"
	ClassPhantom    = "phantom" // nobody tried to write it
)

// updates collects what became of acknowledged updates. An update is
// acknowledged when the resource accepted its write, whatever became of the
// release. Where the record of the resource is that of the database which keeps the data
// one is, too, that the database has not on record but whose write and release it
// answered: what it lost is in no record of its own (docs/verdicts.md).
type updates struct {
	UpdateSummary
	incidents
	undecided []string // keys without a final state that can be read
	unjudged  int64    // acknowledged updates of those
}

func checkUpdates(r *run) updates {
	var u updates
	if r.header.Workload == history.WorkloadMutex {
		return u
	}
	for k := range r.dataKeys {
		var err error
		switch {
		case k.final == nil:
			u.unread(k)
			continue
		case r.header.Workload == history.WorkloadCounter:
			err = u.counter(r, k)
		default:
			err = u.set(r, k)
		}
		if err != nil {
			u.unread(k)
		}
	}
	u.LostLow, u.LostHigh = stats.Wilson(u.Lost, u.Acknowledged)
	return u
}

// accepted returns the accepted updates of a key in true order.
func (k *keyed) accepted(yield func(*access) bool) {
	for i := range k.accesses {
		if e := &k.accesses[i]; e.write && !e.refused && e.element != 0 && !yield(e) {
			return
		}
	}
}

func (u *updates) unread(k *keyed) {
	if n := k.acknowledged(); n > 0 {
		u.undecided = append(u.undecided, k.name)
		u.unjudged += n
	}
}

// acknowledged counts the updates of a key that were.
func (k *keyed) acknowledged() int64 {
	n := int64(len(k.unrecorded))
	for range k.accepted {
		n++
	}
	return n
}

func null(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || bytes.Equal(raw, []byte("null"))
}

// set compares a key that holds a set of elements with what was acknowledged.
func (u *updates) set(r *run, k *keyed) error {
	var present []int64
	if !null(k.final.Value) {
		if err := json.Unmarshal(k.final.Value, &present); err != nil {
			return err
		}
	}
	slices.Sort(present)
	var lost []*access
	for w := range k.accepted {
		if _, there := slices.BinarySearch(present, w.element); !there {
			lost = append(lost, w)
		}
	}
	vanished := slices.DeleteFunc(slices.Clone(k.unrecorded), func(w access) bool {
		_, there := slices.BinarySearch(present, w.element)
		return there
	})
	u.Acknowledged += k.acknowledged()
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
			u.found(k, x, ClassDuplicated, "element %d is in the final state of %s %s", x, k.name, times(n))
		}
		if _, tried := slices.BinarySearch(k.asked, x); !tried {
			u.Phantom++
			u.found(k, x, ClassPhantom, "element %d is in the final state of %s, though nobody tried to write it", x, k.name)
		}
	}
	return nil
}

// lose records updates that were lost, in true order.
func (u *updates) lose(r *run, k *keyed, lost []*access) {
	var last *access
	for i, by := range k.overwriters(lost) {
		w, c := lost[i], cause{class: CauseUnexplained}
		if by != nil && !leaseUnknown(r.header) {
			c = r.whyOverwritten(w, by)
		}
		// One write that loses many updates comes after all of them.
		if by == nil || by != last {
			u.LossEvents++
		}
		last = by
		u.because(c.class)
		u.incidents.add(k.name, w.time, func() Incident { return r.lostUpdate(k, w, by, c) })
	}
}

// vanish records updates that the database lost after it had said that they are committed.
func (u *updates) vanish(r *run, k *keyed, vanished []access) {
	for i := range vanished {
		w := &vanished[i]
		u.LossEvents++
		u.because(CauseUnexplained)
		u.incidents.add(k.name, w.time, func() Incident { return r.vanished(k, w) })
	}
}

func (u *updates) found(k *keyed, element int64, class, what string, args ...any) {
	u.incidents.add(k.name, k.final.Time, func() Incident {
		return Incident{Key: k.name, From: k.final.Time, Element: element, Class: class, What: fmt.Sprintf(what, args...)}
	})
}

// counter compares a key that counts with how often it was incremented. Which
// increments are missing follows from the versions that writes were based on;
// how many follows from the final state.
func (u *updates) counter(r *run, k *keyed) error {
	var value int64
	if !null(k.final.Value) {
		v, err := strconv.ParseInt(string(bytes.TrimSpace(k.final.Value)), 10, 64)
		if err != nil {
			return err
		}
		value = v
	}
	acknowledged := k.acknowledged()
	u.Acknowledged += acknowledged
	lost := max(0, acknowledged-max(0, value))
	u.Lost += lost
	vanished := k.unrecorded[:min(lost, int64(len(k.unrecorded)))]
	u.vanish(r, k, vanished)
	rest := lost - int64(len(vanished))
	gone := k.overwritten()
	u.lose(r, k, gone[:min(rest, int64(len(gone)))])
	if rest -= int64(len(gone)); rest > 0 {
		u.found(k, 0, ClassLost, "%s counts %d after %s; no write explains the loss of %d", k.name, value, count(acknowledged, "increment", "increments"), rest)
	}
	if more := value - int64(len(k.asked)); more > 0 {
		u.Phantom += more
		u.found(k, 0, ClassPhantom, "%s counts %d, %d more than anybody tried to add", k.name, value, more)
	}
	return nil
}

// overwritten returns the writes that the last one does not build upon, in true
// order: the chain of versions from the last write back is what survived.
func (k *keyed) overwritten() []*access {
	var gone []*access
	var next int64
	begun := false
	for i := range slices.Backward(k.accesses) {
		w := &k.accesses[i]
		if !w.write || w.refused || w.element == 0 {
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

// lostUpdate describes a lost update, which was overwritten by another unless that is nil.
func (r *run) lostUpdate(k *keyed, w, by *access, c cause) Incident {
	client := r.name(w.client)
	i := Incident{
		Key: k.name, From: w.time, To: w.time, Element: w.element, Class: ClassLost, Cause: c.class,
		Workers: []string{client}, Grants: r.nameAll(w.grant),
		What: fmt.Sprintf("update %d of %s to %s (version %d) was acknowledged, but the final state lacks it; no accepted write explains it",
			w.element, client, k.name, w.version),
	}
	if by != nil {
		i.To = by.time
		i.Workers = append(i.Workers, r.name(by.client))
		i.Grants = append(i.Grants, r.name(by.grant))
		i.What = fmt.Sprintf("update %d of %s to %s (version %d) was overwritten %s later by %s, whose version %d was computed from version %d",
			w.element, client, k.name, w.version, dur(max(0, by.time-w.time)), r.name(by.client), by.version, by.base)
	}
	i.Faults = r.inForce(w.time, i.To)
	if a, b := r.attempt(w.grant), r.holderBehind(by); c.class != CauseUnexplained {
		a, b, _ = r.inOrder(a, b)
		i.Why = r.tell(c, a, b)
	}
	return i
}

// vanished describes an update that the database lost.
func (r *run) vanished(k *keyed, w *access) Incident {
	client := r.name(w.client)
	return Incident{
		Key: k.name, From: w.time, To: w.time, Element: w.element, Class: ClassLost, Cause: CauseUnexplained,
		Workers: []string{client}, Grants: r.nameAll(w.grant), Faults: r.inForce(w.time, w.time),
		What: fmt.Sprintf("update %d of %s to %s (version %d) was committed, as the answers to its write and its release say, but the database has neither it nor a record of it",
			w.element, client, k.name, w.version),
	}
}

// holderBehind is the attempt of an access, nil for none.
func (r *run) holderBehind(e *access) *attempt {
	if e == nil {
		return nil
	}
	return r.attempt(e.grant)
}

// overwriters returns for each of some accepted updates, in true order, the first later
// one that was computed without it, nil if there is none.
func (k *keyed) overwriters(lost []*access) []*access {
	found := make([]*access, len(lost))
	// Later updates that none in between has an older base than, the nearest last: their
	// bases rise.
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

func (u *updates) bad() int64 { return u.Lost + u.Duplicated + u.Phantom }

// noLostUpdate judges that the final state has every acknowledged update
// exactly once, and nothing else.
func noLostUpdate(r *run, u updates) judged {
	j := judge(NoLostUpdate, u.incidents)
	j.Total = int(u.bad())
	switch {
	case r.header.Workload == history.WorkloadMutex:
		j.Verdict, j.Summary = NotApplicable, "the workload writes nothing"
	case u.bad() > 0:
		j.clause = strings.Join(u.harm(), ", ")
		j.Summary = fmt.Sprintf("%s; share of lost updates %.2g to %.2g (95 %% interval)", j.clause, u.LostLow, u.LostHigh)
	case len(u.undecided) > 0:
		j.Verdict = Undecided
		j.Summary = fmt.Sprintf("the final state of %s was never read (%s)", listed(u.undecided), count(u.unjudged, "acknowledged update", "acknowledged updates"))
	case u.Acknowledged == 0:
		j.Verdict, j.Summary = Undecided, "no update was acknowledged"
	default:
		j.Summary = fmt.Sprintf("%s, none lost (at most %.2g, 95 %% interval)", count(u.Acknowledged, "acknowledged update", "acknowledged updates"), u.LostHigh)
	}
	return j
}

func (u *updates) harm() []string {
	var harm []string
	if u.Lost > 0 {
		harm = append(harm, fmt.Sprintf("%d of %s lost", u.Lost, count(u.Acknowledged, "acknowledged update was", "acknowledged updates were")))
	}
	if u.Duplicated > 0 {
		harm = append(harm, count(u.Duplicated, "element is", "elements are")+" there more than once")
	}
	if u.Phantom > 0 {
		harm = append(harm, count(u.Phantom, "update", "updates")+" came from nowhere")
	}
	return harm
}

func listed(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
