package conformance

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"lockcheck/clients/protocol"
)

// Direction is the direction of a line.
type Direction string

// The directions.
const (
	Sent     Direction = "sent"     // to the client
	Received Direction = "received" // from the client, as part of the protocol
	Log      Direction = "log"      // from the client, on either output
	Omitted  Direction = "omitted"  // stands for N lines that are left out
)

// Line is a line that was exchanged with a client.
type Line struct {
	Milliseconds float64   `json:"ms"`     // since the first line
	Client       string    `json:"client"` // "w1"…
	Direction    Direction `json:"direction"`
	Text         string    `json:"text,omitempty"` // shortened
	N            int       `json:"n,omitempty"`
	// Wrong: the line broke the rule, or is the request that was not answered.
	Wrong bool `json:"wrong,omitempty"`

	at int64
}

// How much of an exchange is kept.
const (
	keptFirst = 8
	keptLast  = 16
	keptLog   = 10
	keptBytes = 500 // of a line
)

// tape records the lines to and from all clients.
type tape struct {
	mu      sync.Mutex
	lines   []Line
	omitted int // after the first lines
	logged  int // number of log lines among lines
}

// restart discards all recorded lines.
func (t *tape) restart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines, t.omitted, t.logged = nil, 0, 0
}

// trace returns a function that records the lines of a client.
func (t *tape) trace(client string) func(protocol.Traced) {
	return func(line protocol.Traced) {
		direction := Received
		if line.Sent {
			direction = Sent
		}
		t.add(Line{Client: client, Direction: direction, at: line.At}, line.Line)
	}
}

func (t *tape) add(line Line, text []byte) {
	line.Text = string(text[:min(len(text), keptBytes)])
	if len(text) > keptBytes {
		line.Text += "…"
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if line.Direction == Log {
		if t.logged == keptLog {
			first := slices.IndexFunc(t.lines, func(l Line) bool { return l.Direction == Log })
			t.lines = slices.Delete(t.lines, first, first+1)
			t.logged--
		}
		t.logged++
	}
	t.lines = append(t.lines, line)
	if len(t.lines) <= keptFirst+keptLast {
		return
	}
	if t.lines[keptFirst].Direction == Log {
		t.logged--
	}
	t.lines = slices.Delete(t.lines, keptFirst, keptFirst+1)
	t.omitted++
}

// lastSent returns when an operation was last requested of a client; 0 if it never was.
func (t *tape) lastSent(client string, op protocol.Op) (at int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, line := range t.lines {
		if line.Client == client && line.Direction == Sent && strings.Contains(line.Text, `"op":"`+string(op)+`"`) {
			at = line.at
		}
	}
	return at
}

// exchange returns the recorded lines in the order of time, with the line marked that err is about.
func (t *tape) exchange(err error) []Line {
	t.mu.Lock()
	lines, omitted := slices.Clone(t.lines), t.omitted
	t.mu.Unlock()
	slices.SortStableFunc(lines, func(a, b Line) int { return int(min(1, max(-1, a.at-b.at))) })
	client, at := wrongLine(err)
	for i := range lines {
		lines[i].Milliseconds = float64((lines[i].at-lines[0].at)/1000) / 1000
		lines[i].Wrong = at != 0 && lines[i].at == at && lines[i].Client == client && lines[i].Direction != Log
	}
	if omitted > 0 {
		lines = slices.Insert(lines, keptFirst, Line{Milliseconds: lines[keptFirst].Milliseconds, Direction: Omitted, N: omitted})
	}
	return lines
}

// wrongLine returns the client and the time of the line that an error is about; 0 for none.
func wrongLine(err error) (client string, at int64) {
	var failure *failureError
	var of *ofClientError
	var violation *protocol.ViolationError
	switch {
	case errors.As(err, &failure):
		return failure.client, failure.at
	case errors.As(err, &of) && errors.As(err, &violation):
		return of.client, violation.At
	default:
		return "", 0
	}
}

// ofClientError adds the client to an error.
type ofClientError struct {
	client string
	err    error
}

func (e *ofClientError) Error() string { return e.client + ": " + e.err.Error() }
func (e *ofClientError) Unwrap() error { return e.err }

// follow records the log of a client until its writer is closed.
func (t *tape) follow(client string, log io.ReadCloser, now func() int64) {
	defer log.Close()
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadSlice('\n')
		if text := bytes.TrimSpace(line); len(text) > 0 {
			t.add(Line{Client: client, Direction: Log, at: now()}, text)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}
