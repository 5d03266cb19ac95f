package reports

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strconv"

	g "maragu.dev/gomponents"
	"maragu.dev/gomponents/html"
)

// symbols defines the symbols that marks refer to.
//
//go:embed page/symbols.svg
var symbols string

// attributes makes attributes of alternating names and values.
func attributes(namesAndValues ...string) g.Node {
	var all g.Group
	for pair := range slices.Chunk(namesAndValues, 2) {
		all = append(all, g.Attr(pair[0], pair[1]))
	}
	return all
}

// linked makes a node a link; with "" it returns the node unchanged.
func linked(to string, node g.Node) g.Node {
	if to == "" {
		return node
	}
	return html.A(Href(to), node)
}

// title is the tooltip of the element that contains it.
func title(text string, more ...g.Node) g.Node { return g.El("title", g.Group(more), g.Text(text)) }

func (p picture) node() g.Node {
	height, axis := strconv.Itoa(p.Height), strconv.Itoa(p.Axis)
	return html.SVG(attributes("class", "timeline", "id", p.ID, "height", height, "role", "group", "aria-labelledby", p.ID+"-title "+p.ID+"-desc",
		"data-from", fmt.Sprint(p.From), "data-seconds", fmt.Sprint(p.Seconds), "data-axis", axis, "data-top", strconv.Itoa(p.Top)),
		title(p.Title, html.ID(p.ID+"-title")), g.El("desc", html.ID(p.ID+"-desc"), g.Text(p.Desc)),
		g.Map(p.Strips, strip.node), g.Map(p.Levels, level.node),
		html.SVG(attributes("class", "plot", "x", "11%", "y", "0", "width", "88%", "height", height),
			html.SVG(attributes("class", "inner", "x", "0%", "y", "0", "width", "100%", "height", height), p.plot(height, axis))),
		g.El("line", attributes("class", "axis", "x1", "11%", "x2", "99%", "y1", axis, "y2", axis)))
}

// plot is the part of a picture along the time axis.
func (p picture) plot(height, axis string) g.Node {
	return g.Group{
		g.El("g", html.Class("ticks"), g.Map(p.Ticks, func(t tick) g.Node {
			return g.Group{g.El("line", attributes("class", "grid", "x1", t.X+"%", "x2", t.X+"%", "y1", strconv.Itoa(p.Top), "y2", axis)),
				g.El("text", attributes("x", t.X+"%", "y", axis, "dy", "19", "text-anchor", t.Anchor), g.Text(t.Text))}
		})),
		g.If(len(p.Tints) > 0, g.El("g", html.Class("tints"), g.Map(p.Tints, shape.node))),
		g.Map(p.Shapes, shape.node), g.Map(p.Arrows, arrow.node), g.Map(p.Marks, mark.node),
		g.If(len(p.Paths) > 0, html.SVG(attributes("width", "100%", "height", height, "viewBox", "0 0 1000 "+height, "preserveAspectRatio", "none"),
			g.Map(p.Paths, func(s stroke) g.Node { return g.El("path", attributes("class", s.Class, "d", s.D)) }))),
		g.Map(p.Labels, label.node),
	}
}

func (s strip) node() g.Node {
	class := "row"
	if s.Odd {
		class += " odd"
	}
	return g.Group{rect(class, "0", s.Y, "100%", s.H), g.El("text", attributes("class", "row-name", "x", "10%", "y", strconv.Itoa(s.Text)), g.Text(s.Label))}
}

func rect(class, x string, y int, width string, height int, children ...g.Node) g.Node {
	return g.El("rect", attributes("class", class, "x", x, "y", strconv.Itoa(y), "width", width, "height", strconv.Itoa(height)), g.Group(children))
}

func (l level) node() g.Node {
	y := strconv.Itoa(l.Y)
	return g.Group{g.El("line", attributes("class", "grid", "x1", "11%", "x2", "99%", "y1", y, "y2", y)),
		g.El("text", attributes("class", "level", "x", "10.4%", "y", strconv.Itoa(l.Text)), g.Text(l.Label))}
}

func (s shape) node() g.Node {
	parts := g.If(s.Parts != "", attributes("data-begin", strconv.FormatInt(s.Begin, 10), "data-parts", s.Parts, "data-each", s.Each))
	return linked(s.To, rect(s.Class, s.X+"%", s.Y, s.W+"%", s.H, parts, title(s.Title)))
}

