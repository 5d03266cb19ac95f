package reports

import (
	"fmt"
	"slices"
	"strconv"

	g "maragu.dev/gomponents"
	"maragu.dev/gomponents/html"

	"lockcheck/checker"
	"lockcheck/history"
)

// maxCloseUps is how many close-ups of incidents a page has, next to the one of the
// counterexample.
const maxCloseUps = 20

// closeUps are the parts of a run that a page shows large: that of the counterexample, then
// those of incidents of its tables that can be seen in none before.
type closeUps struct {
	rec   *record
	shown []situation
	of    map[linkKey]string // incidents to the address of what shows them
}

// newCloseUps chooses them; false without holds. The first is that of the counterexample, or
// whatever the page shows in its place.
func newCloseUps(rec *record, r checker.Results) (closeUps, bool) {
	first, ok := rec.situation(r)
	if !ok {
		return closeUps{}, false
	}
	all := closeUps{rec, []situation{first}, map[linkKey]string{}}
	for _, f := range byCost(r.Findings) {
		for _, i := range shownIncidents(r, f) {
			all.add(example{f, i})
		}
	}
	return all, true
}

// add finds a close-up for an incident, or makes it one if there is space.
func (all *closeUps) add(e example) {
	s := all.rec.situationOfAny(e)
	n := slices.IndexFunc(all.shown, func(other situation) bool { return other.shows(s) })
	if n < 0 {
		if n = len(all.shown); n > maxCloseUps {
			return
		}
		all.shown = append(all.shown, s)
	}
	all.of[keyOf(e.Finding.Property, e.Incident)] = "#" + closeUpID(n)
}

// address is where on the page an incident can be seen; "" for nowhere.
func (all closeUps) address(p checker.Property, i checker.Incident) string {
	return all.of[keyOf(p, i)]
}

// situationOfAny frames the holds of an incident, or its time where none are known.
func (rec *record) situationOfAny(e example) situation {
	if s, ok := rec.situationOf(e); ok {
		return s
	}
	return rec.situationOfTime(e)
}

// shows says that the incident of another situation can be seen here as well as there.
func (s situation) shows(other situation) bool {
	const smaller = 4 // times
	from, to := other.Incident.From, max(other.Incident.From, other.Incident.To)
	return (s.key == "" || s.key == other.key) && s.from <= from && to <= s.to && s.to-s.from <= smaller*(other.to-other.from)
}

func closeUpID(n int) string {
	if n == 0 {
		return "closeup"
	}
	return "closeup-" + strconv.Itoa(n+1)
}

// node draws all but the first, which has a section of its own; nil without any.
func (all closeUps) node() g.Node {
	if len(all.shown) < 2 {
		return nil
	}
	drawn := g.Group{html.H2(g.Text("Close-ups of incidents"))}
	for n, s := range all.shown[1:] {
		picture := closeUp(all.rec, s)
		picture.ID = closeUpID(n + 1)
		drawn = append(drawn, html.H3(CleanText(fmt.Sprintf("%s at %s", s.Finding.Property, s.at(s.Incident.From, all.rec.begin)))),
			html.P(g.Text(shorten(clean(s.Incident.What), maxIncidentText))), picture.explained())
	}
	return html.Div(html.Class("closeups"), drawn)
}

// Stretch is a time of a run, in ns of its clock.
type Stretch struct{ From, To int64 }

// Shown is the times of a run that its page shows close up: of a history that is an excerpt,
// HTML needs only the events in these, and both ends of the calls and claims that reach into
// them. The events of h are not looked at.
func Shown(h *history.History, r checker.Results) []Stretch {
	rec := newRecord(&history.History{Header: h.Header}, r)
	all, _ := newCloseUps(rec, r)
	var out []Stretch
	for _, s := range all.shown {
		out = append(out, Stretch{s.from, s.to})
	}
	return out
}
