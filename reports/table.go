package reports

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	g "maragu.dev/gomponents"
	"maragu.dev/gomponents/components"
	"maragu.dev/gomponents/html"

	"lockcheck/checker"
)

// Table is rows of cells with named columns. The first cell names its row.
type Table struct {
	Caption string // above the table on a page; "" for none
	Summary string // on a page, the table is folded behind this text; "" for an open table
	Columns []Column
	Rows    []Row
	// Heat: all cells except the first are coloured by their verdicts.
	Heat bool
}

// Column is a column of a table.
type Column struct {
	Name    string
	Summary string // explains the name; "" if no explanation is needed
}

// Row is a row of a table.
type Row struct {
	Anchor  string // target of links; "" for none
	Cells   []Cell
	Note    string   // below the row on a page; "" for none
	Command []string // follows the note; nil for none
}

// Cell is a cell of a table. Its zero value is empty.
type Cell struct {
	Text  string
	More  string // details in brackets or below the text; omitted on a terminal
	Short string // replaces the text on a terminal; "" for the text
	Code  bool   // the text is a command
	// Verdict colours the cell; "" for none.
	Verdict checker.Verdict
	Link    string // address that the text links to; "" for none
	Links   []Link // follow the text
	Title   string // tooltip of the text
	// SortKey is the number by which a script sorts the cell; "" to sort by text.
	SortKey string
	// Bar is drawn above the text; zero for none.
	Bar Bar
}

// Link leads to an address. Without an address it is plain text.
type Link struct {
	Text, Href string
	Verdict    checker.Verdict // colours the link; "" for none
}

// Cells makes cells from texts.
func Cells(texts ...string) []Cell {
	var all []Cell
	for _, text := range texts {
		all = append(all, Cell{Text: text})
	}
	return all
}

// Columns makes columns from names.
func Columns(names ...string) []Column {
	var all []Column
	for _, name := range names {
		all = append(all, Column{Name: name})
	}
	return all
}

// Terms explains the columns that have an explanation.
func (table Table) Terms() Terms {
	var all Terms
	for _, c := range table.Columns {
		if c.Summary != "" {
			all = append(all, Term{c.Name, c.Summary})
		}
	}
	return all
}

// node makes rows that a script can sort, unless rows have a note or a command below them.
func (table Table) node() g.Node {
	if len(table.Rows) == 0 {
		return nil
	}
	notes := slices.ContainsFunc(table.Rows, func(r Row) bool { return r.Note != "" || r.Command != nil })
	bars := slices.ContainsFunc(table.Rows, func(r Row) bool {
		return slices.ContainsFunc(r.Cells, func(c Cell) bool { return c.Bar.Width != "" })
	})
	return folded(table.Summary, html.Div(html.Class("wide"), html.Table(components.Classes{"matrix": table.Heat, "chart": bars, "notes": notes, "sortable": !notes},
		g.If(table.Caption != "", html.Caption(CleanText(table.Caption))),
		html.THead(html.Tr(g.Map(table.Columns, func(c Column) g.Node { return ColumnHead(c.Name, titled(c.Summary)) }))),
		html.TBody(g.Map(table.Rows, func(r Row) g.Node { return r.node(notes, len(table.Columns)-1) })))))
}

// titled gives an element a tooltip; "" for none.
func titled(text string) g.Node { return g.If(text != "", html.Title(clean(text))) }

func (r Row) node(noted bool, columns int) g.Node {
	cells := g.Group{RowHead(r.Cells[0].node())}
	for _, c := range r.Cells[1:] {
		cells = append(cells, html.Td(g.If(c.SortKey != "", html.Data("value", c.SortKey)), c.node()))
	}
	if !noted {
		return html.Tr(anchor(r.Anchor), cells)
	}
	return g.Group{html.Tr(html.Class("row"), anchor(r.Anchor), cells),
		html.Tr(html.Class("note"), html.Td(), html.Td(html.ColSpan(strconv.Itoa(columns)), CleanText(r.Note), command(r.Command)))}
}

func (c Cell) node() g.Node {
	text := g.Group{CleanText(c.Text), g.If(c.More != "", html.Small(CleanText(c.More)))}
	shown := g.Group{c.Bar.node()}
	switch {
	case c.Link != "":
		shown = append(shown, html.A(html.Class(linkClass("word ", c.Verdict)), Href(c.Link), titled(c.Title), text))
	case c.Code:
		shown = append(shown, html.Code(CleanText(c.Text)))
	case c.Verdict != "" || c.Title != "":
		shown = append(shown, html.Span(html.Class("word "+classOf(c.Verdict)), titled(c.Title), text))
	default:
		shown = append(shown, text)
	}
	for _, link := range c.Links {
		shown = append(shown, g.Text(" "), link.node())
	}
	return shown
}

