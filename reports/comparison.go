package reports

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
)

// ComparisonSchema is the version of the form of comparison.json, see DocumentSchema.
const ComparisonSchema = 1

// Comparison is what the runs of several locks came to, under several faults and guards.
type Comparison struct {
	Schema int           `json:"schema"`
	Shard  string        `json:"shard,omitempty"` // of a part: "2/8"
	Began  time.Time     `json:"began"`
	Took   time.Duration `json:"took_ns"` // until the last run ended
	Locks  []string      `json:"locks"`
	// About says what is known of the locks without any run.
	About  map[string]About `json:"about"`
	Faults []string         `json:"faults"`
	Guards []string         `json:"guards"`
	// Thresholds: the cells were held to some, and those make the verdicts.
	Thresholds bool           `json:"thresholds"`
	Cells      []ComparedCell `json:"cells"` // by lock, guard and fault, in the order of these
}

// About is what the documentation of a lock would say of it.
type About struct {
	Servers int    `json:"servers"`
	Token   string `json:"token,omitempty"` // source of the fencing token; "" for none
	Clock   string `json:"clock"`           // on which mutual exclusion depends
}

// ComparedCell is one lock under one fault with one guard.
type ComparedCell struct {
	Lock  string `json:"lock"`
	Fault string `json:"fault"`
	Guard string `json:"guard"`
	// Unavailable says why there cannot be a run; "" if there can.
	Unavailable string        `json:"unavailable,omitempty"`
	Missing     int           `json:"missing,omitempty"` // runs that were not made yet
	Runs        []ComparedRun `json:"runs,omitempty"`
	// Verdict of all runs, "" if there are none: the most telling one, or what the
	// thresholds say.
	Verdict    checker.Verdict   `json:"verdict,omitempty"`
	Thresholds []ThresholdResult `json:"thresholds,omitempty"`
	Lease      time.Duration     `json:"lease_ns"`
	Versions   map[string]string `json:"versions,omitempty"`
	Pool       checker.Pool      `json:"pool"`
	// TokensKept and TokensViolated are in how many runs the fencing tokens were seen to
	// keep their order, and not to.
	TokensKept     int `json:"tokens_kept,omitempty"`
	TokensViolated int `json:"tokens_violated,omitempty"`
	// Excused are the properties of which a threshold takes the place.
	Excused []checker.Property `json:"excused,omitempty"`
}

// Add takes a run of the cell into account.
func (c *ComparedCell) Add(r ComparedRun, d Document) {
	c.Runs = append(c.Runs, r)
	c.Versions, c.Lease = d.Header.Versions, d.Header.Lease
	switch d.Results.Finding(checker.FencingOrder).Verdict {
	case checker.Valid:
		c.TokensKept++
	case checker.Violation:
		c.TokensViolated++
	}
}

// RunOf is a run as its results tell it; its folder is relative to that of the comparison.
func RunOf(seed uint64, folder string, d Document) ComparedRun {
	r := ComparedRun{Seed: seed, Folder: folder, Verdict: d.Results.Verdict, Sentence: d.Results.Sentence}
	rest := []checker.Verdict{checker.Valid}
	for _, f := range d.Results.Findings {
		switch {
		case !f.Required:
		case f.Verdict == checker.Violation:
			r.Violated = append(r.Violated, f.Property)
			if d.Results.Uncounted(f.Property) {
				r.Uncounted = append(r.Uncounted, f.Property)
			}
		case f.Verdict == checker.Broken, f.Verdict == checker.Undecided:
			rest = append(rest, f.Verdict)
		}
	}
	r.Rest = mostTelling(rest)
	return r
}

// ComparedRun is one run of a cell.
type ComparedRun struct {
	Seed     uint64          `json:"seed"`
	Folder   string          `json:"folder,omitempty"` // relative to the comparison; "" if it could not be recorded
	Verdict  checker.Verdict `json:"verdict"`
	Sentence string          `json:"sentence"`
	// Violated are the properties that make the verdict a violation.
	Violated []checker.Property `json:"violated,omitempty"`
	// Uncounted are those of which no figure tells all, so that no bound excuses them.
	Uncounted []checker.Property `json:"uncounted,omitempty"`
	// Rest is the verdict of all that was not violated, "" if the run has no results. A
	// violation outranks what was undecided or broken beside it, and a threshold can take
	// that violation away.
	Rest checker.Verdict `json:"rest,omitempty"`
}

