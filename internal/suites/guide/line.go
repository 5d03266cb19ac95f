package guide

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"lockcheck/history"
	"lockcheck/internal/remedies"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/reports"
)

// Command repeats the run: by its name if it is an experiment that is built in.
func (r Run) Command() string {
	if r.Line != "" {
		return r.Line
	}
	return remedies.Command(r.Experiment)
}

// lineOf returns the command that repeats a run of an experiment that is not built in. An experiment of
// a user's is found in the files that its command named.
func lineOf(h history.Header) string {
	name := h.Parameters[suites.ExperimentParameter]
	if strings.HasPrefix(name, "repro/") && (slices.Contains(h.Command, "findings") || slices.Contains(h.Command, "all")) {
		return reports.CommandLine(without(h.Command, "--only", "--times", "--store")) + " --only '^" + regexp.QuoteMeta(name) + "$'"
	}
	line := reports.CommandLine(without(h.Command, "--store", "--out", "--parallel", "--test-count", "--seed", "--expect"))
	if name != "" || !slices.Contains(h.Command, "test") || slices.Contains(h.Command, "--schedule") {
		return line // the seed is that of the schedule, or among those of a series
	}
	return fmt.Sprintf("%s --seed %d", line, h.Seed)
}

// testLine is the command for a single test with some options.
func testLine(o runs.Options) string {
	return reports.CommandLine(append([]string{"lockcheck"}, o.Arguments()...))
}

// without leaves flags out that do not decide what a run is.
func without(command []string, flags ...string) []string {
	var kept []string
	for i := 0; i < len(command); i++ {
		name, _, together := strings.Cut(command[i], "=")
		if slices.Contains(flags, name) {
			if !together {
				i++
			}
			continue
		}
		kept = append(kept, command[i])
	}
	return kept
}
