package guide

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"lockcheck/history"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/reports"
)

// lineOf is the command that repeats a run. An experiment that is not built in is found in
// the files that its command named.
func lineOf(h history.Header, builtIn bool) string {
	name := h.Parameters[suites.ExperimentParameter]
	claim := strings.HasPrefix(name, "claim/")
	rest, isRepro := strings.CutPrefix(name, "repro/")
	switch {
	case claim:
		return "lockcheck claims run --only '^" + regexp.QuoteMeta(name) + "$'"
	case strings.HasPrefix(name, "lock/"):
		return "lockcheck findings run --only '^" + regexp.QuoteMeta(name) + "$'"
	case isRepro && builtIn:
		form := ""
		for _, ending := range []string{"control", "fast"} {
			var is bool
			if rest, is = strings.CutSuffix(rest, "/"+ending); is {
				form = " --" + ending + form
			}
		}
		return "lockcheck repro " + rest + form
	case isRepro && (slices.Contains(h.Command, "findings") || slices.Contains(h.Command, "all")): // its former name, and its name
		return reports.CommandLine(without(h.Command, "--only", "--times", "--store")) + " --only '^" + regexp.QuoteMeta(name) + "$'"
	}
	line := reports.CommandLine(without(h.Command, "--store", "--out", "--parallel", "--test-count", "--seed", "--expect"))
	if isRepro || !slices.Contains(h.Command, "test") || slices.Contains(h.Command, "--schedule") {
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
