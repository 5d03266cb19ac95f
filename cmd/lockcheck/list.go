package main

import (
	"io"

	"github.com/spf13/cobra"

	"lockcheck/internal/catalog"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites/matrix"
	"lockcheck/present"
)

func listCommand(s *system) *cobra.Command {
	list := group("list", "list locks, faults, workloads, guards, causes")
	for _, of := range []struct {
		name, short string
		entries     func() []catalog.Entry
	}{
		{"locks", "locks that lockcheck can test", catalog.Locks},
		{"clusters", "servers that a lock file can name", catalog.Clusters},
		{"faults", "faults, and which clusters support them", catalog.Faults},
		{"workloads", "what workers do under the lock", catalog.Workloads},
		{"guards", "what the resource can check", catalog.Guards},
		{"verdicts", "what a run can end with", catalog.Verdicts},
		{"properties", "what a run is judged by", catalog.Properties},
		{"thresholds", "figures of a cell that a suite can bound", thresholds},
		{"causes", "why a violation happened, and what helps", catalog.Causes},
	} {
		list.AddCommand(s.listing(of.name, of.short, of.entries))
	}
	list.AddCommand(&cobra.Command{
		Use: "lock NAME|FILE", Short: "everything about one lock, and its faults", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			lock, err := lockfile.Find(args[0])
			if err != nil {
				return &runs.UsageError{Err: err, About: "lock"}
			}
			return s.print(append([]catalog.Entry{catalog.Lock(lock)}, catalog.FaultsOn(lock.Servers)...))
		},
	}, &cobra.Command{
		Use: "attacks", Short: "the attacks of compare, as YAML", Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(s.stdout, matrix.AttacksFile())
			return err
		},
	}, &cobra.Command{
		Use: "suite", Short: "the default suite of compare, as YAML", Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return matrix.DefaultSuite().Write(s.stdout) },
	})
	return list
}

// listing is a command that lists a table.
func (s *system) listing(name, short string, entries func() []catalog.Entry) *cobra.Command {
	var long bool
	cmd := &cobra.Command{
		Use: name, Short: short, Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if long {
				return s.print(entries())
			}
			return s.print(catalog.Brief(entries()))
		},
	}
	flagsOf(cmd).yes(&long, "long")
	return cmd
}

func (s *system) print(entries []catalog.Entry) error {
	return catalog.Write(s.stdout, entries, s.columns())
}

// thresholds lists the figures that a suite can bound.
func thresholds() (entries []catalog.Entry) {
	for _, f := range matrix.Figures() {
		bound := "at most"
		if f.Least {
			bound = "at least"
		}
		e := catalog.Entry{Name: f.Name, Summary: bound + ": " + present.Figure(f.Figure.Name)}
		if f.Counts != "" {
			e.Details = []string{"replaces the property " + string(f.Counts)}
		}
		entries = append(entries, e)
	}
	return entries
}
