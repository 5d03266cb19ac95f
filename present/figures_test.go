package present

import (
	"math"
	"testing"

	"lockcheck/checker"
)

// TestFigures: each figure is described, and its values are read as they are written.
func TestFigures(t *testing.T) {
	for _, f := range checker.Figures() {
		if Figure(f.Name) == "" {
			t.Errorf("%s is not described", f.Name)
		}
		for _, value := range []float64{0.25, 1e6, 2e9} {
			again, err := ParseValue(f, Value(f, value))
			if good := f.Unit != checker.Share && value > 1 || f.Unit != checker.Duration && value < 1; good && (err != nil || again != value) {
				t.Errorf("%s: %s is read as %v, %v", f.Name, Value(f, value), again, err)
			}
		}
	}
	if Figure("moon")+Figure("moon_p99") != "" {
		t.Error("a figure that does not exist is described")
	}
	if text := Value(figure(t, "failover_p99"), math.Inf(1)); text != "never" {
		t.Errorf("a failover that never came is written %q", text)
	}
}

// TestParseValue: a bound must make sense.
func TestParseValue(t *testing.T) {
	for _, c := range []struct {
		name, text string
		good       bool
	}{
		{"lost", "0", true}, {"lost", "-1", false}, {"lost", "inf", false}, {"lost", "NaN", false}, {"lost", "some", false},
		{"failover_p99", "3s", true}, {"failover_p99", "3", false}, {"failover_p99", "0s", false},
		{"availability", "0.9", true}, {"availability", "1.1", false},
	} {
		if _, err := ParseValue(figure(t, c.name), c.text); (err == nil) != c.good {
			t.Errorf("%s %q: %v", c.name, c.text, err)
		}
	}
}

func figure(t *testing.T, name string) checker.Figure {
	t.Helper()
	f, known := checker.FigureByName(name)
	if !known {
		t.Fatalf("there is no figure %s", name)
	}
	return f
}
