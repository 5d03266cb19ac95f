package reports

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// unreadable lists what makes a page unusable for readers who cannot see it or have no mouse.
func unreadable(page string) []string {
	var out []string
	bad := func(what string) { out = append(out, what) }
	for _, landmark := range []string{"<header>", "<main>", "<footer>", `<html lang="en">`} {
		if strings.Count(page, landmark) != 1 {
			bad("not one " + landmark)
		}
	}
	page = regexp.MustCompile(`(?s)<(script|style)>.*?</(script|style)>`).ReplaceAllString(page, "")
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	heading, ids := "h0", map[string]bool{}
	var named []string // IDs that other elements refer to
	var open []xml.StartElement
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return append(out, err.Error())
		}
		switch e := token.(type) {
		case xml.EndElement:
			if len(open) > 0 {
				open = open[:len(open)-1]
			}
		case xml.StartElement:
			name := e.Name.Local
			if id := value(e, "id"); id != "" {
				if ids[id] {
					bad("two have the id " + id)
				}
				ids[id] = true
			}
			named = append(named, strings.Fields(value(e, "aria-labelledby"))...)
			switch {
			case regexp.MustCompile(`^h[1-6]$`).MatchString(name):
				if name[1] > heading[1]+1 {
					bad(name + " after " + heading)
				}
				heading = name
			case name == "th" && value(e, "scope") == "":
				bad("a heading of a table without scope")
			case name == "table":
				if !strings.Contains(page[d.InputOffset():min(int(d.InputOffset())+20, len(page))], "<caption>") {
					bad("a table without caption")
				}
			case name == "svg" && !within(open, "svg") && value(e, "aria-hidden") != "true" && (value(e, "role") != "group" || value(e, "aria-labelledby") == ""):
				bad("a picture without name")
			case value(e, "tabindex") == "0" && (value(e, "role") == "" || value(e, "aria-label") == ""):
				bad("a place for the keyboard without name")
			}
			open = append(open, e)
		}
	}
	for _, id := range named {
		if !ids[id] {
			bad("a name that is not there: " + id)
		}
	}
	return out
}

func value(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func within(open []xml.StartElement, name string) bool {
	for _, e := range open {
		if e.Name.Local == name {
			return true
		}
	}
	return false
}

func TestHTMLIsReadableWithoutEyes(t *testing.T) {
	for _, c := range append(runs(), poisoned()) {
		for _, what := range unreadable(pageOf(t, c)) {
			t.Errorf("%s: %s", c.name, what)
		}
	}
}

// TestUnreadable is the control: each page is spoiled in one way, and unreadable reports it.
func TestUnreadable(t *testing.T) {
	page := pageOf(t, runs()[0])
	for _, c := range []struct{ from, to, want string }{
		{"<h2>The whole run</h2>", "<h5>The whole run</h5>", "h5 after"},
		{`<th scope="col">`, "<th>", "without scope"},
		{"<caption>", "<p>", "without caption"},
		{`role="group" aria-labelledby`, "aria-labelledby", "without name"},
		{`id="overview-title"`, "", "not there: overview-title"},
		{`id="overview-title"`, `id="overview-desc"`, "two have the id"},
		{` aria-label="Table of faults"`, "", "keyboard without name"},
		{"<main>", "<div>", "not one <main>"},
	} {
		spoiled := strings.Replace(page, c.from, c.to, 1)
		if spoiled == page {
			t.Fatalf("the page has no %s", c.from)
		}
		if found := strings.Join(unreadable(spoiled), "\n"); !strings.Contains(found, c.want) {
			t.Errorf("%s for %s: found %q, want %q", c.to, c.from, found, c.want)
		}
	}
}

// contrast is the contrast ratio of WCAG 2 between two colours: 1 to 21.
func contrast(a, b string) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(color string) float64 {
	if len(color) == 3 {
		color = string([]byte{color[0], color[0], color[1], color[1], color[2], color[2]})
	}
	n, _ := strconv.ParseUint(color, 16, 32)
	linear := func(channel uint64) float64 {
		v := float64(channel&0xff) / 255
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(n>>16) + 0.7152*linear(n>>8) + 0.0722*linear(n)
}

func TestContrast(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want float64
	}{{"fff", "fff", 1}, {"000", "ffffff", 21}, {"ffffff", "777777", 4.48}} {
		if got := contrast(c.a, c.b); math.Abs(got-c.want) > 0.01 {
			t.Errorf("%s on %s: %v, want %v", c.a, c.b, got, c.want)
		}
	}
	style := Style()
	themes := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(style, -1)
	if len(themes) != 2 {
		t.Fatalf("%d themes, want light and dark", len(themes))
	}
	for i, theme := range themes {
		colors := map[string]string{}
		for _, m := range regexp.MustCompile(`--([a-z-]+): #([0-9a-f]+);`).FindAllStringSubmatch(theme[1], -1) {
			colors[m[1]] = m[2]
		}
		least := map[string]float64{ // the least contrast of text and of drawn shapes
			"ink": 4.5, "soft": 4.5, "bad": 4.5, "good": 4.5, "service": 4.5,
			"ok": 3, "ok-many": 3, "info": 3, "fail": 3, "fault": 3,
		}
		for name, want := range least {
			if got := contrast(colors[name], colors["paper"]); got < want {
				t.Errorf("theme %d: %s has a contrast of %.2f, want %v", i, name, got, want)
			}
		}
	}
}