func (l Link) node() g.Node {
	if l.Href == "" {
		return CleanText(l.Text)
	}
	return html.A(html.Class(linkClass("", l.Verdict)), Href(l.Href), CleanText(l.Text))
}

func linkClass(lead string, v checker.Verdict) string {
	if v == "" {
		return "plain"
	}
	return lead + classOf(v)
}

func (table Table) markdown(b *strings.Builder) {
	var head []string
	for _, c := range table.Columns {
		head = append(head, c.Name)
	}
	defer fold(b, table.Summary)()
	markdownRow(b, head)
	b.WriteString("|" + strings.Repeat(" --- |", len(head)) + "\n")
	for _, row := range table.Rows {
		var cells []string
		for _, c := range row.Cells {
			cells = append(cells, c.markdown())
		}
		markdownLine(b, cells)
	}
	b.WriteString("\n")
}

func (c Cell) markdown() string {
	text := Markdown(c.Text)
	if c.Code {
		text = markdownCode(c.Text)
	}
	if c.More != "" && text != "" {
		text += " (" + Markdown(c.More) + ")"
	}
	parts := slices.DeleteFunc([]string{text}, func(s string) bool { return s == "" })
	for _, link := range c.Links {
		if link.Href == "" || strings.HasPrefix(link.Href, "#") {
			parts = append(parts, Markdown(link.Text))
		} else {
			parts = append(parts, "["+Markdown(link.Text)+"]("+markdownAddress(link.Href)+")")
		}
	}
	return strings.Join(parts, "; ")
}

// markdownAddress escapes what would end an address. Folder names come from outside.
func markdownAddress(address string) string {
	return strings.NewReplacer("(", "%28", ")", "%29", "|", "%7C", "<", "%3C", ">", "%3E").Replace(SafeAddress(address))
}

// leastName is the least width of the first column in a table that is too wide for a terminal.
const leastName = 12

// terminal writes the table. The words of a column's name are below each other. Columns without space follow
// in a table of their own.
func (table Table) terminal(t *terminal) {
	if len(table.Rows) == 0 {
		return
	}
	names := []string{}
	for _, row := range table.Rows {
		names = append(names, clean(row.Cells[0].onTerminal()))
	}
	total := 0
	for i := range table.Columns[1:] {
		total += 1 + table.width(i+1)
	}
	first := min(widest(names), max(leastName, t.width-total))
	for from := 1; from < len(table.Columns); {
		to, width := from, first
		for to < len(table.Columns) && (to == from || width+1+table.width(to) <= t.width) {
			width += 1 + table.width(to)
			to++
		}
		table.part(t, names, first, from, to)
		from = to
	}
	t.blank()
}

// part writes the columns from..to-1.
func (table Table) part(t *terminal, names []string, first, from, to int) {
	heads := 0
	for _, c := range table.Columns[from:to] {
		heads = max(heads, len(headWords(c.Name)))
	}
	for n := range heads + len(table.Rows) {
		line := pad("", first)
		if n >= heads {
			line = pad(shorten(names[n-heads], first), first)
		}
		for i := from; i < to; i++ {
			words, style := headWords(table.Columns[i].Name), ""
			switch {
			case n >= heads:
				cell := table.Rows[n-heads].Cells[i]
				words = []string{clean(cell.onTerminal())}
				if table.Heat || cell.Verdict != "" {
					style = colorOf(cell.Verdict)
				}
			default:
				words = words[min(n, len(words)):]
			}
			line += " " + t.paint(style, pad(strings.Join(words[:min(1, len(words))], ""), table.width(i)))
		}
		t.line(strings.TrimRight(line, " "))
	}
}

func (table Table) width(i int) int {
	words := headWords(table.Columns[i].Name)
	for _, row := range table.Rows {
		words = append(words, clean(row.Cells[i].onTerminal()))
	}
	return widest(words)
}

// headWords are the words of a column's name. A fault's name is split into kind and target.
func headWords(name string) []string {
	return strings.FieldsFunc(clean(name), func(r rune) bool { return r == ' ' || r == ':' })
}

func (c Cell) onTerminal() string {
	if c.Short != "" {
		return c.Short
	}
	return c.Text
}

func widest(texts []string) int {
	n := 0
	for _, text := range texts {
		n = max(n, utf8.RuneCountInString(text))
	}
	return n
}
