package claims

import (
	"fmt"
	"io"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"lockcheck/checker"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/present"
	"lockcheck/reports"
)

// preface says how the table was made, and what its words mean.
const preface = `# Common claims, tested

Made by "lockcheck repro claims table" from stored runs, which "make claims" makes; no verdict here is written by hand. Each claim is one that is
widely made about distributed locks. It rests on experiments: runs with fixed faults of which it is known what they must give.

- *holds*: all runs were as expected, and all of them speak for the claim.
- *holds within limits*: all were as expected; some speak for it, and others against it, which show where it ends.
- *does not hold*: all were as expected, and all of them speak against it.
- *open*: a run is missing, or was not as expected. That one is named.

"2 of 2" means that two runs were exactly as expected, out of two; "lockcheck repro claims run --only NAME" makes one more. Latencies and throughput are those of one machine: servers and workers
are containers on the same host, and no network lies between. What a claim says of them was measured with nothing else running; other figures
come from runs of which there were two at a time. They tell locks apart, and how many trips to a server each takes; across a network each of
these trips takes a round trip longer. "lockcheck repro --list" lists what runs as "repro/...",
"lockcheck list locks" what runs as "lock/...".

`

// WriteTable writes claims, their results and verdicts as Markdown. Runs are linked to their pages below the
// path store; "" for no links.
func WriteTable(w io.Writer, all []Judged, store string) error {
	var b strings.Builder
	b.WriteString(preface)
	if from, to := firstAndLast(all); from != "" {
		fmt.Fprintf(&b, "Runs from %s to %s.\n\n", reports.Markdown(from), reports.Markdown(to))
	}
	b.WriteString("| # | claim | for | against | verdict |\n| --- | --- | --- | --- | --- |\n")
	for _, j := range all {
		fmt.Fprintf(&b, "| %d | %s | %s | %s | %s |\n", j.Number, reports.Markdown(j.Text), cell(j.For, store), cell(j.Against, store), j.verdictText())
	}
	b.WriteString("\nThe figures:\n\n")
	for _, f := range checker.Figures() {
		fmt.Fprintf(&b, "- *%s*: %s\n", reports.Markdown(f.Name), reports.Markdown(present.Figure(f.Name)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// verdictText is the verdict, and why it is open.
func (j Judged) verdictText() string {
	text := "**" + j.Verdict + "**"
	if j.Missing != "" {
		text += ": " + reports.Markdown(j.Missing)
	}
	var notRun []string
	for _, r := range slices.Concat(j.For, j.Against) {
		switch {
		case len(r.Runs) == 0:
			notRun = append(notRun, reports.Markdown(r.Experiment))
		case !r.shown():
			text += "<br>" + reports.Markdown(r.Experiment+": "+r.Missed)
		}
	}
	if len(notRun) > 0 {
		text += "<br>not run: " + strings.Join(notRun, ", ")
	}
	return text
}

// cell lists experiments, their runs and what they show.
func cell(all []Result, store string) string {
	var parts []string
	for _, r := range all {
		name, count := reports.Markdown(r.Experiment), "not run"
		if len(r.Runs) > 0 {
			count = fmt.Sprintf("%d of %d", r.AsExpected, len(r.Runs))
		}
		for i, run := range r.Runs {
			switch {
			case store == "":
			case i == 0:
				name = "[" + name + "](" + address(store, run) + ")"
			case i == 1:
				count += "; [2](" + address(store, run) + ")"
			default:
				count += fmt.Sprintf(" [%d](%s)", i+1, address(store, run))
			}
		}
		text := name + " (" + count + "): "
		if !r.shown() {
			text += "*not shown:* "
		}
		text += reports.Markdown(r.Shows)
		if len(r.Figures) > 0 {
			text += " " + reports.Markdown("("+strings.Join(r.Figures, "; ")+")")
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "<br>")
}

// address is the link to the page of a run. Folder names come from outside and are escaped.
func address(store string, run suites.StoredRun) string {
	page := url.URL{Path: path.Join(filepath.ToSlash(store), filepath.ToSlash(run.Folder), runs.ReportFile)}
	return strings.NewReplacer("(", "%28", ")", "%29", "|", "%7C").Replace(page.String())
}

// firstAndLast returns when the first and the last run began.
func firstAndLast(all []Judged) (from, to string) {
	for _, j := range all {
		for _, r := range slices.Concat(j.For, j.Against) {
			for _, run := range r.Runs {
				started := run.Header.Started
				if from == "" || started < from {
					from = started
				}
				to = max(to, started)
			}
		}
	}
	return from, to
}
