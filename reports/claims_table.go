package reports

import (
	"fmt"
	"io"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"lockcheck/checker"
)

// Claim is a common belief about locks, and what runs say to it.
type Claim struct {
	Number  int
	Text    string
	Verdict string // "holds", "holds within limits", "does not hold" or "open"
	// For and Against are what speaks for the claim and against it, if it was seen.
	For, Against []ClaimEvidence
	Missing      string // what would be needed and is not there; "" for nothing
}

// ClaimEvidence is an experiment that a claim rests on.
type ClaimEvidence struct {
	Experiment string
	Shows      string // a sentence: what is shown if the runs are as expected
	// N is the number of its runs, and AsExpected how many of them were.
	N, AsExpected int
	Missed        string   // why it is not shown: of the first that was not, or of all together
	Figures       []string // of all runs together
	Runs          []ClaimRun
}

// ClaimRun is a run of an experiment.
type ClaimRun struct {
	Report  string // its page, relative to the store
	Started string // UTC, RFC 3339
}

// Shown says whether the experiment was run, always was as expected, and tells something.
func (e ClaimEvidence) Shown() bool { return e.N > 0 && e.AsExpected == e.N && e.Missed == "" }

// claimsPreface says how the table was made, and what its words mean.
const claimsPreface = `# Common claims, tested

Made by "lockcheck claims table" from stored runs, which "make claims" makes; no verdict here is written by hand. Each claim is one that is
widely made about distributed locks. It rests on experiments: runs with fixed faults of which it is known what they must give.

- *holds*: all runs were as expected, and all of them speak for the claim.
- *holds within limits*: all were as expected; some speak for it, and others against it, which show where it ends.
- *does not hold*: all were as expected, and all of them speak against it.
- *open*: a run is missing, or was not as expected. That one is named.

"2 of 2" means that two runs were exactly as expected, out of two; "lockcheck claims run --only NAME" makes one more. Latencies and throughput are those of one machine: servers and workers
are containers on the same host, and no network lies between. What a claim says of them was measured with nothing else running; other figures
come from runs of which there were two at a time. They tell locks apart, and how many trips to a server each takes; across a network each of
these trips takes a round trip longer. What runs as "repro/..." is in the [reference](reference/reproductions.md), "lock/..." in the
[findings](findings.md).

`

// ClaimsTable writes claims, the runs for and against them, and verdicts as Markdown.
// Runs are linked to their pages below a path; "" for no links.
func ClaimsTable(w io.Writer, all []Claim, store string) error {
	var b strings.Builder
	b.WriteString(claimsPreface)
	if from, to := claimsTimes(all); from != "" {
		fmt.Fprintf(&b, "Runs from %s to %s.\n\n", markdown(from), markdown(to))
	}
	b.WriteString("| # | claim | for | against | verdict |\n| --- | --- | --- | --- | --- |\n")
	for _, c := range all {
		markdownLine(&b, []string{fmt.Sprint(c.Number), markdown(c.Text), claimCell(c.For, store), claimCell(c.Against, store), c.judged()})
	}
	b.WriteString("\nThe figures:\n\n")
	for _, f := range checker.Figures() {
		fmt.Fprintf(&b, "- *%s*: %s\n", markdown(f.Name), markdown(f.Summary))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// judged is the verdict, and why it is open.
func (c Claim) judged() string {
	text := "**" + markdown(c.Verdict) + "**"
	if c.Missing != "" {
		text += ": " + markdown(c.Missing)
	}
	var notRun []string
	for _, e := range slices.Concat(c.For, c.Against) {
		switch {
		case e.N == 0:
			notRun = append(notRun, markdown(e.Experiment))
		case !e.Shown():
			text += "<br>" + markdown(e.Experiment) + ": " + markdown(e.Missed)
		}
	}
	if len(notRun) > 0 {
		text += "<br>not run: " + strings.Join(notRun, ", ")
	}
	return text
}

func claimCell(all []ClaimEvidence, store string) string {
	var parts []string
	for _, e := range all {
		parts = append(parts, e.cell(store))
	}
	return strings.Join(parts, "<br>")
}

func (e ClaimEvidence) cell(store string) string {
	name := markdown(e.Experiment)
	if store != "" && len(e.Runs) > 0 {
		name = "[" + name + "](" + reportLink(store, e.Runs[0]) + ")"
	}
	text := name + " (" + e.count() + more(e.Runs, store) + "): "
	if !e.Shown() {
		text += "*not shown:* "
	}
	text += markdown(e.Shows)
	if len(e.Figures) > 0 {
		text += " " + markdown("("+strings.Join(e.Figures, "; ")+")")
	}
	return text
}

func (e ClaimEvidence) count() string {
	if e.N == 0 {
		return "not run"
	}
	return fmt.Sprintf("%d of %d", e.AsExpected, e.N)
}

// more links the runs after the first.
func more(runs []ClaimRun, store string) string {
	if store == "" || len(runs) < 2 {
		return ""
	}
	var links strings.Builder
	for i, run := range runs[1:] {
		fmt.Fprintf(&links, " [%d](%s)", i+2, reportLink(store, run))
	}
	return ";" + links.String()
}

// reportLink is the address of a page. Names of folders are text from outside.
func reportLink(store string, run ClaimRun) string {
	address := url.URL{Path: path.Join(filepath.ToSlash(store), filepath.ToSlash(run.Report))}
	return strings.NewReplacer("(", "%28", ")", "%29", "|", "%7C").Replace(address.String())
}

// claimsTimes are when the first and the last run began.
func claimsTimes(all []Claim) (from, to string) {
	for _, c := range all {
		for _, e := range slices.Concat(c.For, c.Against) {
			for _, run := range e.Runs {
				if from == "" || run.Started < from {
					from = run.Started
				}
				to = max(to, run.Started)
			}
		}
	}
	return from, to
}