// ThresholdResult is a threshold and what the runs of a cell came to.
type ThresholdResult struct {
	Name string `json:"name"`
	// Counts is the property whose violations it bounds; "" for none.
	Counts  checker.Property `json:"counts,omitempty"`
	Bound   string           `json:"bound"`
	Value   string           `json:"value"`
	Verdict checker.Verdict  `json:"verdict"` // Undecided without data
}

// mostTelling returns the verdict of several: a violation, else undecided, else broken.
func mostTelling(verdicts []checker.Verdict) checker.Verdict {
	telling := []checker.Verdict{checker.Valid, checker.Broken, checker.Undecided, checker.Violation}
	at := func(v checker.Verdict) int { return slices.Index(telling, plain(v)) }
	return slices.MaxFunc(verdicts, func(a, b checker.Verdict) int { return cmp.Compare(at(a), at(b)) })
}

// Judge gives the cell its verdict. A threshold takes the place of the property whose
// violations it bounds; all others must be kept as ever, and a run that is undecided or
// broken says nothing of any threshold.
func (c *ComparedCell) Judge() {
	var verdicts []checker.Verdict
	for _, r := range c.Runs {
		if plain(r.Verdict) == checker.Violation && len(c.violated(r)) == 0 {
			verdicts = append(verdicts, r.Rest)
		} else {
			verdicts = append(verdicts, r.Verdict)
		}
	}
	for _, t := range c.Thresholds {
		verdicts = append(verdicts, t.Verdict)
	}
	if len(verdicts) > 0 {
		c.Verdict = mostTelling(verdicts)
	}
}

// violated lists what a run violates and no threshold takes the place of.
func (c ComparedCell) violated(r ComparedRun) []checker.Property {
	return slices.DeleteFunc(slices.Clone(r.Violated), func(p checker.Property) bool {
		return slices.Contains(c.Excused, p) && !slices.Contains(r.Uncounted, p)
	})
}

// Verdict of all cells that have one. A whole that lacks runs is undecided unless the
// others tell more; a part without any has none, "".
func (c Comparison) Verdict() checker.Verdict {
	var verdicts []checker.Verdict
	if c.lack() != "" {
		verdicts = append(verdicts, checker.Undecided)
	}
	for _, cell := range c.Cells {
		if cell.Verdict != "" {
			verdicts = append(verdicts, cell.Verdict)
		}
	}
	if len(verdicts) == 0 {
		return ""
	}
	return mostTelling(verdicts)
}

// lack says which runs a whole would need to be decided; "" if it has them, and for a part.
func (c Comparison) lack() string {
	switch {
	case c.Shard != "":
		return ""
	case c.Missing() > 0:
		return many(int64(c.Missing()), "run") + " not made yet"
	case c.runs() == 0:
		return "no run can be made of any of the cells"
	}
	return ""
}

// Missing is how many runs were not made yet.
func (c Comparison) Missing() int {
	n := 0
	for _, cell := range c.Cells {
		n += cell.Missing
	}
	return n
}

// runs is how many were made.
func (c Comparison) runs() int64 {
	n := 0
	for _, cell := range c.Cells {
		n += len(cell.Runs)
	}
	return int64(n)
}

// cell returns a place of the table; its zero value if there is none.
func (c Comparison) cell(lock, guard, fault string) ComparedCell {
	for _, cell := range c.Cells {
		if cell.Lock == lock && cell.Guard == guard && cell.Fault == fault {
			return cell
		}
	}
	return ComparedCell{}
}

// locksBehind lists the locks of which there is anything to show with a guard.
func (c Comparison) locksBehind(guard string) []string {
	return slices.DeleteFunc(slices.Clone(c.Locks), func(lock string) bool {
		return !slices.ContainsFunc(c.Faults, func(fault string) bool { return c.cell(lock, guard, fault).Unavailable == "" })
	})
}

// word is a cell in one word of the table: what was violated, or the verdict.
func (c ComparedCell) word() string {
	switch {
	case c.Unavailable != "":
		return "–"
	case c.Verdict == "":
		return "…"
	case c.Verdict != checker.Violation:
		return string(plain(c.Verdict))
	}
	broken := c.allViolated()
	switch {
	case slices.Contains(broken, checker.NoLostUpdate):
		return "lost"
	case slices.Contains(broken, checker.NoStaleWrite):
		return "stale"
	case slices.Contains(broken, checker.MutualExclusion) && c.Pool.Overlaps.BrokenPromises > 0:
		return "broke"
	case slices.Contains(broken, checker.MutualExclusion):
		return "overlap"
	case len(broken) > 0:
		return "other"
	}
	return "missed"
}

