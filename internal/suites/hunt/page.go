package hunt

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/internal/suites"
	"lockcheck/reports"
)

// WriteReports writes the result as pages and as JSON into the folder of the hunt.
func (f *Folder) WriteReports(r Result) error {
	return suites.WriteReports(f.Path, "hunt", r, r.Page())
}

// Page is the whole result.
func (r Result) Page() reports.Page {
	page := r.page("")
	table, never := r.table()
	legend := r.legend()
	if len(never) > 0 {
		legend += " Never covered: " + strings.Join(never, ", ") + "."
	}
	page.Blocks = append(page.Blocks,
		reports.Heading{Level: 2, Text: "Coverage"}, reports.Note(legend), table,
		reports.Note("The hunt began at "+r.Began.UTC().Format(time.RFC1123)+"."))
	return page
}

// Terminal is the result for a terminal, without the coverage, for which a terminal has no space. The folder
// is the hunt's.
func (r Result) Terminal(folder string) reports.Page { return r.page(folder) }

func (r Result) page(folder string) reports.Page {
	page := reports.Page{Title: "What breaks " + r.Lock, Blocks: []reports.Block{
		reports.Conclusion{Verdict: r.Verdict(), Text: r.summary()},
		reports.Text(r.extent()),
	}}
	for _, f := range r.Findings {
		page.Blocks = append(page.Blocks, reports.Heading{Level: 2, Text: f.Headline}, f.list(folder))
	}
	page.Blocks = append(page.Blocks, reports.Heading{Level: 2, Text: "How trials were chosen"}, r.arms())
	if len(r.Inherent) > 0 {
		page.Blocks = append(page.Blocks, reports.Heading{Level: 2, Text: "Set aside: inherent in leases"}, r.setAside())
	}
	if len(r.Unsupported) > 0 {
		list := reports.List{Summary: "Faults that this lock does not support"}
		for _, text := range r.Unsupported {
			list.Items = append(list.Items, reports.Item{Text: text})
		}
		page.Blocks = append(page.Blocks, list)
	}
	return page
}

// summary says in a sentence what was found.
func (r Result) summary() string {
	if made, _, proven := r.trials(); r.Verdict() == checker.Undecided && len(r.Findings) == 0 && proven == 0 {
		return fmt.Sprintf("In 0 of %s a fault was proven and exercised, so almost nothing is known. Continue it with lockcheck hunt --resume FOLDER --budget 30m.", reports.Many(made, "trial"))
	}
	if len(r.Findings) == 0 {
		return "Nothing was found except what is inherent in leases."
	}
	count := make(map[Outcome]int)
	for _, f := range r.Findings {
		count[f.Outcome]++
	}
	var parts []string
	for _, of := range []Outcome{Confirmed, NotSeenAgain, Unconfirmed} {
		if n := count[of]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, of))
		}
	}
	return fmt.Sprintf("%s: %s.", reports.Many(len(r.Findings), "finding"), strings.Join(parts, ", "))
}

// extent says what was tried.
func (r Result) extent() string {
	made, useful, proven := r.trials()
	leases := "without a lease"
	if r.Lease > 0 {
		leases = "with a lease of " + reports.Length(r.Lease)
	}
	text := fmt.Sprintf("%s %s (seed %d). In %d of them a fault was proven and exercised.", reports.Many(made, "trial"), leases, r.Seed, proven)
	if failed := made - useful; failed > 0 {
		text += fmt.Sprintf(" %s failed and showed nothing about the lock.", reports.Many(failed, "trial"))
	}
	cells := ((len(r.Roles)-1)*len(r.Phases) + 1) * len(r.States) * len(r.Moments) // the role for no fault has no phases
	text += fmt.Sprintf(" The trials covered %d of %d combinations of fault, phase, lock state and call.", len(r.Met), cells)
	if r.Shard.Of > 0 {
		text += " This is part " + r.Shard.String() + " of the hunt."
	}
	if len(r.Missing) > 0 {
		var missing []string
		for _, part := range r.Missing {
			missing = append(missing, part.String())
		}
		text += " These parts of the hunt are missing: " + strings.Join(missing, ", ") + "."
	}
	return text
}

func (r Result) arms() reports.Table {
	table := reports.Table{Columns: reports.Columns("trials", "made", "failed", "with a finding", "per hour", "findings", "first in trial")}
	for _, a := range r.Arms {
		if a.Trials == 0 {
			continue
		}
		perHour, first := "–", "–"
		if a.Took > 0 {
			perHour = reports.Trimmed(float64(a.Showing)/a.Took.Hours(), 1)
		}
		if a.First > 0 {
			first = fmt.Sprint(a.First)
		}
		table.Rows = append(table.Rows, reports.Row{Cells: reports.Cells(
			a.Name, fmt.Sprint(a.Trials), fmt.Sprint(a.Failed), fmt.Sprint(a.Showing), perHour, fmt.Sprint(len(a.Finds)), first)})
	}
	return table
}

