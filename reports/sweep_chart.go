package reports

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// Sizes of the charts of a sweep, in pixels.
const (
	sweepWidth  = 640 // of the picture
	sweepLeft   = 64  // of the plot
	sweepRight  = 12
	sweepTop    = 34
	sweepHeight = 300 // of the plot
	sweepPanel  = sweepTop + sweepHeight + 52
)

// SweepChart writes the charts of a sweep as one picture.
func SweepChart(w io.Writer, s Sweep) error {
	_, err := io.WriteString(w, sweepSVG(s))
	return err
}

// sweepStyle has the two ends of a scale that can be told apart without colours, too: one is
// light, the other dark.
const sweepStyle = `svg{background:#fff}text{font:12px system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:#333}.t{font-weight:600;font-size:13px}` +
	`.f{fill:none;stroke:#999}.r{fill:none;stroke:#111;stroke-width:2;stroke-dasharray:6 4}.d{stroke:#fff;stroke-width:1}` +
	`.e{text-anchor:end}.m{text-anchor:middle}` +
	`@media (prefers-color-scheme:dark){svg{background:#14181e}text{fill:#ddd}.r{stroke:#fff}.d{stroke:#000}}`

// sweepSVG is a picture with charts of incidents and of availability.
func sweepSVG(s Sweep) string {
	var b strings.Builder
	each := s.axes().each
	charts := each.values(s.measured())
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d" role="img" aria-label="%[3]s"><style>%[4]s</style>`+"\n",
		sweepWidth, max(2*len(charts)*sweepPanel, 1), html.EscapeString(s.title()), sweepStyle)
	top := sweepTop
	for _, value := range charts {
		for _, c := range []sweepColour{
			{"Share of the pauses that led to overlapping holders", SweepPoint.share, false},
			{"Share of the time of pauses in which the lock was granted", SweepPoint.availability, true},
		} {
			plot := newSweepPlot(s, value, top)
			plot.draw(&b, c, fmt.Sprintf("%s; %s %s", c.title, each, length(value)))
			top += sweepPanel
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// sweepColour is what the colours of a chart mean.
type sweepColour struct {
	title string
	value func(SweepPoint) (float64, bool)
	good  bool // high values are
}

// sweepPlot is one chart, both axes by logarithms.
type sweepPlot struct {
	sweep  Sweep
	axes   sweepAxes
	top    int
	points []SweepPoint
	xs, ys []time.Duration
}

func newSweepPlot(s Sweep, each time.Duration, top int) sweepPlot {
	p := sweepPlot{sweep: s, axes: s.axes(), top: top, points: s.charted(each)}
	p.xs, p.ys = p.axes.x.values(p.points), p.axes.y.values(p.points)
	return p
}

func (p sweepPlot) draw(b *strings.Builder, c sweepColour, title string) {
	fmt.Fprintf(b, `<text class="t" x="%d" y="%d">%s</text>`+"\n", sweepLeft, p.top-14, html.EscapeString(title))
	p.ground(b, c)
	p.rule(b)
	fmt.Fprintf(b, `<rect class="f" x="%d" y="%d" width="%d" height="%d"/>`+"\n", sweepLeft, p.top, sweepWidth-sweepLeft-sweepRight, sweepHeight)
	for _, point := range p.points {
		v, known := c.value(point)
		if !known {
			continue
		}
		x, y := p.x(*p.axes.x.of(&point)), p.y(*p.axes.y.of(&point))
		fmt.Fprintf(b, `<circle class="d" cx="%s" cy="%s" r="4" fill="%s"><title>lease %s, pause %s, section %s: %d of %d pauses led to overlapping holders; here %.0f %%</title></circle>`+"\n",
			trimmed(x, 1), trimmed(y, 1), scaled(v, c.good), length(point.TTL), length(point.Pause), length(point.Section), point.Incidents, point.Pauses, 100*v)
	}
	p.labels(b)
}

// ground colours the plot by the nearest point.
func (p sweepPlot) ground(b *strings.Builder, c sweepColour) {
	for i, x := range p.xs {
		left, right := edges(p.xs, i, p.x)
		for j, y := range p.ys {
			bottom, top := edges(p.ys, j, p.y)
			nearest := slices.MinFunc(p.points, func(a, b SweepPoint) int {
				return cmp.Compare(p.distance(a, x, y), p.distance(b, x, y))
			})
			if v, known := c.value(nearest); known {
				fmt.Fprintf(b, `<rect x="%s" y="%s" width="%s" height="%s" fill="%s" fill-opacity=".45"/>`+"\n",
					trimmed(left, 1), trimmed(top, 1), trimmed(right-left, 1), trimmed(bottom-top, 1), scaled(v, c.good))
			}
		}
	}
}

// distance of a point from a place, by their ratios.
func (p sweepPlot) distance(point SweepPoint, x, y time.Duration) float64 {
	ratio := func(a, b time.Duration) float64 { return math.Log(float64(a) / float64(b)) }
	return math.Hypot(ratio(*p.axes.x.of(&point), x), ratio(*p.axes.y.of(&point), y))
}

// edges are half way to the neighbours of a value.
func edges(values []time.Duration, i int, at func(time.Duration) float64) (from, to float64) {
	here := at(values[i])
	from, to = here, here
	if i > 0 {
		from = (at(values[i-1]) + here) / 2
	}
	if i+1 < len(values) {
		to = (here + at(values[i+1])) / 2
	}
	return from, to
}

// rule draws the line that theory has.
func (p sweepPlot) rule(b *strings.Builder) {
	const parts = 60
	var path strings.Builder
	first, last := p.xs[0], p.xs[len(p.xs)-1]
	for i := range parts + 1 {
		point := p.points[0]
		x := time.Duration(float64(first) * math.Pow(float64(last)/float64(first), float64(i)/parts))
		*p.axes.x.of(&point) = x
		y, between := p.sweep.onLine(point, p.ys[0], p.ys[len(p.ys)-1])
		if !between {
			continue
		}
		command := " L"
		if path.Len() == 0 {
			command = "M"
		}
		path.WriteString(command + trimmed(p.x(x), 1) + " " + trimmed(p.y(y), 1))
	}
	if path.Len() > 0 {
		fmt.Fprintf(b, `<path class="r" d="%s"/>`+"\n", path.String())
	}
}

// labels name values at both axes, as many as fit.
func (p sweepPlot) labels(b *strings.Builder) {
	bottom := p.top + sweepHeight
	for _, v := range spaced(p.xs, p.x, 58) {
		fmt.Fprintf(b, `<text class="m" x="%s" y="%d">%s</text>`+"\n", trimmed(p.x(v), 1), bottom+16, length(v))
	}
	for _, v := range spaced(p.ys, p.y, 18) {
		fmt.Fprintf(b, `<text class="e" x="%d" y="%s">%s</text>`+"\n", sweepLeft-6, trimmed(p.y(v)+4, 1), length(v))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d">%s → and %s ↑; light is good, dark is bad; dashed: %s</text>`+"\n",
		sweepLeft, bottom+34, p.axes.x, p.axes.y, html.EscapeString(p.sweep.Rule.String()))
}

// spaced leaves out values that would be nearer than some pixels to the one before.
func spaced(values []time.Duration, at func(time.Duration) float64, pixels float64) []time.Duration {
	var all []time.Duration
	for _, v := range values {
		if len(all) == 0 || math.Abs(at(v)-at(all[len(all)-1])) >= pixels {
			all = append(all, v)
		}
	}
	return all
}

func (p sweepPlot) x(v time.Duration) float64 {
	return sweepLeft + 12 + (sweepWidth-sweepLeft-sweepRight-24)*along(v, p.xs)
}

func (p sweepPlot) y(v time.Duration) float64 {
	return float64(p.top) + sweepHeight - 12 - (sweepHeight-24)*along(v, p.ys)
}

// along is where a value lies between the first and the last of others, from 0 to 1.
func along(v time.Duration, values []time.Duration) float64 {
	first, last := float64(values[0]), float64(values[len(values)-1])
	if first == last {
		return 0.5
	}
	return math.Log(float64(v)/first) / math.Log(last/first)
}

// scaled is the colour of a share: from light blue, good, to dark red, bad.
func scaled(share float64, good bool) string {
	if good {
		share = 1 - share
	}
	from, to := [3]float64{143, 200, 235}, [3]float64{158, 28, 38}
	var rgb [3]int
	for i := range rgb {
		rgb[i] = int(math.Round(from[i] + share*(to[i]-from[i])))
	}
	return fmt.Sprintf("#%02x%02x%02x", rgb[0], rgb[1], rgb[2])
}
