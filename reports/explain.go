package reports

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"lockcheck/checker"
)

// step is one moment of a scene in words: the picture for those who do not see it.
type step struct {
	At, Text string
	Class    string // of the mark in front of it
	time     int64
}

// maxSteps keeps an explanation readable.
const maxSteps = 24

// steps tells a scene in the order of time. The second result is how many steps
// were left out.
func (rec *record) steps(s scene) ([]step, int) {
	var out []step
	add := func(t int64, class, text string) {
		out = append(out, step{at(t, rec.begin), text, class, t})
	}
	actors := map[string]bool{}
	for _, h := range rec.holds {
		if s.cast[h.Grant] {
			actors[h.Worker] = true
			rec.tellHold(h, s, add)
		}
	}
	for _, f := range rec.faults {
		rec.tellFault(f, s, actors, add)
	}
	for _, a := range rec.accesses {
		if s.cast[a.grant] {
			rec.tellAccess(a, add)
		}
	}
	slices.SortStableFunc(out, func(a, b step) int { return cmp.Compare(a.time, b.time) })
	left := max(0, len(out)-maxSteps)
	return out[:len(out)-left], left
}

func (rec *record) tellHold(h checker.Hold, s scene, add func(int64, string, string)) {
	worker := clean(h.Worker)
	text := worker + " is granted the lock"
	if h.Token != 0 {
		text += " with token " + strconv.FormatUint(h.Token, 10)
	}
	switch {
	case h.Deadline > h.Start && h.Deadline != h.End:
		text += ", promised until " + at(h.Deadline, rec.begin)
	case h.Deadline < h.Start:
		text += ", though the promise had ended at " + at(h.Deadline, rec.begin) + " already"
	}
	if others := rec.holding(h, s); len(others) > 0 {
		text += ", while " + strings.Join(others, " and ") + " still holds it"
	}
	add(h.Start, "ok", text+".")
	if outlived(h) && h.Deadline >= h.Start {
		add(h.Deadline, "info", "The promise to "+worker+" ends; it goes on as if it held the lock.")
	}
	add(h.End, "info", worker+" stops: "+endOf(h)+".")
}

// holding is the other workers of the cast that hold the key of h as it starts.
func (rec *record) holding(h checker.Hold, s scene) []string {
	var out []string
	for _, o := range rec.holds {
		if s.cast[o.Grant] && o.Key == h.Key && o.Worker != h.Worker && o.Start < h.Start && o.End > h.Start {
			out = append(out, clean(o.Worker))
		}
	}
	return out
}

func endOf(h checker.Hold) string {
	switch h.Ended {
	case checker.EndedByRelease:
		return "it releases the lock"
	case checker.EndedAtRelease:
		return "it tries to release, and the lock is already gone"
	case checker.EndedByLost:
		return "it is told that the lock is lost"
	case checker.EndedByDeadline:
		return "its own check says that the promise is over"
	}
	return "no further event"
}

func (rec *record) tellFault(f checker.FaultCoverage, s scene, actors map[string]bool, add func(int64, string, string)) {
	if !f.Applied || f.End < s.from || f.Begin > s.to {
		return
	}
	hits := slices.ContainsFunc(f.Targets, func(t string) bool { return actors[t] })
	if !hits && !slices.Contains(s.Incident.Faults, f.ID) {
		return
	}
	from, to := rec.force(f)
	name := faultName(f)
	if dead := rec.dead(f); len(dead) > 0 {
		add(from, "fault", "Fault "+clean(f.ID)+": "+name+". For "+strings.Join(cleanAll(dead), ", ")+" this is the end.")
		return
	}
	add(from, "fault", "Fault "+clean(f.ID)+" is in force: "+name+".")
	add(to, "fault", "Fault "+clean(f.ID)+" is healed.")
}

// faultName is a fault and what it hits.
func faultName(f checker.FaultCoverage) string {
	name := clean(f.Kind) + " " + strings.Join(cleanAll(f.Targets), ", ")
	if len(f.Peers) > 0 {
		name += " from " + strings.Join(cleanAll(f.Peers), ", ")
	}
	return shorten(name, 80)
}

func (rec *record) tellAccess(a access, add func(int64, string, string)) {
	worker, element := clean(a.worker), strconv.FormatInt(a.element, 10)
	switch {
	case a.refused:
		what := "read"
		if a.write {
			what = "write"
		}
		add(a.time, "refused", "The guard refuses a "+what+" of "+worker+".")
	case !a.write:
		add(a.time, "ok", worker+" reads.")
	case rec.stale[a.element] && rec.lost[a.element]:
		add(a.time, "fail", "The resource accepts "+worker+"'s stale write of element "+element+", which the final state lacks.")
	case rec.stale[a.element]:
		add(a.time, "fail", "The resource accepts "+worker+"'s write of element "+element+", which is stale: a later grant was already at work.")
	case rec.lost[a.element]:
		add(a.time, "fail", "The resource accepts "+worker+"'s write of element "+element+". It is acknowledged, and the final state lacks it.")
	default:
		add(a.time, "ok", "The resource accepts "+worker+"'s write"+elementOf(a)+".")
	}
}

func elementOf(a access) string {
	if a.element == 0 {
		return ""
	}
	return " of element " + strconv.FormatInt(a.element, 10)
}
