package bench

import (
	"bufio"
	"container/heap"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"time"

	"lockcheck/history"
)

// truth counts what really happened in a history, according to its writer.
type truth struct {
	overlaps, lost, unknown, faults, stuck int64
}

// events is a heap of future events, by time.
type events []history.Event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].Time < e[j].Time }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(history.Event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// version is a version of a key's data: an element, and the version that it was added to.
type version struct{ base, element int64 }

// writer writes events in the order of their times.
type writer struct {
	shape
	out    *bufio.Writer
	coming events
	index  int64
	seq    int64
	data   [][]version     // by key
	read   map[int64]int64 // number of a hold → the version that the hold has read
	active [][]hold        // by key, the attempts that may overlap a later one
	truth
	last int64
}

// write writes the history and returns what really happened in it.
func (s shape) write(to io.Writer) (truth, error) {
	w := &writer{
		shape: s, out: bufio.NewWriterSize(to, 1<<20), data: make([][]version, s.keys),
		read: make(map[int64]int64), active: make([][]hold, s.keys),
	}
	kills := s.countKilled()
	if err := w.line(s.header(kills)); err != nil {
		return w.truth, err
	}
	w.addStuckWorkers(s.workers + kills)
	for h := range s.holds {
		if err := w.writeUntil(h.asked); err != nil {
			return w.truth, err
		}
		w.countOverlaps(h)
		w.queueHold(h)
	}
	if err := w.writeUntil(1 << 62); err != nil {
		return w.truth, err
	}
	if err := w.close(); err != nil {
		return w.truth, err
	}
	return w.truth, w.out.Flush()
}

// addStuckWorkers adds stuck workers, numbered from a number on, that get only errors.
func (w *writer) addStuckWorkers(from int) {
	const attempts, pause = 20, int64(300 * time.Millisecond)
	for i := range w.shape.stuck {
		worker := name(from + i)
		for n := range attempts {
			e := history.Event{
				Time: int64(i+1) + int64(n)*pause, Process: worker, Type: history.Invoke, F: history.Acquire, Key: "k0",
				Op: int64(n + 1), Grant: worker + "-" + strconv.Itoa(n+1),
			}
			heap.Push(&w.coming, e)
			e.Time, e.Type, e.Error = e.Time+onWay, history.Fail, "connection refused"
			heap.Push(&w.coming, e)
		}
	}
	w.truth.stuck = int64(w.shape.stuck)
}

// countOverlaps compares an attempt with earlier attempts for its key. It counts overlaps of holds, and pauses during
// which another worker wanted the lock.
func (w *writer) countOverlaps(h *hold) {
	active := &w.active[h.key]
	*active = slices.DeleteFunc(*active, func(other hold) bool { return other.end() < h.asked })
	for i := range *active {
		other := &(*active)[i]
		if other.worker == h.worker {
			continue
		}
		if h.granted != 0 && other.granted != 0 && max(other.granted, h.granted) < min(other.end(), h.end()) {
			w.overlaps++
		}
		w.countContention(h, other)
		w.countContention(other, h)
	}
	*active = append(*active, *h)
}

// countContention counts a pause if another attempt asks for the lock or holds it between the time when the pause is
// in force and the release. A pause without such an attempt does not count: near the end of a history, no
// worker may ask for that lock again.
func (w *writer) countContention(pause, other *hold) {
	if pause.fate != paused || pause.contended {
		return
	}
	if other.asked <= pause.release && other.end() >= pause.faultFrom+applying {
		pause.contended = true
		w.faults++
	}
}

// queueHold queues the events of a hold.
func (w *writer) queueHold(h *hold) {
	op := int64(h.number) * 8
	e := history.Event{Process: name(h.worker), Key: "k" + strconv.Itoa(h.key), Grant: h.grant(), F: history.Acquire}
	if h.refusedAt != 0 {
		first := e
		first.Grant += "r"
		w.queueCall(first, h.asked, h.refusedAt, op, history.Event{Type: history.Fail, Error: history.Busy, Holder: h.holder})
		h.asked = h.refusedAt + 1_000
	}
	if h.granted == 0 {
		w.unknown++
		w.queueCall(e, h.asked, h.end(), op+1, history.Event{Type: history.Info, Error: "timeout"})
	} else {
		w.queueCall(e, h.asked, h.granted, op+1, history.Event{Type: history.OK, Token: uint64(h.number), Until: h.asked + int64(lease)})
		e.Token = uint64(h.number)
	}
	if h.read != 0 {
		e.F = history.Read
		w.queueAccess(e, h.read, op+2)
	}
	if h.write != 0 {
		e.F, e.Element = history.Write, int64(h.number)
		w.queueAccess(e, h.write, op+3)
		e.Element = 0
	}
	if h.release != 0 {
		e.F = history.Release
		w.queueCall(e, h.release, h.released, op+4, h.releaseAnswer())
	}
	w.queueFault(h)
}

// releaseAnswer is the answer to the release.
func (h *hold) releaseAnswer() history.Event {
	switch h.fate {
	case unconfirmed:
		return history.Event{Type: history.Info, Error: "timeout"}
	case paused, cut:
		return history.Event{Type: history.Fail, Error: "not held"}
	}
	return history.Event{Type: history.OK}
}

// queueCall queues an operation of a worker.
func (w *writer) queueCall(e history.Event, from, to, op int64, done history.Event) {
	e.Time, e.Type, e.Op = from, history.Invoke, op
	heap.Push(&w.coming, e)
	e.Time, e.Type, e.Error, e.Holder, e.Until = to, done.Type, done.Error, done.Holder, done.Until
	if done.Token != 0 {
		e.Token = done.Token
	}
	heap.Push(&w.coming, e)
}

// queueAccess queues a call that the resource answers.
func (w *writer) queueAccess(e history.Event, at, op int64) {
	w.queueCall(e, at, at+onWay, op, history.Event{Type: history.OK})
	e.Time, e.Type, e.Op, e.Client, e.Process = at+onWay/2, history.OK, op, e.Process, history.Resource
	heap.Push(&w.coming, e)
}

// queueFault queues the stages of a hold's fault, if it has one.
func (w *writer) queueFault(h *hold) {
	kind := h.fate.kind()
	if kind == "" {
		return
	}
	if h.fate != paused { // countContention counts pauses
		w.faults++
	}
	f := history.Fault{ID: kind + "-" + strconv.Itoa(h.number), Kind: kind, Targets: []string{name(h.worker)}}
	dropped := int64(3)
	switch h.fate {
	case stepped:
		f.Targets, f.Step = []string{"n1"}, int64(lease)
	case cut:
		f.Peers = []string{"n1"}
	}
	for _, stage := range []struct {
		history.Stage
		at, from, to int64
		evidence     string
	}{
		{history.Requested, h.faultFrom - 1, 0, 0, ""},
		{history.Applied, h.faultFrom + applying, h.faultFrom, h.faultFrom + applying, ""},
		{history.Proven, h.faultFrom + 2_000, 0, 0, "as the target itself says"},
		{history.Healed, h.faultTo + 3_000, h.faultTo + 2_000, h.faultTo + 3_000, ""},
		{history.ProvenHealed, h.faultTo + 4_000, 0, 0, "as the target itself says"},
	} {
		f.Stage, f.From, f.To, f.Evidence = stage.Stage, stage.from, stage.to, stage.evidence
		if h.fate == cut && f.Stage == history.Healed {
			f.Dropped = &dropped
		}
		said := f
		heap.Push(&w.coming, history.Event{Time: stage.at, Process: history.Nemesis, Type: history.Info, F: history.FaultPhase, Fault: &said})
	}
}

// writeUntil writes the events up to a time.
func (w *writer) writeUntil(at int64) error {
	for len(w.coming) > 0 && w.coming[0].Time <= at {
		e := heap.Pop(&w.coming).(history.Event)
		if e.Process == history.Resource {
			w.resource(&e)
		}
		if err := w.event(e); err != nil {
			return err
		}
	}
	return nil
}

// resource fills in what the resource knows of an access. A holder adds its element to what it has read,
// whatever was written since.
func (w *writer) resource(e *history.Event) {
	key, _ := strconv.Atoi(e.Key[1:])
	hold := int64(e.Token)
	w.seq++
	e.Seq, e.Version = w.seq, int64(len(w.data[key]))
	if e.F == history.Read {
		w.read[hold] = e.Version
		return
	}
	e.Base = w.read[hold]
	delete(w.read, hold)
	w.data[key] = append(w.data[key], version{e.Base, e.Element})
	e.Version++
}

func (w *writer) event(e history.Event) error {
	e.Index = w.index
	w.index++
	w.last = e.Time
	return w.line(e)
}

func (w *writer) line(v any) error {
	text, err := json.Marshal(v)
	if err == nil {
		_, err = w.out.Write(append(text, '\n'))
	}
	return err
}

// close writes the final reads and the end.
func (w *writer) close() error {
	for key, data := range w.data {
		if w.workload != history.WorkloadSet {
			break
		}
		elements := []int64{}
		for v := int64(len(data)); v > 0; v = data[v-1].base {
			elements = append(elements, data[v-1].element)
		}
		w.lost += int64(len(data) - len(elements))
		value, err := json.Marshal(elements)
		if err != nil {
			return err
		}
		e := history.Event{Time: w.last + 1, Process: history.Resource, Type: history.OK, F: history.Final, Key: "k" + strconv.Itoa(key), Value: value}
		if err := w.event(e); err != nil {
			return err
		}
	}
	return w.event(history.Event{Time: w.last + 1, Process: history.Harness, Type: history.Info, F: history.Phase, Note: history.PhaseEnd})
}
