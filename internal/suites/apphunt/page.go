package apphunt

import (
	"fmt"
	"path/filepath"
	"strings"

	"lockcheck/reports"
)

// under says which faults it takes.
func (f Finding) under() string {
	if len(f.Faults) == 0 {
		return "without any fault"
	}
	return "under " + strings.Join(f.Faults, ", ")
}

// Lines say in words what a hunt found, for the terminal.
func (r Result) Lines() []string {
	lines := []string{fmt.Sprintf("%s: trials %d, without a verdict %d, findings %d", r.Application, r.Trials, r.Undecided, len(r.Findings))}
	for _, f := range r.Findings {
		lines = append(lines, fmt.Sprintf("%s, %s: seen again in %d of %d reruns", f.Signature, f.under(), f.Seen, f.Reruns), "  "+f.Sentence)
		for _, s := range f.Also {
			lines = append(lines, "  also "+s.String())
		}
		lines = append(lines, "  "+reports.CommandLine([]string{"lockcheck", "repro", filepath.Join(r.Folder, f.Reproduction)}))
	}
	if len(r.Findings) == 0 && r.Trials > r.Undecided {
		lines = append(lines, "Nothing was found. That says nothing of faults that were not tried, and little of what shows seldom.")
	}
	return lines
}
