package reports

import (
	"math"

	"lockcheck/checker"
)

// drawLease draws how long the service must keep the lock for a hold, renewals included, unless the hold is
// released. For a session this is unknown, because its client renews it without a record.
func (c *canvas) drawLease(h checker.Hold, named bool) {
	r := c.rows[h.Worker]
	if r.lease == 0 || c.rec.session || h.LeaseEnd == math.MaxInt64 || h.LeaseEnd <= h.Start {
		return
	}
	end := h.LeaseEnd
	if h.Ended == checker.EndedByRelease {
		end = min(end, h.End)
	}
	text := "the lease of " + clean(h.Worker) + " may run out from about " + at(h.LeaseEnd, c.rec.begin) + " on"
	c.rect("lease", h.Start, end, r.lease, 3, text)
	if named && end == h.LeaseEnd {
		c.symbol("ttl", access{worker: h.Worker, time: end}, text)
		c.label(r.under, "l-lease", end, "TTL of "+Length(c.rec.ttl)+" ends", true)
	}
}
