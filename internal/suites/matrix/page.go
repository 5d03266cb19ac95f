package matrix

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/internal/suites"
	"lockcheck/reports"
)

// Page is the whole comparison: what was seen of each lock under each fault, what is known from other runs,
// and the figures.
func (c Comparison) Page() reports.Page {
	blocks := []reports.Block{
		reports.Conclusion{Verdict: c.Verdict, Text: c.summary() + "."},
		reports.Note("Begun " + c.Began.UTC().Format(time.RFC1123) + "."),
		reports.Heading{Level: 2, Text: "What was seen"}, reports.Note(seenNote),
	}
	blocks = append(blocks, c.tables()...)
	blocks = append(blocks, reports.Note(legend))
	if c.Thresholds {
		blocks = append(blocks, reports.Heading{Level: 2, Text: "Thresholds"}, c.thresholds())
	}
	blocks = append(blocks, c.remarkList(), c.repetitions(0))
	if known := c.knownTable(); len(known.Rows) > 0 {
		blocks = append(blocks, reports.Heading{Level: 2, Text: "Worse is known", Anchor: "known"}, reports.Note(knownNote), known)
	}
	blocks = append(blocks,
		reports.Heading{Level: 2, Text: "Side by side"},
		reports.Note("Behind the first guard. Lost: where most was, with the 95 % interval. Times on a logarithmic scale."),
		c.sideBySide(),
		reports.Heading{Level: 2, Text: "The locks"}, c.aboutTable(),
		reports.Heading{Level: 2, Text: "Figures"},
	)
	return reports.Page{Title: "Comparison of " + reports.Many(len(c.Locks), "lock"), Blocks: append(blocks, c.figures()...)}
}

// Summary is the short form for the summary of a CI job: the tables of words and the thresholds.
func (c Comparison) Summary() reports.Page {
	blocks := []reports.Block{
		reports.Heading{Level: 3, Text: "lockcheck: " + cmp.Or(string(c.Verdict), "none")}, reports.Text(c.summary() + "."),
	}
	blocks = append(blocks, c.tables()...)
	if c.Thresholds {
		blocks = append(blocks, c.thresholds())
	}
	return reports.Page{Blocks: append(blocks, c.remarkList(), c.repetitions(0))}
}

// maxRepetitions is how many commands the terminal shows. The files have all of them.
const maxRepetitions = 10

// Terminal is what is printed at the end of a comparison.
func (c Comparison) Terminal() reports.Page {
	blocks := c.tables()
	if c.Thresholds {
		blocks = append(blocks, c.missed()...)
	}
	blocks = append(blocks, c.remarkList(), c.repetitions(maxRepetitions), reports.Note(legend))
	return reports.Page{Blocks: append(blocks, reports.Conclusion{Verdict: c.Verdict, Text: c.summary()})}
}

// tables has a table for each guard. The rows are locks, those that break least first. The columns are
// faults.
func (c Comparison) tables() []reports.Block {
	var blocks []reports.Block
	for _, guard := range c.Guards {
		gaps := c.gaps(guard)
		table := reports.Table{Columns: reports.Columns("lock", "broken by"), Heat: true}
		for _, fault := range c.Faults {
			table.Columns = append(table.Columns, columnOf(fault))
		}
		for _, s := range c.standings(guard) {
			if !c.hasRow(s.lock, guard) {
				continue
			}
			row := reports.Row{Cells: []reports.Cell{{Text: s.lock}, {Text: s.String(), SortKey: fmt.Sprint(s.share())}}}
			for _, fault := range c.Faults {
				row.Cells = append(row.Cells, c.cell(s.lock, guard, fault).view())
			}
			table.Rows = append(table.Rows, row)
		}
		if len(table.Rows)+len(gaps.Items) > 0 {
			blocks = append(blocks, reports.Heading{Level: 3, Text: "guard " + guard}, table, gaps)
		}
	}
	return blocks
}

