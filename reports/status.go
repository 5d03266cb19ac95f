package reports

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

const (
	// statusWidth keeps one column clear of the edge. Some terminals wrap as soon as the last column is
	// written, and then the line could not be cleared.
	statusWidth = defaultWidth - 1
	heartbeat   = 10 * time.Second
	clearLine   = "\r\x1b[K"
)

// Progress shows people how a run is going. Its methods are safe for concurrent use. Write errors are
// dropped: progress that nobody can see must not end a run.
type Progress struct {
	mu    sync.Mutex
	w     io.Writer
	live  bool
	color bool
	now   func() time.Time
	start time.Time
	last  time.Time // when anything was last written
	shown string    // the live line on the screen
}

// NewProgress returns a Progress that writes to w. With live, w is a terminal with one status line that is
// rewritten in place. Otherwise w is a log and gets status lines at most every ten seconds, in addition to
// the steps.
func NewProgress(w io.Writer, live bool, color bool) *Progress {
	p := &Progress{w: w, live: live, color: color, now: time.Now}
	p.start = p.now()
	p.last = p.start
	return p
}

// StartCount counts the seconds from now on, like the report of a run, which counts from the first event.
func (p *Progress) StartCount() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.start = p.now()
}

// Step writes a line that stays, with the seconds since the start, for example for a change of phase or a
// fault.
func (p *Progress) Step(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.line(Printable(fmt.Sprintf(format, args...)))
	if p.shown != "" {
		text = clearLine + text + p.shown
	}
	p.write(text)
}

// Status replaces the status line; "" removes it. In a log it writes a line only if nothing else has been
// written for ten seconds, which shows CI that the run is alive.
func (p *Progress) Status(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := Printable(fmt.Sprintf(format, args...))
	if !p.live {
		if text != "" && p.now().Sub(p.last) >= heartbeat {
			p.write(p.line(text))
		}
		return
	}
	p.shown = p.faint(shorten(text, statusWidth))
	p.write(clearLine + p.shown)
}

// sinceWidth is the width of the seconds in front of a line, including a gap.
const sinceWidth = 10

// line puts the time in front of a text and indents the wrapped lines.
func (p *Progress) line(text string) string {
	since := fmt.Sprintf("%6.1f s", p.now().Sub(p.start).Seconds())
	indent := "\n" + strings.Repeat(" ", sinceWidth)
	space := defaultWidth - sinceWidth
	return p.faint(since) + "  " + strings.Join(Wrap(text, space, space, true), indent) + "\n"
}

// Done removes the status line. More steps may follow.
func (p *Progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown != "" {
		p.shown = ""
		p.write(clearLine)
	}
}

// Left estimates in words how much longer something will take.
func Left(about time.Duration) string {
	if about < 2*time.Minute {
		return fmt.Sprintf("about %s left", max(about.Round(10*time.Second), 10*time.Second))
	}
	return fmt.Sprintf("about %d min left", int((about+30*time.Second)/time.Minute))
}

func (p *Progress) faint(s string) string {
	if !p.color || s == "" {
		return s
	}
	return dim + s + reset
}

// write must be called with the mutex held.
func (p *Progress) write(s string) {
	p.last = p.now()
	_, _ = io.WriteString(p.w, s)
}
