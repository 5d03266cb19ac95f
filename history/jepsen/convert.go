package jepsen

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"olympos.io/encoding/edn"

	"lockcheck/history"
)

type converter struct {
	lease        time.Duration // 0 if it is not known
	h            *history.History
	shift        int64 // added to all times
	last         map[int64]int64
	ops          int64
	open         map[int64]begun   // by process
	grants       map[int64]grant   // the last attempt of each process
	held         map[int64][]grant // unreleased attempts of each process
	counts       map[int64]int     // number of attempts of each process
	exported     map[string]grant  // attempts by the names of lockcheck's own export
	seq          int64
	elementShift int64           // added to all elements, so that none is 0
	sets         map[string]*set // by key
	resource     int64           // time of the last event at the resource, whose times must not decrease
}

type begun struct {
	history.Event
	f    edn.Keyword
	by   int64 // the process that the operation is attributed to
	line int
}

// grant is an attempt to acquire a key.
type grant struct {
	key, id string
	by      int64 // process
}

func newConverter(ops []operation, o Options) *converter {
	c := &converter{
		h: &history.History{Header: history.Header{
			Format: history.Format, Schema: history.SchemaVersion, Run: "imported", Workload: history.WorkloadMutex, Guard: history.GuardNone,
			Permits: o.Permits, Reentrant: o.Reentrant, Imported: "jepsen", Parameters: make(map[string]string),
		}},
		lease: o.Lease, last: make(map[int64]int64), open: make(map[int64]begun),
		sets: make(map[string]*set), grants: make(map[int64]grant), held: make(map[int64][]grant), counts: make(map[int64]int), exported: make(map[string]grant),
	}
	first := int64(1)
	seen, reads := make(map[int64]bool), make(map[int64]*operation) // reads: the last read that each process began
	for i := range ops {
		op := &ops[i]
		switch {
		case op.f == "read" && op.kind == "invoke":
			reads[op.process] = op
		case op.isFinalRead() && reads[op.process] != nil: // the completion may not repeat the key of the invocation
			c.set(reads[op.process].key).reading = reads[op.process].line
		}
		first = min(first, op.time)
		seen[op.process] = true
		switch op.f {
		case "add", "read":
			c.h.Header.Workload = history.WorkloadSet
		case "acquire":
			c.h.Header.Lock = "imported"
		}
		if e, is := op.value.(int64); is && op.f == "add" && e <= 0 {
			c.elementShift = max(c.elementShift, 1-e)
		}
		if fence(op.value) != 0 {
			c.h.Header.Tokens = true
		}
	}
	c.shift = 1 - first
	if c.h.Header.Lock != "" {
		c.h.Header.Lease = cmp.Or(o.Lease, anyTime)
	}
	if c.elementShift > 0 {
		c.h.Header.Parameters["elements"] = fmt.Sprintf("raised by %d, for 0 means none here", c.elementShift)
	}
	for _, p := range slices.Sorted(maps.Keys(seen)) {
		c.h.Header.Workers = append(c.h.Header.Workers, worker(p))
	}
	return c
}

// worker is the name of a process. Processes count from 0.
func worker(process int64) string { return fmt.Sprintf("w%d", process+1) }

func (c *converter) add(op operation) error {
	e := history.Event{Key: cmp.Or(op.key, defaultKey), Error: op.err}
	c.stamp(&e, op, op.process)
	begun, isOpen := c.open[op.process]
	switch {
	case op.kind == "invoke" && isOpen:
		return op.malformed("process %d invokes :%s while its :%s is open", op.process, op.f, begun.f)
	case op.kind == "invoke":
		return c.invoke(op, e)
	case !isOpen || begun.f != op.f:
		return op.malformed("process %d completes :%s, which it did not invoke", op.process, op.f)
	}
	delete(c.open, op.process)
	switch {
	case op.f == "read":
		return c.set(begun.Key).recordRead(op, e.Time, begun.line, c.elementShift)
	case begun.Grant == "": // the release of a lock that was never asked for
		return nil
	}
	c.stamp(&e, op, begun.by)
	e.F, e.Op, e.Key, e.Grant, e.Element, e.Token = begun.F, begun.Op, begun.Key, begun.Grant, begun.Element, fence(op.value)
	e.Type = map[edn.Keyword]history.Type{"ok": history.OK, "fail": history.Fail, "info": history.Info}[op.kind]
	switch {
	case e.F == history.Write && c.set(e.Key).recordAdd(e, op.line):
		c.addAccess(e)
	case e.F == history.Acquire && e.Type == history.Fail:
		c.forget(c.grants[op.process])
	case e.F == history.Acquire && e.Type == history.OK && c.lease > 0:
		e.Until = begun.Time + int64(c.lease)
	}
	c.event(e)
	return nil
}

