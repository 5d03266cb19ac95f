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

// Command repeats the run: by name for a built-in experiment.
func (r Run) Command() string {
	if r.Line != "" {
		return r.Line
	}
	return remedies.Command(r.Experiment)
}

// lineOf returns the command that repeats a run of an experiment that is not built in. The files named in the
// original command define a user's experiment.
func lineOf(h history.Header) string {
	name := h.Parameters[suites.ExperimentParameter]
	if strings.HasPrefix(name, "repro/") && (slices.Contains(h.Command, "findings") || slices.Contains(h.Command, "all")) {
		return reports.CommandLine(without(h.Command, "--only", "--times", "--store")) + " --only '^" + regexp.QuoteMeta(name) + "$'"
	}
	line := reports.CommandLine(without(h.Command, "--store", "--out", "--parallel", "--test-count", "--seed", "--expect"))
	if name != "" || !slices.Contains(h.Command, "test") || slices.Contains(h.Command, "--schedule") {
		return line // the schedule has its own seed, or the seed is one of a series
	}
	return fmt.Sprintf("%s --seed %d", line, h.Seed)
}

// testLine is the command for a single test with the given options.
func testLine(o runs.Options) string {
	return reports.CommandLine(append([]string{"lockcheck"}, o.Arguments()...))
}

// without removes flags that do not affect what a run does.
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
