package workloads

import (
	"encoding/json"
	"io"
	"maps"
	"slices"
	"sync"

	"lockcheck/history"
)

// Emitter writes the events of one process, one line each and at once. It
// stamps them while it holds its lock, so that the times of a process never go
// back in its record.
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

// Emit stamps and writes the event and returns its time.
func (e *Emitter) Emit(event history.Event) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.write(history.Now(), event)
}

// EmitAt writes an event that happened at a time, ns, before. Times must not go back.
func (e *Emitter) EmitAt(at int64, event history.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.write(at, event)
}

// End writes some last events, and that the outcomes of all calls in progress are unknown, for
// such a reason. Whoever emits anything later waits for good: what is not on record must not be
// done either.
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

// Err returns the first error of Emit. A process whose events nobody receives
// must stop: what it did would be missing from the history.
func (e *Emitter) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}