// stamp sets the process and time of an event. Jepsen sorts by index, so times of a process must be kept from
// decreasing.
func (c *converter) stamp(e *history.Event, op operation, process int64) {
	e.Process, e.Time = worker(process), max(op.time+c.shift, c.last[process])
	c.last[process] = e.Time
}

func (c *converter) forget(g grant) {
	c.held[g.by] = slices.DeleteFunc(c.held[g.by], func(other grant) bool { return other == g })
}

func (c *converter) invoke(op operation, e history.Event) error {
	by := op.process
	switch op.f {
	case "read": // of a set; only its result counts
		c.open[op.process] = begun{e, op.f, op.process, op.line}
		return nil
	case "acquire":
		c.counts[op.process]++
		g := grant{e.Key, fmt.Sprintf("%s-%d", e.Process, c.counts[op.process]), op.process}
		c.grants[op.process], c.exported[field(op.value, "grant")] = g, g
		c.held[op.process] = append(c.held[op.process], g)
		e.F, e.Grant = history.Acquire, g.id
	case "release":
		last, err := c.released(op)
		if err != nil || last == (grant{}) { // there is nothing to judge
			c.open[op.process] = begun{e, op.f, op.process, op.line}
			return err
		}
		by = last.by
		c.stamp(&e, op, by)
		e.F, e.Grant, e.Key = history.Release, last.id, last.key
	case "add":
		element, is := op.value.(int64)
		if !is {
			return op.malformed("the :value of an :add is to be an integer, not %v", op.value)
		}
		e.F, e.Element, e.Grant = history.Write, element+c.elementShift, e.Process+"-adds"
		if op.key != "" {
			e.Grant += "-" + op.key
		}
		c.set(e.Key).uncertain[e.Element] = true
	}
	c.ops++
	e.Type, e.Op = history.Invoke, c.ops
	c.open[op.process] = begun{e, op.f, by, op.line}
	c.event(e)
	return nil
}

// released is the attempt that a release is about. If lockcheck's own export names the attempt, it is that
// one; its worker is another process by then if its acquire had no known outcome. Otherwise it is the last
// unreleased attempt on the named key, or on the only key. If there is none, it is the last attempt, which is
// then released again. It is zero for a process that never asked.
func (c *converter) released(op operation) (grant, error) {
	if name := field(op.value, "grant"); name != "" && c.exported[name] != (grant{}) {
		c.forget(c.exported[name])
		return c.exported[name], nil
	}
	held := c.held[op.process]
	key, named := op.key, op.key != ""
	for _, g := range slices.Backward(held) {
		switch {
		case !named && g.key != held[0].key:
			return grant{}, op.malformed("process %d holds several keys, and its :release names none", op.process)
		case !named || g.key == key:
			c.forget(g)
			return g, nil
		}
	}
	if last := c.grants[op.process]; !named || last.key == key {
		return last, nil
	}
	return grant{}, nil
}

// addAccess adds the access at the resource that an acknowledged add implies. The version that it was computed
// from is not known, so it is assumed to be the previous one, as if nothing had been lost. The final read
// shows whether it was.
func (c *converter) addAccess(e history.Event) {
	c.seq++
	s := c.set(e.Key)
	s.version++
	c.event(history.Event{
		Time: e.Time, Process: history.Resource, Type: history.OK, F: history.Write, Key: e.Key, Op: e.Op, Grant: e.Grant,
		Client: e.Process, Element: e.Element, Seq: c.seq, Base: s.version - 1, Version: s.version,
	})
}

// fence is the fencing token in the value of an acquire, 0 for none.
func fence(value any) uint64 {
	fields, _ := value.(map[any]any)
	token, _ := fields[edn.Keyword("fence")].(int64)
	return uint64(max(token, 0))
}

// field is a text field in the value of an operation, "" if there is none of that name.
func field(value any, name edn.Keyword) string {
	fields, _ := value.(map[any]any)
	text, _ := fields[name].(string)
	return text
}

func (c *converter) event(e history.Event) {
	if e.Process == history.Resource {
		e.Time = max(e.Time, c.resource)
		c.resource = e.Time
	}
	e.Index = int64(len(c.h.Events))
	c.h.Events = append(c.h.Events, e)
}

// finish adds the final reads and the end.
func (c *converter) finish() *history.History {
	end := int64(1)
	for _, e := range c.h.Events {
		end = max(end, e.Time)
	}
	late := 0
	for _, key := range slices.Sorted(maps.Keys(c.sets)) {
		s := c.sets[key]
		late += s.late
		for _, final := range s.finals() {
			end = max(final.Time, end)
			final.Time = end
			c.event(final)
		}
	}
	if late > 0 {
		c.h.Header.Parameters["not judged"] = fmt.Sprintf("%d adds that were acknowledged after the last read had begun", late)
	}
	c.event(history.Event{Time: end, Process: history.Harness, Type: history.Info, F: history.Phase, Note: history.PhaseEnd})
	return c.h
}
