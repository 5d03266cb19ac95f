package nemesis

import (
	"slices"
	"testing"
	"time"
)

// TestRandomInto: faults of the holder strike anywhere in a hold, early enough to hit the holder. If the holder
// can still act, its lease must run out within the hold. Of three consecutive faults one comes late.
func TestRandomInto(t *testing.T) {
	const second, ms = time.Second, time.Millisecond
	for _, c := range []struct {
		name   string
		env    Environment
		of     Request
		latest time.Duration // 0: each strikes when the hold begins, or regardless of it
	}{
		{"kill", Environment{Lease: second, Hold: 600 * ms}, Request{"kill", roleHolder}, 540 * ms},
		{"pause", Environment{Lease: second, Hold: 600 * ms}, Request{"pause", ""}, 540 * ms},
		{"pause of a short hold", Environment{Lease: second, Hold: 60 * ms}, Request{"pause", ""}, 10 * ms},
		{"pause of a hold too short to aim", Environment{Lease: second, Hold: 40 * ms}, Request{"pause", ""}, 0},
		{"pause of holds of unknown length", Environment{Lease: second}, Request{"pause", ""}, 0},
		{"pause of somebody else", Environment{Lease: second, Hold: 600 * ms}, Request{"pause", roleWaiter}, 0},
		{"write held back", Environment{Lease: second, Hold: 600 * ms}, Request{"delay-write", ""}, 0},
		{"cut in a hold that ends before the lease", Environment{Lease: second, Hold: 600 * ms}, Request{"partition", roleHolder}, 0},
		{"cut in a hold that outlasts the lease", Environment{Lease: second, Hold: 3 * second}, Request{"partition", roleHolder}, 1700 * ms},
		{"cut of a lock that ends with its connection", Environment{Silence: 2 * second, Hold: 3 * second}, Request{"partition", roleHolder}, 700 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(100) {
				s, err := Random(seed, []Request{c.of}, c.env, second, 30*second)
				if err != nil {
					t.Fatal(err)
				}
				var all []time.Duration
				for _, step := range s.Steps {
					all = append(all, step.Into.Of(c.env.Lease))
				}
				if slices.Max(all) > c.latest {
					t.Fatalf("seed %d: %v, want %s at most", seed, all, c.latest)
				}
				for three := range slices.Chunk(all[:len(all)/3*3], 3) {
					if late := slices.Max(three); c.latest > 0 && late < c.latest*3/5 {
						t.Fatalf("seed %d: %v are all early, of up to %s", seed, three, c.latest)
					}
				}
			}
		})
	}
}

// TestRandomIntoAlone: the position in a hold changes nothing else in a schedule.
func TestRandomIntoAlone(t *testing.T) {
	made := func(hold time.Duration) []Step {
		s, err := Random(1, []Request{{Fault: "kill", Target: roleHolder}, {Fault: "pause"}}, Environment{Lease: time.Second, Hold: hold}, time.Second, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.Steps {
			s.Steps[i].Into = Span{}
		}
		return s.Steps[:10]
	}
	if with, without := made(time.Second), made(0); !slices.EqualFunc(with, without, func(a, b Step) bool { return a.Fault == b.Fault && a.For == b.For && a.After == b.After }) {
		t.Errorf("%+v, without %+v", with, without)
	}
}
