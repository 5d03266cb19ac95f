package reports

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
)

// busyRun is a run with more holds than a picture can draw one by one.
func busyRun(holds int) run {
	st := newStory("none")
	st.phase(history.PhaseReady)
	st.undisturbed(holds, 2*ms)
	h, r := st.finish(checker.Valid, "Nothing happened.")
	return run{"busy", h, r}
}

// TestParts: the holds that a zoom draws, together with the holds drawn one by one, are the holds of the run.
func TestParts(t *testing.T) {
	c := busyRun(4000)
	rec := newRecord(c.h, c.r)
	whole := overview(rec, rec.situationWithout(c.r))
	drawn, blocks := 0, 0
	for _, shape := range whole.Shapes {
		switch {
		case shape.Class == "hold":
			drawn++
		case shape.Parts != "":
			blocks++
			times := timesOf(t, shape)
			drawn += len(times) / 2
			if !slices.IsSorted(times) {
				t.Errorf("the holds of %s are not one after the other: %v", shape.Title, times)
			}
			worker := shape.Title[strings.LastIndex(shape.Title, " ")+1:]
			if !slices.ContainsFunc(c.r.Holds, func(h checker.Hold) bool {
				return h.Worker == worker && (h.Start-rec.begin)/1e3 == times[0] && (h.End-rec.begin)/1e3 == times[1]
			}) {
				t.Errorf("the first of %s is no hold", shape.Title)
			}
		}
	}
	if drawn != len(c.r.Holds) || blocks == 0 {
		t.Errorf("%d of %d holds, some of them in %d blocks", drawn, len(c.r.Holds), blocks)
	}
	if up := closeUp(rec, rec.situationWithout(c.r)); slices.ContainsFunc(up.Shapes, func(s shape) bool { return s.Parts != "" }) {
		t.Error("a picture without zoom has parts")
	}
}

// timesOf returns the beginnings and ends of the parts of a shape, in µs.
func timesOf(t *testing.T, s shape) []int64 {
	t.Helper()
	at := s.Begin
	var out []int64
	for _, text := range strings.Fields(s.Parts) {
		n, err := strconv.ParseInt(text, 36, 64)
		if err != nil {
			t.Fatal(err)
		}
		at += n
		out = append(out, at)
	}
	return out
}

// TestChromiumZoom: blocks come apart when a browser zooms in, and are whole again after zooming out.
func TestChromiumZoom(t *testing.T) {
	page := pageOf(t, busyRun(4000))
	const many = `<rect class="hold many"`
	if n := strings.Count(page, many); n == 0 {
		t.Fatal("no holds are merged")
	}
	zoom := func(clicks ...string) string {
		script := "<script>"
		for _, do := range clicks {
			script += `document.querySelector("[data-do=` + do + `]").click();`
		}
		return inChromium(t, strings.Replace(page, "</body>", script+"</script></body>", 1))
	}
	hidden := regexp.MustCompile(`<rect class="hold many"[^>]* style="display: none;"`)
	// Holds are 2 ms long, so a hold is a pixel wide only after zooming in far enough.
	in := zoom(slices.Repeat([]string{"in"}, 12)...)
	parts := regexp.MustCompile(`<rect class="hold"[^>]*><title>w\d holds the lock from [\d.]+ s to [\d.]+ s</title>`).FindAllString(in, -1)
	if len(parts) == 0 || !hidden.MatchString(in) {
		t.Errorf("%d holds are drawn apart, blocks are hidden: %t", len(parts), hidden.MatchString(in))
	}
	if out := zoom("in", "in", "in", "all"); hidden.MatchString(out) {
		t.Error("blocks are hidden where all of the run is shown")
	}
}

// inChromium is a page as a browser has it after its scripts have run. Without a browser, the test is
// skipped.
func inChromium(t *testing.T, page string) string {
	t.Helper()
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no Chromium is installed: no browser has looked at the page")
	}
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--user-data-dir="+t.TempDir(), "--virtual-time-budget=5000", "--dump-dom", "file://"+file).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
