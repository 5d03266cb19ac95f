package checker

// origins count the incidents of a run: what let overlaps, stale writes and lost updates
// happen. All that one fault let happen is one incident; without a fault that explains it, all
// that happened to one grant.
type origins struct {
	faults map[origin]bool
	others int64 // that no fault explains
}

// origin is a fault, or the time in which faults stopped a worker or cut it off.
type origin struct {
	fault *fault
	from  int64
}

func (o *origins) total() int64 { return int64(len(o.faults)) + o.others }

// count counts what has a cause, and happened to a holder; nil for one that nobody knows.
func (o *origins) count(c cause, holder *attempt) {
	switch {
	case !c.isOwn():
		o.explain(origin{c.fault, c.span.from})
	case holder == nil:
		o.others++
	default:
		o.mark(holder)
	}
}

// isOwn says that no fault explains it.
func (c cause) isOwn() bool { return c.fault == nil && c.span == span{} }

func (o *origins) explain(by origin) {
	if o.faults == nil {
		o.faults = make(map[origin]bool)
	}
	o.faults[by] = true
}

// mark counts what happened to a holder, once. It is a mark, for there can be millions.
func (o *origins) mark(holder *attempt) {
	if !holder.origin {
		holder.origin = true
		o.others++
	}
}
