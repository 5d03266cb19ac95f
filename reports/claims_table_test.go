package reports

import (
	"strings"
	"testing"
)

// TestClaimsTable: what was shown is linked and counted, what was not is named, and no
// text from outside gets out of its cell.
func TestClaimsTable(t *testing.T) {
	all := []Claim{
		{Number: 1, Text: "A | B.", Verdict: "holds within limits",
			For: []ClaimEvidence{{
				Experiment: "claim/x", Shows: "It does.", N: 2, AsExpected: 2, Figures: []string{"lost 0", "ops 3"},
				Runs: []ClaimRun{{Report: "x (1)/report.html", Started: "2026-01-02T00:00:00Z"}, {Report: "y/report.html", Started: "2026-01-03T00:00:00Z"}},
			}},
			Against: []ClaimEvidence{{Experiment: "claim/y", Shows: "It does not.", N: 1, AsExpected: 1, Runs: []ClaimRun{{Report: "a|b/report.html", Started: "2026-01-01T00:00:00Z"}}}},
		},
		{Number: 2, Text: "C.", Verdict: "open", For: []ClaimEvidence{{Experiment: "claim/z", Shows: "Both."}}, Against: []ClaimEvidence{{
			Experiment: "claim/w", Shows: "None.", N: 2, AsExpected: 1, Missed: "the verdict is <valid>", Runs: []ClaimRun{{Report: "w/report.html", Started: "2026-01-01T00:00:00Z"}},
		}}},
		{Number: 3, Text: "D.", Verdict: "open", Missing: "a door"},
	}
	for links, rows := range map[string][]string{
		"../store": {
			"Runs from 2026-01-01T00:00:00Z to 2026-01-03T00:00:00Z.",
			`| 1 | A \| B. | [claim/x](../store/x%20%281%29/report.html) (2 of 2; [2](../store/y/report.html)): It does. (lost 0; ops 3) ` +
				`| [claim/y](../store/a%7Cb/report.html) (1 of 1): It does not. | **holds within limits** |`,
			`| 2 | C. | claim/z (not run): *not shown:* Both. | [claim/w](../store/w/report.html) (1 of 2): *not shown:* None. ` +
				`| **open**<br>claim/w: the verdict is &lt;valid&gt;<br>not run: claim/z |`,
			"| 3 | D. |  |  | **open**: a door |",
		},
		"": {`| 1 | A \| B. | claim/x (2 of 2): It does. (lost 0; ops 3) | claim/y (1 of 1): It does not. | **holds within limits** |`},
	} {
		var text strings.Builder
		if err := ClaimsTable(&text, all, links); err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if !strings.Contains(text.String(), row+"\n") {
				t.Errorf("links %q: no line\n%s\nin\n%s", links, row, text.String())
			}
		}
	}
}
