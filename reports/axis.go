package reports

import (
	"math"
	"strconv"
)

// axis ends the picture with a time axis whose ticks are at round seconds.
func (c *canvas) axis(top int) {
	c.Axis, c.Height = top, top+30
	step := tickStep(c.Seconds)
	decimals := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	last := c.From + c.Seconds
	for n := int64(math.Ceil(c.From/step - 1e-9)); float64(n)*step <= last+step*1e-6; n++ {
		x := 100 * (float64(n)*step - c.From) / c.Seconds
		anchor := "middle"
		if x < 3 {
			anchor = "start"
		} else if x > 97 {
			anchor = "end"
		}
		c.Ticks = append(c.Ticks, tick{percent(x), strconv.FormatFloat(float64(n)*step, 'f', decimals, 64) + " s", anchor})
	}
}

// tickStep is a round step that fits 4 to 10 times.
func tickStep(seconds float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(seconds/4)))
	for _, f := range []float64{5, 2} {
		if seconds/(step*f) >= 4 {
			return step * f
		}
	}
	return step
}