// allViolated lists the properties that make the cell a violation, by its runs or by its
// thresholds.
func (c ComparedCell) allViolated() []checker.Property {
	var all []checker.Property
	for _, r := range c.Runs {
		all = append(all, c.violated(r)...)
	}
	for _, t := range c.Thresholds {
		if t.Verdict == checker.Violation && t.Counts != "" {
			all = append(all, t.Counts)
		}
	}
	return all
}

// legend explains the words of the table.
const legend = "valid: nothing of what the run was judged by was violated. lost: acknowledged updates are gone. " +
	"stale: a replaced holder wrote. broke: the service let two hold the lock within their promises. " +
	"overlap: two held it at once, the earlier one beyond its lease. other: another property was violated. " +
	"missed: a threshold was not kept. undecided: too little happened to tell. broken: the run itself failed. " +
	"–: cannot be had with this lock. …: not run yet."

// columns of the table of figures, in its order.
func columns() []column {
	return []column{
		{"lost", "acknowledged updates that are lost, of all", func(c ComparedCell) string {
			if c.Pool.Acknowledged == 0 {
				return ""
			}
			return grouped(c.Pool.Lost) + "/" + grouped(c.Pool.Acknowledged)
		}},
		{"95 %", "interval of the share of lost updates", func(c ComparedCell) string {
			if c.Pool.Acknowledged == 0 {
				return ""
			}
			return inPercent(c.Pool.LostLow) + "–" + inPercent(c.Pool.LostHigh) + " %"
		}},
		{"overlaps", "overlapping holders: with a healthy earlier holder / with one that was paused or cut off", func(c ComparedCell) string {
			o := c.Pool.Overlaps
			return fmt.Sprintf("%d / %d", o.EarlierHealthy, o.EarlierPaused+o.EarlierCutOff)
		}},
		{"broken promises", "overlaps in which the service broke its promise", func(c ComparedCell) string { return grouped(c.Pool.Overlaps.BrokenPromises) }},
		{"stale", "stale writes", func(c ComparedCell) string { return grouped(c.Pool.StaleWrites) }},
		{"refused", "accesses that the guard refused", func(c ComparedCell) string { return grouped(c.Pool.Refused) }},
		{"acquire alone", "median time to acquire the lock while nobody else wants it", func(c ComparedCell) string { return quantile(c.Pool.Measures.Uncontended, 0.5) }},
		{"wait p50", "median time from a worker's first attempt to its grant", func(c ComparedCell) string { return quantile(c.Pool.Measures.Wait, 0.5) }},
		{"p99", "the same, of 99 of 100", func(c ComparedCell) string { return quantile(c.Pool.Measures.Wait, 0.99) }},
		{"updates/s", "acknowledged updates, or holds if nothing is updated, a second", func(c ComparedCell) string {
			rate, known := c.Pool.Measures.Throughput()
			if !known {
				return ""
			}
			return trimmed(rate, 1)
		}},
		{"hand-over", "longest time from the stop, cut or end of a holder to the next grant, against the lease", ComparedCell.handover},
		{"told", "longest time from the next grant until the replaced holder was told; late, those who learned of it at their release or never", func(c ComparedCell) string {
			n := c.Pool.Notices
			switch text := quantile(c.Pool.Measures.Told, 1); {
			case n.Replaced == 0:
				return ""
			case n.Never+n.AtRelease == 0:
				return text
			case text == "":
				return fmt.Sprintf("late (%d)", n.Never+n.AtRelease)
			default:
				return fmt.Sprintf("%s, late %d of %d", text, n.Never+n.AtRelease, n.Replaced)
			}
		}},
		{"available", "share of the time of faults without an outage", func(c ComparedCell) string {
			share, known := c.Pool.Measures.Availability()
			if !known {
				return ""
			}
			return trimmed(100*share, 0) + " %"
		}},
		{"wake-ups", "notifications of waiters for each release, where the lock's client counts them", func(c ComparedCell) string {
			wakes, known := c.Pool.Measures.WakesPerRelease()
			if !known {
				return ""
			}
			return trimmed(wakes, 2)
		}},
		{"overtaken", "grants given past somebody who had asked before, of those that waited", func(c ComparedCell) string {
			m := c.Pool.Measures
			if m.Waited == 0 {
				return ""
			}
			return grouped(m.Overtaken) + "/" + grouped(m.Waited)
		}},
	}
}

