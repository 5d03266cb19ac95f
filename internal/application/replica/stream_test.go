package replica

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"lockcheck/history"
)

// span is when something was done: between two readings of the clock.
type span struct{ from, to int64 }

// written writes a text, and returns when.
func written(t *testing.T, to *os.File, text string) span {
	t.Helper()
	s := span{from: history.Now()}
	if _, err := to.WriteString(text); err != nil {
		t.Fatal(err)
	}
	s.to = history.Now()
	return s
}

// piped is a stream whose other end belongs to the test.
func piped(t *testing.T) (*stream, *os.File) {
	t.Helper()
	s, end, err := newStream()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = s.file.Close(), end.Close() })
	return s, end
}

// contains says whether a line was written within its bracket.
func (l line) contains(s span) bool { return l.from <= s.to && l.time >= s.from }

// TestBracket: the instant of a write is in the bracket of its line, and the bracket is no wider than the time between
// the reads around it.
func TestBracket(t *testing.T) {
	s, end := piped(t)
	var before int64 // the beginning of the read that found the pipe empty
	for i := range 100 {
		wrote := written(t, end, fmt.Sprintln("line", i))
		asked := history.Now()
		_, lines := s.read()
		if len(lines) != 1 || string(lines[0].text) != fmt.Sprint("line ", i) {
			t.Fatalf("%d: lines %+v", i, lines)
		}
		if !lines[0].contains(wrote) || lines[0].from < before {
			t.Errorf("%d: written in %+v, bracket %d to %d, the read before began at %d", i, wrote, lines[0].from, lines[0].time, before)
		}
		if (line{from: wrote.from - 2, time: wrote.from - 1}).contains(wrote) || (line{from: wrote.to + 1, time: wrote.to + 2}).contains(wrote) {
			t.Fatal("anything would do")
		}
		before = asked
	}
}

// TestBracketOfMany: of lines that are read together nobody knows the order in time, and of one that was written in
// two parts only its end counts.
func TestBracketOfMany(t *testing.T) {
	s, end := piped(t)
	wrote := []span{written(t, end, "a\n"), written(t, end, "b\nc")}
	_, lines := s.read()
	_, none := s.read()
	wrote = append(wrote, written(t, end, "d\n"))
	_, more := s.read()
	lines = append(lines, more...)
	if len(lines) != 3 || len(none) > 0 || string(lines[2].text) != "cd" {
		t.Fatalf("lines %+v, and %+v", lines, none)
	}
	for i, l := range lines {
		if !l.contains(wrote[i]) {
			t.Errorf("%q was written in %+v, bracket %d to %d", l.text, wrote[i], l.from, l.time)
		}
	}
	if lines[2].from < wrote[1].to {
		t.Errorf("the end of the last line can be older than its beginning: from %d, want after %d", lines[2].from, wrote[1].to)
	}
}

// TestBlock: a program that buffers prints a line when the buffer before it was written, or later. Lines that are
// written one by one, and a long one alone, are of their own time.
func TestBlock(t *testing.T) {
	short, long := "releasing k\n", strings.Repeat("x", blockSize)+"\n"
	for name, c := range map[string]struct {
		outputs []string
		buffers bool // the last line may have been printed right after the first output
	}{
		"one by one":                      {[]string{"holding k\n", short}, false},
		"a long line alone":               {[]string{"holding k\n", long}, false},
		"after a long line alone":         {[]string{long, short}, false},
		"two lines, shorter than a block": {[]string{"holding k\n", "x\n" + short}, false},
		"a block":                         {[]string{"holding k\n", long + short}, true},
		"a block that ends within a line": {[]string{"holding k\n", short + long + "x"}, true},
		"the rest after a block":          {[]string{"x\n" + long, short}, true},
		"the next line, a block after":    {[]string{"x\n" + long, "x\n", short}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, end := piped(t)
			var wrote []span
			var last []line
			for _, output := range c.outputs {
				s.read() // finds the pipe empty
				wrote = append(wrote, written(t, end, output))
				_, last = s.read()
			}
			if len(last) == 0 {
				t.Fatal("no line")
			}
			l, at := last[len(last)-1], wrote[len(wrote)-1]
			if !l.contains(at) {
				t.Errorf("written in %+v, bracket %d to %d", at, l.from, l.time)
			}
			if printed := (span{wrote[0].to, wrote[0].to}); l.contains(printed) != c.buffers {
				t.Errorf("printed at %d, bracket %d to %d; may have been buffered: %v", printed.from, l.from, l.time, c.buffers)
			}
		})
	}
}

// TestLines: what there is instead of lines costs no more than its part of the memory, and is left out with a mark.
func TestLines(t *testing.T) {
	const mark = "(long)"
	for name, c := range map[string]struct {
		writes []string
		want   []string
		last   string
	}{
		"ends":                  {[]string{"a\r\n\nb\n"}, []string{"a", "", "b"}, ""},
		"no end":                {[]string{"a", "b"}, nil, "ab"},
		"longest line":          {[]string{strings.Repeat("x", maxLine) + "\n"}, []string{strings.Repeat("x", maxLine)}, ""},
		"too long":              {[]string{strings.Repeat("x", maxLine) + "y", "z\nb\n"}, []string{mark, "b"}, ""},
		"without end, too long": {slices.Repeat([]string{strings.Repeat("x", maxLine)}, 20), []string{mark}, ""},
		"binary":                {[]string{"\x00\xff\xfe\n\x80\n"}, []string{"\x00\xff\xfe", "\x80"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, end := piped(t)
			var got []string
			take := func() (any bool) {
				output, lines := s.read()
				for _, l := range lines {
					if l.long {
						l.text = []byte(mark)
					}
					got = append(got, string(l.text))
				}
				return len(output) > 0
			}
			done := make(chan error)
			go func() {
				for _, text := range c.writes {
					if _, err := end.WriteString(text); err != nil {
						done <- err
						return
					}
				}
				done <- end.Close()
			}()
			for !s.closed {
				take()
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%d lines %.100q, want %d: %.100q", len(got), got, len(c.want), c.want)
			}
			var last string
			for _, l := range s.last() {
				last += string(l.text)
			}
			if last != c.last || cap(s.partial) > 2*maxLine+maxOutput {
				t.Errorf("last line %.100q, want %q; %d bytes are kept", last, c.last, cap(s.partial))
			}
		})
	}
}
