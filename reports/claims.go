package reports

import (
	"strconv"

	"lockcheck/checker"
	"lockcheck/history"
)

// claim is what the lock service had on record for a grant. Its observer may learn of either end late, but
// never early.
type claim struct {
	checker.Hold
	from, to int64
	// dropped says whether the service was seen to end the claim at to. Otherwise the claim lasted to the end
	// of the history or of the observation.
	dropped bool
}

// tooEarly says whether the service dropped the claim before the hold ended.
func (c claim) tooEarly() bool { return c.dropped && c.to < c.End }

// claimID is the name that a service gives to a claim.
type claimID struct {
	key   string
	token uint64
}

func (rec *record) observe(events []history.Event) {
	holders := map[claimID]checker.Hold{}
	for _, h := range rec.holds {
		if h.Token != 0 {
			holders[claimID{h.Key, h.Token}] = h
		}
	}
	var all []claim
	open := map[claimID]int{} // index in all
	for _, e := range events {
		if e.Process != history.Service {
			continue
		}
		id := claimID{e.Key, e.Token}
		place, known := open[id]
		switch e.F {
		case history.Claimed:
			if known {
				continue
			}
			h, ok := holders[id]
			if !ok {
				h = checker.Hold{Key: e.Key, Token: e.Token}
			}
			open[id] = len(all)
			all = append(all, claim{Hold: h, from: e.Time, to: rec.end})
		case history.Dropped:
			if known {
				all[place].to, all[place].dropped = e.Time, true
				delete(open, id)
			}
		case history.Unobserved:
			rec.blind = e.Time
			for _, place := range open {
				all[place].to = e.Time
			}
			clear(open)
		}
	}
	for _, l := range all {
		if l.Worker == "" {
			rec.unowned = append(rec.unowned, l)
		} else {
			rec.claims = append(rec.claims, l)
		}
	}
}

// drawClaims draws the service's records as a thin bar below each hold.
func (c *canvas) drawClaims(s situation) {
	spans := map[string][]checker.Hold{}
	for _, l := range c.rec.claims {
		r, ok := c.rows[l.Worker]
		if !ok || !c.drawn(l.Key) || !c.shows(l.from, l.to) {
			continue
		}
		if l.tooEarly() && s.cast[l.Grant] {
			c.note(r.under, "l-claim", l.to, "the service drops it")
		}
		l.Start, l.End = l.from, l.to
		spans[l.Worker] = append(spans[l.Worker], l.Hold)
	}
	for _, b := range c.condense(spans) {
		n := len(b.holds)
		title := "the service has " + Many(int64(n), "claim") + " of " + clean(b.Worker) + " on record"
		if n == 1 {
			title = "the service has the claim of " + clean(b.Worker) + " with token " + strconv.FormatUint(b.Token, 10) +
				" on record from " + at(b.Start, c.rec.begin) + " to " + at(b.to, c.rec.begin)
		}
		r := c.rows[b.Worker]
		c.rect("claim", b.Start, b.to, r.claim, 3, title)
		if n > 1 {
			c.partsOf(b, "the service has a claim of "+clean(b.Worker)+" on record")
		}
	}
	if c.rec.blind != 0 && c.shows(c.rec.blind, c.rec.end) {
		c.Notes = append(c.Notes, "From "+at(c.rec.blind, c.rec.begin)+" on nobody saw what the service had on record.")
	}
}

// drawUnowned draws the claims without a hold in rows of their own. It returns the y below the rows.
func (c *canvas) drawUnowned(top int) int {
	const height = 28
	var rows []*shelf
	left := 0
	for _, l := range c.rec.unowned {
		if !c.drawn(l.Key) || !c.shows(l.from, l.to) {
			continue
		}
		text := "claim " + strconv.FormatUint(l.Token, 10)
		i, anchor := placeInRows(&rows, top, height, c.pos(l.from), c.pos(l.to), text)
		if i < 0 {
			left++
			continue
		}
		c.rect("claim", l.from, l.to, top+i*height+19, 3, "the service has "+text+" on record, of which no hold came, from "+at(l.from, c.rec.begin)+" to "+at(l.to, c.rec.begin))
		end := l.from
		if anchor == "end" {
			end = l.to
		}
		c.write(rows[i], "l-claim", end, text, anchor)
	}
	c.leftOut(left, "more claim", " of the service left out.")
	c.stack("service", len(rows), top, height)
	return top + len(rows)*height
}
