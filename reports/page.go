package reports

import (
	_ "embed"
	"fmt"
	"io"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	"maragu.dev/gomponents/html"

	"lockcheck/checker"
)

// Page is a report as a list of blocks. It is built once, and then written as Markdown, as a self-contained
// HTML page, or for a terminal. Its texts may come from outside, so the writers clean and escape them.
type Page struct {
	Title  string // "" for none
	Blocks []Block
}

// Block is a part of a page. Each kind of block can write itself to all three targets.
type Block interface {
	markdown(b *strings.Builder)
	terminal(t *terminal)
	node() g.Node
}

// Heading begins a section.
type Heading struct {
	Level  int // 2 or 3
	Text   string
	Anchor string // target of links; "" for none
}

// Text is a paragraph.
type Text string

// Note is a paragraph that explains how to read the page.
type Note string

// Conclusion is a verdict and a sentence.
type Conclusion struct {
	Verdict checker.Verdict
	Text    string
}

// List is a list of items.
type List struct {
	Summary string // on a page, the list is folded behind this text; "" for an open list
	Items   []Item
}

// Item is an entry of a list.
type Item struct {
	Verdict checker.Verdict // precedes the text; "" for none
	Text    string
	Command []string // follows the text, for pasting; nil for none
	Link    Link     // follows the text, except on a terminal; zero for none
}

// Terms explains words.
type Terms []Term

// Term is a word and its meaning.
type Term struct{ Word, Meaning string }

// Picture is an SVG picture that this package has generated.
type Picture struct {
	Title string
	File  string // Markdown links to this file, relative to the page
	SVG   string
}

// Drawing is lines of marks for a terminal.
type Drawing [][]Mark

// Mark is a piece of a line. Verdict gives its colour; "" for none.
type Mark struct {
	Verdict checker.Verdict
	Text    string
}

// WriteMarkdown writes the page as Markdown.
func (p Page) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	if p.Title != "" {
		b.WriteString("# " + Markdown(p.Title) + "\n\n")
	}
	for _, block := range p.Blocks {
		block.markdown(&b)
	}
	return writeTrimmed(w, b.String())
}

// WriteTerminal writes the page for a terminal.
func (p Page) WriteTerminal(w io.Writer, o TerminalOptions) error {
	t := newTerminal(o)
	if p.Title != "" {
		t.line(t.paint(bold, clean(p.Title)))
		t.blank()
	}
	for _, block := range p.Blocks {
		block.terminal(t)
	}
	_, err := w.Write(t.out.Bytes())
	return err
}

// WriteHTML writes one self-contained page. Its script only sorts tables, so the page is complete without it.
func (p Page) WriteHTML(w io.Writer) error {
	return WritePage(w, p.Title, SuiteStyle(), sortScript, html.Header(html.H1(CleanText(p.Title))), html.Main(g.Map(p.Blocks, Block.node)))
}

//go:embed page/suite.css
var suiteStyle string

//go:embed page/sort.js
var sortScript string

// SuiteStyle is the style sheet of pages about several runs.
func SuiteStyle() string { return suiteStyle }

// classOf is the style-sheet class of a verdict.
func classOf(v checker.Verdict) string {
	if v == "" {
		return "none"
	}
	return string(Plain(v))
}

// coloured is the word of a verdict in its colour; nothing for "".
func coloured(class string, v checker.Verdict) g.Node {
	return g.If(v != "", g.Group{Span(class+" "+classOf(v), classOf(v)), g.Text(" ")})
}

// command is a command line for pasting.
func command(args []string) g.Node {
	return g.If(args != nil, g.Group{g.Text(" "), html.Code(g.Text(CommandLine(args)))})
}

func (h Heading) node() g.Node {
	return g.El("h"+strconv.Itoa(h.Level), anchor(h.Anchor), CleanText(h.Text))
}

// anchor makes an element a target of links; "" for none.
func anchor(id string) g.Node { return g.If(id != "", html.ID(id)) }

func (s Text) node() g.Node { return html.P(CleanText(string(s))) }
func (s Note) node() g.Node { return html.P(html.Class("soft"), CleanText(string(s))) }

func (c Conclusion) node() g.Node { return html.P(coloured("badge", c.Verdict), CleanText(c.Text)) }

func (l List) node() g.Node {
	if len(l.Items) == 0 {
		return nil
	}
	return folded(l.Summary, html.Ul(html.Class("soft"), g.Map(l.Items, func(item Item) g.Node {
		link := g.If(item.Link.Href != "", g.Group{g.Text(" "), html.A(Href(item.Link.Href), CleanText(item.Link.Text))})
		return html.Li(coloured("word", item.Verdict), CleanText(item.Text), command(item.Command), link)
	})))
}

