package reports

import (
	"strconv"
	"strings"

	"lockcheck/checker"
)

// block is one hold, or several of one worker that are too close together to be
// told apart.
type block struct {
	checker.Hold                // the first
	holds        []checker.Hold // all of them
	to           int64
}

// blocks merges holds until there are few enough. Holds of incidents and those
// that went on beyond their validity stay on their own: they are what one looks for.
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
	merged := c.condensed(short)
	if len(merged) < total {
		c.Notes = append(c.Notes, Many(int64(total), "hold")+" drawn as "+Many(int64(len(merged)), "block")+
			": neighbours too close together to be told apart at this scale are merged. "+
			"Holds that went on beyond their validity or belong to a listed incident are drawn one by one, up to "+strconv.Itoa(maxAlone)+" of them.")
	}
	return append(merged, alone...)
}

// condensed merges neighbours, closer ones first, until there are few enough.
func (c *canvas) condensed(holds map[string][]checker.Hold) []block {
	merged := mergeAll(holds, c.rec.workers, 0)
	for gap := (c.to - c.from) / 4000; len(merged) > maxBlocks; gap = 2*gap + 1 {
		merged = mergeAll(holds, c.rec.workers, gap)
	}
	return merged
}

// mergeAll merges what is less than gap apart, row by row; with gap 0 nothing is.
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

// hold draws a block: solid as far as its validity goes, hatched beyond.
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

// partsOf lets a zoom draw the last shape as the holds that it stands for; one is what is
// said of each. It stays one where that would be too many for a page.
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

// attempt explains the name of a grant; "" for one that does not count the attempts of
// its worker.
func attempt(h checker.Hold) string {
	number, ok := strings.CutPrefix(h.Grant, h.Worker+"-")
	n, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil || n < 1 {
		return ""
	}
	return clean(h.Grant) + ": " + ordinal(n) + " attempt of " + clean(h.Worker)
}
