package workloads

import (
	"encoding/json"
	"io"
	"maps"
	"slices"
	"sync"

	"lockcheck/history"
)

// Emitter writes the events of one process immediately, one line each. It stamps an event while it holds its
// mutex, so the times in a process's record never decrease.
type Emitter struct {
	process string

	mu   sync.Mutex
	out  io.Writer
	err  error
	open map[int64]history.Event // calls in progress, by their numbers
}

// NewEmitter returns an Emitter for the named process.
func NewEmitter(process string, out io.Writer) *Emitter {
	return &Emitter{process: process, out: out, open: make(map[int64]history.Event)}
}

// Emit stamps and writes the event, and returns its time.
func (e *Emitter) Emit(event history.Event) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.write(history.Now(), event)
}

// EmitAt writes an event that happened earlier, at a time in ns. The times of successive calls must not
// decrease.
func (e *Emitter) EmitAt(at int64, event history.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.write(at, event)
}

// End writes the last events: for every call in progress an unknown outcome with the reason, and the given
// ones. Any later Emit blocks for ever, because a process must not do what is not on record.
func (e *Emitter) End(reason string, last ...history.Event) {
	e.mu.Lock()
	for _, op := range slices.Sorted(maps.Keys(e.open)) {
		event := e.open[op]
		event.Type, event.Error = history.Info, reason
		last = append(last, event)
	}
	for _, event := range last {
		e.write(history.Now(), event)
	}
}

func (e *Emitter) write(at int64, event history.Event) int64 {
	if event.Type == history.Invoke {
		e.open[event.Op] = event
	} else if e.open[event.Op].F == event.F {
		delete(e.open, event.Op)
	}
	event.Process, event.Time = e.process, at
	line, err := json.Marshal(event)
	if err == nil {
		_, err = e.out.Write(append(line, '\n'))
	}
	if e.err == nil {
		e.err = err
	}
	return event.Time
}

// Err returns the first error of Emit. A process whose events are not received must stop, because its actions
// would be missing from the history.
func (e *Emitter) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}
