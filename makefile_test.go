package lockcheck_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// comparing stands in for lockcheck: it makes a comparison or goes on with one, in which as
// much is missing as the file "missing" says, and publishes how it was called.
const comparing = `#!/bin/sh
mkdir -p "$3"
cp missing "$3/comparison.json"
echo "$2" > "$3/comparison.md"
exit 1
`

// TestMakeComparison: figures are published of a comparison that is complete, and that was
// made then.
func TestMakeComparison(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is not installed")
	}
	rules, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("Makefile", string(rules))
	write("lockcheck", comparing)
	const published = "docs/comparison.md"
	write(published, "")
	const some, none = `{"cells": [{"missing": 3}]}`, `{"cells": [{}]}`
	for i, c := range []struct {
		missing string
		want    string // is published; "" for nothing
		aside   int    // comparisons that were moved out of the way
	}{
		{some, "", 0}, {none, "--resume", 0}, {none, "--out", 1}, {some, "", 2}, {some, "", 2}, {none, "--resume", 2},
	} {
		write("missing", c.missing)
		write(published, "")
		command := exec.Command("make", "-o", "build", "-o", "library-versions", "comparison")
		command.Dir, command.Env = folder, append(os.Environ(), "MAKEFLAGS=") // not those of who runs the tests
		output, err := command.CombinedOutput()
		text, readErr := os.ReadFile(filepath.Join(folder, published))
		aside, globErr := filepath.Glob(filepath.Join(folder, "store", "comparison-*", "comparison.md"))
		if (err == nil) != (c.want != "") || readErr != nil || globErr != nil || strings.TrimSpace(string(text)) != c.want || len(aside) != c.aside {
			t.Errorf("%d: %v, published %q, moved aside %d: want %q, %d\n%s", i, err, text, len(aside), c.want, c.aside, output)
		}
	}
}

// TestMakeTargets: each target is a name and no file, and those at the head are there.
func TestMakeTargets(t *testing.T) {
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	phony := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\.PHONY: (.*)$`).FindAllStringSubmatch(string(text), -1) {
		for _, name := range strings.Fields(m[1]) {
			phony[name] = true
		}
	}
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):([^=]|$)`).FindAllStringSubmatch(string(text), -1) {
		targets[m[1]] = true
		if !phony[m[1]] {
			t.Errorf("%s is not in .PHONY", m[1])
		}
	}
	head := regexp.MustCompile(`(?s)^# Targets: (.*?)\.\n`).FindStringSubmatch(string(text))
	if head == nil {
		t.Fatal("there is no list of targets")
	}
	for _, name := range strings.Fields(strings.ReplaceAll(head[1], "#", "")) {
		if !targets[name] {
			t.Errorf("there is no target %s", name)
		}
	}
	for name := range phony {
		if !targets[name] {
			t.Errorf(".PHONY names %s, which is no target", name)
		}
	}
}
