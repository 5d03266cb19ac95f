package application

import (
	"slices"

	"lockcheck/checker"
	"lockcheck/history"
)

// collectAppended makes effects of the lines that replicas have appended in the resource, unless the app file describes lines
// that say what was done: then work would count twice. One line may be appended under several keys, for several kinds of work.
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

// holdAround is the hold in which a line was appended, nil if none is certain. The line went another way than what the replica
// printed, so that only brackets order the two: the hold was said before the request arrived, and nothing ended it before
// it was applied. As of printed work, only the last hold counts: the replica may have given those before back without a word. Of
// threads with names the request does not tell which it is of.
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

// heard says whether everything is known that a replica had printed when it did some work. What it appended is on record at
// once, and a kill may have come before the lines that it had printed until then were read.
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

// doesWork says whether anything tells which work replicas do: their lines, or what they append.
func (r *run) doesWork() bool { return r.says(history.Did) || r.app.Resource }

// undescribed is the finding on a property of work that nothing tells of; false if something does.
func (r *run) undescribed(p checker.Property) (checker.Finding, bool) {
	if r.app.Resource {
		return checker.Finding{}, false
	}
	return r.unsaid(p, history.Did)
}
