package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// usage writes how to call a command: cobra's text, with flags wrapped to a width. cobra would take a
// changed template, but that links text/template, for which the linker keeps all exported methods.
func usage(width int) func(*cobra.Command) error {
	return func(cmd *cobra.Command) error {
		_, err := io.WriteString(cmd.OutOrStderr(), strings.Join(usageSections(cmd, width), "\n\n")+"\n")
		return err
	}
}

func usageSections(cmd *cobra.Command, width int) (sections []string) {
	section := func(title string, lines ...string) {
		if text := strings.Join(lines, "\n"); text != "" {
			sections = append(sections, title+"\n"+strings.TrimRight(text, " \n"))
		}
	}
	parent := cmd.HasAvailableSubCommands()
	var calls []string
	if cmd.Runnable() {
		calls = append(calls, "  "+cmd.UseLine())
	}
	if parent {
		calls = append(calls, "  "+cmd.CommandPath()+" [command]")
	}
	section("Usage:", calls...)
	section("Examples:", cmd.Example)
	groups := cmd.Groups()
	if len(groups) == 0 {
		groups = []*cobra.Group{{Title: "Available Commands:"}}
	}
	for _, group := range groups {
		section(group.Title, summaries(cmd, (*cobra.Command).Name, (*cobra.Command).NamePadding, func(c *cobra.Command) bool {
			return c.GroupID == group.ID && (c.IsAvailableCommand() || c.Name() == "help")
		})...)
	}
	section("Flags:", cmd.LocalFlags().FlagUsagesWrapped(width))
	section("Global Flags:", cmd.InheritedFlags().FlagUsagesWrapped(width))
	section("Additional help topics:", summaries(cmd, (*cobra.Command).CommandPath, (*cobra.Command).CommandPathPadding, (*cobra.Command).IsAdditionalHelpTopicCommand)...)
	if parent {
		sections = append(sections, `Use "`+cmd.CommandPath()+` COMMAND --help" for details.`)
	}
	return sections
}

// summaries has a line for each subcommand that is listed.
func summaries(cmd *cobra.Command, name func(*cobra.Command) string, padding func(*cobra.Command) int, listed func(*cobra.Command) bool) (lines []string) {
	for _, c := range cmd.Commands() {
		if listed(c) {
			lines = append(lines, fmt.Sprintf("  %-*s %s", padding(c), name(c), c.Short))
		}
	}
	return lines
}
