package runs

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"lockcheck/history"
)

// recorder writes the events of all processes into one history, and passes them to the observers that act on
// them.
type recorder struct {
	writer  *history.Writer
	observe []func(history.Event)
	// failed is called with the first write error, at once.
	failed func(error)

	inOrder sync.Mutex // orders the events of the harness

	mu     sync.Mutex
	err    error
	closed bool
}

// Record appends an event. The first error is kept for failure.
func (r *recorder) Record(e history.Event) {
	for _, observe := range r.observe {
		observe(e)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return // healing a fault after the end of the run is not part of the history
	}
	if _, err := r.writer.Append(e); err != nil && r.err == nil {
		r.err = err
		r.failed(err)
	}
}

// Phase records the harness' own event of a phase.
func (r *recorder) Phase(name, why string) {
	r.own(history.Event{F: history.Phase, Note: name, Error: why})
}

// Stalled records that this process was due at a time, and runs only now.
func (r *recorder) Stalled(due int64) { r.own(history.Event{F: history.Stalled, From: due}) }

// own records an event of the harness, in the order of their times.
func (r *recorder) own(e history.Event) {
	r.inOrder.Lock()
	defer r.inOrder.Unlock()
	e.Time, e.Process, e.Type = history.Now(), history.Harness, history.Info
	r.Record(e)
}

// Follow records the events on the output of a process until it ends. An event of another process, or a line
// that is no event, is an error. If the process has several lives, a kill may have cut off the last line of a
// life; such a line is ignored.
func (r *recorder) Follow(process string, output io.Reader, lives bool) error {
	lines := bufio.NewReader(output)
	for {
		line, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF):
			return nil // a kill cut off a last line without a line break
		case err != nil:
			return fmt.Errorf("events of %s: %w", process, err)
		}
		var e history.Event
		err = json.Unmarshal(line, &e)
		if err != nil && lives {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s wrote what is no event: %.200s", process, line)
		}
		if e.Process != process {
			return fmt.Errorf("%s wrote an event of %q", process, e.Process)
		}
		r.Record(e)
	}
}

// failure returns the first error of writing.
func (r *recorder) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return r.writer.Close()
}

// tally counts what the status line shows during a run.
type tally struct {
	mu      sync.Mutex
	holds   int64
	updates int64
	refused int64
	faults  map[string]bool // faults in force
	counted int64           // faults proven so far
}

func newTally() *tally { return &tally{faults: make(map[string]bool)} }

func (t *tally) Observe(e history.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case e.F == history.Acquire && e.Type == history.OK:
		t.holds++
	case e.Process == history.Resource: // the events of workers count the same accesses
	case e.F == history.Write && e.Type == history.OK:
		t.updates++
	case (e.F == history.Read || e.F == history.Write) && e.Type == history.Fail:
		t.refused++
	case e.Fault != nil && e.Fault.Stage == history.Proven:
		t.counted++
		t.faults[e.Fault.ID] = true
	case e.Fault != nil && e.Fault.Stage == history.Healed:
		delete(t.faults, e.Fault.ID)
	}
}

func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := fmt.Sprintf("%d holds, %d updates, %d faults", t.holds, t.updates, t.counted)
	if t.refused > 0 {
		text += fmt.Sprintf(", %d accesses refused", t.refused)
	}
	if len(t.faults) > 0 {
		text += fmt.Sprintf(" (%d in force)", len(t.faults))
	}
	return text
}
