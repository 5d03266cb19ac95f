package reports

import (
	"fmt"
	"io"
	"strings"
)

// huntRow is what was met of a role: for each phase and moment the states of the lock.
type huntRow struct {
	Role  string
	Cells []huntCell
}

// huntCell are the states met at a moment, a letter each, and how many of all.
type huntCell struct {
	Letters string
	Share   string // class of the page: none, some or all
}

// coverage is a table: a row for each role that was met, a column for each phase and moment.
// Never are the roles that were not.
func (h Hunt) coverage() (rows []huntRow, never []string) {
	met := make(map[HuntCell]bool)
	for _, c := range h.Met {
		met[c] = true
	}
	for _, role := range h.Roles {
		row, any := huntRow{Role: clean(role)}, false
		for _, phase := range h.Phases {
			for _, moment := range h.Moments {
				cell := h.cell(met, HuntCell{Role: role, Phase: phase, Moment: moment})
				any = any || cell.Share != "none"
				row.Cells = append(row.Cells, cell)
			}
		}
		if !any {
			never = append(never, row.Role)
			continue
		}
		rows = append(rows, row)
	}
	return rows, never
}

func (h Hunt) cell(met map[HuntCell]bool, at HuntCell) huntCell {
	letters, n := "", 0
	for _, state := range h.States {
		if at.State = state; met[at] {
			letters += strings.ToUpper(state[:1])
			n++
			continue
		}
		letters += "·"
	}
	share := "some"
	switch n {
	case 0:
		share = "none"
	case len(h.States):
		share = "all"
	}
	return huntCell{letters, share}
}

// columns are the phases and moments of the table.
func (h Hunt) columns() []string {
	var all []string
	for _, phase := range h.Phases {
		for _, moment := range h.Moments {
			all = append(all, phase+", "+moment)
		}
	}
	return all
}

// legend explains the letters.
func (h Hunt) legend() string {
	var parts []string
	for _, state := range h.States {
		parts = append(parts, fmt.Sprintf("%s %s", strings.ToUpper(state[:1]), state))
	}
	return "By the record, with each fault about to begin, in force, or healed: at which moments of the target's calls (of anybody's, for a fault of servers) " +
		"the lock was in which state: " + strings.Join(parts, ", ") + ". A dot was never met."
}

// neverMet names the roles that no trial met, in a sentence; "" for none.
func neverMet(never []string) string {
	if len(never) == 0 {
		return ""
	}
	return "Never met: " + strings.Join(never, ", ") + "."
}

// HuntMarkdown writes a hunt as Markdown.
func HuntMarkdown(w io.Writer, h Hunt) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n%s\n\n", markdown(h.title()), markdown(h.summary()), markdown(h.compared()))
	for _, f := range h.Finds {
		fmt.Fprintf(&b, "## %s\n\n", markdown(clean(f.Headline)))
		for _, fact := range f.facts() {
			fmt.Fprintf(&b, "- %s\n", markdown(fact))
		}
		if f.File != "" {
			fmt.Fprintf(&b, "- [reproduction](%s)\n", f.File)
		}
		if f.Run != "" {
			fmt.Fprintf(&b, "- [a run that shows it](%s/report.html)\n", f.Run)
		}
		b.WriteString("\n")
	}
	b.WriteString("## Set aside, and not supported\n\n")
	for _, cause := range h.setAside() {
		fmt.Fprintf(&b, "- inherent in leases: %s\n", markdown(cause))
	}
	for _, why := range h.Unsupported {
		fmt.Fprintf(&b, "- not supported: %s\n", markdown(why))
	}
	rows, never := h.coverage()
	fmt.Fprintf(&b, "\n## Coverage\n\n%s\n\n", markdown(strings.TrimSpace(h.legend()+" "+neverMet(never))))
	head := append([]string{"fault"}, h.columns()...)
	markdownRow(&b, head)
	b.WriteString("|" + strings.Repeat(" --- |", len(head)) + "\n")
	for _, row := range rows {
		cells := []string{row.Role}
		for _, c := range row.Cells {
			cells = append(cells, c.Letters)
		}
		markdownRow(&b, cells)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