// folded folds a node behind a summary; with "" the node stays open.
func folded(summary string, node g.Node) g.Node {
	if summary == "" {
		return node
	}
	return html.Details(html.Summary(CleanText(summary)), node)
}

func (terms Terms) node() g.Node {
	return html.Dl(g.Map(terms, func(t Term) g.Node { return g.Group{html.Dt(CleanText(t.Word)), html.Dd(CleanText(t.Meaning))} }))
}

func (p Picture) node() g.Node { return Wide(p.Title, g.Raw(p.SVG)) }
func (Drawing) node() g.Node   { return nil }

func (h Heading) markdown(b *strings.Builder) {
	b.WriteString(strings.Repeat("#", h.Level) + " " + Markdown(h.Text) + "\n\n")
}

func (h Heading) terminal(t *terminal) { t.line(t.paint(bold, clean(h.Text))) }

func (s Text) markdown(b *strings.Builder) { b.WriteString(Markdown(string(s)) + "\n\n") }

func (s Text) terminal(t *terminal) {
	t.writeIndented("", "", clean(string(s)))
	t.blank()
}

func (s Note) markdown(b *strings.Builder) { Text(s).markdown(b) }
func (s Note) terminal(t *terminal)        { Text(s).terminal(t) }

func (c Conclusion) markdown(b *strings.Builder) {
	b.WriteString("**" + string(Plain(c.Verdict)) + "**: ")
	Text(c.Text).markdown(b)
}

func (c Conclusion) terminal(t *terminal) { t.verdict(Plain(c.Verdict), clean(c.Text)) }

func (l List) markdown(b *strings.Builder) {
	if len(l.Items) == 0 {
		return
	}
	defer fold(b, l.Summary)()
	for _, item := range l.Items {
		text := Markdown(item.Text)
		if item.Verdict != "" {
			text = "**" + string(Plain(item.Verdict)) + "**: " + text
		}
		if item.Command != nil {
			text += ": " + markdownCommand(item.Command)
		}
		if item.Link.Href != "" {
			text = strings.TrimSpace(text + " [" + Markdown(item.Link.Text) + "](" + markdownAddress(item.Link.Href) + ")")
		}
		b.WriteString("- " + text + "\n")
	}
	b.WriteString("\n")
}

// fold folds the following Markdown behind a summary, until the returned function is called; with "" nothing
// is folded.
func fold(b *strings.Builder, summary string) (end func()) {
	if summary == "" {
		return func() {}
	}
	b.WriteString("<details><summary>" + Markdown(summary) + "</summary>\n\n")
	return func() { b.WriteString("</details>\n\n") }
}

func (l List) terminal(t *terminal) {
	if len(l.Items) == 0 {
		return
	}
	if l.Summary != "" {
		t.line(t.paint(bold, clean(l.Summary)))
	}
	for _, item := range l.Items {
		lead := "  "
		if item.Verdict != "" {
			lead += t.paint(colorOf(Plain(item.Verdict)), string(Plain(item.Verdict))) + "  "
		}
		t.writeIndented("    ", lead, clean(item.Text))
		if item.Command != nil {
			t.line("    " + strings.Join(continued(t.pasteable(item.Command), t.width-len("      ")), "\n      "))
		}
	}
	t.blank()
}

func (terms Terms) markdown(b *strings.Builder) {
	for _, term := range terms {
		b.WriteString("- *" + Markdown(term.Word) + "*: " + Markdown(term.Meaning) + "\n")
	}
	b.WriteString("\n")
}

func (terms Terms) terminal(t *terminal) {
	for _, term := range terms {
		t.writeIndented("  ", clean(term.Word)+": ", clean(term.Meaning))
	}
	t.blank()
}

func (p Picture) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "![%s](%s)\n\n", Markdown(p.Title), p.File)
}

func (Picture) terminal(*terminal) {}

func (Drawing) markdown(*strings.Builder) {}

func (d Drawing) terminal(t *terminal) {
	for _, line := range d {
		var text string
		for _, mark := range line {
			style := ""
			if mark.Verdict != "" {
				style = colorOf(mark.Verdict)
			}
			text += t.paint(style, mark.Text)
		}
		t.line(strings.TrimRight(text, " "))
	}
	t.blank()
}

// writeTrimmed writes text without empty lines at its end.
func writeTrimmed(w io.Writer, text string) error {
	_, err := io.WriteString(w, strings.TrimRight(text, "\n")+"\n")
	return err
}
