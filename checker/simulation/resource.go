package simulation

import (
	"encoding/json"
	"fmt"
	"slices"

	"lockcheck/history"
)

// resource keeps the data of all keys.
type resource struct {
	s      *sim
	data   map[string]*data
	names  []string
	seq    int64
	defers []*deferral
}

type data struct {
	states         [][]int64 // by version
	read, wrote    uint64    // the highest tokens that were accepted
	reader         string    // the grant that read the key last
	extra, missing []int64   // elements that the final state wrongly has or lacks
}

// deferral holds back the next write of a worker.
type deferral struct {
	fault  string
	worker *worker
	delay  int64
	met    func(delay int64)
}

func (r *resource) of(key string) *data {
	if r.data[key] == nil {
		r.data[key] = &data{states: [][]int64{nil}}
		r.names = append(r.names, key)
	}
	return r.data[key]
}

// arrive takes an access, whose event its worker made, and answers it now or later.
func (r *resource) arrive(e history.Event, w *worker, answer func(history.Type, int64)) {
	i := slices.IndexFunc(r.defers, func(d *deferral) bool { return d.worker == w })
	if e.F != history.Write || i < 0 {
		answer(r.access(e))
		return
	}
	d := r.defers[i]
	r.defers = slices.Delete(r.defers, i, i+1)
	r.s.emit(history.Event{
		Process: history.Resource, Type: history.Info, F: history.Deferred, Key: e.Key, Client: e.Process, Op: e.Op,
		Grant: e.Grant, Note: d.fault,
	})
	d.met(d.delay)
	r.s.after(d.delay, func() { answer(r.access(e)) })
}

func (r *resource) access(e history.Event) (history.Type, int64) {
	s, d := r.s, r.of(e.Key)
	r.seq++
	e.Client, e.Process, e.Seq, e.Type = e.Process, history.Resource, r.seq, history.OK
	version := int64(len(d.states) - 1)
	e.Note = r.guard(e, d, version)
	if e.Note != "" {
		e.Type, e.Version = history.Fail, version
		if e.Note == refused {
			e.Note = ""
		}
		if e.F == history.Write && s.chance(s.Applies) {
			s.truth.Wrong["applies"]++
			d.extra = append(d.extra, e.Element)
		}
		s.emit(e)
		return history.Fail, version
	}
	d.read = max(d.read, e.Token)
	if e.F == history.Write {
		d.wrote = max(d.wrote, e.Token)
		d.states = append(d.states, append(slices.Clone(d.states[e.Base]), e.Element))
		version++
		r.applyBugs(e, d)
	}
	e.Version = version
	s.emit(e)
	return history.OK, version
}

const refused = "refused"

// guard says why an access is refused, "" if it is not.
func (r *resource) guard(e history.Event, d *data, version int64) string {
	write := e.F == history.Write
	no := false
	switch r.s.Guard {
	case guardFence:
		no = e.Token < max(d.read, d.wrote)
	case guardFenceWrites:
		no = write && e.Token < d.wrote
	case history.GuardVersions:
		no = write && e.Base != version
	case history.GuardMatch:
		if !write {
			d.reader = e.Grant
		}
		no = e.Grant != d.reader
	case guardAsk:
		if r.s.server.down || r.s.server.stopped {
			return "no answer"
		}
		no = !r.s.server.holds(r.s.truth.Grants[e.Grant])
	}
	if no {
		return refused
	}
	return ""
}

// applyBugs applies the configured bugs of the resource to an accepted update.
func (r *resource) applyBugs(e history.Event, d *data) {
	s := r.s
	switch {
	case s.chance(s.Drop):
		s.truth.Wrong["drop"]++
		d.missing = append(d.missing, e.Element)
	case s.chance(s.Twin):
		s.truth.Wrong["twin"]++
		d.extra = append(d.extra, e.Element)
	case s.chance(s.Phantom):
		s.truth.Wrong["phantom"]++
		d.extra = append(d.extra, 1000+e.Element)
	}
}

// report emits the final state of all keys.
func (r *resource) report() {
	for _, key := range r.names {
		d := r.data[key]
		content := slices.Clone(d.states[len(d.states)-1])
		content = slices.DeleteFunc(content, func(x int64) bool { return slices.Contains(d.missing, x) })
		content = append(content, d.extra...)
		r.s.truth.Content[key] = content
		value := fmt.Sprint(len(content))
		if r.s.Workload != history.WorkloadCounter && r.s.Workload != history.WorkloadMutex {
			text, err := json.Marshal(content)
			if err != nil {
				panic(err) // numbers can always be marshalled
			}
			value = string(text)
		}
		if len(d.states) == 1 && len(content) == 0 {
			value = "null"
		}
		r.s.emit(history.Event{
			Process: history.Resource, Type: history.OK, F: history.Final, Key: key,
			Version: int64(len(d.states) - 1), Value: json.RawMessage(value),
		})
	}
}
