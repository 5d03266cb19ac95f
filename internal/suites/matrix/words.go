package matrix

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/internal/stats"
	"lockcheck/reports"
)

// legend explains the words of the table.
const legend = "valid, held: no required property was violated. ≤ 17 %: an attack broke the lock in no trial, and may in so many (95 % interval). " +
	"20/20: it broke the lock in so many trials. lost: acknowledged updates are gone. " +
	"stale: a replaced holder wrote. double: the service granted the lock twice, within the validity of both grants. " +
	"overlap: two held the lock at once, the earlier one beyond its lease. stuck: no worker was granted the lock again. other: another property was violated. " +
	"missed: a threshold was missed. undecided: too little happened to decide. broken: the run itself failed. " +
	"–: not supported by this lock; for an attack the cell says why. …: not run yet."

// seenNote says what the table is about.
const seenNote = "What the runs of this comparison saw, and no more. To choose a lock, see \"lockcheck guide\": it has the worst that is known."

// knownNote introduces the list of cells for which other runs have shown worse.
const knownNote = "What this comparison did not see, but other runs did: reproductions, claims and earlier comparisons. \"lockcheck guide\" has all of them."

// word is a cell in one word: what was violated, or the verdict.
func (c Cell) word() string {
	violated := func(p checker.Property) bool { return slices.Contains(c.violatedProperties(), p) }
	switch {
	case c.Unavailable != "" && c.isAttack():
		return c.Unavailable
	case c.Unavailable != "":
		return "–"
	case c.Verdict == "":
		return "…"
	case c.Verdict == checker.Valid && c.isAttack() && c.neverBroke():
		return "held"
	case c.Verdict != checker.Violation:
		return string(reports.Plain(c.Verdict))
	case violated(checker.NoLostUpdate):
		return "lost"
	case violated(checker.NoStaleWrite):
		return "stale"
	case violated(checker.MutualExclusion) && c.Pool.Overlaps.DoubleGrants > 0:
		return "double"
	case violated(checker.MutualExclusion):
		return "overlap"
	case violated(checker.Liveness):
		return "stuck"
	case len(c.violatedProperties()) > 0:
		return other
	}
	return "missed"
}

// wordOrProperties is the word, or the violated properties if no word covers them.
func (c Cell) wordOrProperties() string {
	if word := c.word(); word != other {
		return word
	}
	return reports.Properties(c.violatedProperties()) + " violated"
}

// other stands for properties without a word of their own.
const other = "other"

// details says which runs the word is based on, without claiming more than they showed; "" if the word says
// everything.
func (c Cell) details() string {
	violations, decided := c.counts()
	noun, rest := "run", ""
	if c.isAttack() {
		noun = "trial"
		if open := int64(len(c.Runs)) - decided; open > 0 && decided > 0 {
			rest = fmt.Sprintf(", %d undecided", open)
		}
	}
	switch {
	case c.Unavailable != "":
		return ""
	case violations > 0:
		text := fmt.Sprintf("in %d of %s", violations, reports.Many(decided, noun))
		if c.Pool.Lost > 0 {
			text += ", " + reports.Grouped(c.Pool.Lost) + "/" + reports.Grouped(c.Pool.Acknowledged) + " updates"
		}
		if n := c.Pool.Overlaps.DoubleGrants; c.isAttack() && n > 0 { // no lease excuses a double grant
			text += ", " + reports.Many(n, "double grant")
		}
		return text + rest
	case c.Verdict != checker.Valid || decided == 0:
		return ""
	case c.isAttack():
		return "breaks in " + c.atMost(" ") + ": " + reports.Many(decided, noun) + rest
	case decided == 1:
		return "no failure in 1 run, so almost nothing is known"
	}
	_, high := stats.Exact(0, decided)
	return fmt.Sprintf("no failure in %s; up to %s may fail", reports.Many(decided, "run"), reports.PercentAtMost(high))
}

// counts returns how many runs broke the lock, and how many were decided.
func (c Cell) counts() (violations, decided int64) {
	for _, r := range c.Runs {
		switch r.Verdict {
		case checker.Violation:
			violations++
			decided++
		case checker.Valid:
			decided++
		}
	}
	return violations, decided
}

// neverBroke says whether no trial broke the lock, not even in a way that a threshold allows.
func (c Cell) neverBroke() bool {
	violations, _ := c.counts()
	return violations == 0
}

// atMost is the failure rate that cannot be ruled out for an attack that broke the lock in no trial.
func (c Cell) atMost(space string) string {
	_, decided := c.counts()
	_, high := stats.Exact(0, decided)
	return "≤" + space + strings.ReplaceAll(reports.PercentAtMost(high), " ", space)
}

// short is the word of a cell for narrow tables. For an attack it is how often the attack broke the lock, or
// the rate that cannot be ruled out.
func (c Cell) short() string {
	if c.word() == string(checker.Undecided) {
		return "undec."
	}
	return c.figure()
}

// figure says how many trials broke the lock, or which share may; "" for other cells.
func (c Cell) figure() string {
	violations, decided := c.counts()
	switch {
	case !c.isAttack() || c.Unavailable != "":
		return ""
	case violations > 0:
		return fmt.Sprintf("%d/%d", violations, decided)
	case c.Verdict == checker.Valid:
		return c.atMost("")
	}
	return ""
}

