package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
)

// step is one moment of a situation in words, for readers who do not see the picture.
type step struct {
	At, Text string
	Class    string // class of the mark in front of the text
	time     int64
}

// Limits that keep an explanation readable.
const (
	maxSteps    = 16 // beyond this, further holds around the situation are summed up
	maxShown    = 6  // faults
	maxAccesses = 6  // accesses of one hold, without those that cost data
)

type teller struct {
	*record
	situation situation
	accesses  map[string][]access // by grant
	shown     []step
	left      struct{ accesses, faults int64 } // belong to the story, but are left out
}

// steps tells a situation in the order of time: each hold of its core, the first few other holds, and the
// remaining holds in one summary step. The second result says what was left out.
func (rec *record) steps(s situation) ([]step, []string) {
	t := &teller{record: rec, situation: s}
	var core []checker.Hold
	for _, h := range rec.holds {
		if s.core[h.Grant] {
			core = append(core, h)
		}
	}
	around := rec.otherHolds(s)
	t.accesses = rec.accessesOf(core, around)
	for _, h := range core {
		t.tellHold(h)
	}
	t.tellFaults(core, around)
	t.tellStretch()
	t.tellCause()
	if rest := t.tellFirst(around); len(rest) > 0 {
		t.summarize(core, rest)
	}
	slices.SortStableFunc(t.shown, func(a, b step) int { return cmp.Compare(a.time, b.time) })
	return t.shown, t.leftOut()
}

// tellStretch tells of an incident that is about a time span.
func (t *teller) tellStretch() {
	if i := t.situation.Incident; t.situation.isStretch() {
		t.say(i.From, "fail", "From here until "+t.situation.at(i.To, t.begin)+": "+shorten(clean(i.What), maxIncidentText)+".")
	}
}

// tellCause tells of what the cause of the incident rests on, and no hold shows.
func (t *teller) tellCause() {
	i := t.situation.Incident
	switch e := i.Explanation; {
	case e == nil:
	case i.Cause == checker.CauseLateRelease && e.Earlier != nil:
		t.say(e.Earlier.Asked, "info", clean(e.Holder.Worker)+" sends a release that gets no answer.")
	case i.Cause == checker.CauseUnrenewed && e.Renewal != nil:
		t.say(e.Renewal.Asked, "info", "The session of "+clean(e.Holder.Worker)+" is renewed for the last time.")
	}
}

// tellFirst tells of as many holds as there is space for, and returns the rest. The rest is never a single
// hold.
func (t *teller) tellFirst(holds []checker.Hold) []checker.Hold {
	for len(holds) > 0 {
		before, left := len(t.shown), t.left
		t.tellHold(holds[0])
		if len(holds) > 1 && len(t.shown) > maxSteps {
			t.shown, t.left = t.shown[:before], left
			return holds
		}
		holds = holds[1:]
	}
	return nil
}

// accessesOf returns the accesses under some holds, by grant.
func (rec *record) accessesOf(holds ...[]checker.Hold) map[string][]access {
	out := make(map[string][]access)
	for _, h := range slices.Concat(holds...) {
		out[h.Grant] = nil
	}
	for _, a := range rec.accesses {
		if _, wanted := out[a.grant]; wanted {
			out[a.grant] = append(out[a.grant], a)
		}
	}
	return out
}

func (t *teller) say(time int64, class, text string) {
	t.shown = append(t.shown, step{t.situation.at(time, t.begin), text, class, time})
}

func (t *teller) leftOut() []string {
	var out []string
	if n := t.left.accesses; n > 0 {
		out = append(out, Grouped(n)+" more of the reads and writes of these holds left out.")
	}
	if n := t.left.faults; n > 0 {
		out = append(out, Many(n, "more fault")+" at this time left out.")
	}
	return out
}

// tellHold tells of a hold, its claim, its first accesses, and all its accesses that cost data.
func (t *teller) tellHold(h checker.Hold) {
	t.tellGrant(h)
	for _, l := range t.claims {
		if l.Grant == h.Grant {
			t.tellClaim(l)
		}
	}
	shown := 0
	for _, a := range t.accesses[h.Grant] {
		if !t.costData(a) {
			if shown == maxAccesses {
				t.left.accesses++
				continue
			}
			shown++
		}
		t.tellAccess(a)
	}
}

// summarize sums up some holds in one step.
func (t *teller) summarize(core, holds []checker.Hold) {
	last, during := int64(0), 0
	workers := map[string]bool{}
	for _, h := range holds {
		last = max(last, h.End)
		workers[h.Worker] = true
		during += one(len(core) > 0 && h.Start > core[0].Start && h.Start < core[0].End)
	}
	var names []string
	for _, w := range t.workers {
		if workers[w] {
			names = append(names, clean(w))
		}
	}
	text := Many(int64(len(holds)), "more hold") + " by " + listNames(names) + ", the last of them until " + t.situation.at(last, t.begin)
	switch during {
	case 0:
	case len(holds):
		text += ", all begun while " + clean(core[0].Worker) + " still holds it"
	default:
		text += fmt.Sprintf(", %d of them begun while %s still holds it", during, clean(core[0].Worker))
	}
	did := t.sumOf(holds)
	t.say(holds[0].Start, did.class(), text+"."+did.text())
}

