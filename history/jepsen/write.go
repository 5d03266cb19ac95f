package jepsen

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"olympos.io/encoding/edn"

	"lockcheck/history"
)

// Write writes what workers did in the format of Jepsen: acquires and releases, and updates as adds. A last
// read has the final state of all keys. Everything without a counterpart in Jepsen, such as renewals, loss
// notifications, wake-ups and accesses at the resource, is left out. A process of Jepsen ends with an
// operation of unknown outcome, so a worker that goes on after one is another process from then on. The field
// :grant says which attempt a release is about.
func Write(w io.Writer, h *history.History) error {
	out := bufio.NewWriter(w)
	x := &exporter{out: out, processes: make(map[string]int64), workers: int64(len(h.Header.Workers))}
	for i, name := range h.Header.Workers {
		x.processes[name] = int64(i)
	}
	for i := range h.Events {
		if err := x.event(&h.Events[i]); err != nil {
			return err
		}
	}
	if err := x.final(); err != nil {
		return err
	}
	return out.Flush()
}

type exporter struct {
	out       *bufio.Writer
	index     int64
	workers   int64
	processes map[string]int64 // current process of each worker
	// elements are the final elements of all keys, and read is when they were read; 0 for never.
	elements []json.RawMessage
	read     int64
}

func (x *exporter) event(e *history.Event) error {
	process, isWorker := x.processes[e.Process]
	switch {
	case isWorker && (e.F == history.Acquire || e.F == history.Release):
		if err := x.line(e, process, string(e.F), lockValue(e)); err != nil {
			return err
		}
	case isWorker && e.F == history.Write && e.Element != 0:
		if err := x.line(e, process, "add", fmt.Sprint(e.Element)); err != nil {
			return err
		}
	case e.F == history.Final:
		var elements []json.RawMessage
		if err := json.Unmarshal(e.Value, &elements); err == nil { // otherwise it is a counter
			x.elements, x.read = append(x.elements, elements...), max(x.read, e.Time)
		}
		return nil
	default:
		return nil
	}
	if e.Type == history.Info {
		x.processes[e.Process] = process + x.workers
	}
	return nil
}

func lockValue(e *history.Event) string {
	text := ":key " + quote(e.Key) + " :grant " + quote(e.Grant)
	if e.Token != 0 {
		text += fmt.Sprintf(" :fence %d", e.Token)
	}
	return "{" + text + "}"
}

// final writes the final state of all keys as a read of a separate process.
func (x *exporter) final() error {
	if x.read == 0 {
		return nil
	}
	process := x.workers
	for _, p := range x.processes {
		process = max(process, p+1)
	}
	texts := make([]string, len(x.elements))
	for i, e := range x.elements {
		texts[i] = string(e)
	}
	if err := x.line(&history.Event{Type: history.Invoke, Time: x.read}, process, "read", "nil"); err != nil {
		return err
	}
	return x.line(&history.Event{Type: history.OK, Time: x.read}, process, "read", "["+strings.Join(texts, " ")+"]")
}

func (x *exporter) line(e *history.Event, process int64, f, value string) error {
	failure := ""
	if e.Error != "" {
		failure = " :error " + quote(e.Error)
	}
	_, err := fmt.Fprintf(x.out, "{:index %d :time %d :type :%s :process %d :f :%s :value %s%s}\n", x.index, e.Time, e.Type, process, f, value, failure)
	x.index++
	return err
}

func quote(s string) string {
	text, err := edn.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(text)
}
