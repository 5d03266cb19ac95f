package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestFormerNames: each former command line is translated to a current one, and no other command line is.
func TestFormerNames(t *testing.T) {
	for former, want := range map[string]string{
		"sweep --lock redis":                    "compare --pause 100ms..5s --lock redis",
		"sweep -l redis":                        "compare --pause 100ms..5s --lock redis",
		"sweep -l=redis":                        "compare --pause 100ms..5s --lock=redis",
		"advise -lredis":                        "guide advise --lock=redis",
		"sweep --pause 1s..2s":                  "compare --pause 1s..2s",
		"sweep --resume store/sweep/latest":     "compare --resume store/sweep/latest",
		"profile --time 5s --time=6s":           "compare --load 1..64 --time-limit 5s --time-limit=6s",
		"profile --load=8":                      "compare --load=8",
		"merge --out whole a b":                 "compare merge --out whole a b",
		"findings run examples --times 2":       "repro all examples --times 2",
		"findings table":                        "repro table",
		"claims run --missing":                  "repro claims run --missing",
		"claims table --links x":                "repro claims table --links x",
		"advise --lock redis --failover 10s":    "guide advise --lock redis --failover 10s",
		"help sweep":                            "help compare",
		"help findings run":                     "help repro all",
		"test --lock redis":                     "",
		"help test":                             "",
		"compare merge a":                       "",
		"":                                      "",
		"list causes --long":                    "",
		"hunt --lock merge --seed 1 --budget 1": "",
	} {
		current := currentArgs(strings.Fields(former))
		if got := strings.Join(current, " "); got != want {
			t.Errorf("%s: %q, want %q", former, got, want)
		}
		if current == nil || current[0] == "help" {
			continue
		}
		cmd, rest, err := rootCommand(&system{}).Find(current)
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err != nil || !cmd.HasParent() {
			t.Errorf("%s is no command line: %v", want, err)
		}
	}
}

// TestFormerMerge: the former merge command merges the parts of a hunt.
func TestFormerMerge(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	const heading = `{"schema":1,"plan":{"lock":"memory"}}` + "\n"
	if err := os.WriteFile(filepath.Join(folder, "ledger.jsonl"), []byte(heading), 0o644); err != nil {
		t.Fatal(err)
	}
	s := newShell(t)
	s.want(s.run("merge", folder), exitUsage, "", "use: lockcheck hunt merge "+folder+"\nlockcheck: --out: ")
}

// TestFlagsAgree: a flag has one description and one shorthand in all commands.
func TestFlagsAgree(t *testing.T) {
	known, used := descriptions(), make(map[string]bool)
	for _, cmd := range withSubcommands(rootCommand(&system{})) {
		if cmd.Hidden {
			continue
		}
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			d := known[flag.Name]
			if flag.Name != "help" && flag.Name != "version" && (d.usage != flag.Usage || d.short != flag.Shorthand) {
				t.Errorf("%s --%s: %q", cmd.CommandPath(), flag.Name, flag.Usage)
			}
			used[flag.Name] = true
		})
	}
	for name := range known {
		if !used[name] {
			t.Errorf("no command has --%s", name)
		}
	}
}

// TestKinds: flags that make no sense with a kind of comparison are refused, and the reason names both flags.
func TestKinds(t *testing.T) {
	for _, c := range []struct{ line, kind, refused string }{
		{"", "a comparison by attacks", ""},
		{"--locks redis --faults holder-paused,at-rest --trials 5", "a comparison by attacks", ""},
		{"--locks redis --faults holder-paused,pause --ttl 2s --section 20ms-80ms --renew", "a comparison under random faults", ""},
		{"--faults at-rest --ttl 2s", "", "--ttl 2s: only a comparison under random faults takes it; to get one, use --faults pause:holder"},
		{"--lock redis --ttl 500ms..30s --section 1s --version 8 --steps 3", "a sweep", ""},
		{"--section 10ms..5s", "a sweep", ""},
		{"--load 1..64 --think 5ms --section 1ms-3ms --time-limit 5s", "a load profile", ""},
		{"--pause 3s", "", "--pause 3s: only a sweep takes it; to get one, use a range, as in --pause 100ms..30s"},
		{"--think 3ms", "", "--think 3ms: only a load profile takes it; to get one, use --load 1..64"},
		{"--pause 1s..2s --faults clock", "", "--faults [clock]: --pause 1s..2s asks for a sweep, which does not take --faults"},
		{"--load 8 --ttl 1s..2s", "", "--ttl 1s..2s: --load 8 asks for a load profile, which does not take --ttl"},
		{"--ttl 1s..2s --swarm 2", "", "--swarm 2: --ttl 1s..2s asks for a sweep, which does not take --swarm"},
		{"--load 8 --parallel 2", "", "--parallel 2: --load 8 asks for a load profile, which does not take --parallel"},
	} {
		f, cmd := new(compareFlags), new(cobra.Command)
		f.add(flagsOf(cmd))
		if err := cmd.ParseFlags(strings.Fields(c.line)); err != nil {
			t.Fatal(err)
		}
		kind, err := f.kind(cmd.Flags())
		switch {
		case err == nil && (c.refused != "" || kind.name != c.kind):
			t.Errorf("%q: %s, want %s%s", c.line, kind.name, c.kind, c.refused)
		case err != nil && (c.refused == "" || !strings.HasPrefix(err.Error(), c.refused) || exitCode(err) != exitUsage):
			t.Errorf("%q: %v, want %q", c.line, err, c.refused)
		}
	}
}
