package main

import (
	"slices"
	"testing"

	"lockcheck/internal/suites"
)

// TestFindingsOrder: a stopped series has run all experiments about equally often.
func TestFindingsOrder(t *testing.T) {
	all := []suites.Experiment{{Name: "lock/a"}, {Name: "repro/b"}, {Name: "lock/c"}}
	series, err := (&seriesFlags{only: "^lock/", times: 2, parallel: 3}).choose(all)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range series.Experiments {
		names = append(names, e.Name)
	}
	if want := []string{"lock/a", "lock/c", "lock/a", "lock/c"}; !slices.Equal(names, want) || series.Parallel != 3 {
		t.Errorf("%d of %q at a time, want 3 of %q", series.Parallel, names, want)
	}
}
