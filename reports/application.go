package reports

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	"maragu.dev/gomponents/html"

	"lockcheck/checker"
	"lockcheck/history"
)

// applicationMain is the page of a test of an application between its header and its footer.
func applicationMain(rec *record, h *history.History, r checker.Results) g.Node {
	whole, drawn := applicationTimeline(rec, h, r)
	picture := g.Node(note("Nothing was recorded that could be drawn."))
	if drawn {
		picture = wholeStage(whole, nil, "One row for each replica and for each invariant, which is red from the first answer that showed it violated to the next one that did not.")
	}
	return html.Main(
		counterexample(r),
		picture,
		remediesSection(adviceFor(h.Header, r), true),
		invariantsSection(h.Header, r),
		findingsSection(r),
		incidentsSection(r, closeUps{}, drawn),
		rec.faultsSection(h.Header, r.Faults),
		replicasSection(r),
		Section("In figures", html.Dl(html.Class("figures"), g.Map(applicationFigures(r), fact.item))),
		commandSection(h.Header))
}

// counterexample tells the most telling incident, and nothing if there is none.
func counterexample(r checker.Results) g.Node {
	found := examples(r, byCost(r.Findings), 1)
	if len(found) == 0 {
		return nil
	}
	title, i := "The counterexample", found[0].Incident
	switch rank(found[0].Finding) {
	case tolerated:
		title = "What the guard made harmless"
	case violatedNotRequired:
		title = "Seen, but not judged"
	}
	return Section(title, html.P(g.Text("At "+at(i.From, r.Begin)+": "+shorten(clean(i.What), maxIncidentText)+".")),
		g.If(i.Why != "", html.P(html.B(g.Text("Why: ")), g.Text(withCause(shorten(clean(i.Why), maxIncidentText), i)+"."))))
}

func invariantsSection(h history.Header, r checker.Results) g.Node {
	if len(r.Application.Invariants) == 0 {
		return nil
	}
	questions := make(map[string]string)
	for _, i := range h.Application.Invariants {
		questions[i.Name] = question(i)
	}
	return Section("Invariants", Wide("Table of invariants", html.Table(
		html.Caption(g.Text("How often each was asked, and the longest time in which nothing is known of it: what became false and true again within it was not seen.")),
		Heads("Invariant", "Kind", "Asked", "Held", "Violated", "Unknown", "Longest gap"),
		html.TBody(g.Map(r.Application.Invariants, func(i checker.InvariantSummary) g.Node {
			gap := "–"
			if i.Gap.Length() > 0 {
				gap = Length(i.Gap.Length()) + " from " + at(i.Gap.From, r.Begin)
			}
			if len(i.Gap.Faults) > 0 {
				gap += ", during " + shorten(strings.Join(cleanAll(i.Gap.Faults), ", "), maxEvidence)
			}
			unknown := Grouped(i.Unknown)
			if i.Said != "" {
				unknown += ": " + shorten(clean(i.Said), maxEvidence)
			}
			asked := g.If(questions[i.Name] != "", g.Group{html.Br(), html.Code(g.Text(questions[i.Name]))})
			return html.Tr(RowHead(g.Text(shorten(clean(i.Name), 60)), asked), html.Td(g.Text(clean(i.Kind))), html.Td(g.Text(Grouped(i.Asked))), html.Td(g.Text(Grouped(i.Held))),
				html.Td(g.Text(Grouped(i.Violated))), html.Td(g.Text(unknown)), html.Td(g.Text(gap)))
		})))))
}

// maxQuestion is how much of a question is shown, in characters.
const maxQuestion = 300

// question is what an invariant asks, and whom.
func question(i history.Invariant) string {
	text := shorten(clean(i.Question), maxQuestion)
	if i.On != "" {
		text += " (on " + clean(i.On) + ")"
	}
	return text
}

func replicasSection(r checker.Results) g.Node {
	number := func(n int64) g.Node { return html.Td(g.Text(Grouped(n))) }
	heads := []string{"Replica", "Started", "Ended by itself", "Killed", "Holds", "Effects"}
	stores := r.Application.Reads+r.Application.Writes > 0
	if stores {
		heads = append(heads, "Reads", "Other writes")
	}
	return Section("Replicas", Wide("Table of replicas", html.Table(
		Heads(heads...),
		html.TBody(g.Map(r.Application.Replicas, func(s checker.ReplicaSummary) g.Node {
			return html.Tr(RowHead(g.Text(shorten(clean(s.Name), 60))), number(s.Started), number(s.Ended), number(s.Killed), number(s.Holds), number(s.Effects),
				g.If(stores, g.Group{number(s.Reads), number(s.Writes)}))
		})))))
}

func applicationFigures(r checker.Results) []fact {
	a := r.Application
	out := []fact{
		{"pieces of work accepted", Grouped(a.Accepted)},
		{"effects", Grouped(a.Effects)},
		{"effects done again", Grouped(a.Repeated)},
		{"holds", Grouped(a.Holds)},
		{"restarts", Grouped(a.Restarts)},
	}
	if n := r.Failovers.Holders; n > 0 {
		out = append(out, fact{"from the stop of a holder to the next hold", fmt.Sprintf("%s (median of %d; longest %s)", Length(r.Failovers.Median), n, Length(r.Failovers.Longest))})
	}
	return append(out, fact{"length of the run", Length(time.Duration(r.End - r.Begin))})
}

