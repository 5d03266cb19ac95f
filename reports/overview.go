package reports

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"lockcheck/history"
)

func overview(rec *record, s situation) picture {
	c := newCanvas(rec, rec.begin, rec.end)
	c.ID, c.zoomed = "overview", true
	top := 22
	for n, w := range rec.workers {
		if n == maxStrips {
			c.Notes = append(c.Notes, "Only the first "+strconv.Itoa(maxStrips)+" of "+strconv.Itoa(len(rec.workers))+" workers are drawn.")
			break
		}
		c.strip(w, row{top: top, height: 26, bar: top + 6, thick: 12, claim: top + 20})
		top += 26
	}
	c.rect("window", s.from, s.to, 22, top-22, "the part shown above")
	c.effect(false)
	c.overlaps(nil)
	for _, b := range c.blocks() {
		c.hold(b)
	}
	c.drawClaims(s)
	if c.parts > maxParts {
		c.Notes = append(c.Notes, "A zoom draws only the first "+Grouped(maxParts)+" of those that are merged one by one.")
	}
	c.leftOut(len(rec.unowned), "claim", " of the service that no hold came of left out.")
	c.badSymbols()
	if len(rec.unlisted) > 0 {
		c.Notes = append(c.Notes, "Not everything that went wrong is marked, only the first incidents of each property ("+strings.Join(rec.unlisted, "; ")+"): an unmarked stretch need not be a sound one.")
	}
	top = c.faultKinds(top)
	c.phases(top)
	c.axis(top)
	c.describe("The whole run of " + Length(time.Duration(rec.end-rec.begin)))
	return c.picture
}

// phases marks where the run changed from one phase to the next.
func (c *canvas) phases(bottom int) {
	names := &shelf{y: 15}
	for _, e := range c.rec.phases {
		text := ""
		switch e.Note {
		case history.PhaseReady:
			text = cmp.Or(c.Noun, "worker") + "s start"
		case history.PhaseRecovery:
			text = "no more faults"
		case history.PhaseFinal:
			text = "final reads"
		case history.PhaseBroken:
			text = "broken"
		default:
			continue
		}
		c.rect("phase", e.Time, e.Time, 20, bottom-20, text+" at "+at(e.Time, c.rec.begin))
		c.note(names, "l-phase", e.Time, text)
	}
}
