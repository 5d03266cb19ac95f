package guide

import (
	_ "embed"
	"io"
	"slices"
	"strings"

	"lockcheck/history"
	"lockcheck/reports"
)

//go:embed guide.html.tmpl
var pageText string

// span is a part of a sentence: a command, or words.
type span struct {
	Text string
	Code bool
}

// spans tells commands, which stand between backticks, from words.
func spans(text string) []span {
	var all []span
	for i, part := range strings.Split(text, "`") {
		if part != "" {
			all = append(all, span{part, i%2 == 1})
		}
	}
	return all
}

type needView struct {
	Need      Need
	Title     string
	Products  []string // of its rows: without them nothing is left
	Rows, Out []rowView
}

// rowView is a lock, by the product that its reader must have.
type rowView struct {
	Name, Product string
	Because       []span // of a lock that must not be used
	Facts         []factView
}

type factView struct {
	Name  string
	Spans []span
}

// HTML writes the guide as one self-contained page without script, on which one chooses a need and takes
// away the servers that are not there. Each row has its own advice, because only the browser knows which
// rows are left: it numbers those, and the style names the first one the answer.
func (e Evidence) HTML(w io.Writer) error {
	products, _ := Products()
	view := struct {
		Rests, Rule string
		Nothing     string
		External    []span
		Needs       []needView
		Products    []string
		Families    []Family
	}{Rests: e.rests() + " " + oneRunProves, Rule: Rule, Nothing: nothingFits + " " + alternative, External: spans(External), Products: products, Families: Families()}
	for _, d := range e.All() {
		view.Needs = append(view.Needs, d.view())
	}
	return reports.WriteTemplate(w, pageText, view)
}

func (d Decision) view() needView {
	n := needView{Need: d.Need, Title: d.Title()}
	for _, c := range d.Choices {
		row := rowView{Name: c.name() + c.label(), Product: c.product()}
		all := c.facts()
		if c.Guard != history.GuardNone {
			all = slices.Insert(all, 0, fact{"guard", d.guardText(c)})
		}
		if len(c.Untried) > 0 {
			all = append(all, fact{"not tried", "without a guard: " + strings.Join(c.Untried, ", ")})
		}
		for _, f := range all {
			row.Facts = append(row.Facts, factView{f.Name, spans(f.Text)})
		}
		n.Rows = append(n.Rows, row)
		if !slices.Contains(n.Products, row.Product) {
			n.Products = append(n.Products, row.Product)
		}
	}
	for _, c := range d.Out {
		n.Out = append(n.Out, rowView{Name: c.Lock, Product: c.product(), Because: spans(c.because())})
	}
	return n
}
