package main

import (
	"fmt"
	"strings"
	"time"

	"lockcheck/internal/suites/advise"
	"lockcheck/internal/suites/guide"
	"lockcheck/reports"
)

// team is an invented one, and what it would ask.
type team struct {
	name, about string
	needs       advise.Needs
}

// teams want what is easy, what contradicts itself, and what no lease does.
func teams() []team {
	return []team{
		{
			"A web shop", "Many short sections in Go services; the longest stop was a garbage collection. An order may wait.",
			advise.Needs{
				SectionP99: 100 * time.Millisecond, LongestPause: 700 * time.Millisecond, Failover: 10 * time.Second,
				Locks: []string{"redis", "etcd", "postgres-session"},
			},
		},
		{
			"A payment service", "Virtual machines are moved while they run, which stops them for seconds; a successor must be there soon.",
			advise.Needs{
				SectionP99: 300 * time.Millisecond, LongestPause: 12 * time.Second, Failover: 5 * time.Second,
				Locks: []string{"redis", "etcd", "consul", "postgres-session"},
			},
		},
		{
			"A nightly import", "One long section with a known bound, on a machine that swaps.",
			advise.Needs{
				SectionP99: 4 * time.Minute, SectionMax: 10 * time.Minute, LongestPause: time.Minute, Failover: 30 * time.Minute,
				Locks: []string{"redis", "zookeeper", "postgres-lease"},
			},
		},
	}
}

// teamSections have the figures of each team, and what "advise" says to them.
func teamSections() (string, error) {
	var b strings.Builder
	b.WriteString("The teams are invented; the rules are [explained](../advise.md).\n\n")
	known, err := guide.Known()
	if err != nil {
		return "", err
	}
	for _, t := range teams() {
		a, err := advise.Advise(t.needs, known)
		if err != nil {
			return "", fmt.Errorf("%s: %w", t.name, err)
		}
		fmt.Fprintf(&b, "## %s\n\n%s\n\n```\n%s\n```\n\n", t.name, t.about, t.command())
		if err := reports.AdviceMarkdown(&b, a); err != nil {
			return "", err
		}
		b.WriteString("\n")
	}
	return b.String(), nil
}

// command is what the team would type.
func (t team) command() string {
	n := t.needs
	text := fmt.Sprintf("lockcheck advise --section-p99 %s --longest-pause %s --failover %s", n.SectionP99, n.LongestPause, n.Failover)
	if n.SectionMax > 0 {
		text += " --section-max " + n.SectionMax.String()
	}
	return text + " --lock " + strings.Join(n.Locks, ",")
}
