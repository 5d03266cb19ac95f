package reports

import (
	"bufio"
	"io"
	"strings"

	g "maragu.dev/gomponents"
	"maragu.dev/gomponents/html"
)

// Pages show names, reasons and addresses from histories, which anybody may have written. Three rules keep
// them from becoming markup or script. Nodes escape all texts and attributes. Addresses go through Href,
// because a node does not know which attributes a browser follows. g.Raw is only for the style sheets,
// scripts and pictures of this repository.

// Href is the address of a link.
func Href(address string) g.Node { return html.Href(SafeAddress(address)) }

// SafeAddress returns an address that a browser loads a page from, or "#" for an address whose scheme could
// run script. Like a browser, it takes everything before a colon as the scheme, unless that cannot be a
// scheme.
func SafeAddress(address string) string {
	address = strings.ReplaceAll(strings.TrimSpace(Printable(address)), " ", "%20")
	scheme, _, found := strings.Cut(address, ":")
	switch {
	case !found, strings.ContainsAny(scheme, "/?#"), strings.EqualFold(scheme, "http"), strings.EqualFold(scheme, "https"):
		return address
	}
	return "#"
}

// CleanText is text from outside, cleaned for one line.
func CleanText(s string) g.Node { return g.Text(clean(s)) }

// Span is text with a class.
func Span(class, s string) g.Node { return html.Span(html.Class(class), CleanText(s)) }

// Soft is a remark.
func Soft(s string) g.Node { return Span("soft", s) }

// Section is a part of a page with a title.
func Section(title string, children ...g.Node) g.Node {
	return html.Section(html.H2(CleanText(title)), g.Group(children))
}

// Wide makes content that may be wider than the page scrollable.
func Wide(label string, children ...g.Node) g.Node {
	return html.Div(html.Class("wide"), html.Role("region"), html.TabIndex("0"), html.Aria("label", clean(label)), g.Group(children))
}

// ColumnHead is the header cell of a column.
func ColumnHead(name string, attributes ...g.Node) g.Node {
	return html.Th(html.Scope("col"), g.Group(attributes), CleanText(name))
}

// Heads is the header row of a table.
func Heads(names ...string) g.Node {
	return html.THead(html.Tr(g.Map(names, func(name string) g.Node { return ColumnHead(name) })))
}

// RowHead is the header cell of a row.
func RowHead(children ...g.Node) g.Node { return html.Th(html.Scope("row"), g.Group(children)) }

// TextCell is a table cell with a class; "" for none.
func TextCell(class, s string) g.Node {
	return html.Td(g.If(class != "", html.Class(class)), CleanText(s))
}

// FactItem is an entry of a definition list.
func FactItem(name, value string) g.Node {
	return html.Div(html.Dt(CleanText(name)), html.Dd(CleanText(value)))
}

func (f fact) item() g.Node { return FactItem(f.Name, f.Value) }

// Shell is a page around its body. head has its style.
func Shell(title, policy string, head g.Node, body ...g.Node) g.Node {
	return html.Doctype(html.HTML(html.Lang("en"),
		html.Head(
			html.Meta(html.Charset("utf-8")),
			html.Meta(html.Name("viewport"), html.Content("width=device-width, initial-scale=1")),
			html.Meta(html.Name("color-scheme"), html.Content("light dark")),
			g.If(policy != "", html.Meta(g.Attr("http-equiv", "Content-Security-Policy"), html.Content(policy))),
			html.TitleEl(CleanText(title)), head,
		),
		html.Body(body...),
	))
}

// WritePage writes a page that loads nothing. The page may run the given script, if any, and no other.
func WritePage(w io.Writer, title, style, script string, body ...g.Node) error {
	policy := "default-src 'none'; style-src 'unsafe-inline'"
	if script != "" {
		policy += "; script-src 'unsafe-inline'"
		body = append(body, html.Script(g.Raw(script)))
	}
	b := bufio.NewWriter(w)
	if err := Shell(title, policy, html.StyleEl(g.Raw(style)), body...).Render(b); err != nil {
		return err
	}
	return b.Flush()
}
