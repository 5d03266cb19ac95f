package reports

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
)

// MatrixSchema is the version of the form of comparison.json, see DocumentSchema. What
// NewMatrixLine needs has the same names in schema 1.
const MatrixSchema = 2

// Matrix is what the runs of several locks resulted in, under several faults and guards.
type Matrix struct {
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
	Thresholds bool `json:"thresholds"`
	// Baseline is the file of the comparison that this one is held against; "" for none.
	Baseline string `json:"baseline,omitempty"`
	Cells    []Cell `json:"cells"` // by lock, guard and fault, in the order of these
	// Verdict of the whole; "" for a part without runs, and in a file that does not say.
	Verdict checker.Verdict `json:"verdict,omitempty"`
}

// Expected is the verdict other than valid that a cell is known to have.
type Expected struct {
	Verdict    checker.Verdict    `json:"verdict"`
	Properties []checker.Property `json:"properties,omitempty"` // that may be violated; nil for any
	Because    string             `json:"because,omitempty"`
	Met        bool               `json:"met"` // the cell has that verdict, and no other property is violated
}

// About is what the documentation of a lock would say of it.
type About struct {
	Servers int    `json:"servers"`
	Token   string `json:"token,omitempty"` // source of the fencing token; "" for none
	Clock   string `json:"clock"`           // on which mutual exclusion depends
}

// Cell is one lock under one fault with one guard.
type Cell struct {
	Lock  string `json:"lock"`
	Fault string `json:"fault"`
	Guard string `json:"guard"`
	// Unavailable says why there cannot be a run; "" if there can.
	Unavailable string    `json:"unavailable,omitempty"`
	Missing     int       `json:"missing,omitempty"` // runs that were not made yet
	Runs        []CellRun `json:"runs,omitempty"`
	// Verdict of all runs, "" if there are none: the most telling one, or what the
	// thresholds say.
	Verdict    checker.Verdict   `json:"verdict,omitempty"`
	Thresholds []ThresholdResult `json:"thresholds,omitempty"`
	// Counts is the verdict with which the cell counts for that of the whole: its own, unless
	// it is known not to be valid, or is held against a baseline. It is "" if the cell has none.
	Counts checker.Verdict `json:"counts,omitempty"`
	// OutOfTime is how many of the missing runs were not made for lack of time.
	OutOfTime int `json:"out_of_time,omitempty"`
	// Rounds are the verdicts of the runs of the suite and of each time that they were made
	// again, with other seeds; nil if they never were.
	Rounds   []checker.Verdict `json:"rounds,omitempty"`
	Expected *Expected         `json:"expected,omitempty"` // nil if nothing is
	Compared *Compared         `json:"compared,omitempty"` // nil without a baseline
	// OfRuns is the verdict of the runs alone, without what the thresholds say, "" if there
	// are none; Violated are the properties that they violate and no threshold takes the
	// place of.
	OfRuns   checker.Verdict    `json:"of_runs,omitempty"`
	Violated []checker.Property `json:"violated,omitempty"`
	Lease    time.Duration      `json:"lease_ns"`
	Versions map[string]string  `json:"versions,omitempty"`
	Source   string             `json:"source,omitempty"` // where the servers come from; "" for embedded ones
	Pool     checker.Pool       `json:"pool"`             // of all runs with results
	// FirstPool is that of the runs of the suite alone; nil if none was made again.
	FirstPool *checker.Pool `json:"first_pool,omitempty"`
	// TokensKept and TokensViolated are in how many runs the fencing tokens were seen to
	// keep their order, and not to.
	TokensKept     int `json:"tokens_kept,omitempty"`
	TokensViolated int `json:"tokens_violated,omitempty"`
	// Known is what other runs have shown, nil if that is not worse than what these show.
	Known *Known `json:"known,omitempty"`
	// Excused are the properties of which a threshold takes the place.
	Excused []checker.Property `json:"excused,omitempty"`
}

// HowViolated says in a line how a property was violated, and when first, counted from the
// begin of the history, ns.
func HowViolated(f checker.Finding, begin int64) string {
	when := ""
	if len(f.Violations) > 0 {
		first := slices.MinFunc(f.Violations, func(a, b checker.Incident) int { return cmp.Compare(a.From, b.From) })
		when = ", first at " + at(first.From, begin)
	}
	return string(f.Property) + when + ": " + clean(f.Summary)
}

// said is what came of the run, without the word of its verdict.
func (r CellRun) said() string {
	return sentence(checker.Results{Verdict: r.Verdict, Sentence: r.Sentence})
}

