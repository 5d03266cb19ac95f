package reports

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// Chart is a plot of dots and curves over two axes.
type Chart struct {
	Title string
	Foot  string // below the x axis
	X, Y  Axis
	Tiles []Tile
	// Curves are drawn in order, and labelled at the right if they have names.
	Curves []Curve
	Dots   []Dot
}

// Axis has values from Low to High, on a logarithmic scale unless Linear.
type Axis struct {
	Low, High float64
	Linear    bool
	Ticks     []float64 // labelled values; those without space are left out
	Text      func(float64) string
}

// Tile is a coloured rectangle in the background, in values of both axes.
type Tile struct {
	Left, Right, Bottom, Top float64
	Fill                     string
}

// Curve is a line through places.
type Curve struct {
	Name   string // "" for none
	Colour string // "" for a dashed line in the colour of text
	Places [][2]float64
}

// Dot marks a place.
type Dot struct {
	X, Y  float64
	Fill  string // "" for a place without a value, which is not drawn
	Title string // tooltip
}

// Sizes of charts, in pixels.
const (
	chartsWidth  = 640 // of the picture
	chartsLeft   = 78  // of the plot
	chartsTop    = 34
	chartsHeight = 260 // of the plot
	chartsPanel  = chartsTop + chartsHeight + 52
	chartsInset  = 12 // between the frame and the ends of both axes
	namesWidth   = 150
)

const chartsStyle = `svg{background:#fff}text{font:12px system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:#333}.t{font-weight:600;font-size:13px}` +
	`.f{fill:none;stroke:#999}.l{fill:none;stroke-width:2}.r{fill:none;stroke:#111;stroke-width:2;stroke-dasharray:6 4}.d{stroke:#fff;stroke-width:1}` +
	`.e{text-anchor:end}.m{text-anchor:middle}` +
	`@media (prefers-color-scheme:dark){svg{background:#14181e}text{fill:#ddd}.r{stroke:#fff}.d{stroke:#000}}`

