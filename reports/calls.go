package reports

import (
	"time"

	"lockcheck/history"
)

// call is a successful operation of a worker.
type call struct {
	done int64
	took time.Duration
}

// operations are the operations of workers, in the order of a critical section.
func operations() []history.Function {
	return []history.Function{history.Acquire, history.Renew, history.Read, history.Write, history.Release}
}

// addCall records an event of an operation. open has the invocation times of pending operations.
func (rec *record) addCall(e history.Event, process history.Name, open history.Open[int64]) {
	if e.Type == history.Invoke {
		open.Invoke(process, e.Op, e.Time)
		return
	}
	begun, invoked := open.Complete(process, e.Op)
	if !invoked {
		return
	}
	switch {
	case e.Type == history.OK:
		rec.calls[e.F] = append(rec.calls[e.F], call{e.Time, time.Duration(e.Time - begun)})
	case e.F == history.Acquire:
		rec.waits = append(rec.waits, wait{e.Process, e.Key, begun, e.Time, e.Type, 1})
	}
}
