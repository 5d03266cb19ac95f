package reports

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"

	"lockcheck/checker"
	"lockcheck/history"
)

//go:embed remedies.html.tmpl
var remediesText string

// RemediesTriedSchema is the version of the JSON form of RemediesTried.
const RemediesTriedSchema = 1

// RemediesTried is one test as it was asked for, and again with each remedy.
type RemediesTried struct {
	Schema   int         `json:"schema"`
	Runs     []RemedyRun `json:"runs"` // the first one as it was asked for
	NotTried []NotTried  `json:"not_tried,omitempty"`
}

// RemedyRun is one of these runs.
type RemedyRun struct {
	Remedy string `json:"remedy,omitempty"` // "" for the one that was asked for
	Words  string `json:"words"`
	Flag   string `json:"flag,omitempty"`
	Folder string `json:"run"` // relative to that of all runs

	Verdict      checker.Verdict `json:"verdict"`
	Lost         int64           `json:"lost"`
	Acknowledged int64           `json:"acknowledged"`
	checker.LossInterval
	Incidents int64 `json:"incidents"`
	// Throughput is updates, or holds, a second; Availability the share of the time of faults
	// without an outage. Nil where there are no data.
	Throughput   *float64 `json:"throughput,omitempty"`
	Availability *float64 `json:"availability,omitempty"`

	document Document
}

// NotTried is a remedy that was not tried, and why.
type NotTried struct {
	Remedy string `json:"remedy"`
	Words  string `json:"words"`
	Flag   string `json:"flag"`
	Why    string `json:"why"`
}

// Add adds a run, with what was found in it.
func (m *RemediesTried) Add(run RemedyRun, folder string, h history.Header, r checker.Results) {
	r.Holds = nil // of many runs they would be many
	run.Folder, run.document = folder, Document{Schema: DocumentSchema, Header: h, Results: r}
	run.Verdict, run.Incidents = Plain(r.Verdict), r.Incidents
	run.Lost, run.Acknowledged, run.LossInterval = r.Updates.Lost, r.Updates.Acknowledged, r.Updates.LossInterval
	if rate, known := r.Measures.Throughput(); known {
		run.Throughput = &rate
	}
	if share, known := r.Measures.Availability(); known {
		run.Availability = &share
	}
	m.Runs = append(m.Runs, run)
}

// RemediesJSON writes the runs for programs.
func RemediesJSON(w io.Writer, m RemediesTried) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(m)
}

// remedyColumns are those of the table, those that a narrow one needs first.
func remedyColumns() []struct {
	head string
	cell func(RemedyRun) string
} {
	type column = struct {
		head string
		cell func(RemedyRun) string
	}
	return []column{
		{"run", func(r RemedyRun) string { return strings.TrimSpace(r.Flag + " " + r.plainName()) }},
		{"verdict", func(r RemedyRun) string { return string(r.Verdict) }},
		{"lost", func(r RemedyRun) string { return Grouped(r.Lost) + " of " + Grouped(r.Acknowledged) }},
		{"incidents", func(r RemedyRun) string { return Grouped(r.Incidents) }},
		{"a second", func(r RemedyRun) string { return known(r.Throughput, 1, 1, "") }},
		{"available", func(r RemedyRun) string { return known(r.Availability, 100, 0, " %") }},
		{"95 % of lost", func(r RemedyRun) string { return LossInterval(r.LossInterval) }},
	}
}

// plainName names the run without a remedy.
func (r RemedyRun) plainName() string {
	if r.Flag == "" {
		return r.Words
	}
	return ""
}

// known is a number, multiplied and with a unit; a dash where there is none.
func known(f *float64, times float64, places int, unit string) string {
	if f == nil {
		return missing
	}
	return Trimmed(*f*times, places) + unit
}

// onceNote says how little one run is.
const onceNote = "One seed is one run: a remedy that is valid here held in 1 run. An incident is all that one fault let happen; behind a guard it can be without effect."

// RemediesTerminal writes the runs side by side for people. Columns for which there is no
// space are left to the page.
func RemediesTerminal(w io.Writer, m RemediesTried, o TerminalOptions) error {
	t := newTerminal(o)
	t.blank()
	t.line(t.paint(bold, "the same seed with each remedy"))
	lines := make([]string, len(m.Runs)+1)
	for _, c := range remedyColumns() {
		texts := []string{c.head}
		for _, r := range m.Runs {
			texts = append(texts, c.cell(r))
		}
		width := widest(texts)
		if visible(lines[0])+2+width > t.width {
			break
		}
		for i, text := range texts {
			word := pad(text, width)
			if c.head == "verdict" && i > 0 {
				word = t.paint(colorOf(m.Runs[i-1].Verdict), word)
			}
			lines[i] += "  " + word
		}
	}
	for _, line := range lines {
		t.line(strings.TrimRight(line, " "))
	}
	for _, n := range m.NotTried {
		t.hang("    ", "  not tried: ", clean(n.Flag)+": "+clean(n.Why))
	}
	t.hang("", "", onceNote)
	_, err := w.Write(t.out.Bytes())
	return err
}

type remediesPage struct {
	Title, Sentence, Note string
	Style                 template.CSS
	Facts                 []fact
	Heads                 []string
	Rows                  []remedyRow
	NotTried              []NotTried
}

type remedyRow struct {
	ID, Name, Words, Report string
	Verdict                 checker.Verdict
	Cells                   []string
	// SideBySide is nil for the run without a remedy.
	SideBySide *SideBySide
}

// RemediesHTML writes one page with the runs side by side, and links to their reports.
func RemediesHTML(w io.Writer, m RemediesTried) error {
	style, err := Style()
	if err != nil {
		return err
	}
	t, err := template.New("remedies").Parse(remediesText)
	if err != nil {
		return fmt.Errorf("page of remedies: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, newRemediesPage(m, style)); err != nil {
		return fmt.Errorf("page of remedies: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

func newRemediesPage(m RemediesTried, style string) remediesPage {
	first := m.Runs[0].document
	p := remediesPage{
		Title: "Remedies: " + clean(first.Header.Lock) + ", " + clean(first.Header.Workload), Sentence: Sentence(first.Results),
		Note: onceNote, Style: template.CSS(style), Facts: facts(first.Header), NotTried: m.NotTried,
	}
	columns := remedyColumns()
	for _, c := range columns[2:] {
		p.Heads = append(p.Heads, c.head)
	}
	for i, r := range m.Runs {
		row := remedyRow{ID: fmt.Sprintf("run-%d", i), Name: columns[0].cell(r), Words: r.Words, Report: r.Folder + "/report.html", Verdict: r.Verdict}
		for _, c := range columns[2:] {
			row.Cells = append(row.Cells, c.cell(r))
		}
		if i > 0 {
			both := NewSideBySide(first, r.document)
			row.SideBySide = &both
		}
		p.Rows = append(p.Rows, row)
	}
	return p
}
