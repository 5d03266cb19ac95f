package reports

import (
	"time"

	"lockcheck/history"
)

// operation pairs an invocation with its completion.
type operation struct {
	process string
	f       history.Function
	op      int64
}

// call is one operation of a worker that succeeded.
type call struct {
	done int64
	took time.Duration
}

// operations of workers, in the order of a critical section.
func operations() []history.Function {
	return []history.Function{history.Acquire, history.Renew, history.Read, history.Write, history.Release}
}

// call takes an event of an operation; open has the times of those without completion.
func (rec *record) call(e history.Event, open map[operation]int64) {
	id := operation{e.Process, e.F, e.Op}
	if e.Type == history.Invoke {
		open[id] = e.Time
		return
	}
	begun, ok := open[id]
	if !ok {
		return
	}
	delete(open, id)
	switch {
	case e.Type == history.OK:
		rec.calls[e.F] = append(rec.calls[e.F], call{e.Time, time.Duration(e.Time - begun)})
	case e.F == history.Acquire:
		rec.waits = append(rec.waits, wait{e.Process, e.Key, begun, e.Time, e.Type, 1})
	}
}
