package reports

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"time"

	"lockcheck/checker"
)

//go:embed compare_parts.html.tmpl
var comparisonParts string

// comparisonTemplate is a page about several locks, with what such pages share.
func comparisonTemplate(name, text string) (*template.Template, error) {
	t, err := template.New(name).Parse(comparisonParts)
	if err != nil {
		return nil, err
	}
	return t.New(name).Parse(text)
}

// ComparisonPage writes a page about several locks, a template that begins with the style which such pages
// share.
func ComparisonPage(w io.Writer, name, text string, view any) error {
	t, err := comparisonTemplate(name, text)
	if err != nil {
		return fmt.Errorf("%s page: %w", name, err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, view); err != nil {
		return fmt.Errorf("%s page: %w", name, err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

// wholePercent rounds up: a bound must not look better than it is.
func wholePercent(share float64) string { return Trimmed(min(100, float64(int(100*share+0.999))), 0) }

// barView is a figure in a table: drawn, in words, and as a number to sort by.
type barView struct {
	Value             string // to sort by
	Text, Note        string
	Left, Width, Mark string // in percent of the bar; Mark may be ""
	Bad               bool
}

// lossBar draws the share of lost updates, from 0 to 1, with its interval; it is empty where
// nothing could be lost.
func lossBar(p checker.Pool) barView {
	if p.Acknowledged == 0 {
		return barView{}
	}
	share, low, high := float64(p.Lost)/float64(p.Acknowledged), 0.0, 1.0
	if p.IntervalKnown() {
		low, high = p.LostLow, p.LostHigh
	}
	return barView{
		Value: fmt.Sprint(share), Text: fmt.Sprintf("%s of %s", Grouped(p.Lost), Grouped(p.Acknowledged)),
		Note: "95 %: " + LossInterval(p.LossInterval),
		Left: percent1(low), Width: percent1(high - low), Mark: percent1(share), Bad: p.Lost > 0,
	}
}

// scale is a logarithmic one for the lengths of time in a column.
type scale struct{ shortest, longest time.Duration }

func (s *scale) add(d time.Duration) {
	if d <= 0 {
		return
	}
	if s.shortest == 0 || d < s.shortest {
		s.shortest = d
	}
	s.longest = max(s.longest, d)
}

// bar draws a length of time from the left, the shortest of its column a tenth wide; it is
// empty for none.
func (s scale) bar(d time.Duration, note string) barView {
	if d <= 0 {
		return barView{}
	}
	width := 1.0
	if s.longest > s.shortest {
		width = 0.1 + 0.9*math.Log(float64(d)/float64(s.shortest))/math.Log(float64(s.longest)/float64(s.shortest))
	}
	return barView{Value: fmt.Sprint(int64(d)), Text: Length(d), Note: note, Left: "0", Width: percent1(width)}
}

func percent1(share float64) string { return Trimmed(100*min(1, max(0, share)), 1) }

// Bar is a figure drawn from the left of a cell, in percent of its width.
type Bar struct {
	Left, Width string // "" for no bar
	Mark        string // where the figure itself is; "" for nowhere
	Bad         bool
}

func (b barView) cell() Cell {
	return Cell{Text: b.Text, More: b.Note, SortKey: b.Value, Bar: Bar{Left: b.Left, Width: b.Width, Mark: b.Mark, Bad: b.Bad}}
}

// LossCell draws the share of lost updates from 0 to 1 with its interval; it is empty where
// nothing could be lost. A note follows the interval.
func LossCell(p checker.Pool, note string) Cell {
	bar := lossBar(p)
	if bar.Text != "" && note != "" {
		bar.Note += "; " + note
	}
	return bar.cell()
}

// LengthCells draws lengths of time on one logarithmic scale, the shortest a tenth wide. Those that
// are 0 are empty. notes follow them; nil for none.
func LengthCells(lengths []time.Duration, notes []string) []Cell {
	var on scale
	for _, d := range lengths {
		on.add(d)
	}
	var all []Cell
	for i, d := range lengths {
		note := ""
		if notes != nil {
			note = notes[i]
		}
		cell := on.bar(d, note).cell()
		if d <= 0 {
			cell.Text = note
		}
		all = append(all, cell)
	}
	return all
}
