package nemesis

import (
	"errors"
	"slices"
	"testing"
	"time"
)

func TestParseRequests(t *testing.T) {
	for _, c := range []struct {
		text string
		want []Request
	}{
		{"", nil},
		{"none", nil},
		{"pause", []Request{{Fault: "pause"}}},
		{"pause,clock", []Request{{Fault: "pause"}, {Fault: "clock"}}},
		{" pause , clock ", []Request{{Fault: "pause"}, {Fault: "clock"}}},
		{"pause:one server", []Request{{Fault: "pause", Target: "one server"}}},
		{"pause:one server,partition: halves", []Request{{Fault: "pause", Target: "one server"}, {Fault: "partition", Target: "halves"}}},
		{"pause:", []Request{{Fault: "pause"}}},
	} {
		if got, err := ParseRequests(c.text); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q is %+v, %v, want %+v", c.text, got, err, c.want)
		}
	}
	for text, name := range map[string]string{
		"pauze": "pauze", "pause,rain": "rain", "pause,": "", "pause,none": "none", "one server": "one server", ":w1": "",
	} {
		var unknown *UnknownKindError
		if got, err := ParseRequests(text); !errors.As(err, &unknown) || unknown.Name != name {
			t.Errorf("%q is %+v, %v, want the fault %q to be unknown", text, got, err, name)
		}
	}
}

// TestRandom checks what must hold for every random schedule.
func TestRandom(t *testing.T) {
	const interval, length = time.Second, 30 * time.Second
	env := Environment{Lease: 2 * time.Second}
	for _, text := range []string{"pause", "clock", "partition", "pause,clock,partition", "pause,pause:waiter,partition:halves",
		"packet-loss,packet-delay:halves,slow-link"} {
		requests, err := ParseRequests(text)
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(200) {
			s, err := Random(seed, requests, env, interval, length)
			if err != nil {
				t.Fatalf("%s, seed %d: %v", text, seed, err)
			}
			free := time.Duration(0) // when the previous step is over
			for _, step := range s.Steps {
				at := step.After.Of(env.Lease)
				if step.Sequence != randomSequence || at < free || at < firstFault {
					t.Fatalf("%s, seed %d: step %+v is not after the one before it", text, seed, step)
				}
				if free = at + step.For.Of(env.Lease); free > length {
					t.Fatalf("%s, seed %d: step %+v ends after %s", text, seed, step, length)
				}
				if err := errors.Join(step.check(), step.fits(env.Lease)); err != nil {
					t.Fatalf("%s, seed %d: step %+v: %v", text, seed, step, err)
				}
				if step.Fault == "clock" && step.Step.Of(env.Lease).Abs() <= env.Lease {
					t.Fatalf("%s, seed %d: a clock moved by %s ends no lease of %s", text, seed, step.Step, env.Lease)
				}
			}
			checkEqualShares(t, requests, s)
		}
	}
}

// checkEqualShares fails the test if the requests do not occur equally often in a schedule.
func checkEqualShares(t *testing.T, requests []Request, s Schedule) {
	t.Helper()
	least, most := len(s.Steps), 0
	for _, request := range requests {
		n := 0
		for _, step := range s.Steps {
			if step.Fault == request.Fault && (request.Target == "" || step.Target == request.Target) {
				n++
			}
		}
		for _, other := range requests {
			if request.Target == "" && other.Fault == request.Fault && other.Target != "" {
				return // its steps look like those of the other request
			}
		}
		least, most = min(least, n), max(most, n)
	}
	if least == 0 || most-least > 1 {
		t.Fatalf("seed %d: requests %+v are %d to %d times in %+v", s.Seed, requests, least, most, s.Steps)
	}
}

func TestRandomSeed(t *testing.T) {
	from := func(seed uint64) string {
		s, err := Random(seed, []Request{{Fault: "pause"}, {Fault: "clock"}}, Environment{Lease: time.Second}, time.Second, 20*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		s.Seed = 0
		return written(t, s)
	}
	first, again, other := from(1), from(1), from(2)
	if first != again {
		t.Error("one seed gave two schedules")
	}
	if first == other {
		t.Error("two seeds gave one schedule")
	}
}

// TestRandomSilence: a cut or a stop outlasts a lock that ends with its connection or its lease.
func TestRandomSilence(t *testing.T) {
	for _, env := range []Environment{{Lease: 2 * time.Second}, {Silence: 5 * time.Second}} {
		for _, kind := range []string{"partition", "one-way", "pause", "freeze", "crash"} {
			s, err := Random(1, []Request{{Fault: kind}}, env, time.Second, time.Minute)
			if err != nil || len(s.Steps) == 0 {
				t.Fatalf("%+v, %v", s, err)
			}
			for _, step := range s.Steps {
				if lasts := step.For.Of(env.Lease); lasts <= max(env.Lease, env.Silence) {
					t.Errorf("%s for %s, with %+v", kind, lasts, env)
				}
			}
		}
	}
}

// TestRandomTooShort: every requested fault is in the schedule even if there is no time for it, so that the
// checker reports it as missing.
func TestRandomTooShort(t *testing.T) {
	requests := []Request{{Fault: "pause"}, {Fault: "clock"}}
	s, err := Random(1, requests, Environment{Lease: time.Second}, time.Second, time.Millisecond)
	if err != nil || !slices.Equal(s.Faults(), []string{"clock", "pause"}) || len(s.Steps) != 2 {
		t.Errorf("%+v, %v: want each fault once", s, err)
	}
	s, err = Random(1, nil, Environment{}, time.Second, time.Minute)
	if err != nil || len(s.Steps) != 0 {
		t.Errorf("%+v, %v: want no fault where none was asked for", s, err)
	}
}

// TestRandomTarget: a requested target is used.
func TestRandomTarget(t *testing.T) {
	targets := func(request Request) []string {
		var all []string
		for seed := range uint64(50) {
			s, err := Random(seed, []Request{request}, Environment{Lease: time.Second}, time.Second, 5*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range s.Steps {
				all = append(all, step.Target)
			}
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	if got := targets(Request{Fault: "partition"}); !slices.Equal(got, []string{roleHalves, roleOne, roleOneWorker}) {
		t.Errorf("partitions of %v", got)
	}
	for _, target := range []string{roleOne, "n2", roleHalves} {
		if got := targets(Request{Fault: "partition", Target: target}); !slices.Equal(got, []string{target}) {
			t.Errorf("partition:%s is one of %v", target, got)
		}
	}
}
