package checker

import "testing"

func TestMostTelling(t *testing.T) {
	for _, c := range []struct {
		verdicts []Verdict
		want     Verdict
	}{
		{[]Verdict{Valid}, Valid},
		{[]Verdict{NotApplicable, Valid}, Valid},
		{[]Verdict{Valid, Broken}, Broken},
		{[]Verdict{Valid, "nonsense"}, "nonsense"},
		{[]Verdict{"nonsense", Undecided}, Undecided},
		{[]Verdict{Broken, Undecided, Valid}, Undecided},
		{[]Verdict{Undecided, Violation, Broken}, Violation},
	} {
		if got := MostTelling(c.verdicts); got != c.want {
			t.Errorf("%v: %s, want %s", c.verdicts, got, c.want)
		}
	}
}