// accessCounts counts what happened to the accesses under some holds.
type accessCounts struct {
	reads, writes, refused, stale, lost int64
	atLeast                             bool // more of them may be stale or lost
}

func (t *teller) sumOf(holds []checker.Hold) accessCounts {
	var n accessCounts
	for _, h := range holds {
		for _, a := range t.accesses[h.Grant] {
			switch {
			case a.refused:
				n.refused++
			case !a.write:
				n.reads++
			default:
				n.writes++
				n.stale += int64(one(t.stale[a.element]))
				n.lost += int64(one(t.lost[a.element]))
				n.atLeast = n.atLeast || a.time >= t.badUntil
			}
		}
	}
	return n
}

func (n accessCounts) text() string {
	text := ""
	if n.reads+n.writes > 0 {
		text = " The resource accepts " + Many(n.reads, "read") + " and " + Many(n.writes, "write") + " of theirs"
		if bad := n.effect(); len(bad) > 0 {
			text += "; of the writes " + strings.Join(bad, " and ")
		}
		text += "."
	}
	if n.refused > 0 {
		text += " The guard refuses them " + Many(n.refused, "time") + "."
	}
	return text
}

// effect says how many of the writes were stale or lost.
func (n accessCounts) effect() []string {
	var out []string
	for _, kind := range []struct {
		n    int64
		what string
	}{{n.stale, "stale"}, {n.lost, "lost"}} {
		if kind.n > 0 {
			out = append(out, atLeast(kind.n, !n.atLeast)+" "+isOrAre(kind.n)+" "+kind.what)
		}
	}
	return out
}

// atLeast is n, or "at least n" if there may be more.
func atLeast(n int64, all bool) string {
	if all {
		return Grouped(n)
	}
	return "at least " + Grouped(n)
}

func isOrAre(n int64) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func (n accessCounts) class() string {
	switch {
	case n.stale+n.lost > 0:
		return "fail"
	case n.refused > 0:
		return "refused"
	}
	return "ok"
}

func (t *teller) tellGrant(h checker.Hold) {
	worker := clean(h.Worker)
	text := worker + " is granted the lock"
	if h.Token != 0 {
		text += " with token " + strconv.FormatUint(h.Token, 10)
	}
	switch {
	case h.Deadline > h.Start && h.Deadline != h.End:
		text += ", valid until " + at(h.Deadline, t.begin)
	case h.Deadline < h.Start:
		text += ", though its validity had ended at " + at(h.Deadline, t.begin) + " already"
	}
	switch others := t.otherHolders(h); len(others) {
	case 0:
	case 1:
		text += ", while " + others[0] + " still holds it"
	default:
		text += ", while " + listNames(others) + " still hold it"
	}
	t.say(h.Start, "ok", text+".")
	if usedAfterExpiry(h) && h.Deadline >= h.Start {
		does := worker + " goes on as if it held the lock"
		if t.isPaused(h.Worker, h.Deadline) {
			does = worker + " is stopped and does not notice"
		}
		t.say(h.Deadline, "info", "The validity of "+worker+"'s grant ends; "+does+".")
	}
	t.say(h.End, "info", worker+" stops: "+endOf(h)+".")
}

func (t *teller) tellClaim(l claim) {
	worker := clean(l.Worker)
	t.say(l.from, "service", "The service is seen to have the claim of "+worker+" on record.")
	switch {
	case l.tooEarly():
		t.say(l.to, "service", "The service is seen to drop the claim of "+worker+", which goes on as if it held the lock.")
	case l.dropped:
		t.say(l.to, "service", "The service is seen to drop the claim of "+worker+".")
	}
}

// otherHolders lists the other workers that hold the key of h when h starts.
func (rec *record) otherHolders(h checker.Hold) []string {
	var out []string
	for _, o := range rec.holds {
		if o.Key == h.Key && o.Worker != h.Worker && o.Start < h.Start && o.End > h.Start {
			out = append(out, clean(o.Worker))
		}
	}
	return out
}

// isPaused says whether a worker was certainly paused at a time.
func (rec *record) isPaused(worker string, at int64) bool {
	return slices.ContainsFunc(rec.faults, func(f checker.FaultCoverage) bool {
		from, to := rec.inForce(f)
		return f.Proven && history.Does(f.Kind, history.Stops) && slices.Contains(f.Targets, worker) && from <= at && at < to
	})
}

func endOf(h checker.Hold) string {
	switch h.Ended {
	case checker.EndedByRelease:
		return "it releases the lock"
	case checker.EndedAtRelease:
		return "it tries to release, and the lock is already gone"
	case checker.EndedByLost:
		return "it is notified that the lock is lost"
	case checker.EndedByDeadline:
		return "its own check says that its validity is over"
	}
	return "no further event"
}

