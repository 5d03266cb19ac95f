package reports

import (
	"fmt"
	"io"
	"strings"

	"lockcheck/checker"
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
		switch cell.Verdict {
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

func annotation(level, title, message string) string {
	return fmt.Sprintf("::%s title=%s::%s\n", level, githubProperty(title), githubData(message))
}

// reason says why a cell is not valid: the thresholds that were not kept, or what came of
// its runs, and each property that was violated, with the first run that did.
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
	return text
}

// githubData escapes the message of a workflow command: a line break would end it, and
// what follows could be a command of its own.
func githubData(s string) string { return strings.ReplaceAll(clean(s), "%", "%25") }

// githubProperty escapes a property of one.
func githubProperty(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(githubData(s))
}
