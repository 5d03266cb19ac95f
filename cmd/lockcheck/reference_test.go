package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"lockcheck/clients"
	"lockcheck/internal/suites/repros"
	"lockcheck/nemesis"
	"lockcheck/workloads"
)

// referenceFolder is where "make docs" puts the pages.
const referenceFolder = "../../docs/reference"

// stalePages says which pages of a folder are not what is made today.
func stalePages(folder string, pages []referencePage) ([]string, error) {
	var stale, known []string
	for _, p := range pages {
		known = append(known, p.file)
		text, err := os.ReadFile(filepath.Join(folder, p.file))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			stale = append(stale, p.file+" is missing")
		case err != nil:
			return nil, err
		case string(text) != p.text():
			stale = append(stale, p.file+" is not current")
		}
	}
	there, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, entry := range there {
		if !slices.Contains(known, entry.Name()) {
			stale = append(stale, entry.Name()+" is no longer made")
		}
	}
	return stale, nil
}

// TestReferenceIsCurrent: the pages in the repository are those of this program.
func TestReferenceIsCurrent(t *testing.T) {
	pages, err := referencePages()
	if err != nil {
		t.Fatal(err)
	}
	stale, err := stalePages(referenceFolder, pages)
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range stale {
		t.Errorf("docs/reference: %s: run make docs", what)
	}
}

// TestReferenceControl: what is written is current, and no page can be changed, missing
// or too many without being seen.
func TestReferenceControl(t *testing.T) {
	pages := []referencePage{{"a.md", "A", "one"}, {"b.md", "B", "two"}}
	for _, c := range []struct {
		name   string
		damage func(folder string) error
		want   string
	}{
		{"nothing", func(string) error { return nil }, "[]"},
		{"a changed page", func(folder string) error {
			return os.WriteFile(filepath.Join(folder, "b.md"), []byte("# B\n\nthree\n"), 0o644)
		}, "[b.md is not current]"},
		{"a missing page", func(folder string) error { return os.Remove(filepath.Join(folder, "a.md")) }, "[a.md is missing]"},
		{"a page too many", func(folder string) error {
			return os.WriteFile(filepath.Join(folder, "c.md"), nil, 0o644)
		}, "[c.md is no longer made]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := t.TempDir()
			if err := errors.Join(writePages(folder, pages), c.damage(folder)); err != nil {
				t.Fatal(err)
			}
			stale, err := stalePages(folder, pages)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(stale); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestReferenceIsComplete: every name of a table is on its page, and every command and
// flag that is shown.
func TestReferenceIsComplete(t *testing.T) {
	pages, err := referencePages()
	if err != nil {
		t.Fatal(err)
	}
	text := make(map[string]string)
	for _, p := range pages {
		text[p.file] = p.text()
	}
	want := func(file string, names ...string) {
		t.Helper()
		for _, name := range names {
			if !strings.Contains(text[file], name) {
				t.Errorf("%s does not have %s", file, name)
			}
		}
	}
	want("locks.md", clients.Names()...)
	want("faults.md", nemesis.KindNames()...)
	want("workloads.md", append(workloads.Names(), workloads.Guards()...)...)
	all, err := repros.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		want("reproductions.md", r.Setup.Lock, strings.TrimSuffix(r.Name, r.Setup.Lock))
	}
	want("flags.md", "## lockcheck test\n", "## lockcheck list faults\n", "## lockcheck guide\n", "`--concurrency int`, `-c` | `5` |", "`--lock name`, `-l` | `memory` |", "`redis-8`")
	for _, hidden := range []string{"lockcheck worker", "## lockcheck list\n"} {
		if strings.Contains(text["flags.md"], hidden) {
			t.Errorf("%q is shown, which is hidden or does nothing", hidden)
		}
	}
}

// TestFlagTable: the smallest command lines.
func TestFlagTable(t *testing.T) {
	cmd := &cobra.Command{Use: "x"}
	if got := flagTable(cmd.Flags()); got != "" {
		t.Errorf("no flags give %q", got)
	}
	cmd.Flags().Bool("yes", false, "say yes | no")
	cmd.Flags().Bool("secret", false, "hidden")
	cmd.Flags().StringP("out", "o", "store", "`folder` of runs")
	if err := cmd.Flags().MarkHidden("secret"); err != nil {
		t.Fatal(err)
	}
	const want = "| flag | default | meaning |\n| --- | --- | --- |\n" +
		"| `--out folder`, `-o` | `store` | folder of runs |\n" +
		"| `--yes` |  | say yes \\| no |\n\n"
	if got := flagTable(cmd.Flags()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
