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
	"lockcheck/internal/suites/matrix"
	"lockcheck/internal/suites/repros"
	"lockcheck/nemesis"
	"lockcheck/workloads"
)

// addCompletion completes flags and arguments. A flag completes the same way in all commands.
func addCompletion(root *cobra.Command) {
	yaml := []string{"yaml", "yml"}
	ofFlags := map[string]cobra.CompletionFunc{
		"lock": orYAML(lockNames), "locks": orYAML(lockNames),
		"guard": from(workloads.Guards), "guards": from(workloads.Guards),
		"nemesis": listOf(from(faultTargets)), "faults": from(func() []string { return append(matrix.AttackNames(), faultTargets()...) }),
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
			if flag == nil || flag.Name != name { // the name is an alias of the flag
				continue
			}
			if flag.Value.Type() == "stringSlice" { // the flag takes several values, separated by commas
				complete = listOf(complete)
			}
			if err := cmd.RegisterFlagCompletionFunc(name, complete); err != nil {
				panic(err) // impossible: the flag exists, and nothing else completes it
			}
		}
		if complete, known := ofArguments[cmd.CommandPath()]; known {
			cmd.ValidArgsFunction = complete
		}
	}
}

// completionCommand replaces cobra's, which has a page for each shell.
func completionCommand(s *system) *cobra.Command {
	scripts := map[string]func(root *cobra.Command) error{
		"bash": func(root *cobra.Command) error { return root.GenBashCompletionV2(s.stdout, true) },
		"zsh":  func(root *cobra.Command) error { return root.GenZshCompletion(s.stdout) },
		"fish": func(root *cobra.Command) error { return root.GenFishCompletion(s.stdout, true) },
	}
	return &cobra.Command{
		Use: "completion SHELL", Short: "print the completion script of a shell",
		Long: `Print a script that lets bash, zsh or fish complete commands, flags, locks, faults, guards, reproductions and files. Store it where the shell looks for such scripts, or load it into the open shell.`,
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

// beginning returns the words that begin with the typed text.
func beginning(words []string, typed string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(word string) bool { return !strings.HasPrefix(word, typed) })
}

// from completes a word.
func from(words func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return beginning(words(), typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// orYAML completes a word or, if none fits, a YAML file.
func orYAML(words func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		if fitting := beginning(words(), typed); len(fitting) > 0 {
			return fitting, cobra.ShellCompDirectiveNoFileComp
		}
		return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
	}
}

// listOf completes the last word of a list with commas.
func listOf(one cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		comma := strings.LastIndexByte(typed, ',') + 1
		words, directive := one(cmd, args, typed[comma:])
		if directive&cobra.ShellCompDirectiveFilterFileExt != 0 {
			return words, directive // words are file name extensions here
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

// faultTargets lists the kinds of faults, alone and with each target.
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
		return nil // the command itself reports the error
	}
	for _, r := range all {
		names = append(names, r.Name)
	}
	return names
}

// completeVersion completes the versions of the servers of --lock.
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

// replaceableImages lists completions of --image, such as "redis=".
func replaceableImages() (names []string) {
	for _, spec := range clusters.Table() {
		if name := spec.Image + "="; spec.OnDocker() && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
