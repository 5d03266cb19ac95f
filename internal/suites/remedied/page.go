package remedied

import (
	"cmp"
	"fmt"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/reports"
)

// Schema is the version of the JSON format of Tried.
const Schema = 1

// Tried is a test as requested, and its repetitions with each remedy.
type Tried struct {
	Schema   int        `json:"schema"`
	Runs     []Run      `json:"runs"` // the first run is the test as requested
	NotTried []NotTried `json:"not_tried,omitempty"`
}

// Run is one run of the test.
type Run struct {
	Remedy string `json:"remedy,omitempty"` // "" for the test as requested
	Words  string `json:"words"`
	Flag   string `json:"flag,omitempty"`
	Folder string `json:"run"` // relative to the folder of all runs

	Verdict      checker.Verdict `json:"verdict"`
	Lost         int64           `json:"lost"`
	Acknowledged int64           `json:"acknowledged"`
	checker.LossInterval
	Incidents int64 `json:"incidents"`
	// Throughput is updates, or holds, per second. Availability is the share of the time of faults without an
	// outage. Both are nil without data.
	Throughput   *float64 `json:"throughput,omitempty"`
	Availability *float64 `json:"availability,omitempty"`

	document reports.Document
}

// NotTried is a remedy that was not tried, and why.
type NotTried struct {
	Remedy string `json:"remedy"`
	Words  string `json:"words"`
	Flag   string `json:"flag"`
	Why    string `json:"why"`
}

func (t *Tried) add(run Run, folder string, h history.Header, r checker.Results) {
	r.Holds = nil // holds of many runs would take much space
	run.Folder, run.document = folder, reports.Document{Schema: reports.DocumentSchema, Header: h, Results: r}
	run.Verdict, run.Incidents = reports.Plain(r.Verdict), r.Incidents
	run.Lost, run.Acknowledged, run.LossInterval = r.Updates.Lost, r.Updates.Acknowledged, r.Updates.LossInterval
	if rate, known := r.Measures.Throughput(); known {
		run.Throughput = &rate
	}
	if share, known := r.Measures.Availability(); known {
		run.Availability = &share
	}
	t.Runs = append(t.Runs, run)
}

// onceNote says how little a single run proves.
const onceNote = "One seed is one run: a remedy that is valid here held in 1 run. An incident is all that one fault let happen; behind a guard it can be without effect."

// Terminal shows the runs side by side.
func (t Tried) Terminal() reports.Page {
	return reports.Page{Title: "The same seed with each remedy", Blocks: []reports.Block{t.table(), t.notTried(), reports.Note(onceNote)}}
}

// Page shows the runs side by side with links to their reports, and then each run next to the test as
// requested.
func (t Tried) Page() reports.Page {
	first := t.Runs[0].document
	page := reports.Page{Title: "The same seed with each remedy", Blocks: []reports.Block{
		reports.Text("As asked for: " + reports.Sentence(first.Results)),
		reports.Note(fmt.Sprintf("lock %s; %s; seed %d", first.Header.Lock, reports.UnjudgedLine(first.Header).Settings, first.Header.Seed)),
		reports.Note(onceNote), t.table(),
	}}
	if len(t.NotTried) > 0 {
		page.Blocks = append(page.Blocks, reports.Heading{Level: 2, Text: "Not tried"}, t.notTried())
	}
	page.Blocks = append(page.Blocks, reports.Heading{Level: 2, Text: "Each next to the run as asked for"})
	for i, run := range t.Runs[1:] {
		both := reports.NewSideBySide(first, run.document)
		page.Blocks = append(page.Blocks,
			reports.Heading{Level: 3, Text: run.Flag + ": " + run.Words, Anchor: anchor(i + 1)}, reports.Note(both.Note), comparisonTable(both, run.Flag))
	}
	return page
}

func anchor(run int) string { return fmt.Sprintf("run-%d", run) }

func (t Tried) table() reports.Table {
	table := reports.Table{Columns: reports.Columns("run", "verdict", "lost", "incidents", "a second", "available")}
	for i, r := range t.Runs {
		cells := reports.Cells(
			cmp.Or(r.Flag, r.Words), string(r.Verdict), reports.Grouped(r.Lost)+" of "+reports.Grouped(r.Acknowledged), reports.Grouped(r.Incidents),
			figureText(r.Throughput, 1, 1, ""), figureText(r.Availability, 100, 0, " %"))
		cells[0].Link, cells[1].Verdict, cells[2].More = r.Folder+"/report.html", r.Verdict, "95 %: "+reports.LossInterval(r.LossInterval)
		if i > 0 {
			cells[0].Links = []reports.Link{{Text: "side by side", Href: "#" + anchor(i)}}
		}
		table.Rows = append(table.Rows, reports.Row{Cells: cells})
	}
	return table
}

// figureText formats a multiple of a number with a unit; a dash without a number.
func figureText(f *float64, times float64, places int, unit string) string {
	if f == nil {
		return "–"
	}
	return reports.Trimmed(*f*times, places) + unit
}

func (t Tried) notTried() reports.List {
	var list reports.List
	for _, n := range t.NotTried {
		list.Items = append(list.Items, reports.Item{Text: "not tried: " + n.Flag + ": " + n.Why + " (" + n.Words + ")"})
	}
	return list
}

// comparisonTable shows the results of two runs by property and by figure.
func comparisonTable(both reports.SideBySide, second string) reports.Table {
	table := reports.Table{Columns: reports.Columns("property", "as asked for", second)}
	for _, p := range both.Properties {
		table.Rows = append(table.Rows, reports.Row{Cells: []reports.Cell{{Text: p.Property}, opinionCell(p.First), opinionCell(p.Second)}})
	}
	for _, p := range both.Figures {
		table.Rows = append(table.Rows, reports.Row{Cells: reports.Cells(p.Name, p.First, p.Second)})
	}
	return table
}

func opinionCell(o reports.Opinion) reports.Cell {
	cell := reports.Cell{Text: o.Word, More: o.Summary}
	if v := checker.Verdict(o.Word); reports.Plain(v) == v { // otherwise it was tolerated or not judged
		cell.Verdict = v
	}
	return cell
}
