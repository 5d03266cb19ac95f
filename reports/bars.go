package reports

import (
	"fmt"
	"time"

	g "maragu.dev/gomponents"
	"maragu.dev/gomponents/components"
	"maragu.dev/gomponents/html"

	"lockcheck/checker"
)

// Bar is a bar in a cell. Positions and widths are in percent of the cell's width.
type Bar struct {
	Left, Width string // "" for no bar
	Mark        string // position of the figure itself; "" for no mark
	Bad         bool
}

func percent1(share float64) string { return Trimmed(100*min(1, max(0, share)), 1) }

func (b Bar) node() g.Node {
	if b.Width == "" {
		return nil
	}
	return html.Span(components.Classes{"bar": true, "bad": b.Bad}, html.Aria("hidden", "true"),
		html.I(html.Style("left:"+b.Left+"%;width:"+b.Width+"%")), g.If(b.Mark != "", html.B(html.Style("left:"+b.Mark+"%"))))
}

// LossCell draws the share of lost updates, 0 to 1, with its interval. The cell is empty if no update was
// acknowledged. The note follows the interval.
func LossCell(p checker.Pool, note string) Cell {
	if p.Acknowledged == 0 {
		return Cell{}
	}
	share, low, high := float64(p.Lost)/float64(p.Acknowledged), 0.0, 1.0
	if p.IntervalKnown() {
		low, high = p.LostLow, p.LostHigh
	}
	more := "95 %: " + LossInterval(p.LossInterval)
	if note != "" {
		more += "; " + note
	}
	return Cell{
		Text: Grouped(p.Lost) + " of " + Grouped(p.Acknowledged), More: more, SortKey: fmt.Sprint(share),
		Bar: Bar{Left: percent1(low), Width: percent1(high - low), Mark: percent1(share), Bad: p.Lost > 0},
	}
}

// LengthCells draws durations on one logarithmic scale. The shortest bar is a tenth of the width, and 0 has
// no bar. The notes follow the durations; nil for none.
func LengthCells(lengths []time.Duration, notes []string) []Cell {
	var scale Axis
	for _, d := range lengths {
		scale.Include(float64(d))
	}
	var all []Cell
	for i, d := range lengths {
		note, width := "", 1.0
		if notes != nil {
			note = notes[i]
		}
		if d <= 0 {
			all = append(all, Cell{Text: note})
			continue
		}
		if scale.High > scale.Low {
			width = 0.1 + 0.9*scale.along(float64(d))
		}
		all = append(all, Cell{Text: Length(d), More: note, SortKey: fmt.Sprint(int64(d)), Bar: Bar{Left: "0", Width: percent1(width)}})
	}
	return all
}