// SVG draws charts below each other in one picture.
func SVG(title string, charts []Chart) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d" role="img" aria-label="%[3]s"><style>%[4]s</style>`+"\n",
		chartsWidth, max(len(charts)*chartsPanel, 1), html.EscapeString(clean(title)), chartsStyle)
	for i, c := range charts {
		c.draw(&b, i*chartsPanel+chartsTop)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// Include widens the axis to include a value. A logarithmic axis ignores values that it cannot have.
func (a *Axis) Include(v float64) {
	switch {
	case !a.Linear && v <= 0:
	case a.Low == 0 && a.High == 0:
		a.Low, a.High = v, v
	default:
		a.Low, a.High = min(a.Low, v), max(a.High, v)
	}
}

// along is the position of a value on the axis, from 0 to 1. A single value is in the middle.
func (a Axis) along(v float64) float64 {
	switch {
	case a.High <= a.Low || !a.Linear && v <= 0:
		return 0.5
	case a.Linear:
		return (v - a.Low) / (a.High - a.Low)
	}
	return math.Log(v/a.Low) / math.Log(a.High/a.Low)
}

// At is the inverse of along: the value at a share of the axis.
func (a Axis) At(share float64) float64 {
	switch {
	case a.High <= a.Low:
		return a.Low
	case a.Linear:
		return a.Low + share*(a.High-a.Low)
	}
	return a.Low * math.Pow(a.High/a.Low, share)
}

// Quarters are the ends of the axis and three values between them.
func (a Axis) Quarters() []float64 {
	var all []float64
	for i := range 5 {
		all = append(all, a.At(float64(i)/4))
	}
	return all
}

// plot maps the values of a chart to places in the picture.
type plot struct {
	Chart
	top, width int
}

func (p plot) x(v float64) float64 {
	return chartsLeft + chartsInset + float64(p.width-2*chartsInset)*p.X.along(v)
}

func (p plot) y(v float64) float64 {
	return float64(p.top) + chartsHeight - chartsInset - (chartsHeight-2*chartsInset)*p.Y.along(v)
}

func (c Chart) draw(b *strings.Builder, top int) {
	p := plot{c, top, chartsWidth - chartsLeft - chartsInset}
	if slices.ContainsFunc(c.Curves, func(c Curve) bool { return c.Name != "" }) {
		p.width = chartsWidth - chartsLeft - namesWidth
	}
	fmt.Fprintf(b, `<text class="t" x="%d" y="%d">%s</text>`+"\n", chartsLeft, top-14, html.EscapeString(clean(c.Title)))
	for _, t := range c.Tiles {
		left, right, upper, lower := p.x(t.Left), p.x(t.Right), p.y(t.Top), p.y(t.Bottom)
		fmt.Fprintf(b, `<rect x="%s" y="%s" width="%s" height="%s" fill="%s" fill-opacity=".45"/>`+"\n",
			Trimmed(left, 1), Trimmed(upper, 1), Trimmed(right-left, 1), Trimmed(lower-upper, 1), t.Fill)
	}
	fmt.Fprintf(b, `<rect class="f" x="%d" y="%d" width="%d" height="%d"/>`+"\n", chartsLeft, top, p.width, chartsHeight)
	for i, curve := range c.Curves {
		p.curve(b, curve, i)
	}
	for _, d := range c.Dots {
		if d.Fill == "" {
			continue
		}
		fmt.Fprintf(b, `<circle class="d" cx="%s" cy="%s" r="4" fill="%s"><title>%s</title></circle>`+"\n",
			Trimmed(p.x(d.X), 1), Trimmed(p.y(d.Y), 1), d.Fill, html.EscapeString(clean(d.Title)))
	}
	p.labels(b)
}

func (p plot) curve(b *strings.Builder, c Curve, n int) {
	var path []string
	for _, place := range c.Places {
		path = append(path, Trimmed(p.x(place[0]), 1)+" "+Trimmed(p.y(place[1]), 1))
	}
	style := `class="r"`
	if c.Colour != "" {
		style = `class="l" stroke="` + c.Colour + `"`
	}
	if len(path) > 0 {
		fmt.Fprintf(b, `<path %s d="M%s"/>`+"\n", style, strings.Join(path, " L"))
	}
	if c.Name != "" {
		fmt.Fprintf(b, `<text x="%d" y="%d" style="fill:%s">%s</text>`+"\n", chartsLeft+p.width+8, p.top+14+16*n, c.Colour, html.EscapeString(clean(c.Name)))
	}
}

// labels labels both axes with as many values as fit.
func (p plot) labels(b *strings.Builder) {
	bottom := p.top + chartsHeight
	for _, v := range atLeastApart(p.X.Ticks, p.x, 58) {
		fmt.Fprintf(b, `<text class="m" x="%s" y="%d">%s</text>`+"\n", Trimmed(p.x(v), 1), bottom+16, p.X.Text(v))
	}
	for _, v := range atLeastApart(p.Y.Ticks, p.y, 18) {
		fmt.Fprintf(b, `<text class="e" x="%d" y="%s">%s</text>`+"\n", chartsLeft-6, Trimmed(p.y(v)+4, 1), p.Y.Text(v))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d">%s</text>`+"\n", chartsLeft, bottom+34, html.EscapeString(clean(p.Foot)))
}

// atLeastApart leaves out values that would be closer than some pixels to the value before.
func atLeastApart(values []float64, at func(float64) float64, pixels float64) []float64 {
	var all []float64
	for _, v := range values {
		if len(all) == 0 || math.Abs(at(v)-at(all[len(all)-1])) >= pixels {
			all = append(all, v)
		}
	}
	return all
}

// Nearest tiles the background between values of both axes. Each tile has the colour of the dot that is
// nearest by the ratio of their values.
func Nearest(xs, ys []float64, dots []Dot) []Tile {
	if len(dots) == 0 {
		return nil
	}
	ratio := func(a, b float64) float64 { return math.Log(a / b) }
	var all []Tile
	for i, x := range xs {
		for j, y := range ys {
			nearest := slices.MinFunc(dots, func(a, b Dot) int {
				return cmp.Compare(math.Hypot(ratio(a.X, x), ratio(a.Y, y)), math.Hypot(ratio(b.X, x), ratio(b.Y, y)))
			})
			if nearest.Fill == "" {
				continue
			}
			left, right := tileLimits(xs, i)
			bottom, top := tileLimits(ys, j)
			all = append(all, Tile{left, right, bottom, top, nearest.Fill})
		}
	}
	return all
}

// tileLimits returns the limits of a value's tile: the geometric means with its neighbours.
func tileLimits(values []float64, i int) (from, to float64) {
	return math.Sqrt(values[max(i-1, 0)] * values[i]), math.Sqrt(values[min(i+1, len(values)-1)] * values[i])
}
