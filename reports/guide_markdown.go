package reports

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/present"
)

// guidePreface says what the guide rests on.
const guidePreface = `# Which lock to choose

Made by "lockcheck guide" from %s of %s; nothing here is written by hand. Of them %s nothing: undecided, or broken themselves.

A run shows that a lock can break, never that it cannot. So each cell has the worst that these runs have shown of a lock, whenever that was: what broke
it, and how often; or in how many runs it held, and in how many it may break all the same. Runs of one machine, lockcheck's own workloads: they say what can happen,
not how often it will happen to you. What each lock is, how it is used here and what its options do: [docs/locks](locks/README.md).

`

// guideRunsPreface says what the runs of the guide are.
const guideRunsPreface = `# The runs behind the guide

Made by "lockcheck guide" from %s of %s; nothing here is written by hand. By guard, lock and fault, those of each cell of the guide that has any. A run is repeated by its line.

`

// GuideMarkdown writes the guide as Markdown: advice, tables and figures. Its cells lead to the page
// of GuideRunsMarkdown by its address; "" if there is none.
func GuideMarkdown(w io.Writer, g Guide, runs string) error {
	var b strings.Builder
	say := "say"
	if g.Silent == 1 {
		say = "says"
	}
	fmt.Fprintf(&b, guidePreface, many(g.Runs, "run"), markdown(g.days()), grouped(g.Silent)+" "+say)
	b.WriteString("## By need\n\n")
	markdownTerms(&b, fitTerms[:])
	for _, need := range g.Needs {
		markdownNeed(&b, need)
	}
	b.WriteString("## By lock and fault\n\n" + guideLeads(runs) + "\n\n")
	markdownTerms(&b, guideTerms())
	for _, table := range g.Tables {
		markdownGuide(&b, g.Faults, table, runs)
	}
	b.WriteString("## How fast\n\nFrom runs on a machine that had other work to do: to tell locks apart, not to plan with. " +
		"[What a lock costs](costs.md#what-a-lock-costs) has figures for 1 to 64 workers, from a machine that had nothing else to do.\n\n")
	markdownTerms(&b, speedTerms[:])
	markdownSpeeds(&b, g.Speeds)
	return writeTrimmed(w, b.String())
}

// guideLeads says how to come to the runs.
func guideLeads(runs string) string {
	if runs == "" {
		return "The runs behind each cell are on a page of their own with `--runs FILE`, or part of the page of `--html FILE`."
	}
	return "Each cell leads to its runs."
}

// GuideRunsMarkdown writes the runs behind each cell of the guide as a page of their own.
func GuideRunsMarkdown(w io.Writer, g Guide) error {
	var b strings.Builder
	fmt.Fprintf(&b, guideRunsPreface, many(g.Runs, "run"), markdown(g.days()))
	for _, table := range g.Tables {
		for _, row := range table.Rows {
			for _, cell := range append(row.Cells, row.Others...) {
				markdownRuns(&b, cell)
			}
		}
	}
	return writeTrimmed(w, b.String())
}

// writeTrimmed leaves out the empty line after what comes last.
func writeTrimmed(w io.Writer, text string) error {
	_, err := io.WriteString(w, strings.TrimRight(text, "\n")+"\n")
	return err
}

func markdownNeed(b *strings.Builder, need GuideNeed) {
	fmt.Fprintf(b, "### %s\n\n%s\n\n", markdown(need.Need), markdown(need.Rule))
	if len(need.Fits) == 0 {
		b.WriteString("No lock is known to meet this.\n\n")
	} else {
		markdownRow(b, guideFitHead)
		b.WriteString("|" + strings.Repeat(" --- |", len(guideFitHead)) + "\n")
		for _, fit := range need.Fits {
			markdownRow(b, fit.Cells())
		}
		b.WriteString("\n")
	}
	for _, text := range []string{need.OpenText(), need.OutText()} {
		if text != "" {
			b.WriteString(markdown(text) + "\n\n")
		}
	}
}

func markdownGuide(b *strings.Builder, faults []string, table GuideTable, runs string) {
	head := []string{"guard " + table.Guard}
	head = append(head, faults...)
	markdownRow(b, append(head, otherFaults))
	b.WriteString("|" + strings.Repeat(" --- |", len(head)+1) + "\n")
	for _, row := range table.Rows {
		if !row.tells() {
			continue
		}
		cells := []string{markdown(lockLabel(row.Lock, row.Note))}
		for _, c := range row.Cells {
			cells = append(cells, markdownGuideCell(c, "", runs))
		}
		var others []string
		for _, c := range row.others() {
			others = append(others, markdownGuideCell(c, c.Fault+": ", runs))
		}
		markdownLine(b, append(cells, strings.Join(others, "<br>")))
	}
	b.WriteString("\n")
}

