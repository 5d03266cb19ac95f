package checker

// origins counts the independent incidents behind overlaps, stale writes and lost updates. Everything that
// one fault caused is one incident. Without an explaining fault, everything that happened to one grant is one
// incident.
type origins struct {
	faults map[origin]bool
	others int64 // incidents that no fault explains
}

// origin is a fault, or the time in which faults stopped a worker or cut it off.
type origin struct {
	fault *fault
	from  int64
}

func (o *origins) total() int64 { return int64(len(o.faults)) + o.others }

// count adds a violation with its cause. The holder is nil if the history does not tell whose hold was
// violated.
func (o *origins) count(c cause, holder *attempt) {
	switch {
	case !c.withoutFault():
		o.explain(origin{c.fault, c.span.from})
	case holder == nil:
		o.others++
	default:
		o.mark(holder)
	}
}

// withoutFault says that no fault explains the violation.
func (c cause) withoutFault() bool { return c.fault == nil && c.span == span{} }

func (o *origins) explain(by origin) {
	if o.faults == nil {
		o.faults = make(map[origin]bool)
	}
	o.faults[by] = true
}

// mark counts a holder once. The mark is a bit of the attempt, because a set of millions of holders would be
// large.
func (o *origins) mark(holder *attempt) {
	if !holder.countedAsOrigin {
		holder.countedAsOrigin = true
		o.others++
	}
}
