package replica

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"lockcheck/history"
	"lockcheck/internal/processes"
)

const (
	// patience is how long a program may take to end that was told to.
	patience = 3 * time.Second
	// A program that ends by itself is started again after firstDelay, after twice as long the next time, and after
	// firstDelay again once it has run for longRun. That is what Docker does.
	firstDelay = 100 * time.Millisecond
	lastDelay  = time.Minute
	longRun    = 10 * time.Second
	// maxEvents bounds the events of lines in a second: a history of a flood would be all flood.
	maxEvents = 2000
)

// launcher is the parent of a program, in all its lives.
type launcher struct {
	config   Config
	patterns []pattern
	signals  <-chan os.Signal
	ended    <-chan struct{} // closed once the input has ended
	output   io.Writer
	raw      io.Writer
	// lastWords is the last line that the program printed, cut at maxLastWords bytes: when it fails, the line often
	// says why.
	lastWords string

	events bytes.Buffer // to be written
	gone   bool         // nobody reads the output any more

	second int64 // when the present second of events began
	count  int   // of events in it
}

// ReadConfig reads the file of a configuration.
func ReadConfig(path string) (c Config, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Run runs the program until the input ends, and then ends it: by SIGTERM, and by SIGKILL if that takes long. Events go
// to the output, each a line of JSON, and what the program writes to raw. The signals are handed on to the program.
// What the program has started ends with it. The error says that the program could not be started at all.
func Run(c Config, signals <-chan os.Signal, input io.Reader, output, raw io.Writer) error {
	patterns, err := c.patterns()
	if err != nil {
		return fmt.Errorf("replica %s: %w", c.Name, err)
	}
	// With the harness gone this process has to end what it has started. The next word to the harness must not end it
	// before, nor what the kernel sends to a stopped process whose parent has ended.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGHUP)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, input)
	}()
	l := &launcher{config: c, patterns: patterns, signals: signals, ended: ended, output: output, raw: raw}
	return errors.Join(l.run(), processes.EndDescendants())
}

// run starts the program as often as the restart policy says.
func (l *launcher) run() error {
	delay, first := firstDelay, true
	for {
		began := time.Now()
		failed, err := l.live()
		switch {
		case err != nil && first:
			return fmt.Errorf("replica %s: %w", l.config.Name, err)
		case err != nil:
			l.say(history.Event{From: history.Now(), F: history.Ended, Note: err.Error()})
			l.write()
		}
		first = false
		if time.Since(began) >= longRun {
			delay = firstDelay
		}
		if l.stops() || !l.pause(delay, failed || err != nil) {
			return nil
		}
		delay = min(2*delay, lastDelay)
	}
}

// stops says whether the program is to end for good.
func (l *launcher) stops() bool {
	select {
	case <-l.ended:
		return true
	default:
		return l.gone
	}
}

// pause waits until the program is to be started again, and returns false if it is not.
func (l *launcher) pause(delay time.Duration, failed bool) bool {
	var again <-chan time.Time
	if l.config.Restart == RestartAlways || l.config.Restart == RestartOnFailure && failed {
		again = time.After(delay)
	}
	select {
	case <-again:
		return true
	case <-l.ended:
		return false
	}
}

const maxLastWords = 200

// look makes events of lines.
func (l *launcher) look(lines []line) {
	for _, line := range slices.Backward(lines) {
		if text := bytes.TrimSpace(line.text); len(text) > 0 && !line.long {
			l.lastWords = named(text[:min(len(text), maxLastWords)])
			break
		}
	}
	if len(l.patterns) == 0 {
		return
	}
	for _, line := range lines {
		if line.long {
			l.miss(line, fmt.Sprintf("a line of more than %d bytes", maxLine))
			continue
		}
		for _, p := range l.patterns {
			e, matches, reason := p.event(line.text, l.config)
			switch {
			case reason != "":
				l.miss(line, reason)
			case matches && l.counts(line):
				e.From, e.Time = line.from, line.time
				l.put(e)
			}
		}
	}
}

// counts says whether there is room in this second for an event of a line, and reports the first one for which there
// is not: those after it are between that report and the next event.
func (l *launcher) counts(line line) bool {
	if line.time-l.second >= time.Second.Nanoseconds() {
		l.second, l.count = line.time, 0
	}
	l.count++
	if l.count == maxEvents+1 {
		l.miss(line, fmt.Sprintf("more than %d lines in a second that mean something", maxEvents))
	}
	return l.count <= maxEvents
}

// miss reports a line that is not looked at.
func (l *launcher) miss(line line, why string) {
	l.put(history.Event{
		Process: l.config.Name, Type: history.Info, F: history.Missed, From: line.from, Time: line.time, Error: why,
	})
}

// say adds an event of the program's process itself, which happened between its From and now.
func (l *launcher) say(e history.Event) {
	e.Process, e.Type, e.Time = l.config.Name, history.Info, history.Now()
	l.put(e)
}

// put adds an event to those to be written. Their times never decrease, because one goroutine reads and adds.
func (l *launcher) put(e history.Event) {
	if err := json.NewEncoder(&l.events).Encode(e); err != nil {
		panic(err) // numbers and texts
	}
}

// write writes the events.
func (l *launcher) write() {
	if l.events.Len() == 0 {
		return
	}
	if _, err := l.output.Write(l.events.Bytes()); err != nil {
		l.gone = true
	}
	l.events.Reset()
}
