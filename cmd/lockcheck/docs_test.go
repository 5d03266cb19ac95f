package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"lockcheck/clients"
)

const repository = "../.."

// document is a Markdown page as a reader navigates it.
type document struct {
	links    []string
	headings []string // their text, without marks
	anchors  []string
}

var (
	fence       = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	inlineCode  = regexp.MustCompile("`[^`\n]*`")
	linkTarget  = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	headingLine = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	linkText    = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
)

func parseDocument(text string) (d document) {
	text = fence.ReplaceAllString(text, "")
	for _, match := range linkTarget.FindAllStringSubmatch(inlineCode.ReplaceAllString(text, ""), -1) {
		d.links = append(d.links, match[1])
	}
	seen := make(map[string]int)
	for _, match := range headingLine.FindAllStringSubmatch(text, -1) {
		heading := strings.ReplaceAll(linkText.ReplaceAllString(match[1], "$1"), "`", "")
		d.headings = append(d.headings, heading)
		anchor := anchorOf(heading)
		if n := seen[anchor]; n > 0 {
			d.anchors = append(d.anchors, fmt.Sprintf("%s-%d", anchor, n))
		} else {
			d.anchors = append(d.anchors, anchor)
		}
		seen[anchor]++
	}
	return d
}

// anchorOf is the anchor of a heading on GitHub.
func anchorOf(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

// deadLinks lists the links of pages that lead nowhere. It does not follow links to other sites.
func deadLinks(root string, pages []string) ([]string, error) {
	var dead []string
	read := make(library)
	for _, page := range pages {
		d, err := read.document(filepath.Join(root, page))
		if err != nil {
			return nil, err
		}
		for _, link := range d.links {
			if !strings.Contains(link, "://") && !read.leads(filepath.Join(root, page), link) {
				dead = append(dead, page+": "+link)
			}
		}
	}
	return dead, nil
}

// library caches parsed pages by their paths, because one page has hundreds of links to itself.
type library map[string]document

func (l library) leads(from, link string) bool {
	path, anchor, _ := strings.Cut(link, "#")
	target := from
	if path != "" {
		target = filepath.Join(filepath.Dir(from), path)
	}
	if info, err := os.Stat(target); err != nil || anchor == "" {
		return err == nil && !info.IsDir()
	}
	d, err := l.document(target)
	return err == nil && slices.Contains(d.anchors, anchor)
}

func (l library) document(path string) (document, error) {
	if d, read := l[path]; read {
		return d, nil
	}
	d, err := readDocument(path)
	if err == nil {
		l[path] = d
	}
	return d, err
}

func readDocument(path string) (document, error) {
	text, err := os.ReadFile(path)
	return parseDocument(string(text)), err
}

// documents lists the pages at the root of the repository, and all pages below docs and examples.
func documents(t *testing.T) []string {
	t.Helper()
	pages := []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}
	for _, folder := range []string{"docs", "examples"} {
		err := filepath.WalkDir(filepath.Join(repository, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".md" {
				return err
			}
			page, err := filepath.Rel(repository, path)
			pages = append(pages, page)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return pages
}

// TestLinks: no link of the documentation is dead, and every page can be reached from the README.
func TestLinks(t *testing.T) {
	pages := documents(t)
	dead, err := deadLinks(repository, pages)
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range dead {
		t.Errorf("%s leads nowhere", link)
	}
	reached, err := reachable(repository, "README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if !reached[page] {
			t.Errorf("no link leads to %s", page)
		}
	}
}

// TestMadeGuide: the links of the guide that lockcheck prints work from docs/.
func TestMadeGuide(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.want(s.run("guide"), exitOK, "# ", "")
	read := make(library)
	for _, link := range parseDocument(s.stdout).links {
		if !strings.Contains(link, "://") && !strings.HasPrefix(link, "#") && !read.leads(filepath.Join(repository, "docs", "guide.md"), link) {
			t.Errorf("%s leads nowhere", link)
		}
	}
}

// reachable returns the pages that links lead to from a page.
func reachable(root, page string) (map[string]bool, error) {
	reached := map[string]bool{page: true}
	for todo := []string{page}; len(todo) > 0; {
		page, todo = todo[0], todo[1:]
		d, err := readDocument(filepath.Join(root, page))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		}
		for _, link := range d.links {
			path, _, _ := strings.Cut(link, "#")
			next := filepath.Join(filepath.Dir(page), path)
			if filepath.Ext(path) == ".md" && !strings.Contains(link, "://") && !reached[next] {
				reached[next] = true
				todo = append(todo, next)
			}
		}
	}
	return reached, nil
}

// TestLinksControl: dead links are found, and similar links that work are not.
func TestLinksControl(t *testing.T) {
	root := t.TempDir()
	const there = "# A `b`: c_d, e.f\n\n## Twice\n\n## Twice\n\n```\n# not a heading\n```\n"
	for name, text := range map[string]string{"there.md": there, "index.md": "[x](next.md)", "next.md": "[x](there.md#twice)"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		text string
		good bool
	}{
		{"[x](there.md)", true},
		{"[x](missing.md)", false},
		{"![x](missing.png)", false},
		{"[x](../missing.md)", false},
		{"[x](.)", false},
		{"[x](https://example.org/missing.md)", true},
		{"[x](there.md#a-b-c_d-ef)", true},
		{"[x](there.md#a-b)", false},
		{"[x](there.md#twice-1)", true},
		{"[x](there.md#twice-2)", false},
		{"[x](there.md#not-a-heading)", false},
		{"# Here\n\n[x](#here)", true},
		{"# Here\n\n[x](#there)", false},
		{"[`x`](missing.md)", false},
		{"`[x](missing.md)`", true},
		{"```\n[x](missing.md)\n```\n", true},
		{"```\n```\n[x](missing.md)\n```\n```\n", false},
	} {
		if err := os.WriteFile(filepath.Join(root, "page.md"), []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		dead, err := deadLinks(root, []string{"page.md"})
		if err != nil {
			t.Fatal(err)
		}
		if (len(dead) == 0) != c.good {
			t.Errorf("%q: dead are %q", c.text, dead)
		}
	}
	if reached, err := reachable(root, "page.md"); err != nil || reached["there.md"] {
		t.Errorf("a page that no link leads to is reached: %v, %v", reached, err)
	}
	if reached, err := reachable(root, "index.md"); err != nil || !reached["there.md"] {
		t.Errorf("a page that a link of a link leads to is not reached: %v, %v", reached, err)
	}
}

// familyRow is a row of docs/locks/README.md: the page of a lock family, and the locks in it.
var familyRow = regexp.MustCompile(`(?m)^\| \[[^\]]+\]\(([a-z0-9]+\.md)\)[^|]* \| (.*) \|$`)

// familyPages reads the table of families, and returns for each lock the pages that list it.
func familyPages(index string) map[string][]string {
	pages := make(map[string][]string)
	for _, row := range familyRow.FindAllStringSubmatch(index, -1) {
		for _, lock := range inlineCode.FindAllString(row[2], -1) {
			lock = strings.Trim(lock, "`")
			pages[lock] = append(pages[lock], row[1])
		}
	}
	return pages
}

// wrongFamilies says which listed locks are missing on the page of their family, which locks are not listed,
// and which names are no locks. read returns a page by its name.
func wrongFamilies(index string, locks []string, read func(page string) string) (wrong []string) {
	pages := familyPages(index)
	for _, lock := range locks {
		if len(pages[lock]) == 0 {
			wrong = append(wrong, lock+" has no family")
		}
		for _, page := range pages[lock] {
			if !strings.Contains(read(page), "`"+lock+"`") {
				wrong = append(wrong, lock+" is not on "+page)
			}
		}
	}
	for lock := range pages {
		if !slices.Contains(locks, lock) {
			wrong = append(wrong, lock+" is no lock")
		}
	}
	slices.Sort(wrong)
	return wrong
}

// TestLockPages: every lock is on the page of its family, and every page belongs to a family.
func TestLockPages(t *testing.T) {
	folder := filepath.Join(repository, "docs", "locks")
	read := func(page string) string {
		text, err := os.ReadFile(filepath.Join(folder, page))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	index := read("README.md")
	for _, what := range wrongFamilies(index, clients.Names(), read) {
		t.Errorf("docs/locks: %s", what)
	}
	there, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range there {
		if name := entry.Name(); name != "README.md" && !strings.Contains(index, "("+name+")") {
			t.Errorf("%s is of no family", name)
		}
	}
}

// TestLockPagesControl: a lock without a page is found, and so is a name that is no lock.
func TestLockPagesControl(t *testing.T) {
	const index = "| page | locks |\n| [X](x.md) | `a`, `b`; naive: `c` |\n| [Y](y.md), no Docker | `d` |\n"
	pages := map[string]string{"x.md": "`a` and `b` and `c`", "y.md": "`d`"}
	read := func(page string) string { return pages[page] }
	for _, c := range []struct {
		index string
		locks string
		want  string
	}{
		{index, "a b c d", "[]"},
		{index, "a b c d e", "[e has no family]"},
		{index, "a b c", "[d is no lock]"},
		{strings.Replace(index, "`d`", "`d`, `a`", 1), "a b c d", "[a is not on y.md]"},
	} {
		if got := fmt.Sprint(wrongFamilies(c.index, strings.Fields(c.locks), read)); got != c.want {
			t.Errorf("%q: %s, want %s", c.index, got, c.want)
		}
	}
}
