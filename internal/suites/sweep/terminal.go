package sweep

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"lockcheck/checker"
	"lockcheck/reports"
)

// Terminal is the sweep for a terminal of a given width: a map with a mark for each measured point.
func (s Sweep) Terminal(columns int) reports.Page {
	var page reports.Page
	for _, p := range s.panels() {
		page.Blocks = append(page.Blocks, reports.Heading{Level: 2, Text: p.name()}, s.drawing(p, cmp.Or(columns, 80)))
	}
	page.Blocks = append(page.Blocks, s.unsupported(),
		reports.Text(". never overlapped;  o overlapped after some pauses;  # after all;  - near the line "+s.Rule.String()),
		reports.Text(s.settings()+" "+s.count()+" "+s.againstRule()))
	return page
}

// drawing is the map of a panel, with its x dimension to the right and its y dimension upwards.
func (s Sweep) drawing(p panel, columns int) reports.Drawing {
	x, y := string(p.x), string(p.y)
	lead := max(len(x), len(y))
	for _, v := range p.ys {
		lead = max(lead, utf8.RuneCountInString(reports.Length(v)))
	}
	padded := func(text string, n int) string {
		return text + strings.Repeat(" ", max(0, n-utf8.RuneCountInString(text)))
	}
	each := max(1, min(8, (columns-lead-2)/len(p.xs)))
	drawing := reports.Drawing{{{Text: y}}}
	for _, height := range slices.Backward(p.ys) {
		line := []reports.Mark{{Text: padded(reports.Length(height), lead+1)}}
		for _, at := range p.xs {
			point := p.points[0].Point
			*p.x.field(&point), *p.y.field(&point) = at, height
			line = append(line, s.mark(p, point), reports.Mark{Text: strings.Repeat(" ", each-1)})
		}
		drawing = append(drawing, line)
	}
	foot := padded(x, lead) + " " + reports.Length(p.xs[0])
	if last := reports.Length(p.xs[len(p.xs)-1]); len(p.xs) > 1 {
		end := lead + 2 + each*(len(p.xs)-1)
		foot = padded(foot+" … ", end-utf8.RuneCountInString(last)) + last
	}
	return append(drawing, []reports.Mark{{Text: foot}})
}

// mark shows the result at a point. For a point that was not measured, it shows whether the point is near the
// line.
func (s Sweep) mark(p panel, at Point) reports.Mark {
	i := slices.IndexFunc(p.points, func(m Measured) bool { return m.Point == at })
	if i < 0 {
		if ratio := float64(s.Rule.lease(at)) / float64(at.TTL); ratio > 0.9 && ratio < 1.12 {
			return reports.Mark{Text: "-"}
		}
		return reports.Mark{Text: " "}
	}
	switch share, _ := p.points[i].share(); share {
	case 0:
		return reports.Mark{Verdict: checker.Valid, Text: "."}
	case 1:
		return reports.Mark{Verdict: checker.Violation, Text: "#"}
	}
	return reports.Mark{Verdict: checker.Undecided, Text: "o"}
}
