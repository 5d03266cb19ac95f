package main

import (
	"slices"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestHuntOfTask: a task gets all flags of the hunt, except those that spread it, which the task would
// refuse.
func TestHuntOfTask(t *testing.T) {
	parse := func(arguments ...string) (*huntFlags, *pflag.FlagSet) {
		t.Helper()
		f, cmd := &huntFlags{}, new(cobra.Command)
		f.add(flagsOf(cmd))
		flags := cmd.Flags()
		if err := flags.Parse(arguments); err != nil {
			t.Fatal(err)
		}
		if err := f.check(flags); err != nil {
			t.Fatalf("%v: %v", arguments, err)
		}
		return f, flags
	}
	_, given := parse("--lock", "redlock", "--seed", "7", "--swarm", "2", "--swarm-image", "x", "--swarm-listen", "192.0.2.1:5", "--out", "whole")
	command := huntOfTask(given)
	task, _ := parse(slices.Concat(command[1:], []string{"--shard", "1/2"})...)
	if command[0] != "hunt" || task.Lock != "redlock" || task.Seed != 7 || task.swarm != (swarmFlags{}) || task.out != "" {
		t.Errorf("%v: %+v", command, task)
	}
}
