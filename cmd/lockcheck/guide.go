package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"lockcheck/internal/runs"
	"lockcheck/internal/suites/guide"
	"lockcheck/reports"
)

// guideFlags say what the guide rests on, and where its pages go.
type guideFlags struct {
	stores     []string
	html, runs string
}

func guideCommand(s *system) *cobra.Command {
	var f guideFlags
	cmd := &cobra.Command{
		Use:   "guide",
		Short: "tell which lock to choose: the worst that is known of each",
		Long: `Show, for each lock and fault, the worst that any run has shown: what broke it
and how often, or in how many runs it held; and advice by need. It rests on the
runs that are known to this lockcheck and, with --store, on your own: single
tests, comparisons, findings and claims, of locks of your own too.
The runs behind each cell are part of the page; --runs writes them as Markdown.
A terminal shows a summary, the first locks for each need; a file or a pipe gets
the whole guide.`,
		Example: `  lockcheck guide
  lockcheck guide --runs guide-runs.md > guide.md
  lockcheck guide --store store --html guide.html`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return s.guide(f) },
	}
	cmd.Flags().StringArrayVar(&f.stores, "store", nil, "`folder` of runs to add; can be repeated")
	cmd.Flags().StringVar(&f.html, "html", "", "write a page to this `file` instead")
	cmd.Flags().StringVar(&f.runs, "runs", "", "write the runs behind each cell to this `file`, which the cells lead to")
	cmd.AddCommand(guideCollectCommand(s))
	return cmd
}

func guideCollectCommand(s *system) *cobra.Command {
	var into string
	cmd := &cobra.Command{
		Use:   "collect FOLDER...",
		Short: "add stored runs to a file of evidence",
		Long: `Read all runs in some folders, and write what they have shown as one line each:
together with the lines that a file has already if it is named, else to standard
output. A run is known by its id, and none is ever dropped for a later one.
"make guide" does this with the evidence that is part of lockcheck.`,
		Example: "  lockcheck guide collect store > evidence.jsonl",
		Args: usageArgs(func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name the folders of stored runs")
			}
			return nil
		}),
		RunE: func(_ *cobra.Command, args []string) error { return s.collectEvidence(into, args) },
	}
	cmd.Flags().StringVar(&into, "into", "", "add to this `file`")
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

// storedEvidence reads the runs in stores, with the addresses of their pages as seen from a
// folder.
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
			if err == nil { // else one of the paths is absolute, and the other is not
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
	fmt.Fprintf(s.stderr, "lockcheck: %d runs more, %d in all\n", len(all)-before, len(all))
	return nil
}
