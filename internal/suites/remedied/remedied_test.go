package remedied

import (
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/internal/runs"
)

func options(t *testing.T, lock string) runs.Options {
	o := runs.Options{
		Lock: lock, Workload: "set", Guard: "none", Nemesis: "pause", Interval: runs.DefaultInterval,
		Concurrency: 3, Seed: 7,
	}
	o.Section, o.Store = runs.DefaultSection(), t.TempDir()
	return o
}

func (p Plan) flags() (tried, left []string) {
	for _, t := range p.tries {
		tried = append(tried, t.flag)
	}
	for _, n := range p.notTried {
		left = append(left, n.Flag)
	}
	return tried, left
}

// TestNew: every remedy that the lock supports is tried, and every other remedy has a reason.
func TestNew(t *testing.T) {
	for _, c := range []struct {
		lock, guard string
		tried, left []string
	}{
		{"memory", "none", []string{"--guard fence", "--guard cas", "--guard ask", "--renew", "--ttl 5s", "--check-before-write"}, []string{"--guard database", "--guard idempotency-key"}},
		{"memory", "cas", []string{"--guard fence", "--guard ask", "--renew", "--ttl 5s", "--check-before-write"}, []string{"--guard database", "--guard cas", "--guard idempotency-key"}},
		{"none", "none", []string{"--guard cas"}, []string{"--guard fence", "--guard database", "--guard idempotency-key", "--guard ask", "--renew", "--ttl", "--check-before-write"}},
		{"../../../examples/python-embedded/lock.yaml", "none", nil, nil},
	} {
		o := options(t, c.lock)
		o.Guard = c.guard
		p, err := New(o)
		if err != nil {
			t.Fatal(c.lock, err)
		}
		tried, left := p.flags()
		if c.tried != nil && (!slices.Equal(tried, c.tried) || !slices.Equal(left, c.left)) {
			t.Errorf("%s, guard %s: tried %q, left %q", c.lock, c.guard, tried, left)
		}
		if !slices.Contains(tried, "--guard cas") && c.guard != "cas" {
			t.Errorf("%s: a version check works with every lock, and %q are tried", c.lock, tried)
		}
		for _, n := range p.notTried {
			if n.Why == "" {
				t.Errorf("%s: no reason for %s", c.lock, n.Flag)
			}
		}
	}
}

// TestSameFaults: a run with a remedy has the faults of the plain run, with the same length and for the same
// time, even with a longer lease.
func TestSameFaults(t *testing.T) {
	o := options(t, "memory")
	plain, err := runs.OutlineOf(o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	lengths := func(steps int, of func(int) time.Duration) (all []time.Duration) {
		for i := range steps {
			all = append(all, of(i))
		}
		return all
	}
	want := lengths(len(plain.Schedule.Steps), func(i int) time.Duration { return plain.Schedule.Steps[i].For.Of(plain.Effective) })
	if len(want) == 0 || slices.Contains(want, 0) {
		t.Fatal("the plain run has no faults", want)
	}
	for _, tr := range p.tries {
		outline := tr.job.Outline
		steps := outline.Schedule.Steps
		if got := lengths(len(steps), func(i int) time.Duration { return steps[i].For.Of(outline.Effective) }); !slices.Equal(got, want) {
			t.Errorf("%s: faults of %v, want %v", tr.flag, got, want)
		}
		active := outline.Options.TimeLimit - outline.Recovery
		if plainActive := plain.Options.TimeLimit - plain.Recovery; active != plainActive {
			t.Errorf("%s: %s for faults, want %s", tr.flag, active, plainActive)
		}
		if tr.job.Options.Seed != o.Seed {
			t.Errorf("%s: seed %d", tr.flag, tr.job.Options.Seed)
		}
	}
	if _, err := New(options(t, "no such lock")); err == nil || !strings.Contains(err.Error(), "no such lock") {
		t.Error("a lock that there is not:", err)
	}
}
