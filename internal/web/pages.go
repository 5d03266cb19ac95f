package web

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"slices"

	g "maragu.dev/gomponents"
	"maragu.dev/gomponents/html"

	"lockcheck/reports"
)

//go:embed style.css
var ownStyle string

// handler answers requests for the pages of a store.
type handler struct{ store *Store }

func style(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	_, _ = io.WriteString(w, reports.Style()+ownStyle)
}

// write sends a page. An error means that the browser is gone.
func write(w http.ResponseWriter, status int, title string, body ...g.Node) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = reports.Shell(title+" · lockcheck", "", html.Link(html.Rel("stylesheet"), html.Href("/style.css")), body...).Render(w)
}

// tell sends a page with only a message.
func tell(w http.ResponseWriter, status int, message string) {
	write(w, status, "Nothing to show", html.Header(trail(), html.H1(reports.CleanText(message))))
}

func missing(w http.ResponseWriter) {
	tell(w, http.StatusNotFound, "There is no such file in a run of this store.")
}

func trail() g.Node { return html.P(html.Class("trail"), link("/", "All runs")) }

// link is a link to an address; nil for "".
func link(to, text string, attributes ...g.Node) g.Node {
	if to == "" {
		return nil
	}
	return html.A(reports.Href(to), g.Group(attributes), reports.CleanText(text))
}

// links joins links.
func links(all ...g.Node) g.Node {
	return g.Map(all, func(one g.Node) g.Node { return g.If(one != nil, g.Group{one, g.Text(" ")}) })
}

// badge shows a verdict; "" means that there are no results.
func badge(verdict string) g.Node { return reports.Span("badge "+verdict, cmp.Or(verdict, noResults)) }

// heads are the column names of a table, those of numbers aligned right.
func heads(names ...string) g.Node {
	numbers := []string{"Lost updates", "Wait p99", "Size"}
	return g.Map(names, func(name string) g.Node {
		return reports.ColumnHead(name, g.If(slices.Contains(numbers, name), html.Class("number")))
	})
}

func table(class string, heads, rows g.Node) g.Node {
	return html.Table(g.If(class != "", html.Class(class)), html.THead(html.Tr(heads)), html.TBody(rows))
}

// cell is a table cell, with a dash for an empty text.
func cell(class, s string) g.Node { return reports.TextCell(class, cmp.Or(s, "–")) }

// sizeOf formats a number of bytes.
func sizeOf(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	amount, unit := float64(n), ' '
	for _, next := range "kMGT" {
		if amount < 999.5 {
			break
		}
		amount, unit = amount/1000, next
	}
	return fmt.Sprintf("%.3g %cB", amount, unit)
}