// columnOf is the column of a fault in these tables.
func columnOf(fault string) reports.Column {
	if a, is := AttackByName(fault); is {
		return reports.Column{Name: strings.ReplaceAll(fault, "-", " "), Summary: a.Summary}
	}
	return reports.Column{Name: fault}
}

// standing counts the broken cells of a lock among its decided cells, and has the largest share of updates
// that the lock lost in a cell.
type standing struct {
	lock            string
	broken, decided int
	lost            float64
}

func (s standing) String() string {
	if s.decided == 0 {
		return "–"
	}
	return fmt.Sprintf("%d of %d", s.broken, s.decided)
}

// share is the share of broken cells. It is 2 for a lock without decided cells, which ranks such a lock last.
func (s standing) share() float64 {
	if s.decided == 0 {
		return 2
	}
	return float64(s.broken) / float64(s.decided)
}

// standings ranks the locks behind a guard, the best first.
func (c Comparison) standings(guard string) []standing {
	var all []standing
	for _, lock := range c.Locks {
		s := standing{lock: lock}
		for _, fault := range c.Faults {
			cell := c.cell(lock, guard, fault)
			switch cell.Verdict {
			case checker.Violation:
				s.broken++
				s.decided++
			case checker.Valid:
				s.decided++
			}
			s.lost = max(s.lost, cell.lostShare())
		}
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(a, b standing) int { // among equals, the lock with more decided cells comes first
		return cmp.Or(cmp.Compare(a.share(), b.share()), cmp.Compare(b.decided, a.decided), cmp.Compare(a.lost, b.lost))
	})
	return all
}

// cell returns a cell of the table; the zero value if there is none.
func (c Comparison) cell(lock, guard, fault string) Cell {
	i := slices.IndexFunc(c.Cells, func(cell Cell) bool { return cell.Place == Place{lock, fault, guard} })
	if i < 0 {
		return Cell{}
	}
	return c.Cells[i]
}

// view is the cell as shown in a table of words.
func (c Cell) view() reports.Cell {
	rank := 2 * slices.Index([]checker.Verdict{checker.Violation, checker.Broken, checker.Undecided, checker.Valid, ""}, c.class())
	if c.Known != nil {
		rank = 1
	}
	view := reports.Cell{Text: c.word(), Short: c.short(), More: c.details(), Verdict: c.class(), Title: c.note(), SortKey: fmt.Sprint(rank)}
	if c.Known != nil {
		view.Links = []reports.Link{{Text: "known: " + c.Known.Text, Href: "#known", Verdict: checker.Violation}}
	}
	if c.isAttack() { // a table of so many columns has room for figures only; the rest is behind the link
		view.More = c.figure()
		view.Title = strings.TrimPrefix(c.details()+"; "+view.Title, "; ")
		for i := range view.Links {
			view.Links[i].Text = "worse is known"
		}
	}
	if len(c.Runs) > 0 {
		view.Link = "#" + c.anchor()
	}
	return view
}

// class is the verdict that colours the cell; "" for none.
func (c Cell) class() checker.Verdict {
	if c.Verdict == "" {
		return ""
	}
	return reports.Plain(c.Verdict)
}

// anchor is the anchor of the cell's figures on the page.
func (c Cell) anchor() string {
	return strings.ReplaceAll(reports.Clean(c.Lock+"/"+c.Fault+"/"+c.Guard), " ", "-")
}

// thresholds lists the thresholds of all cells, the missed ones first.
func (c Comparison) thresholds() reports.Table {
	table := reports.Table{Columns: reports.Columns("lock", "fault", "guard", "threshold", "bound", "observed", "verdict")}
	for _, verdict := range []checker.Verdict{checker.Violation, checker.Broken, checker.Undecided, checker.Valid} {
		for _, cell := range c.Cells {
			for _, r := range cell.Thresholds {
				if v := reports.Plain(r.Verdict); v == verdict {
					cells := reports.Cells(cell.Lock, cell.Fault, cell.Guard, r.Name, r.Bound, r.Value)
					table.Rows = append(table.Rows, reports.Row{Cells: append(cells, reports.Cell{Text: string(v), Verdict: v})})
				}
			}
		}
	}
	return table
}

