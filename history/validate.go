package history

import (
	"fmt"
	"slices"
)

// InvalidError is an event that contradicts the schema or an earlier event.
type InvalidError struct {
	Line   int // of the file, from 1; the header is line 1
	Reason string
}

func (e *InvalidError) Error() string {
	return fmt.Sprintf("history: line %d: %s", e.Line, e.Reason)
}

// Validate reports the first event that cannot be, as an *InvalidError. A
// prefix of a valid history is valid: invocations without completion are what
// a killed run leaves behind.
func Validate(h *History) error {
	v := newValidator(h.Header)
	for i, e := range h.Events {
		if err := v.event(int64(i), e); err != nil {
			return &InvalidError{Line: i + 2, Reason: err.Error()}
		}
	}
	return nil
}

type opID struct {
	process string
	op      int64
}

type owner struct{ process, key string }

type validator struct {
	workers   map[string]bool
	last      map[string]int64 // time of the last event, by process
	open      map[opID]Event   // invocations without completion
	used      map[opID]bool
	owners    map[string]owner // of a grant
	asked     map[string]bool  // grants with an acquire invocation
	acquiring map[string]bool  // workers with an acquire in flight
	seq       int64
}

func newValidator(h Header) *validator {
	v := &validator{
		workers:   make(map[string]bool),
		last:      make(map[string]int64),
		open:      make(map[opID]Event),
		used:      make(map[opID]bool),
		owners:    make(map[string]owner),
		asked:     make(map[string]bool),
		acquiring: make(map[string]bool),
	}
	for _, w := range h.Workers {
		v.workers[w] = true
	}
	return v
}

func (v *validator) event(i int64, e Event) error {
	if e.Index != i {
		return fmt.Errorf("index is %d, not %d", e.Index, i)
	}
	if e.Time <= 0 {
		return fmt.Errorf("time %d is not positive", e.Time)
	}
	if e.Time < v.last[e.Process] {
		return fmt.Errorf("time %d of %s is before its previous event, %d", e.Time, e.Process, v.last[e.Process])
	}
	v.last[e.Process] = e.Time
	switch e.Process {
	case Resource:
		return v.resource(e)
	case Nemesis:
		return fault(e)
	case Harness:
		return phase(e)
	}
	if !v.workers[e.Process] {
		return fmt.Errorf("process %q is not in the header", e.Process)
	}
	return v.worker(e)
}

func (v *validator) worker(e Event) error {
	if e.F == Lost {
		if e.Type != Info {
			return fmt.Errorf("%s of type %q", e.F, e.Type)
		}
		return v.belongs(e)
	}
	if !slices.Contains([]Function{Acquire, Renew, Read, Write, Release}, e.F) {
		return fmt.Errorf("function %q is not one of worker %s", e.F, e.Process)
	}
	if err := v.belongs(e); err != nil {
		return err
	}
	switch e.Type {
	case Invoke:
		return v.invoke(e)
	case OK, Fail, Info:
		return v.complete(e)
	}
	return fmt.Errorf("type %q is not known", e.Type)
}

// belongs checks that a grant stays with one worker and one key.
func (v *validator) belongs(e Event) error {
	if e.Key == "" || e.Grant == "" {
		return fmt.Errorf("%s of %s has no key or no grant", e.F, e.Process)
	}
	now := owner{e.Process, e.Key}
	was, seen := v.owners[e.Grant]
	if seen && was != now {
		return fmt.Errorf("grant %s is of %s on %s, not of %s on %s", e.Grant, was.process, was.key, now.process, now.key)
	}
	v.owners[e.Grant] = now
	return nil
}

func (v *validator) invoke(e Event) error {
	id := opID{e.Process, e.Op}
	if v.used[id] {
		return fmt.Errorf("operation %d of %s is invoked twice", e.Op, e.Process)
	}
	if e.F == Acquire {
		if v.asked[e.Grant] {
			return fmt.Errorf("grant %s is asked for twice", e.Grant)
		}
		if v.acquiring[e.Process] {
			return fmt.Errorf("%s begins an acquire while another one is open", e.Process)
		}
		v.asked[e.Grant], v.acquiring[e.Process] = true, true
	}
	v.used[id], v.open[id] = true, e
	return nil
}

func (v *validator) complete(e Event) error {
	id := opID{e.Process, e.Op}
	begun, ok := v.open[id]
	if !ok && v.used[id] {
		return fmt.Errorf("operation %d of %s is completed twice", e.Op, e.Process)
	}
	if !ok {
		return fmt.Errorf("operation %d of %s is completed but was never invoked", e.Op, e.Process)
	}
	if begun.F != e.F || begun.Key != e.Key || begun.Grant != e.Grant {
		return fmt.Errorf("operation %d of %s began as %s of %s on %s", e.Op, e.Process, begun.F, begun.Grant, begun.Key)
	}
	if e.Time < begun.Time {
		return fmt.Errorf("operation %d of %s is completed before it was invoked", e.Op, e.Process)
	}
	delete(v.open, id)
	if e.F == Acquire {
		delete(v.acquiring, e.Process)
	}
	return nil
}

func (v *validator) resource(e Event) error {
	if e.F == Final {
		if e.Type != OK || e.Key == "" {
			return fmt.Errorf("a final needs type ok and a key")
		}
		return nil
	}
	if e.F == Deferred {
		if e.Type != Info || e.Note == "" || !v.workers[e.Client] {
			return fmt.Errorf("a deferred write needs type info, a known client and the fault that defers it")
		}
		return nil
	}
	if e.F != Read && e.F != Write {
		return fmt.Errorf("function %q is not one of %s", e.F, Resource)
	}
	if e.Type != OK && e.Type != Fail {
		return fmt.Errorf("%s at %s of type %q", e.F, Resource, e.Type)
	}
	if e.Key == "" || !v.workers[e.Client] {
		return fmt.Errorf("%s at %s needs a key and a known client, not %q", e.F, Resource, e.Client)
	}
	if e.Seq != v.seq+1 {
		return fmt.Errorf("sequence number is %d, not %d", e.Seq, v.seq+1)
	}
	v.seq = e.Seq
	return nil
}

func fault(e Event) error {
	if e.F != FaultPhase || e.Type != Info {
		return fmt.Errorf("%s of type %q is not one of %s", e.F, e.Type, Nemesis)
	}
	if e.Fault == nil || e.Fault.ID == "" || e.Fault.Kind == "" {
		return fmt.Errorf("a fault needs an id and a kind")
	}
	stages := []Stage{Requested, Applied, Proven, Healed, ProvenHealed, Skipped, Unproven, Unhealed}
	if !slices.Contains(stages, e.Fault.Stage) {
		return fmt.Errorf("stage %q of fault %s is not known", e.Fault.Stage, e.Fault.ID)
	}
	return nil
}

func phase(e Event) error {
	if e.F != Phase || e.Type != Info {
		return fmt.Errorf("%s of type %q is not one of %s", e.F, e.Type, Harness)
	}
	phases := []string{PhaseReady, PhaseQuiet, PhaseFinal, PhaseEnd, PhaseInterrupted, PhaseBroken}
	if !slices.Contains(phases, e.Note) {
		return fmt.Errorf("phase %q is not known", e.Note)
	}
	return nil
}
