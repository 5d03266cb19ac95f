package guide

import (
	"strings"
	"testing"

	"lockcheck/history"
	"lockcheck/internal/suites"
)

// TestLine: the command that repeats a run, and nothing of the machine on which it was made.
func TestLine(t *testing.T) {
	for _, c := range []struct {
		experiment, command string
		builtIn             bool
		want                string
	}{
		{"repro/redlock-clock-jump", "lockcheck findings run --store /s", true, "lockcheck repro redlock-clock-jump"},
		{"repro/redlock-clock-jump/control", "lockcheck findings run", true, "lockcheck repro redlock-clock-jump --control"},
		{"repro/own/control", "lockcheck findings run examples --times 5 --store /s", false, "lockcheck findings run examples --only '^repro/own/control$'"},
		{"repro/own/control", "lockcheck repro all examples --times 5 --store /s", false, "lockcheck repro all examples --only '^repro/own/control$'"},
		{"repro/own", "lockcheck repro examples/own.yaml --store=/s", false, "lockcheck repro examples/own.yaml"},
		{"lock/redis/paused", "lockcheck findings run", true, "lockcheck findings run --only '^lock/redis/paused$'"},
		{"claim/wakes-5", "lockcheck claims run", true, "lockcheck claims run --only '^claim/wakes-5$'"},
		{"", "lockcheck test --lock redis --store /s --test-count 3", false, "lockcheck test --lock redis --seed 7"},
		{"", "lockcheck test --lock redis --schedule x.yaml --seed 9", false, "lockcheck test --lock redis --schedule x.yaml"},
		{"", "lockcheck compare --out /s", false, "lockcheck compare"},
	} {
		h := history.Header{Command: strings.Fields(c.command), Seed: 7, Parameters: map[string]string{suites.ExperimentParameter: c.experiment}}
		if got := lineOf(h, c.builtIn); got != c.want {
			t.Errorf("%s of %q: %q, want %q", c.experiment, c.command, got, c.want)
		}
	}
}
