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

// Validate reports the first impossible event as an *InvalidError. A prefix of a valid history is valid: a
// killed run leaves invocations without completion behind.
func Validate(h *History) error {
	v := NewValidator(h.Header, NewNames())
	for i := range h.Events {
		if err := v.Check(&h.Events[i]); err != nil {
			return err
		}
	}
	return nil
}

// Validator validates event by event, for histories that do not fit in memory.
type Validator struct {
	names     *Names
	next      int64             // index of the next event
	workers   map[string]*opSet // by name
	last      map[string]int64  // time of the last event, by process
	open      Open[begun]
	grants    []owner         // by name
	acquiring map[string]bool // workers with an acquire in flight
	wakes     bool            // wakes are counted
	shared    bool            // acquires may be shared
	renewals  bool            // of sessions, perhaps without an attempt, are on record
	app       *Application    // nil for a lock
	seq       int64
	versions  map[string]int64 // of the keys of the resource of an application
}

// begun is what the completion of an operation must agree with.
type begun struct {
	f          Function
	key, grant Name
	time       int64
}

// owner is the worker and key of a grant, and whether its acquire was invoked.
type owner struct {
	process, key Name
	asked        bool
}

// NewValidator returns a Validator for a history without events yet. It needs no more names than the Checker
// of the history; they may share the table.
func NewValidator(h Header, names *Names) *Validator {
	v := &Validator{
		names:     names,
		workers:   make(map[string]*opSet),
		last:      make(map[string]int64),
		open:      make(Open[begun]),
		acquiring: make(map[string]bool),
		wakes:     h.Wakes,
		shared:    h.Workload == WorkloadReadWrite,
		renewals:  h.Renewals,
		app:       h.Application,
		versions:  make(map[string]int64),
	}
	for _, w := range h.Workers {
		v.workers[w] = &opSet{}
	}
	return v
}

// Check reports as an *InvalidError why e cannot be the next event. After an error it must not be called
// again.
func (v *Validator) Check(e *Event) error {
	err := v.event(v.next, e)
	v.next++
	if err != nil {
		return &InvalidError{Line: int(v.next) + 1, Reason: err.Error()}
	}
	return nil
}

func (v *Validator) event(i int64, e *Event) error {
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
	if err := v.checkWakes(e); err != nil {
		return err
	}
	if e.Shared && (!v.shared || e.F != Acquire || e.Type != Invoke) {
		return fmt.Errorf("%s of type %q is shared, which only invocations of %s are in workload %s", e.F, e.Type, Acquire, WorkloadReadWrite)
	}
	switch {
	case e.Process == Nemesis:
		return fault(e)
	case e.Process == Harness:
		return harness(e)
	case v.app != nil:
		return v.application(e)
	case e.Process == Resource:
		return v.resource(e)
	case e.Process == Service:
		return observation(e)
	}
	if v.workers[e.Process] == nil {
		return fmt.Errorf("process %q is not in the header", e.Process)
	}
	return v.worker(e)
}

// checkWakes checks that only the completion of an acquire counts notifications.
func (v *Validator) checkWakes(e *Event) error {
	switch {
	case e.Wakes == 0:
		return nil
	case !v.wakes:
		return fmt.Errorf("wakes is %d, and the header says that nobody counts them", e.Wakes)
	case e.Wakes < 0 || e.F != Acquire || e.Type == Invoke:
		return fmt.Errorf("%s of type %q with %d wakes", e.F, e.Type, e.Wakes)
	}
	return nil
}