// applicationTimeline draws a row for each replica with its holds and effects, one for each invariant, and the faults.
func applicationTimeline(rec *record, h *history.History, r checker.Results) (picture, bool) {
	c := newCanvas(rec, rec.begin, rec.end)
	c.ID, c.zoomed, c.Noun = "overview", true, "replica"
	app, top := h.Header.Application, 22
	for _, name := range app.Replicas[:min(len(app.Replicas), maxStrips)] {
		c.strip(name, row{top: top, height: 26, bar: top + 6, thick: 12})
		top += 26
	}
	c.leftOut(len(app.Replicas)-maxStrips, "more replica", " left out.")
	c.effect(false)
	c.overlaps(nil)
	for _, b := range c.blocks() {
		r := c.rows[b.Worker]
		c.seen("held", b.Start, b.to, r.bar, r.thick, Many(int64(len(b.holds)), "hold")+" of "+clean(b.Worker)+", first of "+shorten(clean(b.Key), 60))
	}
	c.ticks(h.Events)
	answers := answersOf(h.Events)
	left := 0
	for _, i := range r.Application.Invariants {
		switch {
		case !history.Judged(i.Kind):
		case len(c.Strips) >= 2*maxStrips:
			left++
		default:
			c.Strips = append(c.Strips, strip{top, 26, top + 16, shorten(clean(i.Name), 10), len(c.Strips)%2 == 1})
			c.answers(i, answers[i.Name], top+6)
			top += 26
		}
	}
	c.leftOut(left, "more invariant", " left out.")
	top = c.faultKinds(top)
	c.phases(top)
	c.axis(top)
	c.Title = "The whole run of " + Length(time.Duration(rec.end-rec.begin))
	c.Desc = "Replicas and invariants, time from left to right. The tables on this page say the same in words."
	return c.picture, len(h.Events) > 0
}

// seen draws a stretch of time, and a moment as a tick.
func (c *canvas) seen(class string, from, to int64, y, h int, title string) {
	c.rect(class, from, max(to, from+(c.to-c.from)/800), y, h, title)
}

// deed is what a replica did.
func deed(e *history.Event) string {
	switch {
	case e.F == history.Did:
		return "did " + shorten(clean(e.ID), 60)
	case e.ID != "":
		return "appended " + shorten(clean(e.ID), 60) + " to " + shorten(clean(e.Key), 60)
	}
	return "wrote version " + strconv.FormatInt(e.Version, 10) + " of " + shorten(clean(e.Key), 60)
}

// ticks marks the effects of replicas, and what they wrote to the resource.
func (c *canvas) ticks(events []history.Event) {
	drawn, left := 0, 0
	for i := range events {
		e := &events[i]
		who := e.Process
		if who == history.Resource {
			who = e.Client
		}
		r, ok := c.rows[who]
		switch {
		case e.F != history.Did && !(e.F == history.Write && e.Type == history.OK) || !ok:
		case drawn == maxBlocks:
			left++
		default:
			drawn++
			c.seen("did", e.Time, e.Time, r.top+3, 20, clean(who)+" "+deed(e)+" at "+at(e.Time, c.rec.begin))
		}
	}
	c.leftOut(left, "more effect", " left out.")
}

func answersOf(events []history.Event) map[string][]*history.Event {
	all := make(map[string][]*history.Event)
	for i := range events {
		if e := &events[i]; e.F == history.Asked {
			all[e.Key] = append(all[e.Key], e)
		}
	}
	return all
}

// answers draws what is known of an invariant: each stretch of time in which its answers were alike. It is red until an
// answer shows that it holds again, and empty where it was not answered. One that must hold in the end may be false before.
func (c *canvas) answers(i checker.InvariantSummary, all []*history.Event, y int) {
	name, seen := shorten(clean(i.Name), 60), 0
	lacks := i.Kind == history.InvariantKept && i.Violated > 0 // which only the last answer shows
	for n, alike := range chunks(all, func(a, b *history.Event) bool { return a.Type == b.Type && !(lacks && b == all[len(all)-1]) }) {
		first, last := alike[0], alike[len(alike)-1]
		seen += len(alike)
		from, to, class, word := first.From, last.Time, "kept", "held"
		switch {
		case first.Type == history.Info:
			continue
		case first.Type == history.Fail && i.Kind == history.InvariantEventually && i.Violated == 0:
			class, word = "unmet", "did not hold yet"
		case first.Type == history.Fail:
			from, to, class, word = first.Time, heldAgain(all[seen:], last.Time), "red", "did not hold"
		case lacks && seen == len(all):
			class, word = "red", "lacked something at the end"
		}
		if n == maxFaultShapes {
			c.Notes = append(c.Notes, "Not all answers of "+name+" are drawn.")
			return
		}
		c.seen(class, from, to, y, 12, name+" "+word+" in "+Many(int64(len(alike)), "answer")+" from "+at(from, c.rec.begin)+" to "+at(to, c.rec.begin))
	}
}

// heldAgain is when an invariant held again, or a time if no answer shows that it did.
func heldAgain(rest []*history.Event, otherwise int64) int64 {
	for _, e := range rest {
		if e.Type == history.OK {
			return e.Time
		}
	}
	return otherwise
}

// applicationFacts is a run of an application in a few pairs; nil for one of a lock.
func applicationFacts(h history.Header) []fact {
	if h.Application == nil {
		return nil
	}
	return []fact{
		{"application", orNone(clean(h.Lock))},
		{"faults", orNone(strings.Join(cleanAll(h.Faults), ", "))},
		{"replicas", strconv.Itoa(len(h.Application.Replicas))},
		{"invariants", strconv.Itoa(len(slices.DeleteFunc(slices.Clone(h.Application.Invariants), func(i history.Invariant) bool { return !history.Judged(i.Kind) })))},
		{"seed", strconv.FormatUint(h.Seed, 10)},
	}
}
