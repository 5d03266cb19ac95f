package main

import (
	"bufio"
	"cmp"
	"container/heap"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"strconv"
	"time"

	"lockcheck/history"
)

// Workloads: without and with accesses to the resource.
const (
	mutex = "mutex"
	set   = "set"
)

// shape says what a synthetic history looks like. It is the same each time.
type shape struct {
	workload   string
	operations int
	keys       int
	// wrong grants each hundredth hold at once, whether the key is held or not.
	wrong bool
}

const (
	workers = 16
	lease   = 10 * time.Second
)

// hold is one grant, times in ns.
type hold struct {
	number, worker, key                int
	asked, granted, release, released  int64
	readCall, readDone, write, written int64
}

// perHold is the number of operations of a hold.
func (s shape) perHold() int {
	if s.workload == set {
		return 4 // acquire, read, write, release
	}
	return 2
}

// holds yields those of workers that queue for the keys, in the order of invocation.
func (s shape) holds() iter.Seq[hold] {
	return func(yield func(hold) bool) {
		random := rand.New(rand.NewPCG(1, uint64(s.keys)))
		free := make([]int64, s.keys) // when each key is free again
		idle := make([]int64, workers)
		for w := range idle {
			idle[w] = int64(w + 1)
		}
		for n := range s.operations / s.perHold() {
			w := 0
			for other, at := range idle {
				if at < idle[w] {
					w = other
				}
			}
			h := hold{number: n + 1, worker: w, key: random.IntN(s.keys), asked: idle[w]}
			h.granted = max(h.asked, free[h.key]) + 50_000 + random.Int64N(50_000)
			if s.wrong && n%100 == 99 {
				h.granted = h.asked + 50_000
			}
			h.readCall = h.granted + 1_000
			h.readDone = h.readCall + 20_000
			h.write = h.readDone + 1_000 + random.Int64N(100_000)
			h.written = h.write + 20_000
			h.release = h.written + 1_000
			h.released = h.release + 50_000
			free[h.key] = max(free[h.key], h.release+20_000)
			idle[w] = h.released + 1_000 + random.Int64N(200_000)
			if !yield(h) {
				return
			}
		}
	}
}

// events are those to come, by time.
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

// writer writes events in the order of their times.
type writer struct {
	out      *bufio.Writer
	coming   events
	index    int64
	seq      int64
	versions []int64
	elements [][]byte
	last     int64
}

func (s shape) write(to io.Writer) error {
	w := &writer{out: bufio.NewWriterSize(to, 1<<20), versions: make([]int64, s.keys), elements: make([][]byte, s.keys)}
	if err := w.line(s.header()); err != nil {
		return err
	}
	for h := range s.holds() {
		if err := w.until(h.asked); err != nil {
			return err
		}
		s.push(w, h)
	}
	if err := w.until(1 << 62); err != nil {
		return err
	}
	if err := s.close(w); err != nil {
		return err
	}
	return w.out.Flush()
}

func (s shape) header() history.Header {
	h := history.Header{
		Format: history.Format, Schema: history.SchemaVersion, Run: "bench", Lock: "synthetic",
		Workload: s.workload, Guard: "none", Servers: []string{"n1"}, Lease: lease, Grace: time.Second, Tokens: true,
	}
	for w := range workers {
		h.Workers = append(h.Workers, name(w))
	}
	return h
}

func name(worker int) string { return "w" + strconv.Itoa(worker+1) }

func (s shape) push(w *writer, h hold) {
	base := history.Event{
		Process: name(h.worker), Key: "k" + strconv.Itoa(h.key), Grant: name(h.worker) + "-" + strconv.Itoa(h.number),
	}
	op := int64(h.number) * 4
	add := func(at int64, f history.Function, t history.Type, op int64, change func(*history.Event)) {
		e := base
		e.Time, e.F, e.Type, e.Op = at, f, t, op
		if change != nil {
			change(&e)
		}
		heap.Push(&w.coming, e)
	}
	token := func(e *history.Event) { e.Token = uint64(h.number) }
	add(h.asked, history.Acquire, history.Invoke, op, nil)
	add(h.granted, history.Acquire, history.OK, op, func(e *history.Event) {
		token(e)
		e.Until = h.asked + int64(lease)
	})
	if s.workload == set {
		element := func(e *history.Event) { e.Element = int64(h.number) }
		atResource := func(e *history.Event) { e.Process, e.Client = history.Resource, base.Process }
		add(h.readCall, history.Read, history.Invoke, op+1, token)
		add(h.readCall+10_000, history.Read, history.OK, op+1, func(e *history.Event) { token(e); atResource(e) })
		add(h.readDone, history.Read, history.OK, op+1, token)
		add(h.write, history.Write, history.Invoke, op+2, func(e *history.Event) { token(e); element(e) })
		add(h.write+10_000, history.Write, history.OK, op+2, func(e *history.Event) { token(e); element(e); atResource(e) })
		add(h.written, history.Write, history.OK, op+2, func(e *history.Event) { token(e); element(e) })
	}
	add(h.release, history.Release, history.Invoke, op+3, token)
	add(h.released, history.Release, history.OK, op+3, token)
}

// until writes what happens up to a time.
func (w *writer) until(at int64) error {
	for len(w.coming) > 0 && w.coming[0].Time <= at {
		e := heap.Pop(&w.coming).(history.Event)
		if e.Process == history.Resource {
			w.access(&e)
		}
		if err := w.event(e); err != nil {
			return err
		}
	}
	return nil
}

// access fills in what the resource knows of an access.
func (w *writer) access(e *history.Event) {
	key, _ := strconv.Atoi(e.Key[1:])
	w.seq++
	e.Seq, e.Version = w.seq, w.versions[key]
	if e.F == history.Write {
		e.Base = e.Version
		e.Version++
		w.versions[key] = e.Version
		w.elements[key] = strconv.AppendInt(append(w.elements[key], ','), e.Element, 10)
	}
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
func (s shape) close(w *writer) error {
	for key, elements := range w.elements {
		if s.workload != set {
			break
		}
		e := history.Event{Time: w.last + 1, Process: history.Resource, Type: history.OK, F: history.Final, Key: fmt.Sprintf("k%d", key)}
		e.Value = json.RawMessage("[" + string(elements[min(1, len(elements)):]) + "]")
		if err := w.event(e); err != nil {
			return err
		}
	}
	return w.event(history.Event{Time: cmp.Or(w.last, 1), Process: history.Harness, Type: history.Info, F: history.Phase, Note: history.PhaseEnd})
}
