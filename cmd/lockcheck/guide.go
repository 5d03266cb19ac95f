package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"lockcheck/internal/runs"
	"lockcheck/internal/suites/advise"
	"lockcheck/internal/suites/guide"
	"lockcheck/reports"
)

// guideFlags are the flags of "lockcheck guide".
type guideFlags struct {
	stores     []string
	html, runs string
}

func guideCommand(s *system) *cobra.Command {
	var f guideFlags
	cmd := &cobra.Command{
		Use:   "guide",
		Short: "recommend a lock from its known failures",
		Long: `Show, for each lock and fault, the worst result of any run: what broke the lock and how often, or in how many runs it held; and a recommendation for each need. The guide rests on the runs that this lockcheck knows and, with --store, on your own runs: tests, comparisons, reproductions and claims, also of your own locks.

A terminal shows a summary: the first locks for each need. A file or a pipe gets the whole guide.`,
		Example: `  lockcheck guide
  lockcheck guide --runs guide-runs.md > guide.md
  lockcheck guide --store store --html guide.html
  lockcheck guide advise --section-p99 300ms --longest-pause 4s`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return s.guide(f) },
	}
	flags := flagsOf(cmd)
	flags.StringArrayVar(&f.stores, "store", nil, flags.describe("store").usage)
	flags.text(&f.html, "html", "")
	flags.text(&f.runs, "runs", "")
	cmd.AddCommand(adviseCommand(s), guideCollectCommand(s))
	return cmd
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
				return reports.AdviceJSON(s.stdout, a)
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

// guide prints the guide, or writes its pages.
func (s *system) guide(f guideFlags) error {
	known, err := guide.Known()
	if err != nil {
		return err
	}
	own, pages, err := storedEvidence(f.stores, filepath.Dir(f.html))
	if err != nil {
		return err
	}
	if s.terminal && f.html == "" && f.runs == "" {
		return reports.GuideTerminal(s.stdout, known.With(own).Summary(), s.terminalOptions())
	}
	view := known.With(own).Page(pages)
	address := ""
	if f.runs != "" {
		if err := writePage(f.runs, view, reports.GuideRunsMarkdown); err != nil {
			return err
		}
		address = url.PathEscape(filepath.Base(f.runs))
	}
	if f.html == "" {
		return reports.GuideMarkdown(s.stdout, view, address)
	}
	if err := writePage(f.html, view, reports.GuideHTML); err != nil {
		return err
	}
	fmt.Fprintf(s.stdout, "page    %s\n", f.html)
	return nil
}

func writePage(path string, g reports.Guide, write func(io.Writer, reports.Guide) error) error {
	folder, name := filepath.Split(path)
	return runs.Unusable(runs.WriteFile(filepath.Clean(folder), name, func(w io.Writer) error { return write(w, g) }))
}

// storedEvidence reads the runs in stores, and the paths of their pages relative to a folder.
func storedEvidence(stores []string, from string) (guide.Evidence, map[string]string, error) {
	var all guide.Evidence
	pages := make(map[string]string)
	for _, store := range stores {
		found, err := guide.Collect(store)
		if err != nil {
			return nil, nil, err
		}
		for id, folder := range found.Folders {
			page, err := filepath.Rel(from, filepath.Join(folder, runs.ReportFile))
			if err == nil { // an absolute and a relative path cannot be related
				pages[id] = filepath.ToSlash(page)
			}
		}
		all = all.With(found.Evidence)
	}
	return all, pages, nil
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
	own, _, err := storedEvidence(stores, "")
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
