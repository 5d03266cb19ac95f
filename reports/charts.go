package reports

import (
	"math"
	"strings"
)

// Sizes of the charts below the picture of the whole run, in pixels.
const (
	chartTop    = 10
	chartHeight = 130 // of the plot
)

// newChart returns the canvas of a chart over the whole run, shaded while faults were in force.
func newChart(rec *record, id string, levels []level) *canvas {
	c := newCanvas(rec, rec.begin, rec.end)
	c.ID, c.Levels, c.Top = id, levels, chartTop
	c.faultBands(chartTop, chartHeight)
	c.axis(chartTop + chartHeight)
	return c
}

// faultBands shades the times in which a fault was in force, whatever the fault hit.
func (c *canvas) faultBands(top, height int) {
	n := 0
	for _, f := range c.rec.faults {
		if !f.Applied {
			continue
		}
		if n++; n > maxFaultShapes {
			continue
		}
		from, to := c.rec.inForce(f)
		c.rect("band", from, to, top, height, c.rec.faultName(f)+" ("+clean(f.ID)+")")
	}
	if n > 0 {
		c.Notes = append(c.Notes, "Shaded where a fault was in force.")
	}
	if n > maxFaultShapes {
		c.Notes = append(c.Notes, "Only the first "+Grouped(maxFaultShapes)+" of "+Grouped(int64(n))+" faults are shaded.")
	}
}

// chartY is the y of a share of the scale.
func chartY(share float64) string { return Trimmed(chartTop+chartHeight*(1-share), 1) }

// levelAt is a horizontal line with its name next to the plot.
func levelAt(share float64, name string) level {
	y := chartTop + int(math.Round(chartHeight*(1-share)))
	return level{Y: y, Text: y + 4, Label: name}
}

// pen writes a path. Its x is in thousandths of the plot.
type pen struct {
	strings.Builder
	c *canvas
}

// move goes to a place, and line draws a line to it.
func (p *pen) move(t int64, share float64) { p.to("M", t, share) }
func (p *pen) line(t int64, share float64) { p.to("L", t, share) }

// dot is a line of length 0, which the stroke makes round.
func (p *pen) dot(t int64, share float64) {
	p.move(t, share)
	p.WriteString("h0")
}

func (p *pen) to(command string, t int64, share float64) {
	p.WriteString(command + Trimmed(10*p.c.pos(t), 3) + " " + chartY(share))
}

func (p *pen) draw(class string) { p.c.Paths = append(p.c.Paths, stroke{class, p.String()}) }
