package reports

import (
	"fmt"
	"io"
	"strings"

	"lockcheck/checker"
	"lockcheck/history"
)

// GitHubRun writes the workflow command for a single run that is not valid: an error for a violation,
// otherwise a warning. again is the command that repeats the run. See docs.github.com/actions, "Workflow
// commands".
func GitHubRun(w io.Writer, r checker.Results, h history.Header, again []string) error {
	if r.Verdict == checker.Valid {
		return nil
	}
	level := "warning"
	if r.Verdict == checker.Violation {
		level = "error"
	}
	text := string(Plain(r.Verdict)) + ": " + Sentence(r)
	for _, f := range r.Findings {
		if f.Required && f.Verdict == checker.Violation {
			text += "; " + HowViolated(f, r.Begin)
		}
	}
	_, err := io.WriteString(w, Annotation(level, "lockcheck: "+runName(h), text+"; again: "+CommandLine(again)))
	return err
}

// RunSummary writes a single run for the summary of a CI job.
func RunSummary(w io.Writer, r checker.Results, h history.Header, again []string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### lockcheck: %s\n\n%s: %s\n\n", Plain(r.Verdict), Markdown(runName(h)), Markdown(Sentence(r)))
	markdownRow(&b, []string{"property", "verdict", "what was found"})
	b.WriteString("|" + strings.Repeat(" --- |", 3) + "\n")
	for _, f := range ordered(r.Findings) {
		markdownRow(&b, []string{string(f.Property), wordOf(f), f.Summary})
	}
	fmt.Fprintf(&b, "\nAgain: %s\n\n", markdownCommand(again))
	_, err := io.WriteString(w, b.String())
	return err
}

func runName(h history.Header) string {
	return fmt.Sprintf("%s, %s, guard %s, seed %d", orNone(clean(h.Lock)), orNone(strings.Join(cleanAll(h.Faults), ", ")), orNone(clean(h.Guard)), h.Seed)
}

// Annotation is the workflow command with which GitHub Actions shows a message on a job. level is "error" or
// "warning".
func Annotation(level, title, message string) string {
	return fmt.Sprintf("::%s title=%s::%s\n", level, githubProperty(title), githubData(message))
}

// githubData escapes the message of a workflow command. A line break would end the command, and the text
// after it could be another command.
func githubData(s string) string { return strings.ReplaceAll(clean(s), "%", "%25") }

// githubProperty escapes a property of a workflow command.
func githubProperty(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(githubData(s))
}
