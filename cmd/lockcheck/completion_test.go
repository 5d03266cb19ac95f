package main

import (
	"slices"
	"strings"
	"testing"
)

// TestCompletion asks as the scripts of shells do. The last argument is what the user has typed so far.
func TestCompletion(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, c := range []struct {
		args      []string
		want, not []string
		directive string // as cobra numbers them: 4 no files, 8 files with these endings, 16 folders; 2 no space
	}{
		{[]string{"test", "--lock", ""}, []string{"memory", "redis", "etcd"}, []string{"yaml"}, ":4"},
		{[]string{"test", "--lock", "redl"}, []string{"redlock"}, []string{"redis"}, ":4"},
		{[]string{"test", "--lock", "examples/"}, []string{"yaml", "yml"}, []string{"redis"}, ":8"},
		{[]string{"repro", "--lock", "redl"}, []string{"redlock"}, nil, ":4"},
		{[]string{"list", "lock", "zook"}, []string{"zookeeper"}, nil, ":4"},
		{[]string{"compare", "--locks", "redis,et"}, []string{"redis,etcd"}, []string{"etcd"}, ":6"},
		{[]string{"guide", "advise", "--locks", "redis,et"}, []string{"redis,etcd"}, []string{"etcd"}, ":6"},
		{[]string{"guide", "advise", "--locks", "redis,examples/"}, []string{"yaml"}, nil, ":8"},
		{[]string{"completion", ""}, []string{"bash", "fish", "zsh"}, []string{"powershell"}, ":4"},
		{[]string{"test", "--guard", "fen"}, []string{"fence", "fence-writes"}, []string{"none"}, ":4"},
		{[]string{"test", "--nemesis", "pa"}, []string{"pause", "pause:holder", "partition"}, []string{"kill"}, ":6"},
		{[]string{"test", "--nemesis", "clock,pause:h"}, []string{"clock,pause:holder", "clock,pause:halves"}, []string{"clock,pause"}, ":6"},
		{[]string{"compare", "--faults", "no"}, []string{"none"}, nil, ":6"},
		{[]string{"test", "--lock", "etcd", "--version", "3.5"}, []string{"3.5.16"}, []string{"3.4.3"}, ":4"},
		{[]string{"test", "--lock", "redis", "--version", ""}, []string{"official"}, nil, ":4"},
		{[]string{"test", "--require", "mutual"}, []string{"mutual-exclusion"}, nil, ":6"},
		{[]string{"test", "--expect", ""}, []string{"valid", "violation", "undecided", "broken"}, nil, ":4"},
		{[]string{"test", "--image", "re"}, []string{"redis="}, []string{"etcd="}, ":4"},
		{[]string{"test", "--schedule", ""}, []string{"yaml"}, nil, ":8"},
		{[]string{"compare", "--file", ""}, []string{"yaml"}, nil, ":8"},
		{[]string{"test", "--store", ""}, nil, nil, ":16"},
		{[]string{"repro", "redlock-c"}, []string{"redlock-clock-jump"}, []string{"redlock-gc-pause"}, ":4"},
		{[]string{"repro", "examples/k"}, []string{"yaml"}, []string{"redlock-clock-jump"}, ":8"},
		{[]string{"images", "redis"}, []string{"redis", "redis-official"}, []string{"valkey"}, ":4"},
		{[]string{"client", "check", ""}, []string{"yaml"}, nil, ":8"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			s.t = t
			if code := s.run(append([]string{"__complete"}, c.args...)...); code != exitOK {
				t.Fatalf("exit code %d: %s", code, s.stderr)
			}
			lines := strings.Fields(s.stdout)
			if len(lines) == 0 || lines[len(lines)-1] != c.directive {
				t.Fatalf("want the directive %s:\n%s", c.directive, s.stdout)
			}
			for _, word := range c.want {
				if !slices.Contains(lines, word) {
					t.Errorf("%s is missing:\n%s", word, s.stdout)
				}
			}
			for _, word := range c.not {
				if slices.Contains(lines, word) {
					t.Errorf("%s does not begin so:\n%s", word, s.stdout)
				}
			}
		})
	}
}

// TestCompletionScripts: each supported shell gets a script that asks lockcheck, and other shells are
// refused.
func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		s.want(s.run("completion", shell), exitOK, "__complete", "")
	}
	s.want(s.run("completion", "powershell"), exitUsage, "", `unknown shell "powershell"`)
	s.want(s.run("completion"), exitUsage, "", "name a shell: bash, fish or zsh")
	s.want(s.run("help", "completion"), exitOK, "lockcheck completion fish", "")
}
