package reports

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// ComparisonMarkdown writes the comparison as Markdown: what one chooses a lock by, the
// tables of words, then those of figures.
func ComparisonMarkdown(w io.Writer, c Comparison) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s. Begun %s.\n\n## What to choose a lock by\n\n%s\n\n", markdown(c.title()),
		markdown(c.summary()), c.Began.UTC().Format(time.RFC1123), traitsNote)
	markdownTraits(&b, c)
	b.WriteString("## Verdicts\n\n")
	for _, guard := range c.Guards {
		markdownMatrix(&b, c, guard)
	}
	fmt.Fprintf(&b, "%s\n\n", markdown(legend))
	if c.Thresholds {
		markdownThresholds(&b, c)
	}
	b.WriteString("## Figures\n\n")
	markdownFigures(&b, c)
	_, err := io.WriteString(w, b.String())
	return err
}

// ComparisonSummary writes the short form for the summary of a CI job: the tables of
// words and the thresholds that were not kept.
func ComparisonSummary(w io.Writer, c Comparison) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### lockcheck: %s\n\n%s.\n\n", orNone(string(c.Verdict())), markdown(c.summary()))
	for _, guard := range c.Guards {
		markdownMatrix(&b, c, guard)
	}
	if c.Thresholds {
		markdownThresholds(&b, c)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func markdownTraits(b *strings.Builder, c Comparison) {
	head := []string{"lock"}
	for _, trait := range c.traits() {
		head = append(head, trait.name)
	}
	markdownRow(b, head)
	b.WriteString("|" + strings.Repeat(" --- |", len(head)) + "\n")
	for _, lock := range c.Locks {
		row := []string{lock}
		for _, trait := range c.traits() {
			row = append(row, trait.text(c, lock))
		}
		markdownRow(b, row)
	}
	b.WriteString("\n")
}

func markdownMatrix(b *strings.Builder, c Comparison, guard string) {
	locks := c.locksBehind(guard)
	head := []string{"guard " + guard}
	head = append(head, c.Faults...)
	markdownRow(b, head)
	b.WriteString("|" + strings.Repeat(" --- |", len(head)) + "\n")
	for _, lock := range locks {
		row := []string{lock}
		for _, fault := range c.Faults {
			cell := c.cell(lock, guard, fault)
			word := cell.word()
			if cell.Pool.Lost > 0 {
				word += fmt.Sprintf(" %d/%d", cell.Pool.Lost, cell.Pool.Acknowledged)
			}
			row = append(row, word)
		}
		markdownRow(b, row)
	}
	b.WriteString("\n")
	for _, g := range c.gaps(guard) {
		fmt.Fprintf(b, "- – %s (%s)\n", markdown(g.where), markdown(g.why))
	}
	if len(c.gaps(guard)) > 0 {
		b.WriteString("\n")
	}
}

func markdownThresholds(b *strings.Builder, c Comparison) {
	markdownRow(b, []string{"lock", "fault", "guard", "threshold", "bound", "observed", "verdict"})
	b.WriteString("|" + strings.Repeat(" --- |", 7) + "\n")
	for _, cell := range c.Cells {
		for _, r := range cell.Thresholds {
			markdownRow(b, []string{cell.Lock, cell.Fault, cell.Guard, r.Name, r.Bound, r.Value, string(r.Verdict)})
		}
	}
	b.WriteString("\n")
}

func markdownFigures(b *strings.Builder, c Comparison) {
	head := []string{"lock", "fault", "guard", "verdict"}
	for _, column := range c.columns() {
		head = append(head, column.name)
	}
	markdownRow(b, head)
	b.WriteString("|" + strings.Repeat(" --- |", len(head)) + "\n")
	for _, cell := range c.Cells {
		if len(cell.Runs) == 0 {
			continue
		}
		row := []string{cell.Lock, cell.Fault, cell.Guard, string(plain(cell.Verdict))}
		for _, column := range c.columns() {
			row = append(row, column.text(cell))
		}
		markdownRow(b, row)
	}
	b.WriteString("\n")
	for _, column := range c.columns() {
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
