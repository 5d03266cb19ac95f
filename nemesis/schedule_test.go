package nemesis

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestReadSchedule(t *testing.T) {
	got, err := ReadSchedule(strings.NewReader(`
seed: 7
steps:
  - fault: pause
    for: lease+1s
  - id: cut
    fault: partition
    target: w1
    from: n1,n2
    for: 2s
    after: 1s
    sequence: a
  - fault: clock
    target: n3
    step: -lease-10s
    for: 2s
    when: holding
    of: w2
    needs: [cut]
    every: 5s
    times: 3
  - {fault: packet-loss, for: 1s, loss: 0.3}
  - {fault: packet-delay, for: 1s, delay: lease-800ms, from: w1}
  - {fault: slow-link, for: 1s, rate: 8000}
executed:
  - {id: pause-1, fault: pause, targets: [w1], at: 1s, for: 2s}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := Schedule{Seed: 7, Steps: []Step{
		// Defaults of a step: its ID, the default role of its fault, and that a holder is hit when it enters
		// its section.
		{ID: "pause-1", Fault: "pause", Target: "holder", When: WhenHolding, For: Span{1, time.Second}},
		{
			ID: "cut", Fault: "partition", Target: "w1", From: "n1,n2",
			For: Span{Plus: 2 * time.Second}, After: Span{Plus: time.Second}, Sequence: "a",
		},
		{
			ID: "clock-3", Fault: "clock", Target: "n3", Step: Span{-1, -10 * time.Second}, For: Span{Plus: 2 * time.Second},
			When: WhenHolding, Of: "w2", Needs: []string{"cut"}, Every: Span{Plus: 5 * time.Second}, Times: 3,
		},
		{ID: "packet-loss-4", Fault: "packet-loss", Target: "one", For: Span{Plus: time.Second}, Loss: 0.3},
		{
			ID: "packet-delay-5", Fault: "packet-delay", Target: "one", From: "w1", For: Span{Plus: time.Second},
			Delay: Span{1, -800 * time.Millisecond},
		},
		{ID: "slow-link-6", Fault: "slow-link", Target: "one", For: Span{Plus: time.Second}, Rate: 8000},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v\nwant %+v", got, want)
	}
	if faults := got.Faults(); !slices.Equal(faults, []string{"clock", "packet-delay", "packet-loss", "partition", "pause", "slow-link"}) {
		t.Errorf("faults %v", faults)
	}
}

// TestReadScheduleOld: files of earlier versions call a sequence a lane.
func TestReadScheduleOld(t *testing.T) {
	got, err := ReadSchedule(strings.NewReader("steps:\n  - {fault: pause, for: 1s, lane: random}\n"))
	if err != nil || len(got.Steps) != 1 || got.Steps[0].Sequence != "random" || got.Steps[0].Lane != "" {
		t.Errorf("read %+v, %v", got, err)
	}
}

// TestReadScheduleMalformed makes one mistake each in a valid schedule, and checks the error.
func TestReadScheduleMalformed(t *testing.T) {
	const good = "steps:\n  - fault: pause\n    for: 1s\n"
	if _, err := ReadSchedule(strings.NewReader(good)); err != nil {
		t.Fatalf("without a mistake: %v", err)
	}
	clock := strings.Replace(good, "pause", "clock", 1)
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "empty"},
		{"comments only", "# nothing\n", "empty"},
		{"no YAML", "steps: [", "line 1"},
		{"a list", "- fault: pause\n", "line 1"},
		{"two documents", good + "---\n" + good, "more than one"},
		{"unknown key", good + "sede: 1\n", "line 4"},
		{"unknown key of a step", good + "    unless: never\n", "line 4"},
		{"length without unit", strings.Replace(good, "1s", "1", 1), "line 3"},
		{"length that is none", strings.Replace(good, "1s", "[1s]", 1), "line 3"},
		{"seed that is none", "seed: many\n" + good, "line 1"},
		{"unknown fault", strings.Replace(good, "pause", "earthquake", 1), `line 2: schedule: step "earthquake-1": fault: unknown fault "earthquake" (there are pause, freeze, kill, `},
		{"no fault", "steps:\n  - for: 1s\n", `unknown fault ""`},
		{"no length", "steps:\n  - fault: pause\n", "for: must be positive"},
		{"negative length", strings.Replace(good, "1s", "-1s", 1), "for: must be positive"},
		{"negative length for any lease", strings.Replace(good, "1s", "-lease-1s", 1), "for: must be positive"},
		{"unknown when", good + "    when: sleeping\n", `line 4: schedule: step "pause-1": when: "sleeping" is unknown`},
		{"into without when", good + "    target: w1\n    into: 1s\n", "into: goes with when: holding, queued, lost or failover"},
		{"into the past", good + "    target: holder\n    into: -1s\n", "into: must not be negative"},
		{"of without when", good + "    target: w1\n    of: w2\n", "of: goes with when:, and the moment of a worker"},
		{"into a call", good + "    when: releasing\n    into: 1s\n", "into: goes with when: holding, queued, lost or failover"},
		{"of a failover", good + "    target: n1\n    when: failover\n    of: w2\n", "of: goes with when:"},
		{"actor without when", good + "    target: actor\n", "target: actor is the worker whose moment a step waits for; add when:"},
		{"actor of a failover", good + "    target: actor\n    when: failover\n", "target: actor is the worker whose moment a step waits for; add when:"},
		{"times without every", good + "    times: 3\n", "times: goes with every"},
		{"negative times", good + "    every: 1s\n    times: -1\n", "must not be negative"},
		{"negative every", good + "    every: -1s\n", "must not be negative"},
		{"negative after", good + "    after: -1s\n", "must not be negative"},
		{"step of what is no clock", good + "    step: 10s\n", "step: only faults that move a clock have it"},
		{"clock without step", clock, "step: a clock must be moved"},
		{"from of what is no partition", good + "    from: n1\n", "from: only faults between nodes"},
		{"two of one name", good + "    id: a\n" + strings.TrimPrefix(good, "steps:\n") + "    id: a\n", `line 7: schedule: step "a": id: another step has it`},
		{"the name of a nameless one", good + strings.TrimPrefix(good, "steps:\n") + "    id: pause-1\n", `line 6: schedule: step "pause-1": id: another step has it`},
		{"needs what is not there", good + "    needs: [rain]\n", `line 4: schedule: step "pause-1": needs: "rain" is no step before it`},
		{"needs a later one", "steps: [{id: a, fault: pause, for: 1s, needs: [b]}, {id: b, fault: pause, for: 1s}]", `needs: "b"`},
		{"target is no role", "steps: [{fault: pause, for: 1s, target: no body}]", `"no body"`},
		{"from is no role", "steps: [{fault: partition, for: 1s, from: some body}]", `"some body"`},
		{"loss without a share", "steps: [{fault: packet-loss, for: 1s}]", "loss: must be a share"},
		{"loss of nothing", "steps: [{fault: packet-loss, for: 1s, loss: 0}]", "loss: must be a share"},
		{"loss of all", "steps: [{fault: packet-loss, for: 1s, loss: 1}]", "loss: must be a share"},
		{"negative loss", "steps: [{fault: packet-loss, for: 1s, loss: -0.3}]", "loss: must be a share"},
		{"loss in percent", "steps: [{fault: packet-loss, for: 1s, loss: 30%}]", "line 1"},
		{"loss that is no number", "steps: [{fault: packet-loss, for: 1s, loss: .nan}]", "loss: must be a share"},
		{"loss of what loses nothing", good + "    loss: 0.3\n", "loss: only for packet-loss"},
		{"loss of a delay", "steps: [{fault: packet-delay, for: 1s, delay: 1s, loss: 0.3}]", "loss: only for packet-loss"},
		{"delay without a length", "steps: [{fault: packet-delay, for: 1s}]", "delay: must be positive"},
		{"negative delay", "steps: [{fault: packet-delay, for: 1s, delay: -1s}]", "delay: must be positive"},
		{"delay without unit", "steps: [{fault: packet-delay, for: 1s, delay: 200}]", "line 1"},
		{"delay of what delays nothing", good + "    delay: 1s\n", "delay: only for packet-delay"},
		{"link without a rate", "steps: [{fault: slow-link, for: 1s}]", "rate: must be 500 to 50000"},
		{"link that is too slow", "steps: [{fault: slow-link, for: 1s, rate: 499}]", "rate: must be 500 to 50000"},
		{"link that is too fast", "steps: [{fault: slow-link, for: 1s, rate: 50001}]", "rate: must be 500 to 50000"},
		{"rate with a unit", "steps: [{fault: slow-link, for: 1s, rate: 8kB}]", "line 1"},
		{"rate of what is no link", good + "    rate: 8000\n", "rate: only for slow-link"},
		{"change of leader at another server", "steps: [{fault: transfer-leader, target: n1}]", "target: only the leader can hand over"},
		{"change of leader for a time", "steps: [{fault: transfer-leader, for: 1s}]", "for: a change of leader lasts until the new leader leads"},
		{"removal of several servers", "steps: [{fault: remove-member, target: minority}]", "target: one server at a time is removed"},
		{"removal of named servers", "steps: [{fault: remove-member, target: 'n1,n2'}]", "target: one server at a time is removed"},
		{"version of what is not restarted", good + "    version: 3.5.16\n", "version: only for restart"},
		{"needs itself", good + "    needs: [pause-1]\n", `needs: "pause-1"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ReadSchedule(strings.NewReader(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it, for\n%s", err, c.want, c.text)
			}
		})
	}
}

// TestScheduleLeases: a length that is valid for some lease is accepted when a schedule is read, and checked
// when the lock is known.
func TestScheduleLeases(t *testing.T) {
	const text = "steps:\n  - {fault: pause, for: lease-1500ms, after: lease-1500ms, every: lease-1500ms}\n"
	schedule, err := ReadSchedule(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := schedule.Steps[0].fits(2 * time.Second); err != nil {
		t.Errorf("with a lease of 2 s: %v", err)
	}
	for _, spoil := range []func(*Step){
		func(s *Step) {},
		func(s *Step) { s.For = Span{Plus: time.Second} },
		func(s *Step) { s.For, s.After = Span{Plus: time.Second}, Span{} },
	} {
		step := schedule.Steps[0]
		spoil(&step)
		if err := step.fits(time.Second); err == nil {
			t.Errorf("%+v fits a lease of 1 s", step)
		}
	}
}

// TestDelayFits: a delay that is too short or too long is refused before the run.
func TestDelayFits(t *testing.T) {
	for _, c := range []struct {
		delay Span
		fits  bool
	}{
		{Span{Plus: minDelay}, true},
		{Span{Plus: minDelay - 1}, false},
		{Span{Plus: maxDelay}, true},
		{Span{Plus: maxDelay + 1}, false},
		{Span{1, -time.Second}, true},
		{Span{1, -2 * time.Second}, false},
		{Span{1, maxDelay}, false},
	} {
		step := Step{Fault: "packet-delay", For: Span{Plus: time.Second}, Delay: c.delay}
		if err := step.check(); err != nil {
			t.Errorf("%s: %v", c.delay, err)
		}
		if err := step.fits(2 * time.Second); (err == nil) != c.fits {
			t.Errorf("%s with a lease of 2 s: %v", c.delay, err)
		}
	}
}

func TestScheduleWithout(t *testing.T) {
	s := Schedule{Seed: 3, Steps: []Step{
		{ID: "a", Fault: "pause", For: Span{Leases: 1}},
		{ID: "b", Fault: "pause", For: Span{Leases: 1}, Needs: []string{"a"}},
		{ID: "c", Fault: "pause", For: Span{Leases: 1}, Needs: []string{"a", "b"}},
	}}
	left := s.Without("a")
	if len(left.Steps) != 2 || len(left.Steps[0].Needs) != 0 || !slices.Equal(left.Steps[1].Needs, []string{"b"}) {
		t.Errorf("without a: %+v", left.Steps)
	}
	if err := left.Check(); err != nil {
		t.Error(err)
	}
	if len(s.Steps) != 3 || !slices.Equal(s.Steps[2].Needs, []string{"a", "b"}) {
		t.Errorf("the schedule itself has changed: %+v", s.Steps)
	}
}

// written returns a schedule as YAML.
func written(t testing.TB, s Schedule) string {
	t.Helper()
	var text bytes.Buffer
	if err := s.Write(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// checkRoundTrip fails the test if a schedule changes when it is written and read.
func checkRoundTrip(t testing.TB, s Schedule) {
	t.Helper()
	text := written(t, s)
	again, err := ReadSchedule(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v, reading\n%s", err, text)
	}
	if got := written(t, again); got != text {
		t.Errorf("written as\n%sread back as\n%s", text, got)
	}
}

func TestScheduleRoundTrip(t *testing.T) {
	for seed := range uint64(50) {
		requests := []Request{
			{Fault: "pause"}, {Fault: "clock"}, {Fault: "partition"}, {Fault: "pause", Target: "one server"},
			{Fault: "packet-loss"}, {Fault: "packet-delay"}, {Fault: "slow-link"},
		}
		s, err := Random(seed, requests, Environment{Lease: time.Second}, time.Second, 20*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		checkRoundTrip(t, s)
	}
	// Executed faults are stored with the schedule and dropped when it is read.
	s := Schedule{Steps: []Step{{Fault: "pause", For: Span{Leases: 1}}}}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	plain := written(t, s)
	s.Executed = []Execution{{ID: "pause-1", Fault: "pause", Targets: []string{"w1"}, At: Span{Plus: time.Second}}}
	again, err := ReadSchedule(strings.NewReader(written(t, s)))
	if err != nil || again.Executed != nil || written(t, again) != plain {
		t.Errorf("read %+v, %v, want only\n%s", again, err, plain)
	}
}

// FuzzReadSchedule: no text crashes the reader, and an accepted schedule survives writing and reading.
func FuzzReadSchedule(f *testing.F) {
	for _, text := range []string{
		"", "steps:\n", "steps:\n  - fault: pause\n    for: lease+1s\n",
		"seed: 18446744073709551615\nsteps: [{id: b, fault: partition, from: 'n1, n2', for: 1h}, {fault: clock, step: -1.5*lease, for: 2s, needs: [b]}]\n",
		"steps:\n  - &a {id: \"\\n#: -\", fault: pause, for: 1000000*lease, every: 1ns, times: 1}\n",
		"steps:\n  - {fault: pause, for: &x 1s, after: *x}\n",
		"steps: [{fault: packet-loss, for: 1s, loss: 3e-1}, {fault: packet-delay, for: 1s, delay: 0.1*lease}, {fault: slow-link, for: 1s, rate: 0x1f40}]\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := ReadSchedule(strings.NewReader(text)); err == nil {
			checkRoundTrip(t, s)
		}
	})
}
