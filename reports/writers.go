package reports

import (
	"cmp"
	"slices"
	"strings"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"lockcheck/checker"
)

func markdownRow(b *strings.Builder, cells []string) {
	escaped := make([]string, 0, len(cells))
	for _, cell := range cells {
		escaped = append(escaped, Markdown(cell))
	}
	markdownLine(b, escaped)
}

// markdownLine writes a row of cells that are already Markdown.
func markdownLine(b *strings.Builder, cells []string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// markdownCode shows text from outside as code. Within code, only characters that would end the cell can be
// escaped.
func markdownCode(s string) string {
	return "`" + strings.NewReplacer("`", "'", "|", `\|`).Replace(clean(s)) + "`"
}

// Markdown escapes text from outside for a cell of a table. The text must neither end the cell nor become
// markup.
func Markdown(s string) string { return markdownEscapes.Replace(clean(s)) }

var markdownEscapes = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "`", "\\`", "<", "&lt;", ">", "&gt;", "&", "&amp;", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`,
)

// JUnitVerdict is a test case that passes only if the verdict is valid. An undecided or broken verdict is an
// error, because JUnit has no word for it and it must not pass.
func JUnitVerdict(test junit.Testcase, v checker.Verdict, message, text string) junit.Testcase {
	outcome := &junit.Result{Message: message, Type: string(Plain(v)), Data: text}
	switch Plain(v) {
	case checker.Valid:
		test.SystemOut = &junit.Output{Data: message + "\n" + text}
	case checker.Violation:
		test.Failure = outcome
	default:
		test.Error = outcome
	}
	return test
}

// HowViolated says in a line how a property was violated, and when first, counted from begin, in ns of the
// history.
func HowViolated(f checker.Finding, begin int64) string {
	when := ""
	if len(f.Violations) > 0 {
		first := slices.MinFunc(f.Violations, func(a, b checker.Incident) int { return cmp.Compare(a.From, b.From) })
		when = ", first at " + at(first.From, begin)
	}
	return string(f.Property) + when + ": " + clean(f.Summary)
}
