package checker

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"lockcheck/checker/simulation"
	"lockcheck/history"
)

// shrink removes from a simulated history whatever a disagreement of one kind does not need: attempts,
// operations, loss notifications and faults, one after the other.
func shrink(w simulation.World, h *history.History, truth *simulation.Truth, kind string) *history.History {
	for smaller := true; smaller; {
		smaller = false
		for _, u := range units(h, !preventedByFaults(kind)) {
			less := without(h, u)
			if preventedByFaults(kind) && grantedWithoutAnswer(h, truth, u) {
				continue
			}
			if len(less.Events) < len(h.Events) && history.Validate(less) == nil && disagree(w, less, truth)[kind] != "" {
				h, smaller = less, true
			}
		}
	}
	return h
}

// preventedByFaults says that the recorded faults are what must prevent a disagreement: without them the accusation
// would be just.
func preventedByFaults(kind string) bool {
	return strings.HasPrefix(kind, "right service") || strings.HasPrefix(kind, "cause") || strings.HasPrefix(kind, "overlap with") ||
		strings.HasPrefix(kind, "exercised") || strings.HasPrefix(kind, "state") || strings.HasPrefix(kind, "fault")
}

// grantedWithoutAnswer says that a unit is an attempt which was granted without an answer. Such an attempt explains the
// answers to others.
func grantedWithoutAnswer(h *history.History, truth *simulation.Truth, u unit) bool {
	granted := make(map[string]bool)
	for _, e := range h.Events {
		if e.F == history.Acquire && e.Type == history.OK {
			granted[e.Grant] = true
		}
	}
	return slices.ContainsFunc(h.Events, func(e history.Event) bool {
		g := truth.Grants[e.Grant]
		return g != nil && e.F == history.Acquire && g.Order > 0 && !granted[e.Grant] && u(&e)
	})
}

// unit selects events that may be removed together.
type unit func(e *history.Event) bool

// units returns the units that may be removed from a history, the largest first.
func units(h *history.History, faults bool) []unit {
	var attempts, calls, rest []unit
	seen := make(map[string]bool)
	add := func(to *[]unit, id string, u unit) {
		if !seen[id] {
			seen[id] = true
			*to = append(*to, u)
		}
	}
	for _, e := range h.Events {
		who := e.Process
		if who == history.Resource {
			who = e.Client
		}
		switch {
		case e.Fault != nil:
			if id := e.Fault.ID; faults || idle(h, e.Fault.Targets) {
				add(&rest, "fault "+id, func(x *history.Event) bool { return x.Fault != nil && x.Fault.ID == id || x.Note == id })
			}
		case e.Grant != "":
			add(&attempts, "grant "+e.Grant, func(x *history.Event) bool { return x.Grant == e.Grant })
			if e.Op != 0 && e.F != history.Acquire {
				add(&calls, who+" "+string(e.F)+string(rune(e.Op)), func(x *history.Event) bool {
					return x.Op == e.Op && x.F == e.F && (x.Process == who || x.Client == who)
				})
			}
			if e.F == history.Lost {
				add(&rest, "lost "+e.Grant, func(x *history.Event) bool { return x.F == history.Lost && x.Grant == e.Grant })
			}
		case e.F == history.Final:
			add(&rest, "final "+e.Key, func(x *history.Event) bool { return x.F == history.Final && x.Key == e.Key })
		}
	}
	return slices.Concat(attempts, calls, rest)
}

// idle says that the targets are workers that do nothing in a history.
func idle(h *history.History, targets []string) bool {
	for _, e := range h.Events {
		if slices.Contains(targets, e.Process) {
			return false
		}
	}
	return !slices.ContainsFunc(targets, func(t string) bool { return slices.Contains(h.Header.Servers, t) })
}

// without removes a unit from a history, and its elements from the final state.
func without(h *history.History, u unit) *history.History {
	less := &history.History{Header: h.Header}
	gone := make(map[int64]bool)
	seq := int64(0)
	for _, e := range h.Events {
		if u(&e) {
			gone[e.Element] = true
			continue
		}
		if e.Seq > 0 {
			seq++
			e.Seq = seq
		}
		e.Index = int64(len(less.Events))
		less.Events = append(less.Events, e)
	}
	for i := range less.Events {
		if e := &less.Events[i]; e.F == history.Final && bytes.HasPrefix(e.Value, []byte("[")) {
			e.Value, _ = json.Marshal(slices.DeleteFunc(contentOf(*e), func(x int64) bool { return gone[x] }))
		}
	}
	return less
}

// contentOf is the final content of a key that holds a set.
func contentOf(e history.Event) (all []int64) {
	if err := json.Unmarshal(e.Value, &all); err != nil {
		panic(err) // the simulation wrote it
	}
	return all
}

func lines(h *history.History) string {
	header, err := json.Marshal(h.Header)
	if err != nil {
		panic(err)
	}
	return string(header) + "\n" + dumpEvents(h)
}