// missed lists thresholds that were missed or had no data, and violations that no threshold replaces.
func (c Comparison) missed() []reports.Block {
	kept, missed := 0, reports.List{}
	for _, cell := range c.Cells {
		if cell.excused() {
			continue // its remark says why
		}
		for _, r := range cell.Thresholds {
			if r.Verdict == checker.Valid {
				kept++
				continue
			}
			missed.Items = append(missed.Items, reports.Item{Verdict: r.Verdict, Text: cell.String() + ": " + r.String()})
		}
	}
	count := reports.Text(reports.Many(kept, "threshold") + " kept, " + fmt.Sprint(len(missed.Items)) + " not")
	for _, cell := range c.Cells {
		what := "the runs themselves"
		if cell.OfRuns == checker.Violation {
			what = reports.Properties(cell.Violated)
		}
		if !cell.excused() && cell.OfRuns != checker.Valid && cell.OfRuns != "" {
			missed.Items = append(missed.Items, reports.Item{Verdict: cell.OfRuns, Text: cell.String() + ": " + what})
		}
	}
	return []reports.Block{missed, count}
}

// knownTable lists the cells for which other runs have shown worse.
func (c Comparison) knownTable() reports.Table {
	table := reports.Table{Columns: reports.Columns("cell", "seen here", "known", "command")}
	for _, cell := range c.Cells {
		if cell.Known == nil {
			continue
		}
		seen := strings.TrimSuffix(cell.word()+": "+cell.details(), ": ")
		table.Rows = append(table.Rows, reports.Row{Cells: []reports.Cell{
			{Text: cell.String(), Link: "#" + cell.anchor()}, {Text: seen}, {Text: cell.Known.Text}, {Text: cell.Known.Line, Code: true},
		}})
	}
	return table
}

// sideBySide compares the locks behind the first guard: their greatest loss, acquire times without faults,
// and longest failover.
func (c Comparison) sideBySide() reports.Table {
	table := reports.Table{Columns: reports.Columns("lock", "lost at worst", "acquire alone, p50", "failover, longest")}
	if len(c.Guards) == 0 {
		return table
	}
	var lost []reports.Cell
	var acquires, failovers []time.Duration
	var notes []string
	for _, lock := range c.Locks {
		var worst Cell
		var acquire, failover time.Duration
		var note string
		for _, cell := range c.Cells {
			if cell.Lock != lock || cell.Guard != c.Guards[0] {
				continue
			}
			if cell.lostShare() > worst.lostShare() {
				worst = cell
			}
			if Nemesis(cell.Fault) == "none" {
				acquire, _ = cell.Pool.Measures.Uncontended.Quantile(0.5)
			}
			if longest, _ := cell.Pool.Measures.Failover.Quantile(1); longest > failover {
				failover, note = longest, "lease "+reports.Length(cell.Lease)+", "+cell.Fault
			}
			if cell.Pool.Stuck > 0 && !strings.Contains(note, "never") {
				note = strings.TrimPrefix(note+"; never for "+reports.Many(cell.Pool.Stuck, "holder")+" under "+cell.Fault, "; ")
			}
		}
		lost = append(lost, reports.LossCell(worst.Pool, worst.Fault))
		acquires, failovers, notes = append(acquires, acquire), append(failovers, failover), append(notes, note)
	}
	acquire, failover := reports.LengthCells(acquires, nil), reports.LengthCells(failovers, notes)
	for i, lock := range c.Locks {
		table.Rows = append(table.Rows, reports.Row{Cells: []reports.Cell{{Text: lock}, lost[i], acquire[i], failover[i]}})
	}
	return table
}

// lostShare is the share of acknowledged updates that were lost; -1 if none were acknowledged.
func (c Cell) lostShare() float64 {
	if c.Pool.Acknowledged == 0 {
		return -1
	}
	return float64(c.Pool.Lost) / float64(c.Pool.Acknowledged)
}

