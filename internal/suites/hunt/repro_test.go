package hunt

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"lockcheck/checker"
	"lockcheck/internal/suites/repros"
)

// TestReproduction: a written reproduction is read back as the same test, with its control.
func TestReproduction(t *testing.T) {
	p := ready(t, "redlock")
	rng := rand.New(rand.NewPCG(3, 1))
	for range 50 {
		trial := p.space.draw(rng)
		r, err := p.reproduction("hunt-redlock-1", trial, Signature{Property: checker.MutualExclusion, Cause: checker.CauseClock}, "both held it: at once")
		if err != nil {
			t.Fatal(err)
		}
		controls := p.controls(trial, r)
		if len(controls) > 0 {
			r.Control = &controls[rng.IntN(len(controls))]
			r.Control.Expect = Signature{Property: checker.MutualExclusion}.expectations()[0]
		}
		path, err := write(t.TempDir(), r)
		if err != nil {
			t.Fatal(err)
		}
		read, err := repros.FromFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, control := range []bool{false, true} {
			if control && r.Control == nil {
				continue
			}
			want, err := experiment(r, control)
			if err != nil {
				t.Fatal(err)
			}
			got, err := experiment(read, control)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("%v\n%+v\n%+v", err, got, want)
			}
		}
	}
}

// TestSibling: a lock with a known flaw has a sibling without it, on the same servers except for a proxy in
// front of them.
func TestSibling(t *testing.T) {
	for lock, want := range map[string]string{"redis-unsafe-release": "redis", "redsync-4.12.0": "redsync", "postgres-pgbouncer": "postgres-session", "redis": "", "memory": ""} {
		if got := ready(t, lock).sibling(); got != want {
			t.Errorf("%s: %q, want %q", lock, got, want)
		}
	}
}

// TestExpectation: the expectation separates a finding from what is inherent in leases.
func TestExpectation(t *testing.T) {
	for _, c := range []struct {
		of          Signature
		verdict     checker.Verdict
		doubleGrant bool
		earlier     string
	}{
		{Signature{Property: checker.MutualExclusion, Cause: checker.CauseTwice}, checker.Violation, true, ""},
		{Signature{Property: checker.MutualExclusion, Cause: checker.CauseCutOff, NotNotified: true}, checker.Violation, false, "cut off"},
		{Signature{Property: checker.Liveness}, checker.Violation, false, ""},
		{Signature{Property: checker.Linearizability}, "", false, ""},
	} {
		e := c.of.expectation()
		if e.Verdict != c.verdict || e.DoubleGrant != c.doubleGrant || e.Earlier != c.earlier || e.Cause != c.of.Cause {
			t.Errorf("%s: %+v", c.of, e)
		}
	}
}
