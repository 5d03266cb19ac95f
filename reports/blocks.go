package reports

import (
	"strconv"
	"strings"

	"lockcheck/checker"
)

// block is one hold, or several holds of a worker that are too close together to be told apart.
type block struct {
	checker.Hold                // the first hold
	holds        []checker.Hold // all holds of the block
	to           int64
}

// blocks merges holds until there are few enough. Holds of incidents and holds used after expiry are never
// merged, because readers look for them.
func (c *canvas) blocks() []block {
	var alone []block
	short := map[string][]checker.Hold{}
	total := 0
	for _, h := range c.rec.holds {
		_, ok := c.rows[h.Worker]
		if !ok || !c.drawn(h.Key) || !c.shows(h.Start, h.End) {
			continue
		}
		if (c.rec.involved[h.Grant] || usedAfterExpiry(h)) && len(alone) < maxAlone {
			alone = append(alone, block{h, []checker.Hold{h}, h.End})
			continue
		}
		short[h.Worker] = append(short[h.Worker], h)
		total++
	}
	merged := c.condense(short)
	if len(merged) < total {
		c.Notes = append(c.Notes, Many(int64(total), "hold")+" drawn as "+Many(int64(len(merged)), "block")+
			": neighbours too close together to be told apart at this scale are merged. "+
			"Holds that went on beyond their validity or belong to a listed incident are drawn one by one, up to "+strconv.Itoa(maxAlone)+" of them.")
	}
	return append(merged, alone...)
}

// condense merges neighbouring holds, the closest first, until there are few enough.
func (c *canvas) condense(holds map[string][]checker.Hold) []block {
	merged := mergeAll(holds, c.rec.workers, 0)
	for gap := (c.to - c.from) / 4000; len(merged) > maxBlocks; gap = 2*gap + 1 {
		merged = mergeAll(holds, c.rec.workers, gap)
	}
	return merged
}

// mergeAll merges holds of a worker that are less than gap apart. A gap of 0 merges nothing.
func mergeAll(holds map[string][]checker.Hold, workers []string, gap int64) []block {
	var out []block
	for _, w := range workers {
		first := len(out)
		for i, h := range holds[w] {
			if last := len(out) - 1; gap > 0 && last >= first && h.Start-out[last].to < gap {
				b := &out[last]
				b.holds = holds[w][i-len(b.holds) : i+1]
				b.to = max(b.to, h.End)
				continue
			}
			out = append(out, block{h, holds[w][i : i+1], h.End})
		}
	}
	return out
}

// hold draws a block: solid while it is valid, and hatched after that.
func (c *canvas) hold(b block) {
	r := c.rows[b.Worker]
	if n := len(b.holds); n > 1 {
		c.rect("hold many", b.Start, b.to, r.bar, r.thick, Many(int64(n), "hold")+" of "+clean(b.Worker))
		c.partsOf(b, clean(b.Worker)+" holds the lock")
		return
	}
	valid := min(b.End, max(b.Deadline, b.Start))
	title := clean(b.Worker) + " holds the lock from " + at(b.Start, c.rec.begin) + " to " + at(b.End, c.rec.begin)
	if usedAfterExpiry(b.Hold) {
		title += ", valid until " + at(b.Deadline, c.rec.begin)
	}
	c.rect("hold", b.Start, valid, r.bar, r.thick, title)
	if valid < b.End {
		c.rect("beyond", valid, b.End, r.bar, r.thick, title)
	}
	c.nameHold(b, r, valid)
}

// partsOf lets a zoom split the last shape into the holds that it stands for. one is the text for each hold.
// If there would be too many holds for a page, the shape stays whole.
func (c *canvas) partsOf(b block, one string) {
	if !c.zoomed {
		return
	}
	if c.parts += len(b.holds); c.parts > maxParts {
		return
	}
	micros := func(t int64) int64 { return (t - c.rec.begin) / 1e3 }
	var text strings.Builder
	last := micros(b.Start)
	for _, h := range b.holds {
		for _, t := range []int64{micros(h.Start), micros(h.End)} {
			text.WriteString(" " + strconv.FormatInt(t-last, 36))
			last = t
		}
	}
	shape := &c.Shapes[len(c.Shapes)-1]
	shape.Begin, shape.Parts, shape.Each = micros(b.Start), text.String()[1:], one
}

func (c *canvas) nameHold(b block, r row, valid int64) {
	if r.above == nil {
		return
	}
	name := shorten(clean(b.Grant), 16)
	if c.rec.expired[b.Grant] {
		name = "expired grant"
	} else if b.Token != 0 {
		name = "token " + strconv.FormatUint(b.Token, 10)
	} else if c.Attempt == "" {
		c.Attempt = attempt(b.Hold)
	}
	c.note(r.above, "l-hold", max(b.Start, c.from), name)
	if valid < b.End && c.shows(valid, b.End) {
		c.note(r.above, "l-beyond", max(valid, c.from), "beyond its validity")
	}
}

// attempt explains the name of a grant; "" if the name does not count the attempts of the worker.
func attempt(h checker.Hold) string {
	number, ok := strings.CutPrefix(h.Grant, h.Worker+"-")
	n, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil || n < 1 {
		return ""
	}
	return clean(h.Grant) + ": " + ordinal(n) + " attempt of " + clean(h.Worker)
}
