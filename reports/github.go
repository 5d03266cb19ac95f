package reports

import (
	"fmt"
	"io"
	"strings"

	"lockcheck/checker"
	"lockcheck/history"
)

// GitHubAnnotations writes the workflow commands by which GitHub Actions shows at a job
// what a matrix has found: an error for each cell that was violated, a warning for
// each that is undecided or broken, and one for what the whole lacks. GitHub shows the
// first ten of each kind.
// See docs.github.com/actions, "Workflow commands".
func GitHubAnnotations(w io.Writer, m Matrix) error {
	var b strings.Builder
	for _, cell := range m.Cells {
		level := "error"
		switch cell.counted() {
		case checker.Valid, "":
			continue
		case checker.Undecided, checker.Broken:
			level = "warning"
		}
		b.WriteString(annotation(level, "lockcheck: "+cell.name(), cell.reason()))
	}
	if lack := m.Lack(); lack != "" {
		b.WriteString(annotation("warning", "lockcheck: all cells", lack))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// GitHubRun writes the workflow command for a single run that is not valid: an error for a
// violation, else a warning.
// The command makes it again.
func GitHubRun(w io.Writer, r checker.Results, h history.Header, again []string) error {
	if r.Verdict == checker.Valid {
		return nil
	}
	level := "warning"
	if r.Verdict == checker.Violation {
		level = "error"
	}
	text := string(plain(r.Verdict)) + ": " + sentence(r)
	for _, f := range r.Findings {
		if f.Required && f.Verdict == checker.Violation {
			text += "; " + HowViolated(f, r.Begin)
		}
	}
	_, err := io.WriteString(w, annotation(level, "lockcheck: "+runName(h), text+"; again: "+CommandLine(again)))
	return err
}

// RunSummary writes a single run for the summary of a CI job.
func RunSummary(w io.Writer, r checker.Results, h history.Header, again []string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### lockcheck: %s\n\n%s: %s\n\n", plain(r.Verdict), markdown(runName(h)), markdown(sentence(r)))
	markdownRow(&b, []string{"property", "verdict", "what was found"})
	b.WriteString("|" + strings.Repeat(" --- |", 3) + "\n")
	for _, f := range ordered(r.Findings) {
		markdownRow(&b, []string{string(f.Property), wordOf(f), f.Summary})
	}
	fmt.Fprintf(&b, "\nAgain: %s\n\n", markdownCommand(again))
	_, err := io.WriteString(w, b.String())
	return err
}

// runName is a run in a few words.
func runName(h history.Header) string {
	return fmt.Sprintf("%s, %s, guard %s, seed %d", orNone(clean(h.Lock)), orNone(strings.Join(cleanAll(h.Faults), ", ")), orNone(clean(h.Guard)), h.Seed)
}

func annotation(level, title, message string) string {
	return fmt.Sprintf("::%s title=%s::%s\n", level, githubProperty(title), githubData(message))
}

// reason says why a cell is not valid: the thresholds that were not kept, or what came of
// its runs, each property that was violated, with the first run that did, and the command that
// makes it again.
func (c Cell) reason() string {
	text := c.missed()
	if text == "" {
		text = string(plain(c.Verdict)) + ": " + c.note()
	}
	seen := make(map[checker.Property]bool)
	for _, r := range c.Runs {
		for i, p := range r.Violated {
			if seen[p] || i >= len(r.HowViolated) {
				continue
			}
			seen[p] = true
			text += fmt.Sprintf("; seed %d: %s", r.Seed, r.HowViolated[i])
		}
	}
	for _, remark := range c.remarks() {
		text += "; " + remark
	}
	if again := c.again(); again != nil {
		text += "; again: " + CommandLine(again)
	}
	return text
}

// githubData escapes the message of a workflow command: a line break would end it, and
// what follows could be a command of its own.
func githubData(s string) string { return strings.ReplaceAll(clean(s), "%", "%25") }

// githubProperty escapes a property of one.
func githubProperty(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(githubData(s))
}
