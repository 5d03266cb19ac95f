package apphunt

import (
	"fmt"
	"path/filepath"
	"strings"

	"lockcheck/reports"
)

// Lines say in words what a hunt found, for the terminal. App is the path of the app file.
func (r Result) Lines(app string) []string {
	lines := []string{fmt.Sprintf("%s: trials %d, without a verdict %d, findings %d", r.Application, r.Trials, r.Undecided, len(r.Findings))}
	for _, f := range r.Findings {
		command, under := []string{"lockcheck", "test", "--app", app, "--nemesis", "none"}, "without any fault"
		if f.Schedule != "" {
			command = []string{"lockcheck", "test", "--app", app, "--schedule", filepath.Join(r.Folder, f.Schedule)}
			under = "under " + strings.Join(f.Faults, ", ")
		}
		lines = append(lines, fmt.Sprintf("%s, %s: seen again in %d of %d reruns", f.Signature, under, f.Seen, f.Reruns), "  "+f.Sentence)
		for _, s := range f.Also {
			lines = append(lines, "  also "+s.String())
		}
		lines = append(lines, "  "+reports.CommandLine(append(command, "--expect", "violation")))
	}
	if len(r.Findings) == 0 && r.Trials > r.Undecided {
		lines = append(lines, "Nothing was found. That says nothing of faults that were not tried, and little of what shows seldom.")
	}
	return lines
}
