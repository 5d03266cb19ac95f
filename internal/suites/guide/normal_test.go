package guide

import (
	"slices"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/nemesis"
	"lockcheck/reports"
)

// TestNormal: a cell of a comparison and the steps of its runs have the same name.
func TestNormal(t *testing.T) {
	for text, want := range map[string]string{
		"": None, "none": None, "pause:holder": "pause:holder", "clock": "clock:one server", "clock:one": "clock:one server",
		"kill:one server": "kill:one server", "pause:leader": "pause:leader", "pause": "pause:holder", "pause:holder,clock": "pause:holder,clock:one server",
		"no-such": "no-such",
	} {
		if got := Normal(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestFaultsOf: the steps of a schedule get canonical names.
func TestFaultsOf(t *testing.T) {
	const lease = 2 * time.Second
	span := func(text string) nemesis.Span {
		s, err := nemesis.ParseSpan(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	long := span("lease+1s")
	for _, c := range []struct {
		name string
		step nemesis.Step
		want string
	}{
		{"random", nemesis.Step{Fault: "pause", Target: "holder", For: long}, "pause:holder"},
		{"the holder by name", nemesis.Step{Fault: "pause", Target: "w1", When: "holding", Of: "w1", For: long}, "pause:holder"},
		{"another worker", nemesis.Step{Fault: "pause", Target: "w2", When: "holding", Of: "w1", For: long}, "pause:one worker"},
		{"a worker at any time", nemesis.Step{Fault: "pause", Target: "w1", For: long}, "pause:one worker"},
		{"several workers", nemesis.Step{Fault: "pause", Target: "w1,w2", For: long}, "pause:workers"},
		{"short", nemesis.Step{Fault: "pause", Target: "holder", For: span("0.3*lease")}, "pause:holder briefly"},
		{"short, in seconds", nemesis.Step{Fault: "partition", Target: "holder", From: "servers", For: span("1500ms")}, "partition:holder briefly"},
		{"a server, however short", nemesis.Step{Fault: "pause", Target: "n1", For: span("1s")}, "pause:one server"},
		{"a minority by name", nemesis.Step{Fault: "kill", Target: "n1,n2"}, "kill:minority"},
		{"a majority by name", nemesis.Step{Fault: "kill", Target: "n1,n2,n3"}, "kill:majority"},
		{"all by name", nemesis.Step{Fault: "kill", Target: "n1,n2,n3,n4,n5"}, "kill:all"},
		{"all", nemesis.Step{Fault: "kill", Target: "all"}, "kill:all"},
		{"cut off", nemesis.Step{Fault: "partition", Target: "holder", From: "servers", For: long}, "partition:holder"},
		{"cut off from some", nemesis.Step{Fault: "partition", Target: "w1", From: "n4,n5", For: long}, "partition:one worker partly"},
		{"servers cut off from servers", nemesis.Step{Fault: "partition", Target: "n2", From: "n1", For: long}, "partition:one server among servers"},
		{"forward", nemesis.Step{Fault: "clock", Target: "n3", Step: span("lease+10s"), For: long}, "clock:one server"},
		{"forward a little", nemesis.Step{Fault: "clock", Target: "n3", Step: span("1s"), For: long}, "clock:one server briefly"},
		{"back", nemesis.Step{Fault: "clock", Target: "n3", Step: span("-1h"), For: long}, "clock:one server back"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.step.ID = "x"
			h := history.Header{Workers: []string{"w1", "w2", "w3"}, Servers: []string{"n1", "n2", "n3", "n4", "n5"}}
			d := reports.Document{Header: h, Results: checker.Results{Faults: []checker.FaultCoverage{
				{ID: "x", Applied: true, Proven: true, Exercised: true}, {ID: "x-other", Applied: true, Proven: true, Exercised: true},
			}}}
			want := []Fault{{Name: c.want, Asked: 1, Met: 1}}
			if got := faultsOf(d, nemesis.Schedule{Steps: []nemesis.Step{c.step}}, lockEnds{lease: lease}); !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}

// TestConnectionCut: a pause does not end a lock that ends with its connection, and neither does a cut that
// is too short.
func TestConnectionCut(t *testing.T) {
	h := history.Header{Workers: []string{"w1", "w2"}, Servers: []string{"n1"}}
	for _, c := range []struct {
		step nemesis.Step
		want string
	}{
		{nemesis.Step{Fault: "partition", Target: "holder", For: nemesis.Span{Plus: 2 * time.Second}}, "partition:holder briefly"},
		{nemesis.Step{Fault: "partition", Target: "holder", For: nemesis.Span{Plus: 7 * time.Second}}, "partition:holder"},
		{nemesis.Step{Fault: "pause", Target: "holder", For: nemesis.Span{Plus: 2 * time.Second}}, "pause:holder"},
		{nemesis.Step{Fault: "pause", Target: "one", For: nemesis.Span{Plus: 2 * time.Second}}, "pause:one server briefly"},
		{nemesis.Step{Fault: "pause", Target: "one", For: nemesis.Span{Plus: 6 * time.Second}}, "pause:one server"},
		{nemesis.Step{Fault: "kill", Target: "one", For: nemesis.Span{Plus: 2 * time.Second}}, "kill:one server"},
	} {
		if got := nameOf(c.step, h, lockEnds{cut: 5 * time.Second}); got != c.want {
			t.Errorf("%s of %s for %s: %s, want %s", c.step.Fault, c.step.Target, c.step.For, got, c.want)
		}
	}
}

// TestFaultsMet: only faults that were proven and exercised count as met. A fault that never began still
// counts as asked.
func TestFaultsMet(t *testing.T) {
	steps := []nemesis.Step{{ID: "a", Fault: "kill", Target: "n1"}, {ID: "b", Fault: "kill", Target: "n1"}, {ID: "c", Fault: "kill", Target: "n1"}}
	d := reports.Document{Header: history.Header{Servers: []string{"n1"}}, Results: checker.Results{Faults: []checker.FaultCoverage{
		{ID: "a", Applied: true, Proven: true, Exercised: true}, {ID: "b", Applied: true, Exercised: true},
	}}}
	want := []Fault{{Name: "kill:one server", Asked: 3, Met: 1}}
	if got := faultsOf(d, nemesis.Schedule{Steps: steps}, lockEnds{}); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
