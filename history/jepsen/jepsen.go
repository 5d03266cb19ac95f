// Package jepsen converts histories from and to the format of Jepsen (jepsen-io/history): EDN maps with
// :type, :f, :process, :value and :time, as a sequence or in one vector. It supports tests of locks
// (:acquire, :release) and of sets (:add, :read). Operations with other functions, and those of the nemesis,
// are left out.
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
	// Lease after which the lock can end by itself. 0 means that it is not known, so the lock may end at any
	// time.
	Lease time.Duration
	// Permits and Reentrant are those of history.Header.
	Permits, Reentrant int
	// Keys says what names the lock of an operation, or the set in tests of jepsen.independent. It is
	// KeysIndependent, KeysValue, KeysNone, or ":" and the name of a field of the operation or of its value.
	// "" detects it, and refuses an ambiguous history.
	Keys string
}

// Known says whether Keys has a valid value.
func (o Options) Known() bool {
	field, isField := strings.CutPrefix(o.Keys, ":")
	return isField && field != "" || slices.Contains([]string{"", KeysIndependent, KeysValue, KeysNone}, o.Keys)
}

// anyTime is the lease of a lock that may end at any time.
const anyTime = 1

// defaultKey is the name of the only lock or set of a history whose operations name none.
const defaultKey = "k0"

// operation is one operation of the file, an invocation or a completion.
type operation struct {
	line    int
	kind    edn.Keyword // invoke, ok, fail or info
	f       edn.Keyword
	process int64
	time    int64
	fields  map[any]any
	key     string // as text; "" for the only key
	value   any    // without the key, once the key is known
	err     string
}

func (op *operation) malformed(format string, args ...any) error {
	return &FormatError{op.line, fmt.Sprintf(format, args...)}
}

// FormatError is an operation that cannot be parsed.
type FormatError struct {
	Operation int // its number, from 1
	Reason    string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("jepsen: operation %d: %s", e.Operation, e.Reason)
}

// Read reads a history. An operation that cannot be parsed is a *FormatError. Times are those of the file, in
// ns, shifted so that the first is positive. Without times, the order of the operations takes their place.
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

// read parses one operation. ours is false if it is not about a lock or a set, or not of a client.
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
