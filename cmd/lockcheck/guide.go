package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockcheck/internal/runs"
	"lockcheck/internal/suites/advise"
	"lockcheck/internal/suites/guide"
	"lockcheck/reports"
)

// guideFlags say what the user needs of a lock, what the answer rests on, and where it goes.
type guideFlags struct {
	need           string
	have           []string
	work, failover time.Duration
	external       bool
	why, html      string
	stores         []string
}

func guideCommand(s *system) *cobra.Command {
	var f guideFlags
	cmd := &cobra.Command{
		Use:   "guide",
		Short: "decide which lock and guard to use",
		Long: `Decide which lock to use, and behind which guard. Without flags there is one answer for each need, on a terminal in short, and else the whole guide as Markdown. With --need and what you have, there is a ranked list with the fault that breaks each lock and the command that shows it. The needs are data (it must never be lost), once (a job must never run twice), waste (work that is done twice only costs time), failover (another worker must take over in time), infra (nothing new is installed) and long (work runs longer than a lease).

The ranking rests on how locks work, on every reproduction, and on the runs that this lockcheck knows; --store adds your own.`,
		Example: `  lockcheck guide
  lockcheck guide --need data --have postgres,redis --work 10m --failover 30s
  lockcheck guide --why etcd/pause:leader
  lockcheck guide --html guide.html
  lockcheck guide advise --section-p99 300ms --longest-pause 4s`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return s.guide(f) },
	}
	flags := flagsOf(cmd)
	flags.text(&f.need, "need", "")
	flags.list(&f.have, "have")
	flags.length(&f.work, "work", 0)
	flags.length(&f.failover, "failover", 0)
	flags.yes(&f.external, "external")
	flags.text(&f.why, "why", "")
	flags.text(&f.html, "html", "")
	flags.StringArrayVar(&f.stores, "store", nil, flags.describe("store").usage)
	cmd.AddCommand(adviseCommand(s), guideCollectCommand(s), guideStoriesCommand(s))
	return cmd
}

func guideStoriesCommand(s *system) *cobra.Command {
	return &cobra.Command{
		Use:     "stories",
		Short:   "print questions that teams ask, with answers",
		Long:    "Print questions as teams ask them, each with the answer of the guide, why, and the run that shows it.",
		Example: "  lockcheck guide stories",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			known, err := guide.Known()
			if err != nil {
				return err
			}
			return known.Stories(s.stdout, s.terminalOptions())
		},
	}
}

func adviseCommand(s *system) *cobra.Command {
	var n advise.Needs
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "advise",
		Short: "recommend a lease and guard for your figures",
		Long:  `Recommend, for each lock, a lease that outlasts your critical sections and pauses, and say how soon another worker gets the lock of a dead holder, which guard makes the rest safe, where your figures contradict each other, what is known to break the lock, and what stays unproven. The last lines are commands that check the advice on your machine.`,
		Example: `  lockcheck guide advise --section-p99 300ms --longest-pause 4s
  lockcheck guide advise --section-p99 300ms --longest-pause 4s \
    --failover 10s --locks redis,etcd`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			known, err := guide.Known()
			if err != nil {
				return err
			}
			a, err := advise.Advise(n, known)
			if err != nil {
				return err
			}
			if asJSON {
				return reports.WriteJSON(s.stdout, a)
			}
			return reports.AdviceTerminal(s.stdout, a, s.terminalOptions())
		},
	}
	flags := flagsOf(cmd)
	flags.alsoCalled(map[string]string{"lock": "locks"})
	flags.length(&n.SectionP99, "section-p99", 0)
	flags.length(&n.SectionMax, "section-max", 0)
	flags.length(&n.LongestPause, "longest-pause", 0)
	flags.length(&n.Failover, "failover", 0)
	flags.list(&n.Locks, "locks", advise.DefaultLocks()...)
	flags.yes(&asJSON, "json")
	flags.otherwise("locks", strings.Join(advise.DefaultLocks(), ", "))
	return cmd
}

func guideCollectCommand(s *system) *cobra.Command {
	var into string
	cmd := &cobra.Command{
		Use:     "collect FOLDER...",
		Short:   "add stored runs to a file of evidence",
		Long:    `Read all runs in some folders and write one line of evidence for each, to standard output or, with --into, to a file. The lines that are already in the file stay. A run that is already in the file is not added again.`,
		Example: "  lockcheck guide collect store > evidence.jsonl",
		Args: usageArgs(func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name the folders of stored runs")
			}
			return nil
		}),
		RunE: func(_ *cobra.Command, args []string) error { return s.collectEvidence(into, args) },
	}
	flagsOf(cmd).text(&into, "into", "")
	return cmd
}

// guide answers what was asked.
func (s *system) guide(f guideFlags) error {
	known, err := guide.Known()
	if err != nil {
		return err
	}
	own, err := storedEvidence(f.stores)
	if err != nil {
		return err
	}
	known = known.With(own)
	switch {
	case f.html != "":
		folder, name := filepath.Split(f.html)
		if err := runs.Unusable(runs.WriteFile(filepath.Clean(folder), name, func(w io.Writer) error { return known.HTML(w) })); err != nil {
			return err
		}
		fmt.Fprintf(s.stdout, "page    %s\n", f.html)
		return nil
	case f.why != "":
		return known.Why(s.stdout, f.why, s.terminalOptions())
	case f.need == "" && (f.have != nil || f.work != 0 || f.failover != 0 || f.external):
		f.need = string(guide.NeedData) // by default the lock must not lose data
	case f.need == "" && !s.terminal:
		return known.Markdown(s.stdout)
	case f.need == "":
		return known.Overview(s.stdout, s.terminalOptions())
	}
	q := guide.Query{Need: guide.Need(f.need), Have: f.have, Work: f.work, Failover: f.failover, External: f.external}
	if err := q.Check(); err != nil {
		return err
	}
	return known.Decide(q).Terminal(s.stdout, s.terminalOptions())
}

// storedEvidence reads the runs in stores.
func storedEvidence(stores []string) (all guide.Evidence, err error) {
	for _, store := range stores {
		found, err := guide.Collect(store)
		if err != nil {
			return nil, err
		}
		all = all.With(found)
	}
	return all, nil
}

// collectEvidence adds the runs in stores to those of a file.
func (s *system) collectEvidence(into string, stores []string) error {
	var all guide.Evidence
	if into != "" {
		file, err := os.Open(into)
		switch {
		case err == nil:
			all, err = guide.Read(file)
			err = errors.Join(err, file.Close())
		case errors.Is(err, fs.ErrNotExist):
			err = nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", into, err)
		}
	}
	before := len(all)
	own, err := storedEvidence(stores)
	if err != nil {
		return err
	}
	all = all.With(own)
	if into == "" {
		return all.Write(s.stdout)
	}
	folder, name := filepath.Split(into)
	if err := runs.WriteFile(filepath.Clean(folder), name, all.Write); err != nil {
		return err
	}
	fmt.Fprintf(s.stderr, "lockcheck: %d runs added, %d in all\n", len(all)-before, len(all))
	return nil
}
