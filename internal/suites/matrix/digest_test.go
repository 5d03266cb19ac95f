package matrix

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"lockcheck/checker"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/internal/suites/trials"
	"lockcheck/nemesis"
)

// TestAttackDigest: editing an attack changes its digest, and nothing else does.
func TestAttackDigest(t *testing.T) {
	lock, err := lockfile.Find("memory")
	if err != nil {
		t.Fatal(err)
	}
	subject := trials.Subject{Lock: lock, Name: "memory"}
	for _, c := range []struct {
		name, attack string
		edit         func(*form)
		same         bool
	}{
		{"as it was", "holder-paused", func(*form) {}, true},
		{"random faults as they were", "random", func(*form) {}, true},
		{"longer sections", "holder-paused", func(f *form) { f.Section *= 2 }, false},
		{"another moment", "holder-paused", func(f *form) {
			f.Schedule.Steps = slices.Clone(f.Schedule.Steps)
			f.Schedule.Steps[0].Target, f.Schedule.Steps[0].When = "actor", nemesis.WhenReleasing
		}, false},
		{"a random fault less", "random", func(f *form) { f.Random = f.Random[:2] }, false},
	} {
		attack, _ := AttackByName(c.attack)
		before := attack.digest(subject, "none")
		attack.Forms = slices.Clone(attack.Forms)
		c.edit(&attack.Forms[len(attack.Forms)-1]) // which memory gets
		if after := attack.digest(subject, "none"); before == "" || (after == before) != c.same {
			t.Errorf("%s: %q, then %q", c.name, before, after)
		}
	}
	if digest := (Place{"memory", "pause:holder", "none"}).attackDigest(); digest != "" {
		t.Errorf("a random fault has the digest %q", digest)
	}
}

// TestEditedAttack: a resumed comparison repeats the trials of an attack that was edited in the meantime, and
// says so. It does not pool old trials with new ones.
func TestEditedAttack(t *testing.T) {
	for _, edited := range []bool{false, true} {
		before := &fakeRuns{t: t, verdict: func(runs.Options) checker.Verdict { return checker.Violation }}
		folder := newFolder(t, suiteOf(t, "locks: [memory]\nfaults: [holder-paused]\nseeds: 3"), suites.Shard{})
		before.run(before.machine(), folder)
		digest := (Place{"memory", "holder-paused", "none"}).attackDigest()
		ledger, err := os.ReadFile(folder.file(ledgerFile))
		if err != nil || bytes.Count(ledger, []byte(digest)) != 3 {
			t.Fatalf("%v, the digest is in\n%s", err, ledger)
		}
		wanted, verdict := 0, checker.Violation
		if edited {
			wanted, verdict = 3, checker.Valid
			if err := os.WriteFile(folder.file(ledgerFile), bytes.ReplaceAll(ledger, []byte(digest), []byte("0123456789abcdef")), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		again, err := Open(folder.Path)
		if err != nil {
			t.Fatal(err)
		}
		if c := compared(t, again); c.Missing() != wanted || c.Cells[0].Outdated != wanted {
			t.Errorf("edited %t: %d trials missing, %d left out; want %d", edited, c.Missing(), c.Cells[0].Outdated, wanted)
		}
		after := &fakeRuns{t: t, verdict: func(runs.Options) checker.Verdict { return checker.Valid }}
		c := after.run(after.machine(), again)
		if len(after.made) != wanted || c.Verdict != verdict || c.Missing() != 0 {
			t.Errorf("edited %t: %d trials made, %s, %d missing; want %d, %s", edited, len(after.made), c.Verdict, c.Missing(), wanted, verdict)
		}
		if text := written(t, terminalOf(200), c); strings.Contains(text, "3 earlier trials left out, because the attack has changed since") != edited {
			t.Errorf("edited %t:\n%s", edited, text)
		}
	}
}
