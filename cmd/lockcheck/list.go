package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"lockcheck/clients"
	"lockcheck/nemesis"
	"lockcheck/workloads"
)

func listCommand(s *system) *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "list locks, faults or workloads",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	add := func(what, short string, items func() []item) {
		list.AddCommand(&cobra.Command{
			Use: what, Short: short, Args: usageArgs(cobra.NoArgs),
			RunE: func(*cobra.Command, []string) error { return s.printItems(items()) },
		})
	}
	add("locks", "locks, with what a user must know of each", lockItems)
	add("faults", "kinds of faults", faultItems)
	add("workloads", "what workers do under the lock", workloadItems)
	return list
}

func lockItems() (items []item) {
	for _, lock := range clients.Table() {
		lease, token, renewed := "none: it never ends by itself", lock.Token, "no"
		if lock.TTL > 0 {
			lease = fmt.Sprintf("%s by default, at least %s", lock.TTL, lock.MinTTL)
		}
		if token == "" {
			token = "none"
		}
		if lock.Renew {
			renewed = "with --renew"
		}
		summary := lock.Summary
		if lock.Library != "" {
			summary += ": " + lock.Library
		}
		if lock.Naive != "" {
			summary += " (naive: " + lock.Naive + ")"
		}
		items = append(items, item{lock.Name, []string{
			summary,
			fmt.Sprintf("lease: %s; renewed: %s", lease, renewed),
			fmt.Sprintf("fencing token: %s; holder told: %s", token, lock.Told),
			"depends on: " + lock.Clock,
		}})
	}
	return items
}

func faultItems() (items []item) {
	for _, kind := range nemesis.Kinds() {
		items = append(items, item{kind.Name, []string{kind.Summary, "target by default: " + kind.Target}})
	}
	return items
}

func workloadItems() (items []item) {
	for _, workload := range workloads.Table() {
		items = append(items, item{workload.Name, []string{workload.Summary}})
	}
	return items
}
