package reports

import (
	"slices"
	"strconv"

	"lockcheck/checker"
)

// symbols marks what happened to the data in a situation. It begins with what went wrong, so that its labels
// find space.
func (c *canvas) symbols(s situation) {
	type named struct {
		access
		symbol, text string
		order        int
	}
	var list []named
	for _, a := range c.rec.accesses {
		if !c.drawn(a.key) || !c.shows(a.time, a.time) {
			continue
		}
		symbol, text, order := c.rec.symbolOf(a)
		if order < 3 || s.cast[a.grant] {
			list = append(list, named{a, symbol, text, order})
		}
	}
	slices.SortStableFunc(list, func(a, b named) int { return a.order - b.order })
	for _, a := range list {
		r, ok := c.rows[a.worker]
		if !ok {
			continue
		}
		c.symbol(a.symbol, a.access, at(a.time, c.rec.begin)+": "+a.text)
		if a.order < 3 {
			c.note(r.below, "l-"+a.symbol, a.time, a.text)
		}
	}
	c.leftOut(len(list)-maxMarks, "more access", " left out.")
	// What is drawn last lies on top.
	slices.Reverse(c.Marks)
}

// symbolOf is the symbol of an access, its meaning, and its priority, the lowest first.
func (rec *record) symbolOf(a access) (symbol, text string, order int) {
	element := strconv.FormatInt(a.element, 10)
	switch {
	case a.refused && a.write:
		return "refused", "write refused", 2
	case a.refused:
		return "refused", "read refused", 2
	case a.write && rec.lost[a.element]:
		return "lost", "element " + element + " lost", 0
	case a.write && rec.stale[a.element]:
		return "stale", "element " + element + " stale", 1
	case a.write:
		return "write", "write" + elementOf(a), 3
	}
	return "read", "read", 4
}

// linkOf is where the page says more about a symbol; "" for nowhere.
func (rec *record) linkOf(symbol string, a access) string {
	switch symbol {
	case "lost":
		return rec.links.ofElement(checker.NoLostUpdate, a.element)
	case "stale":
		return rec.links.ofElement(checker.NoStaleWrite, a.element)
	}
	return ""
}

// badSymbols marks what went wrong with the data, and what the guard refused.
func (c *canvas) badSymbols() {
	left := 0
	for _, a := range c.rec.accesses {
		symbol, text, order := c.rec.symbolOf(a)
		if order > 2 {
			continue
		}
		if len(c.Marks) >= maxMarks {
			left++
			continue
		}
		c.symbol(symbol, a, at(a.time, c.rec.begin)+": "+clean(a.worker)+", "+text)
	}
	c.leftOut(left, "more mark", " left out.")
}
