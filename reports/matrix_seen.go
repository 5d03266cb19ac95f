package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/internal/stats"
)

// Known is what other runs have shown of a cell, where that is worse than what a comparison
// saw.
type Known struct {
	Text string `json:"text"` // "failed by itself in 4 of 4 runs: redlock-clock-jump"
	Line string `json:"line"` // repeats one of them
}

// WorseIn returns what a guide knows of a cell, nil if that is not worse than what its own
// runs show.
func (c Cell) WorseIn(g GuideCell) *Known {
	if !g.broken() || c.Verdict == checker.Violation || len(g.Groups) == 0 {
		return nil
	}
	runs := g.Groups[0].Runs
	i := slices.IndexFunc(runs, func(r GuideRun) bool { return r.Broke })
	return &Known{Text: g.text(), Line: runs[max(i, 0)].Line}
}

// told counts the runs of a cell that tell, and of them those that broke it.
func (c Cell) told() (broke, n int64) {
	for _, r := range c.Runs {
		switch r.Verdict {
		case checker.Violation:
			broke, n = broke+1, n+1
		case checker.Valid:
			n++
		}
	}
	return broke, n
}

// seen says what the runs of a cell amount to, without making more of them than they are:
// word is its first word, and more what goes with it.
func (c Cell) seen() (word, more string) {
	broke, n := c.told()
	switch {
	case c.Unavailable != "":
		return "–", ""
	case broke > 0:
		more = fmt.Sprintf("%d of %s", broke, many(n, "run"))
		if c.Pool.Lost > 0 {
			more += ", " + grouped(c.Pool.Lost) + "/" + grouped(c.Pool.Acknowledged)
		}
		return c.word(), more
	case c.Verdict == checker.Valid && n > 0:
		_, high := stats.Exact(0, n)
		return "held in " + grouped(n), "breaks in ≤ " + wholePercent(high) + " %"
	}
	return c.word(), ""
}

// seenText is the same in a line.
func (c Cell) seenText() string {
	word, more := c.seen()
	text := word
	if more != "" {
		text += " (" + more + ")"
	}
	if c.Known != nil {
		text += "; known: " + clean(c.Known.Text)
	}
	return text
}

// about is what is known of the locks without a run.
func (m Matrix) about(lock string) []string {
	a := m.About[lock]
	token := "none"
	if a.Token != "" {
		token = clean(a.Token) + m.order(lock)
	}
	return []string{clean(lock), fmt.Sprint(a.Servers), token, clean(a.Clock), m.versions(lock)}
}

// aboutHead names the columns of about.
func aboutHead() []string {
	return []string{"lock", "servers", "fencing token", "depends on the clock", "versions"}
}

// bars draws the figures of each lock behind the first guard next to those of the others:
// its greatest loss, acquires without faults, and its longest failover.
func (m Matrix) bars() []sideBySideBars {
	if len(m.Guards) == 0 {
		return nil
	}
	var acquire, failover scale
	type figures struct {
		lock              string
		lost              Cell
		acquire, failover time.Duration
		note              string
	}
	var all []figures
	for _, lock := range m.Locks {
		f := figures{lock: lock}
		for _, c := range m.Cells {
			if c.Lock != lock || c.Guard != m.Guards[0] {
				continue
			}
			if f.lost.Lock == "" && c.Pool.Acknowledged > 0 || lostShare(c) > lostShare(f.lost) {
				f.lost = c
			}
			if c.Fault == "none" {
				f.acquire, _ = c.Pool.Measures.Uncontended.Quantile(0.5)
			}
			if longest, _ := c.Pool.Measures.Failover.Quantile(1); longest > f.failover {
				f.failover, f.note = longest, "lease "+length(c.Lease)+", "+clean(c.Fault)
			}
			if c.Pool.Stuck > 0 && !strings.Contains(f.note, "never") {
				f.note = strings.TrimPrefix(f.note+"; never for "+many(c.Pool.Stuck, "holder")+" under "+clean(c.Fault), "; ")
			}
		}
		acquire.add(f.acquire)
		failover.add(f.failover)
		all = append(all, f)
	}
	var bars []sideBySideBars
	for _, f := range all {
		b := sideBySideBars{Lock: clean(f.lock), Lost: lossBar(f.lost.Pool), Acquire: acquire.bar(f.acquire, ""), Failover: failover.bar(f.failover, f.note)}
		if b.Lost.Text != "" {
			b.Lost.Note += "; " + clean(f.lost.Fault)
		}
		bars = append(bars, b)
	}
	return bars
}

func lostShare(c Cell) float64 {
	if c.Pool.Acknowledged == 0 {
		return -1
	}
	return float64(c.Pool.Lost) / float64(c.Pool.Acknowledged)
}

// judgedThreshold is a threshold and its cell.
type judgedThreshold struct {
	cell   Cell
	result ThresholdResult
}

// thresholds lists those of all cells, the failing ones first.
func (m Matrix) thresholds() []judgedThreshold {
	var all []judgedThreshold
	for _, c := range m.Cells {
		for _, r := range c.Thresholds {
			all = append(all, judgedThreshold{c, r})
		}
	}
	rank := func(t judgedThreshold) int {
		return slices.Index([]checker.Verdict{checker.Violation, checker.Broken, checker.Undecided, checker.Valid}, plain(t.result.Verdict))
	}
	slices.SortStableFunc(all, func(a, b judgedThreshold) int { return cmp.Compare(rank(a), rank(b)) })
	return all
}

// known lists the cells of which other runs have shown worse.
func (m Matrix) known() []Cell {
	return slices.DeleteFunc(slices.Clone(m.Cells), func(c Cell) bool { return c.Known == nil })
}

// knownNote says what the list of those cells is.
const knownNote = "What this comparison did not see, and other runs did: of reproductions, claims and comparisons of before. \"lockcheck guide\" has all of it."

// seenNote says how the cells are to be read.
const seenNote = "What the runs of this comparison saw, and no more: \"held in 1\" means that one run found nothing, and that up to 98 % of such runs may break the lock all the same " +
	"(exact 95 % interval). To choose a lock, see \"lockcheck guide\": the worst that is known."