func (v *Validator) worker(e *Event) error {
	if e.F == Client {
		return client(e)
	}
	ofSession := v.renewals && (e.F == Renew || e.F == Caught) && e.Key == "" && e.Grant == ""
	if e.F == Lost || e.F == Caught {
		if e.Type != Info || e.F == Caught && (e.Note == "" || e.Op == 0) {
			return fmt.Errorf("%s of type %q", e.F, e.Type)
		}
		if ofSession {
			return nil
		}
		return v.belongs(e)
	}
	if !slices.Contains([]Function{Acquire, Renew, Read, Write, Release}, e.F) {
		return fmt.Errorf("function %q is not one of worker %s", e.F, e.Process)
	}
	if err := v.belongs(e); err != nil && !ofSession {
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

// client checks an event about the client of a user's own lock.
func client(e *Event) error {
	if e.Type != Info || (e.Note == "") == (e.Error == "") || e.Grant != "" {
		return fmt.Errorf("%s needs type info, and a name or what went wrong", e.F)
	}
	return nil
}

// belongs checks that a grant stays with one worker and one key.
func (v *Validator) belongs(e *Event) error {
	if e.Key == "" || e.Grant == "" {
		return fmt.Errorf("%s of %s has no key or no grant", e.F, e.Process)
	}
	process, key := v.names.Of(e.Process), v.names.Of(e.Key)
	was := v.owner(v.names.Of(e.Grant))
	if was.process == 0 {
		was.process, was.key = process, key
	}
	if was.process != process || was.key != key {
		return fmt.Errorf("grant %s is of %s on %s, not of %s on %s", e.Grant,
			v.names.String(was.process), v.names.String(was.key), e.Process, e.Key)
	}
	return nil
}

func (v *Validator) owner(grant Name) *owner {
	for len(v.grants) <= int(grant) {
		v.grants = append(v.grants, owner{})
	}
	return &v.grants[grant]
}

func (v *Validator) invoke(e *Event) error {
	if !v.workers[e.Process].first(e.Op) {
		return fmt.Errorf("operation %d of %s is invoked twice", e.Op, e.Process)
	}
	grant := v.names.Of(e.Grant)
	if e.F == Acquire {
		o := v.owner(grant)
		if o.asked {
			return fmt.Errorf("grant %s is asked for twice", e.Grant)
		}
		if v.acquiring[e.Process] {
			return fmt.Errorf("%s begins an acquire while another one is open", e.Process)
		}
		o.asked, v.acquiring[e.Process] = true, true
	}
	v.open.Invoke(v.names.Of(e.Process), e.Op, begun{e.F, v.names.Of(e.Key), grant, e.Time})
	return nil
}

func (v *Validator) complete(e *Event) error {
	begun, ok := v.open.Complete(v.names.Of(e.Process), e.Op)
	if !ok && v.workers[e.Process].has(e.Op) {
		return fmt.Errorf("operation %d of %s is completed twice", e.Op, e.Process)
	}
	if !ok {
		return fmt.Errorf("operation %d of %s is completed but was never invoked", e.Op, e.Process)
	}
	if begun.f != e.F || begun.key != v.names.Of(e.Key) || begun.grant != v.names.Of(e.Grant) {
		return fmt.Errorf("operation %d of %s began as %s of %s on %s", e.Op, e.Process, begun.f,
			v.names.String(begun.grant), v.names.String(begun.key))
	}
	if e.Time < begun.time {
		return fmt.Errorf("operation %d of %s is completed before it was invoked", e.Op, e.Process)
	}
	if e.F == Acquire {
		delete(v.acquiring, e.Process)
	}
	return nil
}

func (v *Validator) resource(e *Event) error {
	if e.F == Client {
		return client(e)
	}
	if e.F == Final {
		if e.Type != OK || e.Key == "" {
			return fmt.Errorf("a final needs type ok and a key")
		}
		return nil
	}
	if e.F == Deferred {
		if e.Type != Info || e.Note == "" || v.workers[e.Client] == nil {
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
	if e.Key == "" || v.workers[e.Client] == nil {
		return fmt.Errorf("%s at %s needs a key and a known client, not %q", e.F, Resource, e.Client)
	}
	if e.Seq != v.seq+1 {
		return fmt.Errorf("sequence number is %d, not %d", e.Seq, v.seq+1)
	}
	v.seq = e.Seq
	return nil
}

func observation(e *Event) error {
	switch {
	case e.Type != Info || !slices.Contains([]Function{Claimed, Dropped, Unobserved}, e.F):
		return fmt.Errorf("%s of type %q is not one of %s", e.F, e.Type, Service)
	case e.F != Unobserved && (e.Key == "" || e.Token == 0 && e.Client == ""):
		return fmt.Errorf("a claim needs a key and a token, and a removal a key and a client")
	}
	return nil
}

func fault(e *Event) error {
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

func harness(e *Event) error {
	if e.F == Stalled && e.Type == Info {
		if e.From <= 0 || e.From >= e.Time {
			return fmt.Errorf("a stall from %d to %d", e.From, e.Time)
		}
		return nil
	}
	if e.F != Phase || e.Type != Info {
		return fmt.Errorf("%s of type %q is not one of %s", e.F, e.Type, Harness)
	}
	phases := []string{PhaseReady, PhaseRecovery, PhaseRecovered, PhaseFinal, PhaseEnd, PhaseInterrupted, PhaseBroken}
	if !slices.Contains(phases, e.Note) {
		return fmt.Errorf("phase %q is not known", e.Note)
	}
	return nil
}

// opSet is the set of the operations that one worker has begun. Most workers number them consecutively, so
// that one bit each is enough.
type opSet struct{ pages map[int64]*[1 << 6]uint64 }

// first adds an operation and says whether it is new.
func (d *opSet) first(op int64) bool {
	if d.has(op) {
		return false
	}
	if d.pages == nil {
		d.pages = make(map[int64]*[1 << 6]uint64)
	}
	page := d.pages[op>>12]
	if page == nil {
		page = new([1 << 6]uint64)
		d.pages[op>>12] = page
	}
	page[op>>6&63] |= 1 << (op & 63)
	return true
}

func (d *opSet) has(op int64) bool {
	page := d.pages[op>>12]
	return page != nil && page[op>>6&63]&(1<<(op&63)) != 0
}
