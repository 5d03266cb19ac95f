package main

import (
	"fmt"
	"io"
	"text/tabwriter"

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
	add := func(what, short string, print func(io.Writer)) {
		list.AddCommand(&cobra.Command{
			Use: what, Short: short, Args: usageArgs(cobra.NoArgs),
			RunE: func(*cobra.Command, []string) error {
				table := tabwriter.NewWriter(s.stdout, 0, 0, 2, ' ', 0)
				print(table)
				return table.Flush()
			},
		})
	}
	add("locks", "locks, with what a user must know of each", printLocks)
	add("faults", "kinds of faults", printFaults)
	add("workloads", "what workers do under the lock", printWorkloads)
	return list
}

func printLocks(w io.Writer) {
	for _, lock := range clients.Table() {
		fmt.Fprintf(w, "%s\t%s\n", lock.Name, lock.Summary)
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
		fmt.Fprintf(w, "\tlease: %s; renewed: %s\n", lease, renewed)
		fmt.Fprintf(w, "\tfencing token: %s; holder told: %s\n", token, lock.Told)
		fmt.Fprintf(w, "\tdepends on: %s\n", lock.Clock)
	}
}

func printFaults(w io.Writer) {
	for _, kind := range nemesis.Kinds() {
		fmt.Fprintf(w, "%s\t%s\n\tby default of: %s\n", kind.Name, kind.Summary, kind.Target)
	}
}

func printWorkloads(w io.Writer) {
	for _, workload := range workloads.Table() {
		fmt.Fprintf(w, "%s\t%s\n", workload.Name, workload.Summary)
	}
}
