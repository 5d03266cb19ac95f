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
	case c.fault != nil || c.span != span{}:
		if o.faults == nil {
			o.faults = make(map[origin]bool)
		}
		o.faults[origin{c.fault, c.span.from}] = true
	case holder == nil:
		o.others++
	case !holder.origin: // a mark, for there can be millions
		holder.origin = true
		o.others++
	}
}