// note says in a line what came of a cell.
func (c Cell) note() string {
	switch {
	case c.Unavailable != "":
		return c.Unavailable
	case len(c.Runs) == 0 && c.OutOfTime > 0:
		return "not run for lack of time"
	case len(c.Runs) == 0:
		return "not run yet"
	}
	if missed := c.missedThresholds(); missed != "" {
		return missed
	}
	if len(c.Runs) > 1 {
		return c.pooledNote()
	}
	return c.Runs[0].sentence()
}

// pooledNote says what came of several runs together.
func (c Cell) pooledNote() string {
	verdicts := make(map[checker.Verdict]int)
	violated := make(map[checker.Property]int)
	first := "" // the first run with the verdict of the cell
	for _, r := range c.Runs {
		if verdicts[r.Verdict]++; r.Verdict == c.Verdict && first == "" {
			first = r.sentence()
		}
		for _, p := range r.Violated {
			violated[p]++
		}
	}
	var counts, properties []string
	for _, v := range slices.Sorted(maps.Keys(verdicts)) {
		counts = append(counts, fmt.Sprintf("%d %s", verdicts[v], reports.Plain(v)))
	}
	for _, p := range slices.Sorted(maps.Keys(violated)) {
		properties = append(properties, fmt.Sprintf("%s in %d", p, violated[p]))
	}
	parts := []string{fmt.Sprintf("%d runs: %s", len(c.Runs), strings.Join(counts, ", "))}
	if len(properties) > 0 {
		parts = append(parts, strings.Join(properties, ", "))
	}
	if c.Pool.Acknowledged > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s lost", reports.Grouped(c.Pool.Lost), reports.Many(c.Pool.Acknowledged, "acknowledged update")))
	}
	if len(properties) == 0 && c.Verdict != checker.Valid && first != "" {
		parts = append(parts, first)
	}
	return strings.Join(parts, "; ")
}

// sentence is what came of the run, without the word of its verdict.
func (r Run) sentence() string {
	return reports.Sentence(checker.Results{Verdict: r.Verdict, Sentence: r.Sentence})
}

// missedThresholds lists the thresholds that were missed; "" if none was.
func (c Cell) missedThresholds() string {
	var all []string
	for _, t := range c.Thresholds {
		if t.Verdict != checker.Valid {
			all = append(all, string(reports.Plain(t.Verdict))+": "+t.String())
		}
	}
	return strings.Join(all, "; ")
}

// String is the threshold in words.
func (r ThresholdResult) String() string { return r.Name + " is " + r.Value + ", bound " + r.Bound }

// summary is the comparison in a sentence.
func (c Comparison) summary() string {
	counts := make(map[checker.Verdict]int)
	excused := 0
	for _, cell := range c.Cells {
		if cell.Verdict != "" {
			counts[reports.Plain(cell.Verdict)]++
		}
		if cell.excused() {
			excused++
		}
	}
	var verdicts []string
	for _, v := range []checker.Verdict{checker.Valid, checker.Violation, checker.Undecided, checker.Broken} {
		if counts[v] > 0 {
			verdicts = append(verdicts, fmt.Sprintf("%d %s", counts[v], v))
		}
	}
	if excused > 0 {
		verdicts = append(verdicts, fmt.Sprintf("of them %d known", excused))
	}
	parts := []string{fmt.Sprintf("%s of %s in %s", reports.Many(c.runsMade(), "run"), reports.Many(len(c.Locks), "lock"), c.Took.Round(time.Second))}
	if len(verdicts) > 0 {
		parts = append(parts, "cells: "+strings.Join(verdicts, ", "))
	}
	if missing := c.Missing(); missing > 0 {
		parts = append(parts, reports.Many(missing, "run")+" not made yet")
	}
	if few := c.tooFew(); few != "" {
		parts = append(parts, few)
	}
	return strings.Join(parts, "; ")
}

// hasRow says whether a lock has a row behind a guard, which takes a cell that is not empty.
func (c Comparison) hasRow(lock, guard string) bool {
	return slices.ContainsFunc(c.Cells, func(cell Cell) bool {
		return cell.Lock == lock && cell.Guard == guard && cell.Unavailable == ""
	})
}

// gaps lists, by reason, why cells behind a guard are empty.
func (c Comparison) gaps(guard string) reports.List {
	var reasons []string
	locks, faults := make(map[string][]string), make(map[string][]string) // by reason
	add := func(to map[string][]string, why, name string) {
		if !slices.Contains(to[why], name) {
			to[why] = append(to[why], name)
		}
	}
	for _, cell := range c.Cells {
		why := cell.Unavailable
		if cell.Guard != guard || why == "" || why == cell.word() && c.hasRow(cell.Lock, guard) {
			continue
		}
		if locks[why] == nil {
			reasons = append(reasons, why)
		}
		add(locks, why, cell.Lock)
		add(faults, why, cell.Fault)
	}
	var list reports.List
	for _, why := range reasons {
		where := strings.Join(locks[why], ", ")
		if len(faults[why]) < len(c.Faults) {
			where = strings.Join(faults[why], ", ") + ": " + where
		}
		list.Items = append(list.Items, reports.Item{Text: "– " + where + " (" + why + ")"})
	}
	return list
}
