package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// decoder turns lines into events. It parses the lines that Writer writes by itself and leaves other lines to
// encoding/json, which handles all lines but takes several times as long (BenchmarkDecode). It is not safe
// for concurrent use.
type decoder struct {
	// known interns strings that repeat: names of processes, keys and functions.
	known map[string]string
	// schema1 says that the lines are of schema 1.
	schema1 bool
}

// maxKnown and maxLength limit what a decoder interns.
const (
	maxKnown  = 1 << 16
	maxLength = 64
)

func newDecoder(schema int) *decoder {
	return &decoder{known: make(map[string]string), schema1: schema == 1}
}

func (d *decoder) decode(line []byte, e *Event) error {
	*e = Event{}
	if !d.plain(line, e) {
		*e = Event{}
		if err := d.slow(line, e); err != nil {
			return err
		}
	}
	if d.schema1 {
		e.fromSchema1()
	}
	return nil
}

func (d *decoder) slow(line []byte, e *Event) error {
	if d.schema1 {
		return slowSchema1(line, e)
	}
	return slow(line, e, e)
}

// slow decodes any line into a value that contains e. Names must be valid text: JSON replaces all invalid
// text by one letter, so that two keys could become one.
func slow(line []byte, e *Event, into any) error {
	if err := object(line, into); err != nil {
		return err
	}
	for _, name := range []string{e.Process, e.Key, e.Grant, e.Client, e.ID} {
		if strings.ContainsRune(name, utf8.RuneError) {
			return fmt.Errorf("the name %q holds broken text: it cannot be told from others", name)
		}
	}
	return nil
}

// object unmarshals a JSON object. encoding/json alone would also accept null.
func object(text []byte, into any) error {
	if trimmed := bytes.TrimLeft(text, " \t\r"); len(trimmed) == 0 || trimmed[0] != '{' {
		return errors.New("not a JSON object")
	}
	return json.Unmarshal(text, into)
}

// plain decodes an object of known fields whose values are numbers, booleans, or strings without escapes. It
// is false for any other line.
func (d *decoder) plain(line []byte, e *Event) bool {
	if len(line) < 2 || line[0] != '{' || line[len(line)-1] != '}' {
		return false
	}
	rest := line[1 : len(line)-1]
	for {
		name, after, ok := quoted(rest)
		if !ok || len(after) == 0 || after[0] != ':' {
			return false
		}
		if rest, ok = d.field(e, name, after[1:]); !ok {
			return false
		}
		if len(rest) == 0 {
			return true
		}
		if rest[0] != ',' {
			return false
		}
		rest = rest[1:]
	}
}

// field decodes one value and returns what follows it.
func (d *decoder) field(e *Event, name, text []byte) ([]byte, bool) {
	switch string(name) {
	case "index":
		return integer(&e.Index, text)
	case "time":
		return integer(&e.Time, text)
	case "process":
		return d.string(&e.Process, text)
	case "type":
		return d.string((*string)(&e.Type), text)
	case "f":
		return d.string((*string)(&e.F), text)
	case "key":
		return d.string(&e.Key, text)
	case "op":
		return integer(&e.Op, text)
	case "node":
		return d.string(&e.Node, text)
	case "grant":
		return uninterned(&e.Grant, text)
	case "holder":
		return uninterned(&e.Holder, text)
	case "token":
		return natural(&e.Token, text)
	case "until":
		return integer(&e.Until, text)
	case "dead":
		if d.schema1 {
			return boolean(&e.Expired, text)
		}
	case "expired":
		if !d.schema1 {
			return boolean(&e.Expired, text)
		}
	case "shared":
		return boolean(&e.Shared, text)
	case "from":
		return integer(&e.From, text)
	case "wakes":
		return integer(&e.Wakes, text)
	case "client":
		return d.string(&e.Client, text)
	case "seq":
		return integer(&e.Seq, text)
	case "version":
		return integer(&e.Version, text)
	case "base":
		return integer(&e.Base, text)
	case "element":
		return integer(&e.Element, text)
	case "note":
		return d.string(&e.Note, text)
	case "error":
		return d.string(&e.Error, text)
	}
	return nil, false
}

// string decodes and interns a string that is likely to repeat.
func (d *decoder) string(into *string, text []byte) ([]byte, bool) {
	s, rest, ok := quoted(text)
	if !ok {
		return nil, false
	}
	known, seen := d.known[string(s)]
	if !seen {
		known = string(s)
		if len(d.known) < maxKnown && len(s) <= maxLength {
			d.known[known] = known
		}
	}
	*into = known
	return rest, true
}

// uninterned decodes a string that is unlikely to repeat.
func uninterned(into *string, text []byte) ([]byte, bool) {
	s, rest, ok := quoted(text)
	*into = string(s)
	return rest, ok
}

// quoted splits off a string of printable ASCII without escapes.
func quoted(text []byte) (s, rest []byte, ok bool) {
	if len(text) == 0 || text[0] != '"' {
		return nil, nil, false
	}
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return text[1:i], text[i+1:], true
		case c == '\\', c < ' ', c > '~':
			return nil, nil, false
		}
	}
	return nil, nil, false
}

// digits is how long a number can be without overflow.
const digits = 18

func integer(into *int64, text []byte) ([]byte, bool) {
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	n, rest, ok := number(text)
	if negative {
		n = -n
	}
	*into = n
	return rest, ok
}

func natural(into *uint64, text []byte) ([]byte, bool) {
	n, rest, ok := number(text)
	*into = uint64(n)
	return rest, ok
}

// number splits off the digits of a whole number in JSON syntax.
func number(text []byte) (int64, []byte, bool) {
	var n int64
	i := 0
	for i < len(text) && i <= digits && text[i]-'0' <= 9 {
		n = n*10 + int64(text[i]-'0')
		i++
	}
	if i == 0 || i > digits || i > 1 && text[0] == '0' {
		return 0, nil, false
	}
	return n, text[i:], true
}

func boolean(into *bool, text []byte) ([]byte, bool) {
	for _, value := range []bool{true, false} {
		if rest, ok := bytes.CutPrefix(text, strconv.AppendBool(nil, value)); ok {
			*into = value
			return rest, true
		}
	}
	return nil, false
}