// markdownGuideCell is a cell that leads to its runs, if there are any and they have a page.
func markdownGuideCell(c GuideCell, before, runs string) string {
	text := markdown(before + c.text())
	if c.broken() {
		text = "**" + text + "**"
	}
	if runs == "" || !c.hasRuns() {
		return text
	}
	return "[" + text + "](" + runs + "#" + c.anchor() + ")"
}

func markdownSpeeds(b *strings.Builder, all []GuideSpeed) {
	head := []string{"lock", "acquire p50", "p99, or slowest", "acquires", "failover, median", "longest", "holders", "never", "lease", "lost when stopped", "share lost, 95 % interval"}
	markdownRow(b, head)
	b.WriteString("|" + strings.Repeat(" --- |", len(head)) + "\n")
	for _, s := range all {
		if s.empty() {
			continue
		}
		row := []string{lockLabel(s.Lock, s.Note), measured(s.Acquires, s.AcquireP50), s.slowest(), counted(s.Acquires)}
		passed := s.Failovers - s.Stuck
		row = append(row, measured(passed, s.FailoverP50), measured(passed, s.FailoverMax), counted(s.Failovers), counted(s.Stuck), s.lease())
		if s.NeedsNoFault {
			row = append(row, losesAnyhow, "")
		} else if s.Loss.Acknowledged > 0 {
			row = append(row, fmt.Sprintf("%s of %s, in %s", grouped(s.Loss.Lost), grouped(s.Loss.Acknowledged), many(s.Stops, "stop")), s.share())
		} else {
			row = append(row, "", "")
		}
		markdownRow(b, row)
	}
	b.WriteString("\n")
}

// share is the interval of the share that was lost, and what it is over.
func (s GuideSpeed) share() string {
	over := "over " + present.Units(s.Loss.LossInterval)
	switch known := s.Loss.IntervalKnown(); {
	case !known && s.Loss.LostOver == checker.OverRuns && s.Loss.LostUnits > 1:
		return "none, too few to tell how much runs differ: " + over
	case !known:
		return "none, too few: " + over
	}
	return fmt.Sprintf("%s–%s %%, %s", inPercent(s.Loss.LostLow), inPercent(s.Loss.LostHigh), over)
}

// lease is that of the failovers, with what is added to it.
func (s GuideSpeed) lease() string {
	text := measured(int64(s.Lease), s.Lease)
	if s.LockDelay > 0 {
		text += ", and a lock delay of " + length(s.LockDelay)
	}
	return text
}

// slowest is the 99th percentile where there are enough acquires for one.
func (s GuideSpeed) slowest() string {
	switch {
	case s.Acquires == 0:
		return ""
	case s.Acquires < 100:
		return "slowest " + length(s.AcquireP99)
	}
	return "p99 " + length(s.AcquireP99)
}

// measured is empty where there was nothing to measure.
func measured(n int64, d time.Duration) string {
	if n == 0 {
		return ""
	}
	return length(d)
}

func counted(n int64) string {
	if n == 0 {
		return ""
	}
	return grouped(n)
}

func markdownRuns(b *strings.Builder, c GuideCell) {
	if !c.hasRuns() {
		return
	}
	fmt.Fprintf(b, "## %s\n\n", markdown(c.heading()))
	for _, s := range c.sentences() {
		fmt.Fprintf(b, "- %s\n", markdown(s))
	}
	fmt.Fprintf(b, "- %s\n\n", markdown(c.versions()))
	markdownRow(b, []string{"run", "seed", "verdict", "what happened", "again"})
	b.WriteString("|" + strings.Repeat(" --- |", 5) + "\n")
	for _, r := range c.all() {
		said := sentenceOf(r)
		markdownLine(b, []string{
			markdown(r.ID), strconv.FormatUint(r.Seed, 10), string(plain(r.Verdict)), markdown(said), markdownCode(r.Line),
		})
	}
	b.WriteString("\n")
}

// versions lists those of all runs of a cell, and the days on which they began.
func (c GuideCell) versions() string {
	var versions, days []string
	for _, r := range c.all() {
		day, _, _ := strings.Cut(r.When, "T")
		for list, text := range map[*[]string]string{&versions: r.versions(), &days: clean(day)} {
			if !slices.Contains(*list, text) {
				*list = append(*list, text)
			}
		}
	}
	slices.Sort(days)
	return "With " + strings.Join(versions, "; or ") + "; on " + strings.Join(days, ", ") + "."
}

// sentenceOf is what came of a run, and what was special about it.
func sentenceOf(r GuideRun) string {
	said := sentence(checker.Results{Verdict: r.Verdict, Sentence: r.Sentence})
	if len(r.Setup) > 0 {
		said += " (" + strings.Join(cleanAll(r.Setup), ", ") + ")"
	}
	return said
}

// versions are those of servers and client modules, and of lockcheck.
func (r GuideRun) versions() string {
	text := versionsText(r.Versions)
	if r.Lockcheck == "" {
		return text
	}
	return strings.TrimPrefix(text+", lockcheck "+clean(r.Lockcheck), ", ")
}
