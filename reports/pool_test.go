package reports

import (
	"bytes"
	"strings"
	"testing"

	"lockcheck/checker"
)

// TestPooledLosses: runs that say nothing about updates do not count as runs that lost none.
func TestPooledLosses(t *testing.T) {
	pooled := func(updates ...checker.UpdateSummary) string {
		var all []checker.Results
		for _, u := range updates {
			all = append(all, checker.Results{Verdict: checker.Valid, Updates: u})
		}
		var out bytes.Buffer
		if err := Pooled(&out, checker.PoolOf(all), TerminalOptions{Width: 300}); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	judged, silent := checker.UpdateSummary{Acknowledged: 10, Lost: 1}, checker.UpdateSummary{}
	if text := pooled(judged, silent, judged, silent); !strings.Contains(text, "2 of 20 acknowledged updates") || !strings.Contains(text, "in 2 of 2 runs") {
		t.Error(text)
	}
	if text := pooled(silent, silent); strings.Contains(text, "lost") {
		t.Error(text)
	}
}
