package reports

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
)

// effect shades the rows of workers that a fault hit, while the fault was in force.
func (c *canvas) effect(labelled bool) {
	n := 0
	for _, f := range c.rec.faults {
		if !f.Applied || !c.shows(f.Begin, f.End) {
			continue
		}
		for _, t := range f.Targets {
			r, ok := c.rows[t]
			if !ok {
				continue
			}
			from, to := c.rec.inForce(f)
			if n++; n > maxFaultShapes {
				return
			}
			class := "effect"
			if slices.Contains(c.rec.permanentlyEnded(f), t) {
				class, to = "effect killed", c.rec.end
			}
			c.rect(class, from, to, r.top+1, r.height-2, clean(f.Kind)+" of "+clean(t)+" ("+clean(f.ID)+")")
			if labelled {
				c.note(r.below, "l-effect", max(from, c.from), c.rec.effectWord(f))
			}
		}
	}
}

func (rec *record) effectWord(f checker.FaultCoverage) string {
	switch f.Kind {
	case history.Pause:
		return "paused"
	case history.Freeze:
		return "frozen"
	case history.Partition:
		return shorten("cut from "+strings.Join(cleanAll(f.Peers), ", "), 40)
	case history.Kill:
		return "killed"
	case history.Restart:
		return "restarted"
	}
	word := clean(f.Kind)
	if value := rec.faultValue(f); value != "" {
		word += " (" + value + ")"
	}
	return shorten(word, 40)
}

// overlaps tints the time in which two workers held the same key, over the rows of both and all rows between
// them.
func (c *canvas) overlaps(s *shelf) {
	for _, i := range c.rec.overlaps {
		if !c.drawn(i.Key) || !c.shows(i.From, i.To) || i.To == 0 {
			continue
		}
		top, bottom := math.MaxInt, 0
		for _, w := range i.Workers {
			if r, ok := c.rows[w]; ok {
				top, bottom = min(top, r.top), max(bottom, r.top+r.height)
			}
		}
		if bottom == 0 {
			continue
		}
		d := Length(time.Duration(i.To - i.From))
		class := cmp.Or(clean(i.Class), "overlap")
		title := strings.Join(cleanAll(i.Workers), " and ") + " both hold the lock for " + d + ": " + class
		c.Tints = append(c.Tints, c.stretch("tint", i.From, i.To, top, bottom-top, title))
		drawn := c.stretch("overlap", i.From, i.To, top, bottom-top, title)
		drawn.To = c.rec.links.rowOf(checker.MutualExclusion, i)
		c.Shapes = append(c.Shapes, drawn)
		c.note(s, "l-overlap", max(i.From, c.from), "both hold it: "+d)
	}
}

// tintIncident tints the time of an incident, over all rows down to bottom.
func (c *canvas) tintIncident(s situation, bottom int, names *shelf) {
	if !s.isStretch() {
		return
	}
	i, word := s.Incident, cmp.Or(clean(s.Incident.Class), "violated")
	title := shorten(clean(i.What), maxIncidentText)
	c.Tints = append(c.Tints, c.stretch("tint", i.From, i.To, c.Top, bottom-c.Top, title))
	c.rect("violated", i.From, i.To, c.Top, bottom-c.Top, title)
	c.note(names, "l-overlap", max(i.From, c.from), word+": "+Length(time.Duration(i.To-i.From)))
}

// faultRows draws each fault in the window, several in one row if their labels leave space. It returns the y
// below the rows.
func (c *canvas) faultRows(top int) int {
	const height = 32
	var rows []*shelf
	left := 0
	for _, f := range c.rec.faults {
		if !f.Applied || !c.shows(f.Begin, f.End) {
			continue
		}
		text := c.rec.faultName(f)
		if !f.Proven {
			text += " (unproven)"
		}
		i, anchor := placeInRows(&rows, top, height, c.pos(f.Begin), c.pos(f.End), text)
		if i < 0 {
			left++
			continue
		}
		c.rect(faultClass(f), f.Begin, f.End, top+i*height+18, 8, text+" ("+clean(f.ID)+")")
		c.Labels = append(c.Labels, label{"l-fault", percent(c.labelX(f, anchor)), text, anchor, rows[i].y})
	}
	c.leftOut(left, "more fault", " at this time left out of the picture.")
	c.stack("faults", len(rows), top, height)
	return top + len(rows)*height
}

func (c *canvas) labelX(f checker.FaultCoverage, anchor string) float64 {
	if anchor == "end" {
		return c.pos(f.End)
	}
	return c.pos(f.Begin)
}

// faultKinds draws one row for each kind of fault.
func (c *canvas) faultKinds(top int) int {
	const height, most = 22, 12
	rows := map[string]int{}
	drawn, left := 0, 0
	for _, f := range c.rec.faults {
		if !f.Applied {
			continue
		}
		i, ok := rows[f.Kind]
		if !ok && len(rows) < most {
			i, ok = len(rows), true
			rows[f.Kind] = i
			c.Strips = append(c.Strips, strip{top + i*height, height, top + i*height + 15, shorten(clean(f.Kind), 10), len(c.Strips)%2 == 1})
		}
		if !ok || drawn == maxFaultShapes {
			left++
			continue
		}
		drawn++
		c.rect(faultClass(f), f.Begin, f.End, top+i*height+6, 10, c.rec.faultName(f)+" ("+clean(f.ID)+")")
	}
	c.leftOut(left, "more fault", " left out.")
	return top + len(rows)*height
}

func faultClass(f checker.FaultCoverage) string {
	if !f.Proven {
		return "fault unproven"
	}
	return "fault"
}
