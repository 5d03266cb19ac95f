package reports

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
)

func pageOf(t *testing.T, c run) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, c.h, c.r); err != nil {
		t.Fatal(err)
	}
	if dir := os.Getenv("LOCKCHECK_REPORTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, c.name+".html"), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// parseSVG decodes every picture of a page and counts the elements by class.
func parseSVG(t *testing.T, page string) map[string]int {
	t.Helper()
	count := map[string]int{}
	for rest := page; ; {
		start := strings.Index(rest, `<svg class="timeline"`)
		if start < 0 {
			return count
		}
		rest = rest[start:]
		d := xml.NewDecoder(strings.NewReader(rest))
		for depth := 0; ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) || err != nil {
				t.Fatalf("picture: %v", err)
			}
			switch e := token.(type) {
			case xml.StartElement:
				depth++
				count["<"+e.Name.Local]++
				for _, a := range e.Attr {
					if a.Name.Local == "class" || a.Name.Local == "href" {
						count[a.Value]++
					}
				}
			case xml.EndElement:
				depth--
			}
			if depth == 0 {
				break
			}
		}
		rest = rest[d.InputOffset():]
	}
}

func TestHTML(t *testing.T) {
	want := map[string][]string{
		"violation": {"VIOLATION</span>", "The counterexample", "Step by step"},
		"tolerated": {"VALID</span>", "What the guard made harmless", "write refused"},
		"valid":     {"VALID</span>", "How the lock was used"},
		"undecided": {"UNDECIDED</span>", ">n/a<"},
		"broken":    {"BROKEN</span>", "No hold was recorded", "line 7"},
	}
	for _, c := range append(runs(), poisoned()) {
		t.Run(c.name, func(t *testing.T) {
			page := pageOf(t, c)
			for _, part := range want[c.name] {
				if !strings.Contains(page, part) {
					t.Errorf("missing %q", part)
				}
			}
			for _, bad := range []string{"http://", "https://", "<link", "src=", "@import", "ZgotmplZ", "NaN"} {
				if strings.Contains(page, bad) {
					t.Errorf("the page has %q", bad)
				}
			}
			if n := strings.Count(page, "<script"); n != 1 {
				t.Errorf("%d scripts", n)
			}
			svg := parseSVG(t, page)
			if c.name == "violation" && (svg["beyond"] != 6 || svg["#s-lost"] != 4 || svg["#s-stale"] != 6 || svg["overlap"] != 6 || svg["window"] != 1) {
				t.Errorf("the pictures show %v", svg)
			}
		})
	}
}

func TestHTMLEscapes(t *testing.T) {
	page := pageOf(t, poisoned())
	if strings.Contains(page, "<script>alert") || strings.Contains(page, `"' onload`) || !strings.Contains(page, "&lt;script&gt;alert(1)") {
		t.Error("hostile text is not escaped")
	}
	for _, part := range []string{"the claim of &lt;script&gt;", "the lease of &lt;script&gt;", `<rect class="band"`} {
		if !strings.Contains(page, part) {
			t.Errorf("nothing hostile in %q", part)
		}
	}
	if strings.ContainsAny(page, "\x1b\x00\x07\u202e") {
		t.Error("control characters")
	}
}

// TestHTMLStaysSmall has a run with 100,000 operations and more violations than anyone would read.
func TestHTMLStaysSmall(t *testing.T) {
	st := newStory("none")
	st.phase(history.PhaseReady)
	for n := range 300 {
		w := st.h.Header.Workers
		st.undisturbed(330, 2*ms)
		st.outlast(fmt.Sprintf("f%d", n), w[n%5], w[(n+2)%5], true)
	}
	h, r := st.finish(checker.Violation, "Two workers held the lock at the same time 300 times.")
	if len(r.Holds) < 99_000 {
		t.Fatal(len(r.Holds))
	}
	start := time.Now()
	page := pageOf(t, run{"large", h, r})
	t.Logf("%d kB in %v", len(page)/1024, time.Since(start))
	if len(page) > 2<<20 {
		t.Errorf("%d bytes", len(page))
	}
	parseSVG(t, page)
	for _, part := range []string{"25 of 300; the rest is in the history", "drawn as", "150 more faults", "no-lost-update: 100 of 300", "20 more"} {
		if !strings.Contains(page, part) {
			t.Errorf("does not say what was left out: %q", part)
		}
	}
}

// TestHTMLOfScraps has inputs that a killed run can leave behind.
func TestHTMLOfScraps(t *testing.T) {
	one := checker.Hold{Worker: "w9", Grant: "g", Start: 5, End: 5, Deadline: 5}
	for i, r := range []checker.Results{
		{}, {Holds: []checker.Hold{one}}, {Holds: []checker.Hold{one}, Begin: 5, End: 5},
		{Holds: []checker.Hold{one}, End: 10, Findings: []checker.Finding{{Property: checker.MutualExclusion, Verdict: checker.Violation,
			Violations: []checker.Incident{{Grants: []string{"g"}}, {Grants: []string{"none"}, From: 9, To: 3}}}}},
		{Holds: []checker.Hold{one}, Faults: []checker.FaultCoverage{{Kind: "pause", Applied: true, Proven: true, Exercised: true, Begin: 9, End: 2}}},
	} {
		page := pageOf(t, run{fmt.Sprint("scrap", i), &history.History{}, r})
		parseSVG(t, page)
		if strings.Contains(page, "NaN") || strings.Contains(page, "Inf") || strings.Contains(page, `width="-`) {
			t.Errorf("%d: impossible places", i)
		}
	}
}
