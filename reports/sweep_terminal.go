package reports

import (
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"lockcheck/checker"
)

// SweepTerminal writes a map of a sweep for people, a mark for each point that was measured.
func SweepTerminal(w io.Writer, s Sweep, o TerminalOptions) error {
	t := newTerminal(o)
	each := s.axes().each
	for _, value := range each.values(s.measured()) {
		t.line(t.paint(bold, string(each)+" "+length(value)))
		t.sweepMap(newSweepPlot(s, value, 0))
	}
	for _, why := range s.notSupported() {
		t.hang("  ", "– ", why)
	}
	t.hang("", "", ". kept apart;  o some pauses led to overlapping holders;  # all did;  - near the line "+s.Rule.String())
	t.blank()
	t.hang("", "", s.how()+" "+s.summary()+" "+s.held())
	_, err := w.Write(t.out.Bytes())
	return err
}

func (t *terminal) sweepMap(p sweepPlot) {
	x, y := string(p.axes.x), string(p.axes.y)
	first := max(len(x), len(y))
	for _, v := range p.ys {
		first = max(first, utf8.RuneCountInString(length(v)))
	}
	each := max(1, min(8, (t.width-first-2)/len(p.xs)))
	t.line(y)
	for _, height := range slices.Backward(p.ys) {
		row := pad(length(height), first) + " "
		for _, at := range p.xs {
			mark, style := p.mark(at, height)
			row += t.paint(style, mark) + strings.Repeat(" ", each-1)
		}
		t.line(strings.TrimRight(row, " "))
	}
	foot := pad(x, first) + " " + length(p.xs[0])
	if last := length(p.xs[len(p.xs)-1]); len(p.xs) > 1 {
		end := first + 2 + each*(len(p.xs)-1)
		foot = pad(foot+" … ", end-utf8.RuneCountInString(last)) + last
	}
	t.line(foot)
	t.blank()
}

// mark is what a point shows; of one that was not measured, whether it is near the line.
func (p sweepPlot) mark(x, y time.Duration) (mark, style string) {
	for _, point := range p.points {
		if *p.axes.x.of(&point) != x || *p.axes.y.of(&point) != y {
			continue
		}
		switch share, _ := point.share(); share {
		case 0:
			return ".", colorOf(checker.Valid)
		case 1:
			return "#", colorOf(checker.Violation)
		}
		return "o", colorOf(checker.Undecided)
	}
	at := p.points[0]
	*p.axes.x.of(&at), *p.axes.y.of(&at) = x, y
	if ratio := float64(p.sweep.Rule.lease(at.Pause, at.Section)) / float64(at.TTL); ratio > 0.9 && ratio < 1.12 {
		return "-", dim
	}
	return " ", dim
}
