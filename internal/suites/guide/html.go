package guide

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	"maragu.dev/gomponents/html"

	"lockcheck/history"
	"lockcheck/reports"
)

//go:embed guide.css
var style string

// HTML writes the guide as one self-contained page without script. A reader chooses a need and removes
// missing products. Only the browser knows which rows are left, so each row has its own advice. The browser
// numbers the rows, and the style marks the first one as the answer.
func (e Evidence) HTML(w io.Writer) error {
	products, _ := Products()
	needs := e.All()
	return reports.WritePage(w, "Which lock to choose", reports.SuiteStyle()+style+choices(needs, products), "",
		html.Header(html.H1(g.Text("Which lock to choose")), html.P(g.Text(e.rests()+" "+oneRunProves))),
		html.Main(
			html.FieldSet(html.Legend(g.Text("What do you need?")), g.Map(needs, func(d Decision) g.Node {
				return html.Label(html.Input(html.Type("radio"), html.Name("need"), html.ID("need-"+string(d.Need)), g.If(d.Need == needs[0].Need, html.Checked())), g.Text(" "+d.Need.Title()))
			})),
			html.FieldSet(html.Legend(g.Text("Take away what you do not have")), g.Map(products, func(product string) g.Node {
				return html.Label(html.Input(html.Type("checkbox"), html.ID("without-"+product)), g.Text(" no "+product))
			})),
			g.Map(needs, Decision.node),
			html.P(withCommands(External)), soft(Rule),
			html.H2(g.Text("Families")), soft("Mechanism: it follows from how the locks work, and needs no run."),
			html.Div(html.Class("wide"), html.Table(reports.Heads("family", "locks", "ends with", "a restart keeps", "breaks when", "safe behind"), html.TBody(g.Map(Families(), Family.row)))),
			soft("For the runs behind a cell: `lockcheck guide --why etcd/pause:leader`. With your figures: `lockcheck guide --need data --have postgres,redis --work 10m --failover 30s`.")))
}

// choices is style that shows the section of the chosen need and hides the locks of removed products. It says
// so if no lock is left.
func choices(needs []Decision, products []string) string {
	var b strings.Builder
	for _, d := range needs {
		fmt.Fprintf(&b, "body:has(#need-%[1]s:checked) .need-%[1]s { display: block; }\nbody", d.Need)
		for _, product := range d.products() {
			fmt.Fprintf(&b, ":has(#without-%s:checked)", product)
		}
		fmt.Fprintf(&b, " .need-%s .nothing { display: block; }\n", d.Need)
	}
	for _, product := range products {
		fmt.Fprintf(&b, "body:has(#without-%[1]s:checked) .needs-%[1]s { display: none; }\n", product)
	}
	return b.String()
}

// products lists the products of the decision's choices.
func (d Decision) products() (all []string) {
	for _, c := range d.Choices {
		if product := c.product(); !slices.Contains(all, product) {
			all = append(all, product)
		}
	}
	return all
}

// withCommands formats commands as code.
func withCommands(text string) g.Node {
	return g.Map(spans(text), func(s span) g.Node {
		if s.Code {
			return html.Code(g.Text(s.Text))
		}
		return g.Text(s.Text)
	})
}

// span is a part of a sentence: a command or plain words.
type span struct {
	Text string
	Code bool
}

// spans separates commands, which are in backticks, from words.
func spans(text string) []span {
	var all []span
	for i, part := range strings.Split(text, "`") {
		if part != "" {
			all = append(all, span{part, i%2 == 1})
		}
	}
	return all
}

func soft(text string) g.Node { return html.P(html.Class("soft"), withCommands(text)) }

func (d Decision) node() g.Node {
	return html.Section(html.Class("need need-"+string(d.Need)), html.H2(g.Text(d.Title())),
		html.P(html.Class("nothing"), g.Text(nothingFits+" "+alternative)),
		html.Ol(g.Map(d.Choices, d.choice)), html.Ul(g.Map(d.Out, Choice.against)))
}

// choice is a row that makes sense whatever rows come before it.
func (d Decision) choice(c Choice) g.Node {
	all := c.facts()
	if c.Guard != history.GuardNone {
		all = slices.Insert(all, 0, fact{"guard", d.guardText(c)})
	}
	if len(c.Untried) > 0 {
		all = append(all, fact{"not tried", "without a guard: " + strings.Join(c.Untried, ", ")})
	}
	return html.Li(html.Class("needs-"+c.product()), html.H3(g.Text(c.name()+c.label())), html.Dl(g.Map(all, func(f fact) g.Node {
		return g.Group{html.Dt(g.Text(f.Name)), html.Dd(withCommands(f.Text))}
	})))
}

// against says why a lock must not be used.
func (c Choice) against() g.Node {
	return html.Li(html.Class("needs-"+c.product()), html.Strong(g.Text("Do not use")), g.Text(" "+c.Lock+", because "), withCommands(c.because()), g.Text("."))
}

func (f Family) row() g.Node {
	return html.Tr(reports.RowHead(g.Text(f.Name)), g.Map([]string{strings.Join(f.Locks, ", "), f.Ends, f.Survives, f.Breaks, f.Behind}, func(text string) g.Node { return reports.TextCell("", text) }))
}