// CellRun is one run of a cell.
type CellRun struct {
	Seed     uint64          `json:"seed"`
	Round    int             `json:"round,omitempty"`  // 0 for a run of the suite, n where it was made again for the nth time
	Folder   string          `json:"folder,omitempty"` // relative to the matrix; "" if it could not be recorded
	Verdict  checker.Verdict `json:"verdict"`
	Sentence string          `json:"sentence"`
	Took     time.Duration   `json:"took_ns,omitempty"` // start and end of the servers included
	// Command makes the run again by itself; nil where that is not known.
	Command []string `json:"command,omitempty"`
	// Sample is what it is compared with other runs by; nil without results.
	Sample *checker.Sample `json:"sample,omitempty"`
	// Violated are the properties that make the verdict a violation.
	Violated []checker.Property `json:"violated,omitempty"`
	// HowViolated says of each of them what happened, and when first.
	HowViolated []string `json:"how_violated,omitempty"`
	// Uncounted are those of which no figure tells all, so that no bound excuses them.
	Uncounted []checker.Property `json:"uncounted,omitempty"`
	// Rest is the verdict of all that was not violated, "" if the run has no results. A
	// violation outranks what was undecided or broken next to it, and a threshold can take
	// that violation away.
	Rest checker.Verdict `json:"rest,omitempty"`
}

// ThresholdResult is a threshold and what the runs of a cell resulted in.
type ThresholdResult struct {
	Name string `json:"name"`
	// Counts is the property whose violations it bounds; "" for none.
	Counts  checker.Property `json:"counts,omitempty"`
	Bound   string           `json:"bound"`
	Value   string           `json:"value"`
	Verdict checker.Verdict  `json:"verdict"` // Undecided without data
}

// Lack says which runs a whole would need to be decided; "" if it has them, and for a part.
func (m Matrix) Lack() string {
	switch {
	case m.Shard != "":
		return ""
	case m.Missing() > 0:
		return many(int64(m.Missing()), "run") + " not made yet"
	case m.runs() == 0:
		return "no run can be made of any of the cells"
	}
	return ""
}

// Missing is how many runs were not made yet.
func (m Matrix) Missing() int {
	n := 0
	for _, cell := range m.Cells {
		n += cell.Missing
	}
	return n
}

// runs is how many were made.
func (m Matrix) runs() int64 {
	n := 0
	for _, cell := range m.Cells {
		n += len(cell.Runs)
	}
	return int64(n)
}

// cell returns a place of the table; its zero value if there is none.
func (m Matrix) cell(lock, guard, fault string) Cell {
	for _, cell := range m.Cells {
		if cell.Lock == lock && cell.Guard == guard && cell.Fault == fault {
			return cell
		}
	}
	return Cell{}
}

// locksBehind lists the locks of which there is anything to show with a guard.
func (m Matrix) locksBehind(guard string) []string {
	return slices.DeleteFunc(slices.Clone(m.Locks), func(lock string) bool {
		return !slices.ContainsFunc(m.Faults, func(fault string) bool { return m.cell(lock, guard, fault).Unavailable == "" })
	})
}

// word is a cell in one word of the table: what was violated, or the verdict.
func (c Cell) word() string {
	switch {
	case c.Unavailable != "":
		return "–"
	case c.Verdict == "":
		return "…"
	case c.Verdict != checker.Violation:
		return string(plain(c.Verdict))
	}
	broken := c.AllViolated()
	switch {
	case slices.Contains(broken, checker.NoLostUpdate):
		return "lost"
	case slices.Contains(broken, checker.NoStaleWrite):
		return "stale"
	case slices.Contains(broken, checker.MutualExclusion) && c.Pool.Overlaps.DoubleGrants > 0:
		return "broke"
	case slices.Contains(broken, checker.MutualExclusion):
		return "overlap"
	case len(broken) > 0:
		return "other"
	}
	return "missed"
}

// AllViolated lists the properties that make the cell a violation, by its runs or by its
// thresholds.
func (c Cell) AllViolated() []checker.Property {
	all := slices.Clone(c.Violated)
	for _, t := range c.Thresholds {
		if t.Verdict == checker.Violation && t.Counts != "" {
			all = append(all, t.Counts)
		}
	}
	return all
}

// legend explains the words of the table.
const legend = "valid: nothing of what the run was judged by was violated. lost: acknowledged updates are gone. " +
	"stale: a replaced holder wrote. broke: the service let two hold the lock within their validities. " +
	"overlap: two held it at once, the earlier one beyond its lease. other: another property was violated. " +
	"missed: a threshold was not kept. undecided: too little happened to tell. broken: the run itself failed. " +
	"–: is not supported with this lock. …: not run yet."

