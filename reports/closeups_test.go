package reports

import (
	"regexp"
	"strings"
	"testing"
)

// TestCloseUps: each incident of the tables links to a picture on the page, and no two pictures show the
// same.
func TestCloseUps(t *testing.T) {
	h, r := realistic("none")
	page := pageOf(t, run{"closeups", h, r})
	links := regexp.MustCompile(`<a href="#(closeup[-\d]*)">close-up</a>`).FindAllStringSubmatch(page, -1)
	if want := strings.Count(page, `<tr id="incident-`); len(links) != want || want == 0 {
		t.Errorf("%d links to close-ups, %d incidents", len(links), want)
	}
	pictures := regexp.MustCompile(`<svg class="timeline" id="(closeup[-\d]*)"[^>]* data-from="([\d.]+)" data-seconds="([\d.]+)"`).FindAllStringSubmatch(page, -1)
	ids, parts := map[string]bool{}, map[string]bool{}
	for _, p := range pictures {
		ids[p[1]], parts[p[2]+" "+p[3]] = true, true
	}
	if len(parts) != len(pictures) || len(pictures) < 2 {
		t.Errorf("%d pictures of %d parts of the run", len(pictures), len(parts))
	}
	for _, link := range links {
		if !ids[link[1]] {
			t.Errorf("there is no %s", link[1])
		}
	}
}
