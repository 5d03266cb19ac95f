package guide

import (
	_ "embed"
	"io"
	"strings"

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
	Need           Need
	Heading, Title string
	Advice         []span
	Rows           []rowView
	Out            [][]span
	Unknown        string
}

type rowView struct {
	Name, Product string
	Facts         []factView
}

type factView struct {
	Name  string
	Spans []span
}

// HTML writes the guide as one self-contained page without script, on which one chooses a need and takes
// away the servers that are not there.
func (e Evidence) HTML(w io.Writer) error {
	products, _ := Products()
	view := struct {
		Rests, Rule string
		External    []span
		Needs       []needView
		Products    []string
		Families    []Family
	}{Rests: e.rests() + " " + oneRunProves, Rule: Rule, External: spans(External), Products: products, Families: Families()}
	for _, d := range e.All() {
		view.Needs = append(view.Needs, d.view())
	}
	return reports.ComparisonPage(w, "guide", pageText, view)
}

func (d Decision) view() needView {
	n := needView{Need: d.Need, Heading: d.Need.Title(), Title: d.Title(), Advice: spans(d.Advice()), Unknown: d.Unknown()}
	for _, c := range d.Choices {
		row := rowView{Name: c.name() + c.label(), Product: c.product()}
		for _, f := range c.facts() {
			row.Facts = append(row.Facts, factView{f.Name, spans(f.Text)})
		}
		n.Rows = append(n.Rows, row)
	}
	for _, c := range d.Out {
		n.Out = append(n.Out, spans(c.Lock+", because "+c.because()))
	}
	return n
}
