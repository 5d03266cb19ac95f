package reports

import (
	"strings"
	"testing"

	"lockcheck/history"
)

// TestHTMLWithoutEvents has a history that is too large to be kept for pictures.
func TestHTMLWithoutEvents(t *testing.T) {
	const tooLarge = "too large to be drawn"
	h, r := realistic("none")
	whole := pageOf(t, run{"whole", h, r})
	if strings.Contains(whole, tooLarge) || len(parseSVG(t, whole)) == 0 {
		t.Error("a history with events is not drawn")
	}
	r.Holds = nil
	bare := pageOf(t, run{"bare", &history.History{Header: h.Header}, r})
	for _, part := range []string{tooLarge, "The counterexample", "still acted as the holder", "In figures", "Table of faults"} {
		if !strings.Contains(bare, part) {
			t.Errorf("missing %q", part)
		}
	}
	for _, part := range []string{`class="timeline"`, "Zoom in", "Latencies</h3>", "No hold was recorded"} {
		if strings.Contains(bare, part) {
			t.Errorf("there is %q without a picture", part)
		}
	}
}
