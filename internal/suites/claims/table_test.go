package claims

import (
	"strings"
	"testing"

	"lockcheck/history"
	"lockcheck/internal/suites"
	"lockcheck/reports"
)

// TestWriteTable: shown results are linked and counted, missing results are named, and text from outside
// cannot break out of its cell.
func TestWriteTable(t *testing.T) {
	stored := func(folder, started string) suites.StoredRun {
		return suites.StoredRun{Document: reports.Document{Header: history.Header{Started: started}}, Folder: folder}
	}
	all := []Judged{
		{Number: 1, Text: "A | B.", Verdict: "holds within limits",
			For: []Result{{
				Experiment: "claim/x", Shows: "It does.", AsExpected: 2, Figures: []string{"lost 0", "ops 3"},
				Runs: []suites.StoredRun{stored("x (1)", "2026-01-02T00:00:00Z"), stored("y", "2026-01-03T00:00:00Z")},
			}},
			Against: []Result{{Experiment: "claim/y", Shows: "It does not.", AsExpected: 1, Runs: []suites.StoredRun{stored("a|b", "2026-01-01T00:00:00Z")}}},
		},
		{Number: 2, Text: "C.", Verdict: "open", For: []Result{{Experiment: "claim/z", Shows: "Both."}}, Against: []Result{{
			Experiment: "claim/w", Shows: "None.", AsExpected: 0, Missed: "the verdict is <valid>", Runs: []suites.StoredRun{stored("w", "2026-01-01T00:00:00Z")},
		}}},
		{Number: 3, Text: "D.", Verdict: "open", Missing: "a door"},
	}
	for links, rows := range map[string][]string{
		"../store": {
			"Runs from 2026-01-01T00:00:00Z to 2026-01-03T00:00:00Z.",
			`| 1 | A \| B. | [claim/x](../store/x%20%281%29/report.html) (2 of 2; [2](../store/y/report.html)): It does. (lost 0; ops 3) ` +
				`| [claim/y](../store/a%7Cb/report.html) (1 of 1): It does not. | **holds within limits** |`,
			`| 2 | C. | claim/z (not run): *not shown:* Both. | [claim/w](../store/w/report.html) (0 of 1): *not shown:* None. ` +
				`| **open**<br>claim/w: the verdict is &lt;valid&gt;<br>not run: claim/z |`,
			"| 3 | D. |  |  | **open**: a door |",
		},
		"": {`| 1 | A \| B. | claim/x (2 of 2): It does. (lost 0; ops 3) | claim/y (1 of 1): It does not. | **holds within limits** |`},
	} {
		var text strings.Builder
		if err := WriteTable(&text, all, links); err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if !strings.Contains(text.String(), row+"\n") {
				t.Errorf("links %q: no line\n%s\nin\n%s", links, row, text.String())
			}
		}
	}
}
