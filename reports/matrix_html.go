package reports

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
)

//go:embed matrix.html.tmpl
var matrixText string

// MatrixHTML writes one self-contained page: failing thresholds, a heat map of which every
// cell leads to its figures, and from there to the reports of its runs, and charts. It is
// complete without script, which sorts tables.
func MatrixHTML(w io.Writer, m Matrix) error {
	t, err := comparisonTemplate("matrix", matrixText)
	if err != nil {
		return fmt.Errorf("comparison page: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, newMatrixPage(m)); err != nil {
		return fmt.Errorf("comparison page: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

type matrixPage struct {
	Title, Summary, Class, Word string
	Began                       string
	SeenNote, KnownNote         string
	AboutHead                   []string
	About                       [][]string
	Bars                        []sideBySideBars
	Known                       []knownRow
	Guards                      []guardView
	Legend                      string
	Thresholds                  []thresholdRow
	Columns                     []column
	Wide                        int // columns that a sentence below a row of figures spans
	Locks                       []matrixLock
}

type knownRow struct{ Cell, Anchor, Seen, Text, Line string }

type guardView struct {
	Guard  string
	Faults []string
	Rows   []guardRow
	Gaps   []gapView
}

type gapView struct{ Where, Why string }

type guardRow struct {
	Lock  string
	Cells []cellView
}

type cellView struct {
	Word, Class, Title, Anchor, Extra string
	Known                             string // worse than what was seen
	Rank                              int    // to sort by, the worst first
}

type thresholdRow struct{ Cell, Name, Bound, Value, Class string }

type matrixLock struct {
	Name string
	Rows []figuresRow
}

type figuresRow struct {
	Anchor, Fault, Guard, Word, Class, Note string
	Again                                   string // command of a run
	Figures                                 []string
	Runs                                    []runLink
}

type runLink struct{ Text, Href, Class string }

// Name and Summary of a column, for the page.
func (c column) Name() string    { return c.name }
func (c column) Summary() string { return c.summary }

func newMatrixPage(m Matrix) matrixPage {
	p := matrixPage{
		Title: m.title(), Summary: m.summary(), Legend: legend, SeenNote: seenNote, KnownNote: knownNote,
		Columns: m.columns(), Wide: len(m.columns()) + 3,
		Began: m.Began.UTC().Format(time.RFC1123), Class: string(m.Verdict), Word: string(m.Verdict),
		AboutHead: aboutHead(), Bars: m.bars(),
	}
	for _, lock := range m.Locks {
		p.About = append(p.About, m.about(lock))
	}
	for _, c := range m.known() {
		word, more := c.seen()
		p.Known = append(p.Known, knownRow{c.name(), c.anchor(), word + ", " + more, clean(c.Known.Text), clean(c.Known.Line)})
	}
	for _, guard := range m.Guards {
		p.guard(m, guard)
	}
	for _, t := range m.thresholds() {
		p.Thresholds = append(p.Thresholds, thresholdRow{t.cell.name(), clean(t.result.Name), clean(t.result.Bound), clean(t.result.Value), string(plain(t.result.Verdict))})
	}
	for _, lock := range m.Locks {
		p.figures(m, lock)
	}
	return p
}

func (p *matrixPage) guard(m Matrix, guard string) {
	view := guardView{Guard: clean(guard), Faults: cleanAll(m.Faults)}
	for _, lock := range m.locksBehind(guard) {
		row := guardRow{Lock: clean(lock)}
		for _, fault := range m.Faults {
			cell := m.cell(lock, guard, fault)
			word := cellView{Class: cell.class(), Title: cell.note(), Rank: cell.rank()}
			word.Word, word.Extra = cell.seen()
			if len(cell.Runs) > 0 {
				word.Anchor = cell.anchor()
			}
			if cell.Known != nil {
				word.Known = clean(cell.Known.Text)
			}
			row.Cells = append(row.Cells, word)
		}
		view.Rows = append(view.Rows, row)
	}
	for _, g := range m.gaps(guard) {
		view.Gaps = append(view.Gaps, gapView{g.where, g.why})
	}
	if len(view.Rows)+len(view.Gaps) > 0 {
		p.Guards = append(p.Guards, view)
	}
}

func (p *matrixPage) figures(m Matrix, lock string) {
	l := matrixLock{Name: clean(lock)}
	for _, cell := range m.Cells {
		if cell.Lock != lock || cell.Unavailable != "" {
			continue
		}
		row := figuresRow{
			Anchor: cell.anchor(), Fault: clean(cell.Fault), Guard: clean(cell.Guard),
			Word: cell.word(), Class: cell.class(), Note: strings.Join(append([]string{cell.note()}, cell.remarks()...), "; "), Again: CommandLine(cell.again()),
		}
		for _, column := range m.columns() {
			row.Figures = append(row.Figures, column.text(cell))
		}
		for _, r := range cell.Runs {
			link := runLink{Text: fmt.Sprintf("seed %d", r.Seed), Class: string(plain(r.Verdict))}
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

// rank orders cells, the worst first.
func (c Cell) rank() int {
	if c.Known != nil {
		return 1
	}
	return 2 * slices.Index([]string{"violation", "broken", "undecided", "valid", "none"}, c.class())
}

// class is that of a cell's word on the page.
func (c Cell) class() string {
	if c.Verdict == "" {
		return "none"
	}
	return string(plain(c.Verdict))
}

// anchor names the figures of a cell on the page.
func (c Cell) anchor() string {
	return strings.ReplaceAll(clean(c.Lock+"/"+c.Fault+"/"+c.Guard), " ", "-")
}
