package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxWords limits all Markdown of the repository together, and maxReadmeLines the README, because nobody
// reads more. maxPageWords limits pages that are not in maxWordsOf.
const (
	maxWords       = 40_000
	maxPageWords   = 1_000
	maxReadmeLines = 150
)

// maxWordsOf limits pages that need more words than others, and all pages of a folder together.
var maxWordsOf = map[string]int{
	"README.md":                900,
	"docs/claims.md":           2_000,
	"docs/findings.md":         2_320,
	"docs/first-hour.md":       1_700,
	"docs/guide.md":            1_500,
	"docs/stories.md":          1_500,
	"docs/history.md":          1_750,
	"docs/locks/":              8_000,
	"docs/locks/redis.md":      1_060,
	"docs/own-application.md":  1250,
	"docs/own-lock.md":         1_700,
	"docs/protocol.md":         1_500,
	"docs/reading-a-report.md": 1_500,
	"docs/resource.md":         720,
	"docs/schedules.md":        1_500,
	"docs/tutorials/":          1_200,
	"docs/verdicts.md":         2_400,
	"examples/":                1_300,
	"checker/testdata/corpus/": 400,
}

// wordy lists the pages and folders with more words than allowed, given the word counts of pages.
func wordy(words map[string]int) (long []string) {
	folders := make(map[string]int)
	all := 0
	for page, n := range words {
		all += n
		limit, named := maxWordsOf[page]
		if !named {
			limit = maxPageWords
		}
		if n > limit {
			long = append(long, fmt.Sprintf("%s has %d words, and may have %d", page, n, limit))
		}
		for folder := range maxWordsOf {
			if strings.HasSuffix(folder, "/") && strings.HasPrefix(page, folder) {
				folders[folder] += n
			}
		}
	}
	for folder, n := range folders {
		if n > maxWordsOf[folder] {
			long = append(long, fmt.Sprintf("%s has %d words, and may have %d", folder, n, maxWordsOf[folder]))
		}
	}
	if all > maxWords {
		long = append(long, fmt.Sprintf("the docs have %d words, and may have %d", all, maxWords))
	}
	slices.Sort(long)
	return long
}

// wordsOfPages counts the words of all Markdown below a folder, as wc -w does, except for stored runs and
// releases.
func wordsOfPages(root string) (map[string]int, error) {
	words := make(map[string]int)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		page, err := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "store", "dist"}, page):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		words[filepath.ToSlash(page)] = len(strings.Fields(string(text)))
		return err
	})
	return words, err
}

// TestWords: the docs are short enough to be read. `go test ./cmd/lockcheck -run Words -v` prints the counts.
func TestWords(t *testing.T) {
	words, err := wordsOfPages(repository)
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range wordy(words) {
		t.Errorf("%s: shorten it, or let a command print it", what)
	}
	for _, page := range slices.Sorted(maps.Keys(words)) {
		t.Logf("%6d %s", words[page], page)
	}
	readme, err := os.ReadFile(filepath.Join(repository, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(readme), "\n"); n > maxReadmeLines {
		t.Errorf("README.md has %d lines, and may have %d", n, maxReadmeLines)
	}
	if len(words) < 30 {
		t.Errorf("only %d pages were found", len(words))
	}
}

// TestWordsControl: a page, a folder and all pages together can be too long.
func TestWordsControl(t *testing.T) {
	many := make(map[string]int)
	for i := range 50 {
		many[fmt.Sprintf("docs/%d.md", i)] = maxPageWords
	}
	for _, c := range []struct {
		words map[string]int
		want  string
	}{
		{map[string]int{"docs/faq.md": maxPageWords, "docs/claims.md": 2_000}, "[]"},
		{map[string]int{"docs/faq.md": maxPageWords + 1}, "[docs/faq.md has 1001 words, and may have 1000]"},
		{map[string]int{"docs/claims.md": 2_001}, "[docs/claims.md has 2001 words, and may have 2000]"},
		{map[string]int{"examples/a/README.md": 651, "examples/README.md": 650}, "[examples/ has 1301 words, and may have 1300]"},
		{many, "[the docs have 50000 words, and may have 40000]"},
	} {
		if got := fmt.Sprint(wordy(c.words)); got != c.want {
			t.Errorf("%v: %s, want %s", c.words, got, c.want)
		}
	}
}