// aboutTable lists what is known of the locks without a run.
func (c Comparison) aboutTable() reports.Table {
	table := reports.Table{Columns: reports.Columns("lock", "servers", "fencing token", "depends on the clock", "versions")}
	for _, lock := range c.Locks {
		about, token := c.About[lock], "none"
		if about.Token != "" {
			token = about.Token + c.tokenOrder(lock)
		}
		table.Rows = append(table.Rows, reports.Row{Cells: reports.Cells(lock, fmt.Sprint(about.Servers), token, about.Clock, c.versions(lock))})
	}
	return table
}

// tokenOrder says in how many runs the fencing tokens of a lock kept their order.
func (c Comparison) tokenOrder(lock string) string {
	kept, violated := 0, 0
	for _, cell := range c.Cells {
		if cell.Lock == lock {
			kept, violated = kept+cell.TokensKept, violated+cell.TokensViolated
		}
	}
	switch {
	case violated > 0:
		return fmt.Sprintf("; out of order in %d of %s", violated, reports.Many(kept+violated, "run"))
	case kept > 0:
		return "; in order in " + reports.Many(kept, "run")
	}
	return ""
}

// versions lists the versions of a lock's servers and client modules, and the origin of the servers.
func (c Comparison) versions(lock string) string {
	for _, cell := range c.Cells {
		if cell.Lock != lock || len(cell.Versions) == 0 {
			continue
		}
		text := reports.Versions(cell.Versions)
		if cell.Source != "" {
			text += "; servers " + cell.Source
		}
		return text
	}
	return ""
}

// figures has a table of figures for each lock.
func (c Comparison) figures() []reports.Block {
	table := reports.Table{Columns: reports.Columns("fault", "guard", "result", "runs")}
	for _, column := range c.columns() {
		table.Columns = append(table.Columns, reports.Column{Name: column.name, Summary: column.summary})
	}
	blocks := []reports.Block{table.Terms()}
	for _, lock := range c.Locks {
		table.Rows, table.Summary = nil, lock
		for _, cell := range c.Cells {
			if cell.Lock == lock && cell.Unavailable == "" && len(cell.Runs) > 0 {
				table.Rows = append(table.Rows, c.figuresOf(cell))
			}
		}
		if len(table.Rows) > 0 {
			blocks = append(blocks, table)
		}
	}
	return blocks
}

func (c Comparison) figuresOf(cell Cell) reports.Row {
	var links []reports.Link
	for _, r := range cell.Runs {
		if cell.isAttack() && r.Folder == "" {
			continue
		}
		link := reports.Link{Text: fmt.Sprintf("seed %d", r.Seed), Verdict: reports.Plain(r.Verdict)}
		if r.Folder != "" {
			link.Href = path.Join(r.Folder, "report.html")
		}
		links = append(links, link)
	}
	row := reports.Row{
		Anchor:  cell.anchor(),
		Cells:   []reports.Cell{{Text: cell.Fault}, {Text: cell.Guard}, {Text: cell.word(), More: cell.details(), Verdict: cell.class()}, {Text: fmt.Sprint(len(cell.Runs)), Links: links}},
		Note:    strings.Join(append([]string{cell.note()}, cell.remarks()...), "; "),
		Command: cell.repetition(),
	}
	for _, column := range c.columns() {
		row.Cells = append(row.Cells, reports.Cell{Text: column.text(cell)})
	}
	return row
}

// WriteReports writes the comparison as pages and as data into its folder.
func (f *Folder) WriteReports(c Comparison) error {
	page := c.Page()
	return suites.WriteFiles(f.Path, map[string]func(io.Writer) error{
		jsonFile: func(w io.Writer) error { return reports.WriteJSON(w, c) }, HTMLFile: page.WriteHTML, markdownFile: page.WriteMarkdown, junitFile: c.WriteJUnit,
	})
}