// note says in a line what came of a cell.
func (c Cell) note() string {
	switch {
	case c.Unavailable != "":
		return clean(c.Unavailable)
	case len(c.Runs) == 0 && c.OutOfTime > 0:
		return "not run for lack of time"
	case len(c.Runs) == 0:
		return "not run yet"
	}
	if missed := c.missed(); missed != "" {
		return missed
	}
	if len(c.Runs) > 1 {
		return c.pooled()
	}
	return c.Runs[0].said()
}

// pooled says what came of several runs together.
func (c Cell) pooled() string {
	verdicts := make(map[checker.Verdict]int)
	properties := make(map[checker.Property]int)
	var first string // of those with the verdict of the cell
	for _, r := range c.Runs {
		if verdicts[r.Verdict]++; r.Verdict == c.Verdict && first == "" {
			first = r.said()
		}
		for _, p := range r.Violated {
			properties[p]++
		}
	}
	var parts []string
	for _, v := range slices.Sorted(maps.Keys(verdicts)) {
		parts = append(parts, fmt.Sprintf("%d %s", verdicts[v], plain(v)))
	}
	text := fmt.Sprintf("%d runs: %s", len(c.Runs), strings.Join(parts, ", "))
	var violated []string
	for _, p := range slices.Sorted(maps.Keys(properties)) {
		violated = append(violated, fmt.Sprintf("%s in %d", p, properties[p]))
	}
	if len(violated) > 0 {
		text += "; " + strings.Join(violated, ", ")
	}
	if c.Pool.Acknowledged > 0 {
		text += fmt.Sprintf("; %s of %s lost", grouped(c.Pool.Lost), many(c.Pool.Acknowledged, "acknowledged update"))
	}
	if len(violated) == 0 && c.Verdict != checker.Valid && first != "" {
		text += "; " + first
	}
	return text
}

// missed tells the thresholds that were not kept; "" if all were.
func (c Cell) missed() string {
	var all []string
	for _, t := range c.Thresholds {
		if t.Verdict != checker.Valid {
			all = append(all, string(plain(t.Verdict))+": "+t.String())
		}
	}
	return strings.Join(all, "; ")
}

func (m Matrix) title() string { return "Comparison of " + many(int64(len(m.Locks)), "lock") }

// gap is a reason for which cells are empty, and which these are.
type gap struct{ why, where string }

// gaps lists why cells behind a guard are empty, by reason.
func (m Matrix) gaps(guard string) []gap {
	var reasons []string
	locks := make(map[string][]string) // by reason and fault
	faults := make(map[string][]string)
	for _, cell := range m.Cells {
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
		if len(faults[why]) < len(m.Faults) {
			where = strings.Join(faults[why], ", ") + ": " + where
		}
		all = append(all, gap{why, where})
	}
	return all
}

// summary is the matrix in a sentence.
func (m Matrix) summary() string {
	counts := make(map[checker.Verdict]int64)
	for _, cell := range m.Cells {
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
	if known := m.passed(); known > 0 {
		parts = append(parts, fmt.Sprintf("of them %d known", known))
	}
	text := fmt.Sprintf("%s of %s in %s", many(m.runs(), "run"), many(int64(len(m.Locks)), "lock"), m.Took.Round(time.Second))
	if len(parts) > 0 {
		text += "; cells: " + strings.Join(parts, ", ")
	}
	if missing := m.Missing(); missing > 0 {
		text += fmt.Sprintf("; %s not made yet", many(int64(missing), "run"))
	}
	if few := m.tooFew(); few != "" {
		text += "; " + few
	}
	return text
}

// MatrixLine is a matrix in one line of a list, for people: its texts are clean,
// but not escaped.
type MatrixLine struct {
	Began time.Time // zero if it does not say
	// Verdict is one of the four of a run; "" for a part without any.
	Verdict, Sentence string
}

// NewMatrixLine is the line of a matrix.
func NewMatrixLine(m Matrix) MatrixLine {
	line := MatrixLine{Began: m.Began, Sentence: m.summary() + "."}
	if m.Verdict != "" {
		line.Verdict = string(plain(m.Verdict))
	}
	if m.Shard != "" {
		line.Sentence = "Part " + clean(m.Shard) + ": " + line.Sentence
	}
	return line
}

// MatrixJSON writes a Matrix for programs.
func MatrixJSON(w io.Writer, m Matrix) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(m)
}
