package protocol

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// enqueue passes a request to the writer. It never blocks, even if the client reads nothing.
func (c *Client) enqueue(request Request, at int64) error {
	text, err := json.Marshal(request)
	if err != nil {
		return err
	}
	c.traced(Traced{Sent: true, At: at, Line: text})
	select {
	case c.requests <- append(text, '\n'):
		return nil
	case <-c.failed:
		return c.why
	default:
		c.fail(&ViolationError{Part: Input, Rule: "it does not read its input"})
		return c.why
	}
}

// traced passes a line to the trace, if there is one.
func (c *Client) traced(t Traced) {
	if c.trace != nil {
		c.trace(t)
	}
}

// write sends requests until the client fails or is closed.
func (c *Client) write() {
	for {
		select {
		case text := <-c.requests:
			if _, err := c.program.Input.Write(text); err != nil {
				c.ended(err, "it closed its input and did not end")
				return
			}
		case <-c.failed:
			return
		}
	}
}

// read reads the output to its end, so that a full pipe never blocks the client. It passes answers and events
// to the calls that wait for them.
func (c *Client) read() {
	lines := bufio.NewReaderSize(c.program.Output, maxLine)
	for {
		if c.Failed() != nil {
			_, _ = io.Copy(io.Discard, lines)
			return
		}
		text, err := lines.ReadSlice('\n')
		received := c.now()
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			c.traced(Traced{At: received, Line: text})
			c.violated(Lines, "a line has at most 1 MiB", text, received)
			continue
		case len(bytes.TrimSpace(text)) > 0:
			c.line(bytes.TrimSpace(text), received)
		}
		if err != nil {
			c.ended(err, "it closed its output and did not end")
			return
		}
	}
}

// streamTime is how long a client that has closed its input or output may take to end.
const streamTime = time.Second

// ended handles the end of the input or the output: without either, the client cannot be used any more, whether
// it still runs or not. If the client does not end soon, it has broken the rule otherwise.
func (c *Client) ended(err error, otherwise string) {
	if errors.Is(err, os.ErrClosed) { // closed by this process
		return
	}
	timer := time.NewTimer(streamTime)
	defer timer.Stop()
	select {
	case <-c.failed:
	case <-c.ending:
	case <-c.program.errorsRead:
		select {
		case <-c.ending: // Close has begun, so the client should end
		default:
			c.fail(&EndedError{Exit: c.program.exit()})
		}
	case <-timer.C:
		c.violated(Ending, otherwise, nil, 0)
	}
}

func (c *Client) line(text []byte, received int64) {
	if text[0] != '{' {
		_, _ = c.program.last.Write(append(bytes.Clone(text), '\n'))
		return
	}
	if c.Failed() != nil {
		return // only the first mistake is reported
	}
	c.traced(Traced{At: received, Line: text})
	var line Line
	err := json.Unmarshal(text, &line)
	switch {
	case err != nil:
		c.violated(Lines, "a line that begins with a brace is JSON of the specified form ("+err.Error()+")", text, received)
	case line.Event != "":
		c.event(line, text, received)
	default:
		c.answer(line, received, text)
	}
}

func (c *Client) answer(line Line, received int64, text []byte) {
	c.mu.Lock()
	pending, open := c.open[line.ID]
	delete(c.open, line.ID)
	c.answered = received
	clock := c.clock
	c.mu.Unlock()
	switch {
	case !open:
		c.violated(Answers, "an answer has the id of a request that was not answered yet", text, received)
	case line.answers() != 1:
		c.violated(Answers, "an answer has exactly one of ok, busy, not_held and error", text, received)
	case !allowed(pending.request.Op, line):
		c.violated(Answers, fmt.Sprintf("%s is answered by %s", pending.request.Op, answersTo[pending.request.Op]), text, received)
	case line.OK != nil && line.OK.Until != 0 && !clock:
		c.violated(Clock, "a client that names an until tells its time in the answer to hello", text, received)
	case line.OK != nil && line.OK.Until != 0 && !pending.plausible(line.OK.Until, received):
		c.violated(Until, fmt.Sprintf("an until is a time of CLOCK_MONOTONIC, after the request, which was sent at %d, and not a day beyond its lease", pending.sent), text, received)
	default:
		pending.answer <- Answer{Line: line, Sent: pending.sent, Received: received}
	}
}

// plausible reports whether a time can be the end of a validity. Times of a wall clock, in other units, or
// relative to the request are far outside the range.
func (c *call) plausible(until, received int64) bool {
	lease := time.Duration(c.request.TTLMS) * time.Millisecond
	return until >= c.sent && until <= received+(lease+24*time.Hour).Nanoseconds()
}

// answersTo describes the answers that each operation allows.
var answersTo = map[Op]string{
	Hello: "ok or error", Acquire: "ok, busy or error", Renew: "ok, not_held or error",
	Release: "ok, not_held or error", Holds: "ok with holds, or error", Work: "ok",
}

func allowed(op Op, line Line) bool {
	switch {
	case line.Busy != nil:
		return op == Acquire
	case line.NotHeld != nil:
		return op == Renew || op == Release
	case line.OK != nil && op == Holds:
		return line.OK.Holds != nil
	case line.Error != nil:
		return op != Work
	default:
		return true
	}
}

// event handles the event that a lock was lost. Other events may belong to a later version of the protocol, and
// are ignored up to a limit.
func (c *Client) event(line Line, text []byte, received int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lost, held := c.lost[line.Attempt]
	if line.Event == Lost && held {
		delete(c.lost, line.Attempt)
		close(lost)
		return
	}
	if c.ignored++; c.ignored > maxIgnored {
		c.violated(Events, "at most 10,000 events are about no lock that it holds", text, received)
	}
}

// shownLine is how much of a line an error quotes, in bytes.
const shownLine = 200

func (c *Client) violated(part Part, rule string, text []byte, at int64) {
	if len(text) > shownLine {
		text = append(text[:shownLine:shownLine], "…"...)
	}
	c.fail(&ViolationError{Part: part, Rule: rule, Line: string(text), At: at})
}
