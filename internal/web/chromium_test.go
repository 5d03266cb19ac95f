package web

import (
	"context"
	"html"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// browserTimeout is how long a browser may take for a page on a busy machine.
const browserTimeout = 2 * time.Minute

// chromium finds a browser, or skips the test.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium is installed: no browser has looked at these pages")
	return ""
}

// dom is a page as a browser has it after its scripts have run.
func dom(t *testing.T, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), browserTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, chromium(t), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--user-data-dir="+t.TempDir(), "--virtual-time-budget=5000", "--dump-dom", url)
	var stderr strings.Builder
	command.Stderr = &stderr
	page, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", url, err, stderr.String())
	}
	return string(page)
}

// linkOf is the target of the link with a text, in the first row of a list or on a page.
func linkOf(t *testing.T, page, text string) string {
	t.Helper()
	found := regexp.MustCompile(`<a href="([^"]*)">` + regexp.QuoteMeta(text) + `</a>`).FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("there is no link %q in\n%s", text, page)
	}
	return html.UnescapeString(found[1])
}

// TestChromiumFollows: a browser that follows the links of a filtered list reaches the right pages.
func TestChromiumFollows(t *testing.T) {
	chromium(t)
	site := mixed(t).serve()
	list := dom(t, site.url+"/?lock=redis&verdict=valid")
	folders, count := listed(list)
	if len(folders) != 1 || folders[0] != redis || count != "1 of 4 runs" {
		t.Errorf("%s: %q", count, folders)
	}
	if report := dom(t, site.url+linkOf(t, list, "report")); !strings.Contains(report, "report of "+redis) {
		t.Errorf("another report was shown:\n%s", report)
	}
	run := dom(t, site.url+linkOf(t, list, "files"))
	if log := dom(t, site.url+linkOf(t, run, "logs/n1.log")); !strings.Contains(log, "log of "+redis) {
		t.Errorf("another log was shown:\n%s", log)
	}
	if all := dom(t, site.url+linkOf(t, list, "all")); !strings.Contains(all, "4 of 4 runs") {
		t.Errorf("the filter is still there:\n%s", all)
	}
}

// spy is a report whose script reports that it ran, and tries to read another page.
const spy = `<body><script>
document.body.append("ran");
fetch("/").then(() => document.body.append(", read"), () => document.body.append(", refused"));
</script></body>`

var scripts = regexp.MustCompile(`(?s)<script>.*?</script>`)

// TestChromiumSandbox: the script of a report runs and can read no other page; without the policy it could. A
// script in another page does not run, and neither does one in a name.
func TestChromiumSandbox(t *testing.T) {
	chromium(t)
	s := newShelf(t)
	s.run("redis/1", document(`<img src="x" onerror="document.body.append('obeyed')">`, "2026-01-01T00:00:00Z", 0))
	s.file("redis/1/report.html", spy)
	s.file("redis/1/other.html", spy)
	site := s.serve()
	open := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(spy)) }))
	defer open.Close()
	for _, c := range []struct{ url, want string }{
		{site.url + "/files/redis/1/report.html", "ran, refused"},
		{open.URL, "ran, read"},
	} {
		if page := dom(t, c.url); !strings.Contains(page, c.want) {
			t.Errorf("%q is not in\n%s", c.want, page)
		}
	}
	if page := dom(t, site.url+"/files/redis/1/other.html"); !strings.Contains(page, "<script>") || strings.Contains(scripts.ReplaceAllString(page, ""), "ran") {
		t.Errorf("the script of a page that is no report ran, or the page was not shown:\n%s", page)
	}
	if page := dom(t, site.url+"/"); !strings.Contains(page, "&lt;img") || strings.Contains(page, "<img") {
		t.Errorf("a name was obeyed:\n%s", page)
	}
}
