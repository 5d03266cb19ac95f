package reports

import (
	"encoding/json"
	"io"
	"time"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"lockcheck/checker"
	"lockcheck/internal/stats"
)

// What the views of suites share with the reports of a run. None of these functions escapes
// anything for HTML; Markdown does for Markdown.

// Printable is Clean for text whose spaces matter, such as a path.
func Printable(s string) string { return printable(s) }

// Grouped is n with separators: "10,000".
func Grouped(n int64) string { return grouped(n) }

// Many is a count with its noun: "1 hold", "2 holds".
func Many[N int | int64](n N, noun string) string { return many(int64(n), noun) }

// Length is a duration with about three significant figures.
func Length(d time.Duration) string { return length(d) }

// Trimmed is f with at most n decimals and without trailing zeros.
func Trimmed(f float64, n int) string { return trimmed(f, n) }

// Percent is a share from 0 to 1 in percent, with enough digits that little is not read as nothing.
func Percent(share float64) string { return inPercent(share) + " %" }

// PercentAtMost rounds a share up to whole percents: a bound must not look better than it is.
func PercentAtMost(share float64) string { return wholePercent(share) + " %" }

// Quantile is one of a histogram, in words; "" if it is empty.
func Quantile(h stats.Histogram, q float64) string { return quantile(h, q) }

// LossInterval is that of the share of lost updates, for a table: "15–23 % (5 faults)".
func LossInterval(i checker.LossInterval) string { return brief(i) }

// Plain is a verdict as one of those that reports know: an unknown one must not pass for
// anything but broken.
func Plain(v checker.Verdict) checker.Verdict { return plain(v) }

// Sentence is what came of a run, without the word of its verdict in front of it.
func Sentence(r checker.Results) string { return sentence(r) }

// Properties lists the names of properties.
func Properties(properties []checker.Property) string { return namesOf(properties) }

// Versions lists modules and servers with their versions.
func Versions(versions map[string]string) string { return versionsText(versions) }

// Markdown escapes text from outside for a line of Markdown, a cell of a table included.
func Markdown(s string) string { return markdown(s) }

// JUnitSeconds is a length of time as JUnit has it.
func JUnitSeconds(d time.Duration) string { return inSeconds(d) }

// WriteJUnit writes the one suite of a file, whose texts must be clean.
func WriteJUnit(w io.Writer, s junit.Testsuite) error { return writeJUnit(w, s) }

// JUnitVerdict is a test that passes only if the verdict is valid. What is undecided or broken is
// an error: JUnit has no word for it, and it must not pass.
func JUnitVerdict(test junit.Testcase, v checker.Verdict, message, text string) junit.Testcase {
	return withVerdict(test, v, message, text)
}

// Annotation is the workflow command by which GitHub Actions shows a message at a job; level is
// "error" or "warning".
func Annotation(level, title, message string) string { return annotation(level, title, message) }

// WriteJSON writes a value for programs.
func WriteJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(value)
}