// columns are those of the table of figures in which there is anything to show.
func (c Comparison) columns() []column {
	return slices.DeleteFunc(columns(), func(col column) bool {
		return !slices.ContainsFunc(c.Cells, func(cell ComparedCell) bool { return len(cell.Runs) > 0 && col.text(cell) != "" })
	})
}

// column is one figure of a cell.
type column struct {
	name, summary string
	text          func(ComparedCell) string // "" where there is no data
}

// note says in a line what came of a cell.
func (c ComparedCell) note() string {
	switch {
	case c.Unavailable != "":
		return clean(c.Unavailable)
	case len(c.Runs) == 0:
		return "not run yet"
	}
	if missed := c.missed(); missed != "" {
		return missed
	}
	for _, r := range c.Runs {
		if r.Verdict == c.Verdict {
			return clean(r.Sentence)
		}
	}
	return clean(c.Runs[0].Sentence)
}

// missed tells the thresholds that were not kept; "" if all were.
func (c ComparedCell) missed() string {
	var all []string
	for _, t := range c.Thresholds {
		if t.Verdict != checker.Valid {
			all = append(all, string(plain(t.Verdict))+": "+t.String())
		}
	}
	return strings.Join(all, "; ")
}

func (c Comparison) title() string { return "Comparison of " + many(int64(len(c.Locks)), "lock") }

// gap is a reason for which cells are empty, and which these are.
type gap struct{ why, where string }

// gaps lists why cells behind a guard are empty, by reason.
func (c Comparison) gaps(guard string) []gap {
	var reasons []string
	locks := make(map[string][]string) // by reason and fault
	faults := make(map[string][]string)
	for _, cell := range c.Cells {
		if cell.Guard != guard || cell.Unavailable == "" {
			continue
		}
		why := clean(cell.Unavailable)
		if faults[why] == nil {
			reasons = append(reasons, why)
		}
		if fault := clean(cell.Fault); !slices.Contains(faults[why], fault) {
			faults[why] = append(faults[why], fault)
		}
		if lock := clean(cell.Lock); !slices.Contains(locks[why], lock) {
			locks[why] = append(locks[why], lock)
		}
	}
	var all []gap
	for _, why := range reasons {
		where := strings.Join(locks[why], ", ")
		if len(faults[why]) < len(c.Faults) {
			where = strings.Join(faults[why], ", ") + ": " + where
		}
		all = append(all, gap{why, where})
	}
	return all
}

// summary is the comparison in a sentence.
func (c Comparison) summary() string {
	counts := make(map[checker.Verdict]int64)
	for _, cell := range c.Cells {
		if cell.Verdict != "" {
			counts[plain(cell.Verdict)]++
		}
	}
	var parts []string
	for _, v := range []checker.Verdict{checker.Valid, checker.Violation, checker.Undecided, checker.Broken} {
		if counts[v] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[v], v))
		}
	}
	text := fmt.Sprintf("%s of %s in %s", many(c.runs(), "run"), many(int64(len(c.Locks)), "lock"), c.Took.Round(time.Second))
	if len(parts) > 0 {
		text += "; cells: " + strings.Join(parts, ", ")
	}
	if missing := c.Missing(); missing > 0 {
		text += fmt.Sprintf("; %s not made yet", many(int64(missing), "run"))
	}
	return text
}

// ComparisonLine is a comparison in one line of a list, for people: its texts are clean,
// but not escaped.
type ComparisonLine struct {
	Began time.Time // zero if it does not say
	// Verdict is one of the four of a run; "" for a part without any.
	Verdict, Sentence string
}

// NewComparisonLine is the line of a comparison.
func NewComparisonLine(c Comparison) ComparisonLine {
	line := ComparisonLine{Began: c.Began, Sentence: c.summary() + "."}
	if v := c.Verdict(); v != "" {
		line.Verdict = string(plain(v))
	}
	if c.Shard != "" {
		line.Sentence = "Part " + clean(c.Shard) + ": " + line.Sentence
	}
	return line
}

// ComparisonJSON writes a Comparison for programs.
func ComparisonJSON(w io.Writer, c Comparison) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(c)
}