func (r Result) setAside() reports.List {
	var list reports.List
	for _, cause := range slices.Sorted(maps.Keys(r.Inherent)) {
		list.Items = append(list.Items, reports.Item{Text: fmt.Sprintf("%s (%s)", cause, reports.Many(r.Inherent[cause], "trial"))})
	}
	return list
}

// list describes the finding. With a folder it names commands to run there; with "" it has links to files
// beside the page.
func (f Finding) list(folder string) reports.List {
	arm := "guided"
	if f.Blind {
		arm = "blind"
	}
	texts := []string{f.What}
	switch {
	case f.Outcome == Confirmed:
		texts = append(texts, fmt.Sprintf("Confirmed: shows in %d of %d runs (95 %% interval %.2f–%.2f)", f.Shown, f.Made, f.Low, f.High))
	case f.Outcome == NotSeenAgain:
		texts = append(texts, fmt.Sprintf("Not seen again in %s", reports.Many(f.Made, "run")))
	case f.Shown > 0:
		texts = append(texts, fmt.Sprintf("Unconfirmed: shows in %d of %d runs (95 %% interval %.2f–%.2f), after which its confirmation was stopped", f.Shown, f.Made, f.Low, f.High))
	default:
		texts = append(texts, "Unconfirmed")
	}
	switch {
	case f.Counts():
	case f.Outcome == Unconfirmed:
		texts = append(texts, "Does not count yet: a busy machine may have kept the lock waiting")
	default:
		texts = append(texts, "Does not count: the lock was stuck only once, so the machine may have been busy")
	}
	if f.Unfinished != "" {
		texts = append(texts, f.Unfinished)
	}
	texts = append(texts, "Simplest form: "+f.Trial,
		fmt.Sprintf("%s showed it, trial %d (%s) first", reports.Many(f.Seen, "trial"), f.First, arm))
	switch {
	case f.Control != "":
		texts = append(texts, fmt.Sprintf("Control: %s does not show it in %d runs", f.Control, f.ControlRuns))
	case f.Unfinished == "" && f.File != "" && f.Steps == 0:
		texts = append(texts, "No control was found, and no fault is needed")
	case f.Unfinished == "" && f.File != "":
		texts = append(texts, "No control was found")
	}
	var list reports.List
	for _, text := range texts {
		list.Items = append(list.Items, reports.Item{Text: text})
	}
	switch {
	case folder != "" && f.File != "":
		list.Items = append(list.Items, reports.Item{Text: "Reproduce it:", Command: []string{"lockcheck", "repro", filepath.Join(folder, f.File)}})
	case folder == "":
		for _, link := range []reports.Link{{Text: "Reproduction", Href: f.File}, {Text: "A run that shows it", Href: reportOf(f.Run)}} {
			if link.Href != "" {
				list.Items = append(list.Items, reports.Item{Link: link})
			}
		}
	}
	return list
}

// reportOf is the page of a run; "" if there is no run.
func reportOf(run string) string {
	if run == "" {
		return ""
	}
	return filepath.ToSlash(run) + "/report.html"
}

// table is the coverage. Each covered role has a row, each combination of phase and moment a column, and each
// cell one letter per state. never lists the roles that were not covered.
func (c Coverage) table() (table reports.Table, never []string) {
	met := make(map[Cell]bool)
	for _, cell := range c.Met {
		met[cell] = true
	}
	table.Columns = reports.Columns("fault")
	for _, phase := range c.Phases {
		for _, moment := range c.Moments {
			table.Columns = append(table.Columns, reports.Column{Name: phase + ", " + moment})
		}
	}
	for _, role := range c.Roles {
		row, covered := reports.Row{Cells: reports.Cells(role)}, false
		for _, phase := range c.Phases {
			for _, moment := range c.Moments {
				var letters strings.Builder
				for _, state := range c.States {
					letter := "·"
					if met[Cell{Role: role, Phase: phase, State: state, Moment: moment}] {
						letter, covered = letterOf(state), true
					}
					letters.WriteString(letter)
				}
				row.Cells = append(row.Cells, reports.Cell{Text: letters.String(), Code: true})
			}
		}
		if covered {
			table.Rows = append(table.Rows, row)
		} else {
			never = append(never, role)
		}
	}
	return table, never
}

func letterOf(state string) string { return strings.ToUpper(state[:1]) }

func (c Coverage) legend() string {
	var states []string
	for _, state := range c.States {
		states = append(states, letterOf(state)+" "+state)
	}
	return "A letter says that a trial had the lock in this state (" + strings.Join(states, ", ") + "; a dot: never), by the record alone. " +
		"A column is the phase of the fault and the call of its target; for a fault of servers, the call of any worker."
}
