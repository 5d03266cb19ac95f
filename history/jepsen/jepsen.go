// Package jepsen reads and writes histories in the form of Jepsen
// (jepsen-io/history): EDN maps with :type, :f, :process, :value and :time, one after
// the other or in one vector. It knows tests of locks (:acquire, :release) and of sets
// (:add, :read); operations with other functions, and those of the nemesis, are left
// out.
package jepsen

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"olympos.io/encoding/edn"

	"lockcheck/history"
)

// Options say what a Jepsen history does not.
type Options struct {
	// Lease after which the lock can end by itself. 0 means that it is not known: it
	// may end at any time.
	Lease time.Duration
	// Permits and Reentrant are those of history.Header.
	Permits, Reentrant int
}

// anyTime is the lease of a lock that may end at any time.
const anyTime = 1

// usualKey is the name of the one lock or set that a history is about, unless the values
// of its operations name others.
const usualKey = "k0"

// operation is one line.
type operation struct {
	line    int
	kind    edn.Keyword // :invoke, :ok, :fail, :info
	f       edn.Keyword
	process int64
	time    int64
	value   any
	err     string
}

// FormatError is an operation that cannot be understood.
type FormatError struct {
	Operation int // which one, from 1
	Reason    string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("jepsen: operation %d: %s", e.Operation, e.Reason)
}

// Read reads a history. An operation that cannot be understood is a *FormatError. Times
// are those of the file, in ns, moved on so that the first is positive; where it has
// none, the order of the operations takes their place.
func Read(r io.Reader, o Options) (*history.History, error) {
	ops, err := parse(r)
	if err != nil {
		return nil, err
	}
	c := newConverter(ops, o)
	for _, op := range ops {
		if err := c.add(op); err != nil {
			return nil, err
		}
	}
	return c.finish(), nil
}

func parse(r io.Reader) ([]operation, error) {
	in := bufio.NewReader(r)
	decoder := edn.NewDecoder(in)
	var ops []operation
	n := 0
	for {
		var value any
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			return ops, nil
		}
		if err != nil {
			return nil, &FormatError{Operation: n + 1, Reason: err.Error()}
		}
		all, is := untagged(value).([]any)
		if !is {
			all = []any{value}
		}
		for _, one := range all {
			n++
			op, ours, err := read(n, untagged(one))
			if err != nil {
				return nil, err
			}
			if ours {
				ops = append(ops, op)
			}
		}
	}
}

// untagged is the value behind a tag, as in #jepsen.history.Op{...}.
func untagged(value any) any {
	if tag, is := value.(edn.Tag); is {
		return tag.Value
	}
	return value
}

// read understands one operation. It is false for one that is not about a lock or a
// set, or not of a client.
func read(n int, value any) (operation, bool, error) {
	fields, is := value.(map[any]any)
	if !is {
		return operation{}, false, &FormatError{Operation: n, Reason: fmt.Sprintf("it is no map but %T", value)}
	}
	op := operation{line: n, value: untagged(fields[edn.Keyword("value")])}
	op.f, _ = fields[edn.Keyword("f")].(edn.Keyword)
	if !slices.Contains([]edn.Keyword{"acquire", "release", "add", "read"}, op.f) {
		return op, false, nil
	}
	process, is := fields[edn.Keyword("process")].(int64)
	if !is {
		return op, false, nil // :nemesis
	}
	op.process = process
	if op.kind, is = fields[edn.Keyword("type")].(edn.Keyword); !is || !slices.Contains([]edn.Keyword{"invoke", "ok", "fail", "info"}, op.kind) {
		return op, false, &FormatError{Operation: n, Reason: fmt.Sprintf("its :type is %v", fields[edn.Keyword("type")])}
	}
	op.time = int64(n)
	if at, given := fields[edn.Keyword("time")]; given {
		if op.time, is = at.(int64); !is {
			return op, false, &FormatError{Operation: n, Reason: fmt.Sprintf("its :time is %v", at)}
		}
	}
	if e := fields[edn.Keyword("error")]; e != nil {
		op.err = fmt.Sprint(e)
	}
	return op, true, nil
}
