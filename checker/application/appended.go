package application

import (
	"slices"

	"lockcheck/checker"
	"lockcheck/history"
)

// collectAppended turns the lines that replicas appended in the resource into effects. It does nothing if the app file has
// says.did, because work would count twice. The same line under two keys is two pieces of work.
func (r *run) collectAppended() {
	if r.says(history.Did) {
		return
	}
	for _, e := range r.accesses {
		p := r.replica(e.Client)
		if p == nil || !appends(e) {
			continue
		}
		d := &effect{holder: holder{replica: p.name}, id: e.Key + "/" + e.ID, from: e.From, time: e.Time, appended: true}
		d.hold = p.holdAround(d)
		r.effects = append(r.effects, d)
		if d.hold != nil && r.ends() {
			d.hold.until = max(d.hold.until, d.from)
		}
	}
}

func appends(e *history.Event) bool {
	return e.F == history.Write && e.Type == history.OK && e.ID != ""
}

// holdAround returns the hold in which a line was appended; nil if no hold is certain. A printed line and a request reach
// lockcheck by different ways, so only their brackets order them: the hold was printed before the request arrived, and did
// not end before the request was applied. As for printed work, only the last hold counts, because the replica may have
// given earlier ones back without a line. If the lines name threads, no hold is certain: a request does not name its thread.
func (p *replica) holdAround(d *effect) *hold {
	if !p.heard(d) {
		return nil
	}
	for _, h := range slices.Backward(p.holds) {
		switch {
		case h.from > d.time:
		case h.client != "" || h.start > d.from || h.ended != nil && h.ended.From < d.time:
			return nil
		default:
			return h
		}
	}
	return nil
}

// heard reports whether all lines are known that a replica had printed before an effect. Appended lines are recorded at
// once, but a kill may have come before lockcheck read what the replica had printed.
func (p *replica) heard(d *effect) bool {
	if !d.appended {
		return true
	}
	for _, e := range p.lines {
		switch {
		case e.Time < d.from:
		case e.F == history.Started:
			return false
		case e.From >= d.time:
			return true
		}
	}
	return false
}

// doesWork reports whether the history can show work of replicas, by printed or by appended lines.
func (r *run) doesWork() bool { return r.says(history.Did) || r.app.Resource }

// undescribed returns the finding for a property of work if the history cannot show work; false if it can.
func (r *run) undescribed(p checker.Property) (checker.Finding, bool) {
	if r.app.Resource {
		return checker.Finding{}, false
	}
	return r.unsaid(p, history.Did)
}