// tellFaults tells of faults that were in force during the situation, if the incident names them or they hit
// a worker in the situation or a server.
func (t *teller) tellFaults(core, around []checker.Hold) {
	from, to := t.situation.from, t.situation.to
	if len(core) > 0 {
		around = core
		from, to = core[0].Start, core[0].End
	}
	actors := map[string]bool{}
	for _, h := range around {
		actors[h.Worker] = true
		if len(core) > 0 {
			to = max(to, h.End)
		}
	}
	shown := 0
	for _, f := range t.faults {
		concerned := slices.ContainsFunc(f.Targets, func(p string) bool { return actors[p] || !slices.Contains(t.workers, p) })
		switch {
		case !f.Applied || f.End < from || f.Begin > to:
		case !concerned && !slices.Contains(t.situation.Incident.Faults, f.ID):
		case shown == maxShown:
			t.left.faults++
		default:
			shown++
			t.tellFault(f)
		}
	}
}

func (t *teller) tellFault(f checker.FaultCoverage) {
	from, to := t.inForce(f)
	name := t.faultName(f)
	if dead := t.permanentlyEnded(f); len(dead) > 0 {
		t.say(from, "fault", "Fault "+clean(f.ID)+": "+name+". "+listNames(cleanAll(dead))+" will not restart.")
		return
	}
	t.say(from, "fault", "Fault "+clean(f.ID)+" is in force: "+name+".")
	t.say(to, "fault", "Fault "+clean(f.ID)+" is healed.")
}

// faultName names a fault, its targets, and its strength.
func (rec *record) faultName(f checker.FaultCoverage) string {
	name := clean(f.Kind) + " " + strings.Join(cleanAll(f.Targets), ", ")
	if value := rec.faultValue(f); value != "" {
		name += " (" + value + ")"
	}
	if len(f.Peers) > 0 {
		name += " from " + strings.Join(cleanAll(f.Peers), ", ")
	}
	return shorten(name, 80)
}

// faultValue is how far a fault moves a clock, or what it does to packets; "" if the history has no such
// value.
func (rec *record) faultValue(f checker.FaultCoverage) string {
	for _, e := range rec.stages[f.ID] {
		switch v := e.Fault; {
		case v.Step > 0:
			return "+" + exactDuration(time.Duration(v.Step))
		case v.Step < 0:
			return exactDuration(time.Duration(v.Step))
		case v.Speed > 0:
			return Trimmed(v.Speed, 4) + " s a second"
		case v.Loss > 0:
			return Trimmed(100*v.Loss, 1) + " % lost"
		case v.Delay > 0:
			return exactDuration(time.Duration(v.Delay)) + " late"
		case v.Rate > 0:
			return Grouped(v.Rate) + " bytes/s"
		}
	}
	return ""
}

// costData says whether an access cost data, so that a reader must not miss it.
func (rec *record) costData(a access) bool {
	return a.write && !a.refused && (rec.stale[a.element] || rec.lost[a.element] || len(rec.overwritten[resourceWrite{a.grant, a.time}]) > 0)
}

func (t *teller) tellAccess(a access) {
	worker := clean(a.worker)
	stale, lost := t.stale[a.element], t.lost[a.element]
	overwrites := t.overwrites(a)
	text, class := "The resource accepts "+worker+"'s write"+elementOf(a), "fail"
	switch {
	case a.refused:
		what := "read"
		if a.write {
			what = "write"
		}
		t.say(a.time, "refused", "The guard refuses a "+what+" of "+worker+".")
		return
	case !a.write:
		t.say(a.time, "ok", worker+" reads.")
		return
	case stale && lost:
		text = "The resource accepts " + worker + "'s stale write" + elementOf(a) + ", which the final state lacks."
	case stale:
		text += ", which is stale: a later grant was already at work."
	case lost:
		text += ". It is acknowledged, and the final state lacks it."
	case overwrites == "":
		text, class = text+".", "ok"
	default:
		text += "."
	}
	t.say(a.time, class, text+overwrites)
}

// overwrites names the updates that a write overwrote, beginning with the update of the situation.
func (t *teller) overwrites(a access) string {
	all := t.overwritten[resourceWrite{a.grant, a.time}]
	if !a.write || a.refused || len(all) == 0 {
		return ""
	}
	first := all[max(0, slices.IndexFunc(all, func(i checker.Incident) bool { return i.Element == t.situation.Incident.Element }))]
	text := " It overwrites element " + strconv.FormatInt(first.Element, 10)
	if len(first.Workers) > 0 {
		text += " of " + clean(first.Workers[0])
	}
	others := int64(len(all) - 1)
	if others == 0 {
		return text + ", which is lost."
	}
	return text + " and " + atLeast(others, a.time < t.badUntil) + " more, which are lost."
}

func elementOf(a access) string {
	if a.element == 0 {
		return ""
	}
	return " of element " + strconv.FormatInt(a.element, 10)
}
