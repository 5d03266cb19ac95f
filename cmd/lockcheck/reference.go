package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// referenceCommand writes the pages of docs/reference. It is hidden: "make docs" calls
// it, and a test fails while a page is not what it would write.
func referenceCommand() *cobra.Command {
	return &cobra.Command{
		Use: "reference DIR", Hidden: true, Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			pages, err := referencePages()
			if err != nil {
				return err
			}
			return writePages(args[0], pages)
		},
	}
}

// referencePage is one page of Markdown.
type referencePage struct {
	file, title, body string
}

// madeBy stands on each page, for those who would edit it.
const madeBy = "Made by `make docs` from the program itself; nothing here is written by hand."

func (p referencePage) text() string {
	return "# " + p.title + "\n\n" + madeBy + "\n\n" + strings.TrimSpace(p.body) + "\n"
}

// referencePages makes all pages, from the tables that the commands use themselves. What
// they say is the same on every machine.
func referencePages() ([]referencePage, error) {
	guards, err := guardTable()
	if err != nil {
		return nil, err
	}
	reproductions, err := reproductionSections()
	if err != nil {
		return nil, err
	}
	suites, err := suiteTables()
	if err != nil {
		return nil, err
	}
	teams, err := teamSections()
	if err != nil {
		return nil, err
	}
	pages := []referencePage{
		{"flags.md", "Commands and flags", commandSections(rootCommand(&system{}))},
		{"locks.md", "Locks", lockSections()},
		{"faults.md", "Faults", faultTables()},
		{"workloads.md", "Workloads and guards", workloadTable() + guards},
		{"suites.md", "Suite files", suites},
		{"properties.md", "Verdicts, properties and causes", wordTables()},
		{"reproductions.md", "Reproductions", reproductions},
		{"advice.md", "Advice for three teams", teams},
		{"exit-codes.md", "Exit codes", exitCodePage},
	}
	return append([]referencePage{referenceIndex(pages)}, pages...), nil
}

func referenceIndex(pages []referencePage) referencePage {
	var list strings.Builder
	for _, p := range pages {
		fmt.Fprintf(&list, "- [%s](%s)\n", p.title, p.file)
	}
	return referencePage{"README.md", "Reference", list.String()}
}

func writePages(folder string, pages []referencePage) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	var errs []error
	for _, p := range pages {
		errs = append(errs, os.WriteFile(filepath.Join(folder, p.file), []byte(p.text()), 0o644))
	}
	return errors.Join(errs...)
}

// markdownTable writes a table. Cells may hold Markdown, in one line each.
func markdownTable(head []string, rows [][]string) string {
	var text strings.Builder
	line := func(cells []string) { fmt.Fprintf(&text, "| %s |\n", strings.Join(cells, " | ")) }
	line(head)
	line(strings.Split(strings.Repeat("---,", len(head)-1)+"---", ","))
	for _, row := range rows {
		line(row)
	}
	return text.String() + "\n"
}

// prose makes text of the program safe in Markdown, table cells included.
func prose(text string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`, "<", "&lt;", "\n", " ").Replace(text)
}

// code marks text as code; "" stays empty.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

func allCode(texts []string) string {
	var marked []string
	for _, text := range texts {
		marked = append(marked, code(text))
	}
	return strings.Join(marked, ", ")
}
