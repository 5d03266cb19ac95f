package reports

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// MatrixMarkdown writes a matrix as Markdown: what was seen of each lock under each fault,
// what is known of it elsewhere, then the figures.
func MatrixMarkdown(w io.Writer, m Matrix) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s. Begun %s.\n\n", markdown(m.title()), markdown(m.summary()), m.Began.UTC().Format(time.RFC1123))
	if m.Thresholds {
		b.WriteString("## Thresholds\n\n")
		markdownThresholds(&b, m)
	}
	b.WriteString("## What was seen\n\n" + markdown(seenNote) + "\n\n")
	for _, guard := range m.Guards {
		markdownGuard(&b, m, guard)
	}
	fmt.Fprintf(&b, "%s\n\n", markdown(legend))
	markdownRemarks(&b, m)
	markdownAgain(&b, m)
	markdownKnown(&b, m)
	markdownAbout(&b, m)
	b.WriteString("## Figures\n\n")
	markdownFigures(&b, m)
	_, err := io.WriteString(w, b.String())
	return err
}

// MatrixSummary writes the short form for the summary of a CI job: the tables of
// words and the thresholds that were not kept.
func MatrixSummary(w io.Writer, m Matrix) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### lockcheck: %s\n\n%s.\n\n", orNone(string(m.Verdict)), markdown(m.summary()))
	for _, guard := range m.Guards {
		markdownGuard(&b, m, guard)
	}
	if m.Thresholds {
		markdownThresholds(&b, m)
	}
	markdownRemarks(&b, m)
	markdownAgain(&b, m)
	_, err := io.WriteString(w, b.String())
	return err
}

// markdownKnown lists the cells of which worse is known.
func markdownKnown(b *strings.Builder, m Matrix) {
	known := m.known()
	if len(known) == 0 {
		return
	}
	fmt.Fprintf(b, "## Worse is known\n\n%s\n\n| cell | seen here | known | again |\n| --- | --- | --- | --- |\n", markdown(knownNote))
	for _, c := range known {
		word, more := c.seen()
		markdownLine(b, []string{markdown(c.name()), markdown(word + ", " + more), markdown(c.Known.Text), markdownCode(c.Known.Line)})
	}
	b.WriteString("\n")
}

// markdownAbout tells what is known of the locks without a run.
func markdownAbout(b *strings.Builder, m Matrix) {
	b.WriteString("## The locks\n\n")
	markdownRow(b, aboutHead())
	b.WriteString("|" + strings.Repeat(" --- |", len(aboutHead())) + "\n")
	for _, lock := range m.Locks {
		markdownRow(b, m.about(lock))
	}
	b.WriteString("\n")
}

func markdownGuard(b *strings.Builder, m Matrix, guard string) {
	locks := m.locksBehind(guard)
	head := []string{"guard " + guard}
	head = append(head, m.Faults...)
	markdownRow(b, head)
	b.WriteString("|" + strings.Repeat(" --- |", len(head)) + "\n")
	for _, lock := range locks {
		row := []string{lock}
		for _, fault := range m.Faults {
			row = append(row, m.cell(lock, guard, fault).seenText())
		}
		markdownRow(b, row)
	}
	b.WriteString("\n")
	for _, g := range m.gaps(guard) {
		fmt.Fprintf(b, "- – %s (%s)\n", markdown(g.where), markdown(g.why))
	}
	if len(m.gaps(guard)) > 0 {
		b.WriteString("\n")
	}
}

func markdownThresholds(b *strings.Builder, m Matrix) {
	markdownRow(b, []string{"lock", "fault", "guard", "threshold", "bound", "observed", "verdict"})
	b.WriteString("|" + strings.Repeat(" --- |", 7) + "\n")
	for _, t := range m.thresholds() {
		c, r := t.cell, t.result
		markdownRow(b, []string{c.Lock, c.Fault, c.Guard, r.Name, r.Bound, r.Value, string(r.Verdict)})
	}
	b.WriteString("\n")
}

func markdownFigures(b *strings.Builder, m Matrix) {
	head := []string{"lock", "fault", "guard", "verdict"}
	for _, column := range m.columns() {
		head = append(head, column.name)
	}
	markdownRow(b, head)
	b.WriteString("|" + strings.Repeat(" --- |", len(head)) + "\n")
	for _, cell := range m.Cells {
		if len(cell.Runs) == 0 {
			continue
		}
		row := []string{cell.Lock, cell.Fault, cell.Guard, string(plain(cell.Verdict))}
		for _, column := range m.columns() {
			row = append(row, column.text(cell))
		}
		markdownRow(b, row)
	}
	b.WriteString("\n")
	for _, column := range m.columns() {
		fmt.Fprintf(b, "- *%s*: %s\n", column.name, column.summary)
	}
}

func markdownRow(b *strings.Builder, cells []string) {
	escaped := make([]string, 0, len(cells))
	for _, cell := range cells {
		escaped = append(escaped, markdown(cell))
	}
	markdownLine(b, escaped)
}

// markdownLine writes a row of cells that are Markdown already.
func markdownLine(b *strings.Builder, cells []string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// markdownCode shows text from outside as code, in which nothing can be escaped but what
// would end the cell.
func markdownCode(s string) string {
	return "`" + strings.NewReplacer("`", "'", "|", `\|`).Replace(clean(s)) + "`"
}

// markdown makes text from outside fit for a cell of a table: it must neither end the
// cell nor be taken for markup.
func markdown(s string) string { return markdownEscapes.Replace(clean(s)) }

var markdownEscapes = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "`", "\\`", "<", "&lt;", ">", "&gt;", "&", "&amp;", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`,
)
