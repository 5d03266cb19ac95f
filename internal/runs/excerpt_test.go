package runs

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"lockcheck/reports"
)

// TestExcerpt: the close-ups of incidents are the same for a history that is too large to be drawn.
func TestExcerpt(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "checker", "testdata", "corpus", "*", "history.jsonl.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no histories: %v", err)
	}
	if testing.Short() {
		files = files[:len(files)/8]
	}
	drawn := 0
	for _, file := range files {
		path := unpacked(t, file)
		whole, part := closeUpsOf(t, path, maxPictured), closeUpsOf(t, path, 0)
		if len(part) == 0 {
			continue // without an incident there is no close-up
		}
		drawn += len(part)
		for id, picture := range part {
			if picture != whole[id] {
				t.Errorf("%s: %s is\n%s\nwant\n%s", filepath.Dir(file), id, picture, whole[id])
			}
		}
		if len(whole) != len(part) {
			t.Errorf("%s: %d close-ups, want %d", filepath.Dir(file), len(part), len(whole))
		}
	}
	if drawn < len(files)/2 {
		t.Errorf("only %d close-ups in %d histories", drawn, len(files))
	}
}

// unpacked unpacks a copy of a file and returns its path.
func unpacked(t *testing.T, path string) string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	packed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(packed)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), HistoryFile)
	if err := os.WriteFile(out, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

var closeUpOfPage = regexp.MustCompile(`(?s)<svg class="timeline" id="(closeup[-\d]*)".*?</svg>`)

// closeUpsOf returns the close-ups on the page of a history. A history of more bytes than most is too large
// to be drawn.
func closeUpsOf(t *testing.T, path string, most int64) map[string]string {
	t.Helper()
	h, results, err := judgeFile(path, true, most)
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	if err := reports.HTML(&page, h, results); err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	for _, m := range closeUpOfPage.FindAllStringSubmatch(page.String(), -1) {
		out[m[1]] = m[0]
	}
	if has := strings.Contains(page.String(), `id="overview"`); has == h.Excerpt {
		t.Errorf("%s: an excerpt: %t; the whole of it is drawn: %t", path, h.Excerpt, has)
	}
	return out
}
