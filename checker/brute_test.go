package checker

import (
	"math"
	"slices"

	"lockcheck/history"
)

// naive decides by search over all orders whether the answers of one key can
// have come from one mutex with leases. It shares nothing with the checker: it
// reads events, keeps every operation, and lets what is optional (lost requests,
// ends of leases) happen or not.
type naive struct {
	ops    []naiveOp
	fenced bool
	seen   map[naiveState]bool
}

type naiveOp struct {
	f         history.Function // acquire, release; "busy", "not held", "end"
	grant     string
	token     uint64
	from, to  int64
	optional  bool
	effective bool // a lost request: takes effect if it can
}

type naiveState struct {
	done    uint64
	holder  string
	highest uint64
}

func naiveLinearizable(h *history.History) bool {
	n := &naive{ops: naiveOps(h), fenced: h.Header.Tokens, seen: make(map[naiveState]bool)}
	if len(n.ops) > 64 {
		panic("too many operations for a search")
	}
	return n.search(naiveState{})
}

func (n *naive) search(s naiveState) bool {
	if n.complete(s) {
		return true
	}
	if n.seen[s] {
		return false
	}
	n.seen[s] = true
	// The next one must not begin after another one that is due was over.
	due := int64(math.MaxInt64)
	for i, o := range n.ops {
		if s.done&(1<<i) == 0 && !o.optional {
			due = min(due, o.to)
		}
	}
	for i, o := range n.ops {
		if s.done&(1<<i) != 0 || o.from > due {
			continue
		}
		next, ok := n.apply(s, o)
		next.done |= 1 << i
		if ok && n.search(next) {
			return true
		}
	}
	return false
}

func (n *naive) complete(s naiveState) bool {
	for i, o := range n.ops {
		if s.done&(1<<i) == 0 && !o.optional {
			return false
		}
	}
	return true
}

func (n *naive) apply(s naiveState, o naiveOp) (naiveState, bool) {
	switch o.f {
	case history.Acquire:
		if s.holder != "" || n.fenced && o.token != 0 && o.token <= s.highest {
			return s, false
		}
		s.holder, s.highest = o.grant, max(s.highest, o.token)
		return s, true
	case "busy":
		return s, s.holder == o.grant
	case "not held":
		return s, s.holder != o.grant
	}
	if s.holder != o.grant {
		return s, false
	}
	s.holder = ""
	return s, true
}

// naiveOps reads the operations from the events.
func naiveOps(h *history.History) []naiveOp {
	type calls struct{ acquire, ok, release, released *history.Event }
	byGrant := make(map[string]*calls)
	var order []string
	renewed, told := make(map[string]int64), make(map[string]int64)
	invoked := make(map[int64]int64)
	for i := range h.Events {
		e := &h.Events[i]
		if e.Grant == "" || e.Process == history.Resource {
			continue
		}
		c := byGrant[e.Grant]
		if c == nil {
			c = new(calls)
			byGrant[e.Grant] = c
			order = append(order, e.Grant)
		}
		switch {
		case e.F == history.Lost && e.Error == history.ByService:
			told[e.Grant] = e.Time
		case e.F == history.Acquire && e.Type == history.Invoke:
			c.acquire = e
		case e.F == history.Acquire:
			c.ok = e
		case e.F == history.Release && e.Type == history.Invoke:
			c.release = e
		case e.F == history.Release:
			c.released = e
		case e.F == history.Renew && e.Type == history.Invoke:
			invoked[e.Op] = e.Time
		case e.F == history.Renew && e.Type == history.OK:
			renewed[e.Grant] = max(renewed[e.Grant], invoked[e.Op])
		}
	}
	outcome := func(e *history.Event) history.Type {
		if e == nil {
			return history.Info
		}
		return e.Type
	}
	const never = int64(math.MaxInt64)
	var ops []naiveOp
	for _, g := range order {
		c := byGrant[g]
		began := c.acquire.Time
		switch outcome(c.ok) {
		case history.OK:
			ops = append(ops, naiveOp{f: history.Acquire, grant: g, token: c.ok.Token, from: began, to: c.ok.Time})
			end := never
			if l := int64(h.Header.Lease); l > 0 {
				end = max(began, renewed[g]) + l - clockAllowance(h.Header.Lease)
			}
			if t := told[g]; t > 0 {
				end = min(end, t)
			}
			if end < never {
				ops = append(ops, naiveOp{f: "end", grant: g, from: max(end, began), to: never, optional: true})
			}
		case history.Info:
			ops = append(ops, naiveOp{f: history.Acquire, grant: g, from: began, to: never, optional: true})
			ops = append(ops, naiveOp{f: "end", grant: g, from: began, to: never, optional: true})
		case history.Fail:
			if seen := byGrant[c.ok.Holder]; seen != nil && c.ok.Holder != g && outcome(seen.ok) != history.Fail {
				ops = append(ops, naiveOp{f: "busy", grant: c.ok.Holder, from: began, to: c.ok.Time})
			}
			continue
		}
		if c.release == nil {
			continue
		}
		switch outcome(c.released) {
		case history.OK:
			ops = append(ops, naiveOp{f: history.Release, grant: g, from: c.release.Time, to: c.released.Time})
		case history.Fail:
			// After an acquire without an answer this says nothing: see the model.
			if outcome(c.ok) == history.OK {
				ops = append(ops, naiveOp{f: "not held", grant: g, from: c.release.Time, to: c.released.Time})
			}
		default:
			ops = append(ops, naiveOp{f: history.Release, grant: g, from: c.release.Time, to: never, optional: true})
		}
	}
	return ops
}

// quadraticOverlaps compares every pair of holds.
func quadraticOverlaps(holds []*attempt) []overlap {
	var found []overlap
	for i, a := range holds {
		for _, b := range holds[i+1:] {
			from, to := max(a.acquire.done, b.acquire.done), min(a.holdEnd, b.holdEnd)
			if a.key != b.key || a.worker == b.worker || to <= from {
				continue
			}
			class := OutlivedLease
			if from < min(min(a.holdEnd, a.deadline), min(b.holdEnd, b.deadline)) {
				class = BrokenPromise
			}
			found = append(found, overlap{earlier: a, later: b, from: from, to: to, class: class})
		}
	}
	return found
}

// clientOps counts the operations that a search has to order.
func clientOps(h *history.History) int {
	n := 0
	for _, e := range h.Events {
		if e.Type == history.Invoke && slices.Contains([]history.Function{history.Acquire, history.Release}, e.F) {
			n++
		}
	}
	return n
}
