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

// maxCloseUps is how many close-ups of incidents a page has, in addition to the close-up of the
// counterexample.
const maxCloseUps = 20

// closeUps are the parts of a run that a page shows enlarged: first the counterexample, then the incidents of
// the tables that no earlier close-up shows.
type closeUps struct {
	rec       *record
	shown     []situation
	addresses map[linkKey]string // incident → address of the close-up that shows it
}

// newCloseUps chooses the close-ups; false if there are no holds. The first shows the counterexample, or what
// the page shows instead of one.
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

// add assigns a close-up to an incident. It adds a new close-up if there is space.
func (all *closeUps) add(e example) {
	s := all.rec.situationOfAny(e)
	n := slices.IndexFunc(all.shown, func(other situation) bool { return other.shows(s) })
	if n < 0 {
		if n = len(all.shown); n > maxCloseUps {
			return
		}
		all.shown = append(all.shown, s)
	}
	all.addresses[keyOf(e.Finding.Property, e.Incident)] = "#" + closeUpID(n)
}

// address is where the page shows an incident; "" if it does not.
func (all closeUps) address(p checker.Property, i checker.Incident) string {
	return all.addresses[keyOf(p, i)]
}

// situationOfAny frames the holds of an incident, or the time of the incident if its holds are unknown.
func (rec *record) situationOfAny(e example) situation {
	if s, ok := rec.situationOf(e); ok {
		return s
	}
	return rec.situationOfTime(e)
}

// shows says whether this close-up shows the incident of another situation as well as its own close-up would.
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

// node draws all close-ups except the first, which has its own section; nil if there are no others.
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

// Stretch is a time span of a run, in ns of the run's clock.
type Stretch struct{ From, To int64 }

// Shown lists the times of a run that its page shows close up. For an excerpt of a history, HTML needs only
// the events in these times, and both ends of the calls and claims that overlap them. Shown does not read the
// events of h.
func Shown(h *history.History, r checker.Results) []Stretch {
	rec := newRecord(&history.History{Header: h.Header}, r)
	all, _ := newCloseUps(rec, r)
	var out []Stretch
	for _, s := range all.shown {
		out = append(out, Stretch{s.from, s.to})
	}
	return out
}
