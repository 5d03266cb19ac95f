package checker

import (
	"fmt"
	"slices"
	"strings"

	"lockcheck/history"
)

// The summary shows the judgement of an entry on one line, in words of its own. So it stays the same when
// properties, causes and fields are renamed.

// summaryNames are the properties in the words of the summary.
var summaryNames = []struct {
	property Property
	name     string
}{
	{MutualExclusion, "mutual exclusion"},
	{NoExpiredGrant, "expired grant"},
	{NoWrongRelease, "wrong release"},
	{NoWrongRenewal, "wrong renewal"},
	{NoStaleWrite, "stale write"},
	{NoLostUpdate, "lost update"},
	{FencingOrder, "fencing order"},
	{Linearizability, "linearizability"},
	{Liveness, "liveness"},
	{FaultEvidence, "fault evidence"},
	{Assumptions, "assumptions"},
}

// summaryCauses are the causes in the words of the summary.
var summaryCauses = []struct{ cause, name string }{
	{CausePaused, "paused"},
	{CauseCutOff, "cut off"},
	{CauseUnrenewed, "unrenewed"},
	{CauseOutlasted, "long section"},
	{CauseInFlight, "in flight"},
	{CauseExpiredGrant, "expired grant"},
	{CauseReleasedByOther, "released by another"},
	{CauseLateRelease, "late release"},
	{CauseClock, "clock"},
	{CauseServerLost, "server lost"},
	{CauseServerFault, "server fault"},
	{CauseTwice, "twice"},
	{CauseUnlocked, "without the lock"},
	{CauseUnexplained, "unexplained"},
}

// summaryFigures are counts that verdicts and causes do not show.
var summaryFigures = []struct {
	name string
	of   func(Results) any
}{
	{"acquired", func(r Results) any { return r.Operations.Acquired }},
	{"busy", func(r Results) any { return r.Operations.Busy }},
	{"unknown", func(r Results) any { return r.Operations.Unknown }},
	{"acknowledged", func(r Results) any { return r.Updates.Acknowledged }},
	{"lost", func(r Results) any { return r.Updates.Lost }},
	{"at most", func(r Results) any { return fmt.Sprintf("%.4f", r.Updates.LostHigh) }},
	{"double grants", func(r Results) any { return r.Overlaps.DoubleGrants }},
	{"uses after expiry", func(r Results) any { return r.Overlaps.UsesAfterExpiry }},
	{"refused", func(r Results) any { return r.Fence.RefusedReads + r.Fence.RefusedWrites }},
	{"killed holders", func(r Results) any { return r.Orphans.Killed }},
	{"replaced holders", func(r Results) any { return r.LossNotifications.Replaced }},
	{"failovers", func(r Results) any { return r.Failovers.Holders }},
	{"longest failover", func(r Results) any { return r.Failovers.Longest }},
	{"faults", func(r Results) any { return faultsInShort(r.Faults) }},
}

func summaryOf(entries []judgedEntry) string {
	var text strings.Builder
	text.WriteString("entry\tverdict")
	for _, p := range summaryNames {
		text.WriteString("\t" + p.name)
	}
	for _, f := range summaryFigures {
		text.WriteString("\t" + f.name)
	}
	for _, e := range entries {
		fmt.Fprintf(&text, "\n%s\t%s", e.name, e.results.Verdict)
		for _, p := range summaryNames {
			text.WriteString("\t" + findingInShort(e.results.Finding(p.property)))
		}
		for _, f := range summaryFigures {
			fmt.Fprintf(&text, "\t%v", f.of(e.results))
		}
	}
	return text.String() + "\n"
}

// findingInShort puts the verdict in parentheses if the property is not required.
func findingInShort(f Finding) string {
	text := string(f.Verdict)
	if f.Tolerated {
		text = "tolerated"
	}
	if f.Total > 0 {
		text += fmt.Sprintf(" %d", f.Total)
	}
	var causes []string
	for _, c := range summaryCauses {
		if n := f.Causes[c.cause]; n > 0 {
			causes = append(causes, fmt.Sprintf("%s %d", c.name, n))
		}
	}
	if len(causes) > 0 {
		text += ": " + strings.Join(causes, ", ")
	}
	if !f.Required {
		return "(" + text + ")"
	}
	return text
}

// faultsInShort shows, for each kind, how many faults counted out of how many.
func faultsInShort(faults []FaultCoverage) string {
	var kinds []string
	count, all := make(map[string]int), make(map[string]int)
	for _, f := range faults {
		if !slices.Contains(kinds, f.Kind) {
			kinds = append(kinds, f.Kind)
		}
		all[f.Kind]++
		if f.Counts() {
			count[f.Kind]++
		}
	}
	slices.Sort(kinds)
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%s %d of %d", kind, count[kind], all[kind])
	}
	return strings.Join(kinds, ", ")
}

// workersAndServers says whether a fault was aimed at workers, at servers, or at both.
func workersAndServers(h history.Header, f FaultCoverage) (workers, servers bool) {
	for _, target := range f.Targets {
		isWorker := slices.Contains(h.Workers, target)
		workers, servers = workers || isWorker, servers || !isWorker
	}
	return workers, servers
}
