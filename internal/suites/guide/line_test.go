package guide

import (
	"strings"
	"testing"

	"lockcheck/history"
	"lockcheck/internal/suites"
)

// TestLine: the command repeats the run and mentions nothing of the machine that made it.
func TestLine(t *testing.T) {
	for _, c := range []struct {
		experiment, command string
		want                string
	}{
		{"repro/own/control", "lockcheck findings run examples --times 5 --store /s", "lockcheck findings run examples --only '^repro/own/control$'"},
		{"repro/own", "lockcheck repro examples/own.yaml --store=/s", "lockcheck repro examples/own.yaml"},
		{"", "lockcheck test --lock redis --store /s --test-count 3", "lockcheck test --lock redis --seed 7"},
		{"", "lockcheck test --lock redis --schedule x.yaml --seed 9", "lockcheck test --lock redis --schedule x.yaml"},
		{"", "lockcheck compare --out /s", "lockcheck compare"},
	} {
		h := history.Header{Command: strings.Fields(c.command), Seed: 7, Parameters: map[string]string{suites.ExperimentParameter: c.experiment}}
		if got := lineOf(h); got != c.want {
			t.Errorf("%s of %q: %q, want %q", c.experiment, c.command, got, c.want)
		}
	}
}

// TestCommandOf: built-in experiments are run by name.
func TestCommandOf(t *testing.T) {
	for experiment, want := range map[string]string{
		"repro/redlock-clock-jump": "lockcheck repro redlock-clock-jump", "repro/redlock-clock-jump/control": "lockcheck repro redlock-clock-jump --control",
		"claim/wakes-5": "lockcheck repro claims run --only claim/wakes-5",
	} {
		if got := (Run{Experiment: experiment}).Command(); got != want {
			t.Errorf("%s: %q, want %q", experiment, got, want)
		}
	}
}
