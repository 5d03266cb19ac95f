package main

import (
	"strings"

	"github.com/spf13/cobra"

	"lockcheck/internal/suites/advise"
	"lockcheck/internal/suites/guide"
	"lockcheck/reports"
)

func adviseCommand(s *system) *cobra.Command {
	var n advise.Needs
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "advise",
		Short: "say which lease, lock and guard the figures of a team ask for",
		Long: `Say which lease of each lock outlasts the critical sections and pauses of a
team, how soon another gets the lock of a holder that died, which guard makes
the rest safe, where the figures contradict each other, what is known to break
the lock, as in the guide, and what stays unproven.
It ends with the commands that check the advice on your own machine.`,
		Example: `  lockcheck advise --section-p99 300ms --longest-pause 4s --failover 10s
  lockcheck advise --section-p99 300ms --longest-pause 4s --lock redis,etcd`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if n.Locks == nil {
				n.Locks = advise.DefaultLocks()
			}
			known, err := guide.Known()
			if err != nil {
				return err
			}
			a, err := advise.Advise(n, known)
			if err != nil {
				return err
			}
			if asJSON {
				return reports.AdviceJSON(s.stdout, a)
			}
			return reports.AdviceTerminal(s.stdout, a, s.terminalOptions())
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.DurationVar(&n.SectionP99, "section-p99", 0, "how long 99 of 100 critical sections last at most")
	flags.DurationVar(&n.SectionMax, "section-max", 0, "how long all of them last at most, if that is bounded")
	flags.DurationVar(&n.LongestPause, "longest-pause", 0, "the longest time that a process stood still: garbage collection, swapping, a stopped machine")
	flags.DurationVar(&n.Failover, "failover", 0, "how soon others must get the lock of a holder that died (default: whenever)")
	flags.StringSliceVarP(&n.Locks, "lock", "l", nil, "`names` of locks, or lock files of your own (default: "+strings.Join(advise.DefaultLocks(), ", ")+")")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
