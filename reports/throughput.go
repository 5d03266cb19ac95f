package reports

import (
	"math"
	"slices"
	"time"

	"lockcheck/history"
)

// throughputChart draws acknowledged updates per second, or grants if nothing was updated; false if there
// were neither.
func throughputChart(rec *record) (picture, bool) {
	times, what := rec.acknowledgedTimes(), "acknowledged update"
	if len(times) == 0 {
		what = "granted acquire"
		for _, l := range rec.calls[history.Acquire] {
			times = append(times, l.done)
		}
	}
	if len(times) == 0 {
		return picture{}, false
	}
	width := max(1, int64(1e9*tickStep(float64(rec.end-rec.begin)/1e10))) // 40 to 100 steps
	rates := perSecond(times, rec.begin, rec.end, width)
	most := slices.Max(rates)
	levels, top := levelsTo(most)
	c := newChart(rec, "throughput", levels)
	c.Title = "Throughput over time"
	c.Desc = "Time from left to right; upwards, " + what + "s per second: " + Many(int64(len(times)), what) + " in all, at most " +
		Trimmed(most, 1) + " per second. Shaded where a fault was in force."
	p := pen{c: c}
	for n, rate := range rates {
		from, to := rec.begin+int64(n)*width, rec.begin+int64(n+1)*width
		if n == len(rates)-1 {
			to = rec.end
		}
		if n == 0 {
			p.move(from, rate/top)
		}
		p.line(from, rate/top)
		p.line(to, rate/top)
	}
	p.draw("steps-line")
	c.Notes = append(c.Notes, "A step is the mean over "+Length(time.Duration(width))+".")
	return c.picture, true
}

// acknowledgedTimes returns the times of the updates that the resource accepted.
func (rec *record) acknowledgedTimes() []int64 {
	var out []int64
	for _, a := range rec.accesses {
		if a.write && !a.refused && a.element != 0 {
			out = append(out, a.time)
		}
	}
	return out
}

// perSecond counts events in steps of a width. The last step is up to twice as wide, because the mean over a
// short rest says little.
func perSecond(times []int64, begin, end, width int64) []float64 {
	last := max(1, (end-begin)/width) - 1
	rates := make([]float64, last+1)
	for _, t := range times {
		rates[min(max((t-begin)/width, 0), last)]++
	}
	for n := range rates {
		taken := width
		if int64(n) == last {
			taken = end - begin - last*width
		}
		rates[n] /= float64(taken) / 1e9
	}
	return rates
}

func rateText(perSecond float64) string {
	if perSecond < 1000 {
		return Trimmed(perSecond, 3) + "/s"
	}
	return Grouped(int64(math.Round(perSecond))) + "/s"
}

// levelsTo returns round levels from 0 to the top of a scale that includes a value, and that top.
func levelsTo(most float64) ([]level, float64) {
	step := tickStep(2 * most)
	steps := math.Ceil(most/step - 1e-9)
	var out []level
	for n := 0.0; n <= steps; n++ {
		out = append(out, levelAt(n/steps, rateText(n*step)))
	}
	return out, steps * step
}
