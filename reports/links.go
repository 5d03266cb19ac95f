package reports

import (
	"fmt"
	"strconv"
	"strings"

	"lockcheck/checker"
)

// links maps what pictures show to rows of the tables of incidents.
type links map[linkKey]string

// linkKey identifies an incident of a property: by the lost element, or by the grants.
type linkKey struct {
	property checker.Property
	element  int64
	grants   string
}

func keyOf(p checker.Property, i checker.Incident) linkKey {
	if i.Element != 0 {
		return linkKey{property: p, element: i.Element}
	}
	return linkKey{property: p, grants: strings.Join(i.Grants, " ")}
}

// shownIncidents lists the incidents of a property that the tables show, in their order.
func shownIncidents(r checker.Results, f checker.Finding) []checker.Incident {
	all := mostInformativeFirst(r, f)
	return all[:min(len(all), maxPerProperty)]
}

// rowID is the ID of a row in the table of a finding's incidents.
func rowID(finding, row int) string { return fmt.Sprintf("incident-%d-%d", finding+1, row+1) }

func groupID(finding int) string { return "incidents-" + strconv.Itoa(finding+1) }

func newLinks(r checker.Results) links {
	to := make(links)
	for n, f := range byCost(r.Findings) {
		for row, i := range shownIncidents(r, f) {
			if key := keyOf(f.Property, i); to[key] == "" {
				to[key] = "#" + rowID(n, row)
			}
		}
	}
	return to
}

// rowOf is the address of the row of an incident; "" if no table has it.
func (l links) rowOf(p checker.Property, i checker.Incident) string { return l[keyOf(p, i)] }

// ofElement is the address of the row of an update.
func (l links) ofElement(p checker.Property, element int64) string {
	return l[linkKey{property: p, element: element}]
}

// arrow leads from a write to an update that the write destroyed.
type arrow struct {
	X1, X2, Title string
	Y1, Y2        int
}

// maxArrows bounds the arrows of a picture.
const maxArrows = 20

// arrows connects each write with the updates that it destroyed, if both are in the picture.
func (c *canvas) arrows() {
	for _, a := range c.rec.accesses {
		by, known := c.rows[a.worker]
		if !a.write || !known || !c.drawn(a.key) || !c.shows(a.time, a.time) {
			continue
		}
		for _, lost := range c.rec.overwritten[resourceWrite{a.grant, a.time}] {
			of, known := c.rows[lost.Workers[0]]
			if !known || !c.shows(lost.From, lost.From) || len(c.Arrows) >= maxArrows {
				continue
			}
			c.Arrows = append(c.Arrows, arrow{
				X1: percent(c.pos(a.time)), Y1: by.bar + by.thick/2, X2: percent(c.pos(lost.From)), Y2: of.bar + of.thick/2,
				Title: "the write of " + clean(a.worker) + " at " + at(a.time, c.rec.begin) + " destroyed update " + strconv.FormatInt(lost.Element, 10) + " of " + clean(lost.Workers[0]),
			})
		}
	}
}
