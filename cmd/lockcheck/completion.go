package main

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockcheck/checker"
	"lockcheck/clients"
	"lockcheck/clusters"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/spelling"
	"lockcheck/internal/suites/repros"
	"lockcheck/nemesis"
	"lockcheck/workloads"
)

// addCompletion tells shells what can be written for flags and arguments: for a flag the same
// in all commands that have it.
func addCompletion(root *cobra.Command) {
	yaml := []string{"yaml", "yml"}
	ofFlags := map[string]cobra.CompletionFunc{
		"lock": orYAML(lockNames), "locks": orYAML(lockNames),
		"guard": from(workloads.Guards), "guards": from(workloads.Guards),
		"nemesis": listOf(from(faultTargets)), "faults": from(faultTargets),
		"workload": from(workloads.Names), "version": completeVersion,
		"require": from(propertyNames), "expect": from(verdictNames), "image": from(replaceableImages),
		"schedule": cobra.FixedCompletions(yaml, cobra.ShellCompDirectiveFilterFileExt),
		"file":     cobra.FixedCompletions(yaml, cobra.ShellCompDirectiveFilterFileExt),
		"store":    cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		"resume":   cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		"out":      cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
	}
	ofArguments := map[string]cobra.CompletionFunc{
		"lockcheck repro": orYAML(reproductionNames), "lockcheck list lock": orYAML(lockNames),
		"lockcheck client check": cobra.FixedCompletions(yaml, cobra.ShellCompDirectiveFilterFileExt),
	}
	for _, cmd := range withSubcommands(root) {
		for name, complete := range ofFlags {
			flag := cmd.Flags().Lookup(name)
			if flag == nil {
				continue
			}
			if flag.Value.Type() == "stringSlice" {
				complete = listOf(complete)
			}
			if err := cmd.RegisterFlagCompletionFunc(name, complete); err != nil {
				panic(err) // the flag is there, and nobody else completes it
			}
		}
		if complete, known := ofArguments[cmd.CommandPath()]; known {
			cmd.ValidArgsFunction = complete
		}
	}
}

// completionCommand is in place of that of cobra, which has a shell that no Linux needs, and a page
// about each.
func completionCommand(s *system) *cobra.Command {
	scripts := map[string]func(root *cobra.Command) error{
		"bash": func(root *cobra.Command) error { return root.GenBashCompletionV2(s.stdout, true) },
		"zsh":  func(root *cobra.Command) error { return root.GenZshCompletion(s.stdout) },
		"fish": func(root *cobra.Command) error { return root.GenFishCompletion(s.stdout, true) },
	}
	return &cobra.Command{
		Use: "completion SHELL", Hidden: true, Short: "print what lets a shell complete locks, faults and files",
		Long: `Print what lets bash, zsh or fish complete commands, flags, locks, faults,
guards, reproductions and files. Keep it where the shell looks for it, or load
it into the one that is open.`,
		Example: `  source <(lockcheck completion bash)
  lockcheck completion bash > /etc/bash_completion.d/lockcheck
  lockcheck completion zsh > "${fpath[1]}/_lockcheck"
  lockcheck completion fish > ~/.config/fish/completions/lockcheck.fish`,
		ValidArgs: slices.Sorted(maps.Keys(scripts)),
		Args: usageArgs(func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("name a shell: bash, fish or zsh")
			}
			if scripts[args[0]] == nil {
				return &spelling.UnknownError{What: "shell", Name: args[0], Known: cmd.ValidArgs}
			}
			return nil
		}),
		RunE: func(cmd *cobra.Command, args []string) error { return scripts[args[0]](cmd.Root()) },
	}
}

func withSubcommands(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		all = append(all, withSubcommands(sub)...)
	}
	return all
}

// beginning are the words that begin as the user has.
func beginning(words []string, typed string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(word string) bool { return !strings.HasPrefix(word, typed) })
}

// from completes to one of some words.
func from(words func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return beginning(words(), typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// orYAML completes to one of some words, or, where none begins so, to a file.
func orYAML(words func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		if fitting := beginning(words(), typed); len(fitting) > 0 {
			return fitting, cobra.ShellCompDirectiveNoFileComp
		}
		return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
	}
}

// listOf completes the last of several that are parted by commas.
func listOf(one cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		comma := strings.LastIndexByte(typed, ',') + 1
		words, directive := one(cmd, args, typed[comma:])
		if directive&cobra.ShellCompDirectiveFilterFileExt != 0 {
			return words, directive // they are endings of files
		}
		for i := range words {
			words[i] = typed[:comma] + words[i]
		}
		return words, directive | cobra.ShellCompDirectiveNoSpace
	}
}

func lockNames() (names []string) {
	for _, lock := range clients.Table() {
		names = append(names, lock.Name)
	}
	return names
}

// faultTargets lists the kinds of faults, and each with whom it can be aimed at.
func faultTargets() []string {
	names := []string{"none"}
	for _, kind := range nemesis.Kinds() {
		names = append(names, kind.Name)
		for _, role := range nemesis.Roles() {
			names = append(names, kind.Name+":"+role)
		}
	}
	return names
}

func reproductionNames() (names []string) {
	all, err := repros.All()
	if err != nil {
		return nil // the command itself says why
	}
	for _, r := range all {
		names = append(names, r.Name)
	}
	return names
}

// completeVersion knows the versions of the servers of the lock that was named before.
func completeVersion(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	lock, err := lockfile.Find(cmd.Flag("lock").Value.String())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return beginning(lock.Servers.AllVersions(), typed), cobra.ShellCompDirectiveNoFileComp
}

func propertyNames() (names []string) {
	for _, p := range checker.Properties() {
		names = append(names, string(p))
	}
	return names
}

func verdictNames() (names []string) {
	for _, v := range checker.Verdicts() {
		names = append(names, string(v))
	}
	return names
}

// replaceableImages are the images of servers, as --image begins with them.
func replaceableImages() (names []string) {
	for _, spec := range clusters.Table() {
		if name := spec.Image + "="; spec.OnDocker() && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
