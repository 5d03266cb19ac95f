// Package jepsen translates histories from the form of Jepsen, or to it
// (jepsen-io/history): EDN maps with :type, :f, :process, :value, :time, one after
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
	"strings"
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
	// Keys says what names the lock, or in tests of jepsen.independent the set, that an
	// operation is about: KeysIndependent, KeysValue, KeysNone, or ":" and the name of a
	// field of its value or of itself. "" finds out, and refuses what is not certain.
	Keys string
}

// Known says whether Keys is one of the values that it can have.
func (o Options) Known() bool {
	field, isField := strings.CutPrefix(o.Keys, ":")
	return isField && field != "" || slices.Contains([]string{"", KeysIndependent, KeysValue, KeysNone}, o.Keys)
}

// anyTime is the lease of a lock that may end at any time.
const anyTime = 1

// usualKey is the name of the one lock or set that a history is about, unless its
// operations name others.
const usualKey = "k0"

// operation is one line.
type operation struct {
	line    int
	kind    edn.Keyword // :invoke, :ok, :fail, :info
	f       edn.Keyword
	process int64
	time    int64
	fields  map[any]any
	key     string // what it is about, as text; "" for the only one that there is
	value   any    // without the key, once that is known
	err     string
}

func (op *operation) malformed(format string, args ...any) error {
	return &FormatError{op.line, fmt.Sprintf(format, args...)}
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
	if err := resolveKeys(ops, o.Keys); err != nil {
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

// read understands one operation. It is false for one that is not about a lock or a
// set, or not of a client.
func read(n int, value any) (op operation, ours bool, err error) {
	op.line = n
	fields, is := value.(map[any]any)
	if !is {
		return op, false, op.malformed("it is no map but %T", value)
	}
	op.fields, op.value = fields, fields[edn.Keyword("value")]
	op.f, _ = fields[edn.Keyword("f")].(edn.Keyword)
	if op.process, is = fields[edn.Keyword("process")].(int64); !is || !slices.Contains([]edn.Keyword{"acquire", "release", "add", "read"}, op.f) {
		return op, false, nil // the process may be :nemesis
	}
	if op.kind, is = fields[edn.Keyword("type")].(edn.Keyword); !is || !slices.Contains([]edn.Keyword{"invoke", "ok", "fail", "info"}, op.kind) {
		return op, false, op.malformed("its :type is %v", fields[edn.Keyword("type")])
	}
	op.time = int64(n)
	if at, given := fields[edn.Keyword("time")]; given {
		if op.time, is = at.(int64); !is {
			return op, false, op.malformed("its :time is %v", at)
		}
	}
	if e := fields[edn.Keyword("error")]; e != nil {
		op.err = fmt.Sprint(e)
	}
	return op, true, nil
}