func (a arrow) node() g.Node {
	return g.El("line", attributes("class", "destroys", "x1", a.X1+"%", "y1", strconv.Itoa(a.Y1), "x2", a.X2+"%", "y2", strconv.Itoa(a.Y2), "marker-end", "url(#arrow)"), title(a.Title))
}

func (m mark) node() g.Node { return linked(m.To, use(m.Symbol, m.X+"%", m.Y, title(m.Title))) }

func use(symbol, x, y string, children ...g.Node) g.Node {
	return g.El("use", attributes("href", "#s-"+symbol, "x", x, "y", y), g.Group(children))
}

func (l label) node() g.Node {
	return g.El("text", attributes("class", l.Class, "x", l.X+"%", "y", strconv.Itoa(l.Y)), g.If(l.Anchor == "end", attributes("text-anchor", "end", "dx", "-4")), g.Text(l.Text))
}

func (p picture) figure(caption string) g.Node {
	return html.Figure(p.node(), html.FigCaption(g.Text(caption)))
}

// explained is a close-up with its legend and notes.
func (p picture) explained() g.Node {
	return html.Figure(Wide(p.Title, p.node()), p.legend(), notes(p.Notes))
}

func note(text string) g.Node { return html.P(html.Class("note"), g.Text(text)) }

func notes(texts []string) g.Node { return g.Map(texts, note) }

// legend explains what the picture contains, and nothing else.
func (p picture) legend() g.Node {
	var items g.Group
	add := func(width, height, text string, drawn ...g.Node) {
		items = append(items, html.Li(html.SVG(attributes("width", width, "height", height, "aria-hidden", "true"), g.Group(drawn)), g.Text(text)))
	}
	bar := func(class string, y, height int, text string, below ...g.Node) {
		if p.has(class) {
			add("26", "14", text, g.Group(below), rect(class, "1", y, "24", height))
		}
	}
	symbol := func(name, width, height, x, y, text string) {
		if p.has(name) {
			add(width, height, text, use(name, x, y))
		}
	}
	tint := rect("tint", "1", 1, "24", 12, g.Attr("opacity", ".16"))
	bar("hold", 1, 12, "hold, within its validity")
	bar("beyond", 1, 12, "hold beyond its validity")
	if p.has("lease") {
		add("26", "14", "lease, with its earliest end (TTL)", rect("lease", "1", 5, "21", 3), use("ttl", "22", "5"))
	}
	bar("claim", 5, 3, "on record at the service, as far as seen")
	bar("wait ok", 6, 3, "waits for the lock")
	bar("wait fail", 6, 3, "asks, is refused")
	bar("wait info", 6, 3, "asks, outcome unknown")
	bar("overlap", 1, 12, "two hold it", tint)
	bar("violated", 1, 12, "time of the violation", tint)
	bar("held", 1, 12, "hold, as far as lines show it")
	bar("did", 1, 12, "effect")
	bar("kept", 1, 12, "invariant held")
	bar("red", 1, 12, "invariant did not hold")
	bar("unmet", 1, 12, "invariant did not hold yet")
	bar("effect", 0, 14, cmp.Or(p.Noun, "worker")+" under a fault")
	bar("effect killed", 0, 14, "worker killed")
	bar("fault", 3, 8, "fault, at most")
	symbol("read", "12", "14", "6", "7", "read")
	symbol("write", "12", "14", "6", "7", "write accepted")
	symbol("lost", "18", "16", "9", "8", "lost update")
	symbol("stale", "18", "16", "9", "9", "stale write")
	if len(p.Arrows) > 0 {
		add("26", "14", "a write, and the update that it destroyed", g.El("line", attributes("class", "destroys", "x1", "1", "y1", "7", "x2", "25", "y2", "7")))
	}
	symbol("refused", "14", "14", "7", "7", "refused by the guard")
	return html.Ul(html.Class("legend"), html.Aria("label", "Legend"), items, g.If(p.Attempt != "", html.Li(g.Text(p.Attempt))))
}

// has says whether the picture contains a shape of a class or a symbol.
func (p picture) has(class string) bool {
	return slices.ContainsFunc(p.Shapes, func(s shape) bool { return s.Class == class }) ||
		slices.ContainsFunc(p.Marks, func(m mark) bool { return m.Symbol == class })
}
