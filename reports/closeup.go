package reports

import (
	"slices"
	"strconv"

	"lockcheck/history"
)

func closeUp(rec *record, s situation) picture {
	c := newCanvas(rec, s.from, s.to)
	c.ID, c.key = "closeup", s.key
	top, cast := 26, rec.workersOfCast(s)
	for _, w := range c.workersToDraw(cast) {
		r := row{top: top, height: 56, bar: top + 21, thick: 20, lease: top + 44, claim: top + 49, above: &shelf{y: top + 15}}
		if cast[w] || s.nothingViolated && len(rec.faults) > 0 {
			r.height = 89
			r.below, r.under = &shelf{y: top + 66}, &shelf{y: top + 81}
		}
		c.strip(w, r)
		top += r.height
	}
	c.effect(true)
	above := &shelf{y: 16}
	c.tintIncident(s, top, above)
	c.overlaps(above)
	c.drawWaits()
	list := c.blocks()
	// The first block to be drawn gets the space for its label.
	slices.SortStableFunc(list, func(a, b block) int { return one(s.cast[b.Grant]) - one(s.cast[a.Grant]) })
	for _, b := range list {
		c.hold(b)
		if len(b.holds) == 1 {
			c.drawLease(b.Hold, s.cast[b.Grant])
		}
	}
	c.drawClaims(s)
	c.symbols(s)
	c.arrows()
	top = c.drawUnowned(top)
	top = c.faultRows(top)
	c.axis(top)
	c.describe("Close-up of the run from " + at(s.from, rec.begin) + " to " + at(s.to, rec.begin))
	return c.picture
}

// workersOfCast lists the workers whose holds are part of a situation.
func (rec *record) workersOfCast(s situation) map[string]bool {
	out := map[string]bool{}
	for _, h := range rec.holds {
		if s.cast[h.Grant] {
			out[h.Worker] = true
		}
	}
	return out
}

// workersToDraw lists the workers with anything to show in a situation. The workers in cast are always included.
func (c *canvas) workersToDraw(cast map[string]bool) []string {
	present := map[string]bool{}
	for _, h := range c.rec.holds {
		if c.drawn(h.Key) && c.shows(h.Invoked, h.End) {
			present[h.Worker] = true
		}
	}
	for _, w := range c.rec.waits {
		if c.drawn(w.key) && c.shows(w.from, w.to) {
			present[w.worker] = true
		}
	}
	space := maxCloseStrips - len(cast)
	var out []string
	left := 0
	for _, w := range c.rec.workers {
		switch {
		case cast[w]:
			out = append(out, w)
		case present[w] && space > 0:
			space--
			out = append(out, w)
		case present[w]:
			left++
		}
	}
	c.leftOut(left, "more worker", " that took no part in this left out.")
	return out
}

// drawWaits draws pending acquires as thin bars, because they endanger nobody. Repeated acquires of a worker
// are drawn as one.
func (c *canvas) drawWaits() {
	n := 0
	thin := func(class, worker, key string, from, to int64, title string) {
		r, ok := c.rows[worker]
		if !ok || !c.drawn(key) || !c.shows(from, to) || n >= maxWaits {
			return
		}
		n++
		c.rect("wait "+class, from, to, r.bar+r.thick/2-1, 3, title)
	}
	var shown []wait
	for _, w := range c.rec.waits {
		if c.shows(w.from, w.to) {
			shown = append(shown, w)
		}
	}
	for _, w := range joinRepeated(shown, (c.to-c.from)/50) {
		class, what := "fail", " asks for the lock and is refused"
		if w.outcome == history.Info {
			class, what = "info", " asks for the lock; the outcome is unknown"
		}
		if w.times > 1 {
			what += ", " + Grouped(int64(w.times)) + " times"
		}
		thin(class, w.worker, w.key, w.from, w.to, clean(w.worker)+what)
	}
	for _, h := range c.rec.holds {
		thin("ok", h.Worker, h.Key, h.Invoked, h.Start, clean(h.Worker)+" waits for the lock")
	}
	if n >= maxWaits {
		c.Notes = append(c.Notes, "Only the first "+strconv.Itoa(maxWaits)+" waits are drawn.")
	}
}

// joinRepeated joins waits of one worker with the same outcome if they are less than gap apart.
func joinRepeated(waits []wait, gap int64) []wait {
	var out []wait
	last := map[string]int{} // worker → index of its last wait
	for _, w := range waits {
		if i, ok := last[w.worker]; ok && out[i].key == w.key && out[i].outcome == w.outcome && w.from-out[i].to < gap {
			out[i].to = w.to
			out[i].times++
			continue
		}
		last[w.worker] = len(out)
		out = append(out, w)
	}
	return out
}
