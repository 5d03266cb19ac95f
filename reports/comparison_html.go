package reports

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"path"
	"strings"
	"time"
)

//go:embed comparison.html.tmpl
var comparisonText string

// ComparisonHTML writes one self-contained page: the tables of words, in which every
// cell leads to its figures, and from there to the reports of its runs.
func ComparisonHTML(w io.Writer, c Comparison) error {
	t, err := template.New("comparison").Parse(comparisonText)
	if err != nil {
		return fmt.Errorf("comparison page: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, newComparisonPage(c)); err != nil {
		return fmt.Errorf("comparison page: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

type comparisonPage struct {
	Title, Summary, Class, Word string
	Began                       string
	TraitsNote                  string
	Traits                      []string // heads of the table of what one chooses a lock by
	Chosen                      []chosenRow
	Matrices                    []matrixView
	Legend                      string
	Thresholds                  []thresholdRow
	Columns                     []column
	Wide                        int // columns that a sentence below a row of figures spans
	Locks                       []comparedLock
}

type chosenRow struct {
	Lock   string
	Traits []string
}

type matrixView struct {
	Guard  string
	Faults []string
	Rows   []matrixRow
	Gaps   []gapView
}

type gapView struct{ Where, Why string }

type matrixRow struct {
	Lock  string
	Cells []matrixCell
}

type matrixCell struct{ Word, Class, Title, Anchor, Extra string }

type thresholdRow struct{ Cell, Name, Bound, Value, Class string }

type comparedLock struct {
	Name string
	Rows []comparedRow
}

type comparedRow struct {
	Anchor, Fault, Guard, Word, Class, Note string
	Figures                                 []string
	Runs                                    []comparedLink
}

type comparedLink struct{ Text, Href, Class string }

// Name and Summary of a column, for the page.
func (c column) Name() string    { return c.name }
func (c column) Summary() string { return c.summary }

func newComparisonPage(c Comparison) comparisonPage {
	p := comparisonPage{
		Title: c.title(), TraitsNote: traitsNote, Summary: c.summary(), Legend: legend, Columns: c.columns(), Wide: len(c.columns()) + 3,
		Began: c.Began.UTC().Format(time.RFC1123), Class: string(c.Verdict()), Word: string(c.Verdict()),
	}
	for _, trait := range c.traits() {
		p.Traits = append(p.Traits, trait.name)
	}
	for _, lock := range c.Locks {
		row := chosenRow{Lock: clean(lock)}
		for _, trait := range c.traits() {
			row.Traits = append(row.Traits, trait.text(c, lock))
		}
		p.Chosen = append(p.Chosen, row)
	}
	for _, guard := range c.Guards {
		p.matrix(c, guard)
	}
	for _, cell := range c.Cells {
		for _, r := range cell.Thresholds {
			p.Thresholds = append(p.Thresholds, thresholdRow{cell.name(), clean(r.Name), clean(r.Bound), clean(r.Value), string(plain(r.Verdict))})
		}
	}
	for _, lock := range c.Locks {
		p.figures(c, lock)
	}
	return p
}

func (p *comparisonPage) matrix(c Comparison, guard string) {
	m := matrixView{Guard: clean(guard), Faults: cleanAll(c.Faults)}
	for _, lock := range c.locksBehind(guard) {
		row := matrixRow{Lock: clean(lock)}
		for _, fault := range c.Faults {
			cell := c.cell(lock, guard, fault)
			view := matrixCell{Word: cell.word(), Class: cell.class(), Title: cell.note()}
			if len(cell.Runs) > 0 {
				view.Anchor = cell.anchor()
			}
			if cell.Pool.Lost > 0 {
				view.Extra = grouped(cell.Pool.Lost) + "/" + grouped(cell.Pool.Acknowledged)
			}
			row.Cells = append(row.Cells, view)
		}
		m.Rows = append(m.Rows, row)
	}
	for _, g := range c.gaps(guard) {
		m.Gaps = append(m.Gaps, gapView{g.where, g.why})
	}
	if len(m.Rows)+len(m.Gaps) > 0 {
		p.Matrices = append(p.Matrices, m)
	}
}

func (p *comparisonPage) figures(c Comparison, lock string) {
	l := comparedLock{Name: clean(lock)}
	for _, cell := range c.Cells {
		if cell.Lock != lock || cell.Unavailable != "" {
			continue
		}
		row := comparedRow{
			Anchor: cell.anchor(), Fault: clean(cell.Fault), Guard: clean(cell.Guard),
			Word: cell.word(), Class: cell.class(), Note: cell.note(),
		}
		for _, column := range c.columns() {
			row.Figures = append(row.Figures, column.text(cell))
		}
		for _, r := range cell.Runs {
			link := comparedLink{Text: fmt.Sprintf("seed %d", r.Seed), Class: string(plain(r.Verdict))}
			if r.Folder != "" {
				link.Href = path.Join(printable(r.Folder), "report.html")
			}
			row.Runs = append(row.Runs, link)
		}
		l.Rows = append(l.Rows, row)
	}
	if len(l.Rows) > 0 {
		p.Locks = append(p.Locks, l)
	}
}

// class is that of a cell's word on the page.
func (c ComparedCell) class() string {
	if c.Verdict == "" {
		return "none"
	}
	return string(plain(c.Verdict))
}

// anchor names the figures of a cell on the page.
func (c ComparedCell) anchor() string {
	return strings.ReplaceAll(clean(c.Lock+"/"+c.Fault+"/"+c.Guard), " ", "-")
}
