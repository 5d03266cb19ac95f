package checker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"lockcheck/history"
)

const (
	workloadMutex   = "mutex"
	workloadCounter = "counter"
)

// updates collects what became of acknowledged updates. An update is
// acknowledged when the resource accepted its write, whatever became of the
// release (docs/verdicts.md).
type updates struct {
	UpdateSummary
	incidents []Incident
	undecided []string // keys without a final state that can be read
	unjudged  int64    // acknowledged updates of those
}

func checkUpdates(r *run) updates {
	var u updates
	if r.header.Workload == workloadMutex {
		return u
	}
	for _, key := range r.dataKeys() {
		writes := r.acknowledged(key)
		final, ok := r.finals[key]
		if !ok {
			u.unread(key, writes)
			continue
		}
		var err error
		if r.header.Workload == workloadCounter {
			err = u.counter(r, key, writes, final)
		} else {
			err = u.set(r, key, writes, final)
		}
		if err != nil {
			u.unread(key, writes)
		}
	}
	u.LostLow, u.LostHigh = Wilson(u.Lost, u.Acknowledged)
	return u
}

func (r *run) dataKeys() []string {
	keys := make(map[string]bool)
	for key := range r.accesses {
		keys[key] = true
	}
	for key := range r.finals {
		keys[key] = true
	}
	return slices.Sorted(maps.Keys(keys))
}

// acknowledged returns the accepted updates of a key in true order.
func (r *run) acknowledged(key string) []history.Event {
	var writes []history.Event
	for _, e := range r.accesses[key] {
		if e.F == history.Write && e.Type == history.OK && e.Element != 0 {
			writes = append(writes, e)
		}
	}
	return writes
}

func (u *updates) unread(key string, writes []history.Event) {
	if len(writes) > 0 {
		u.undecided = append(u.undecided, key)
		u.unjudged += int64(len(writes))
	}
}

func null(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || bytes.Equal(raw, []byte("null"))
}

// set compares a key that holds a set of elements with what was acknowledged.
func (u *updates) set(r *run, key string, writes []history.Event, final history.Event) error {
	var elements []int64
	if !null(final.Value) {
		if err := json.Unmarshal(final.Value, &elements); err != nil {
			return err
		}
	}
	present := make(map[int64]int64)
	for _, x := range elements {
		present[x]++
	}
	for _, w := range writes {
		u.Acknowledged++
		if present[w.Element] == 0 {
			u.Lost++
			u.incidents = append(u.incidents, r.lostUpdate(key, w))
		}
	}
	for _, x := range slices.Sorted(maps.Keys(present)) {
		if n := present[x]; n > 1 {
			u.Duplicated++
			u.found(key, final, x, "duplicated", fmt.Sprintf("element %d is in the final state of %s %s", x, key, times(int(n))))
		}
		if !r.asked[key][x] {
			u.Phantom++
			u.found(key, final, x, "phantom", fmt.Sprintf("element %d is in the final state of %s, though nobody tried to write it", x, key))
		}
	}
	return nil
}

func (u *updates) found(key string, final history.Event, element int64, class, what string) {
	u.incidents = append(u.incidents, Incident{Key: key, From: final.Time, Element: element, Class: class, What: what})
}

// counter compares a key that counts with how often it was incremented. Which
// increments are missing follows from the versions that writes were based on;
// how many follows from the final state.
func (u *updates) counter(r *run, key string, writes []history.Event, final history.Event) error {
	var value int64
	if !null(final.Value) {
		v, err := strconv.ParseInt(string(bytes.TrimSpace(final.Value)), 10, 64)
		if err != nil {
			return err
		}
		value = v
	}
	acknowledged := int64(len(writes))
	u.Acknowledged += acknowledged
	lost := max(0, acknowledged-max(0, value))
	u.Lost += lost
	gone := overwritten(writes)
	for _, w := range gone[:min(lost, int64(len(gone)))] {
		u.incidents = append(u.incidents, r.lostUpdate(key, w))
	}
	if rest := lost - int64(len(gone)); rest > 0 {
		u.found(key, final, 0, "lost", fmt.Sprintf("%s counts %d after %s; no write explains the loss of %d", key, value, count(acknowledged, "increment", "increments"), rest))
	}
	if more := value - int64(len(r.asked[key])); more > 0 {
		u.Phantom += more
		u.found(key, final, 0, "phantom", fmt.Sprintf("%s counts %d, %d more than anybody tried to add", key, value, more))
	}
	return nil
}

// overwritten returns the writes that the last one does not build upon, in true
// order: the chain of versions from the last write back is what survived.
func overwritten(writes []history.Event) []history.Event {
	var gone []history.Event
	if len(writes) == 0 {
		return nil
	}
	next := writes[len(writes)-1].Version
	for _, w := range slices.Backward(writes) {
		if w.Version == next {
			next = w.Base
			continue
		}
		gone = append(gone, w)
	}
	slices.Reverse(gone)
	return gone
}

func (r *run) lostUpdate(key string, w history.Event) Incident {
	i := Incident{
		Key: key, From: w.Time, To: w.Time, Element: w.Element, Class: "lost",
		Workers: []string{w.Client}, Grants: []string{w.Grant},
		What: fmt.Sprintf("update %d of %s to %s (version %d) was acknowledged, but the final state lacks it; no accepted write explains it",
			w.Element, w.Client, key, w.Version),
	}
	if by, ok := r.overwriter(key, w); ok {
		i.To = by.Time
		i.Workers = append(i.Workers, by.Client)
		i.Grants = append(i.Grants, by.Grant)
		i.What = fmt.Sprintf("update %d of %s to %s (version %d) was overwritten %s later by %s, whose version %d was computed from version %d",
			w.Element, w.Client, key, w.Version, dur(max(0, by.Time-w.Time)), by.Client, by.Version, by.Base)
	}
	i.Faults = r.inForce(w.Time, i.To)
	return i
}

// overwriter is the first later write that was computed without w.
func (r *run) overwriter(key string, w history.Event) (history.Event, bool) {
	for _, e := range r.acknowledged(key) {
		if e.Seq > w.Seq && e.Base < w.Version {
			return e, true
		}
	}
	return history.Event{}, false
}

func (u *updates) bad() int64 { return u.Lost + u.Duplicated + u.Phantom }

// noLostUpdate judges that the final state has every acknowledged update
// exactly once, and nothing else.
func noLostUpdate(r *run, u updates) judged {
	j := judge(NoLostUpdate, u.incidents)
	j.Total = int(u.bad())
	switch {
	case r.header.Workload == workloadMutex:
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
