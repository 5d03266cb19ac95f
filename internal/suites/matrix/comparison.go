package matrix

import (
	"time"

	"lockcheck/checker"
	"lockcheck/reports"
)

// Schema is the version of the form of comparison.json. What NewLine needs has the same names in
// schema 1.
const Schema = 2

// Comparison is what the runs of several locks resulted in, under several faults and guards.
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
	Thresholds bool `json:"thresholds"`
	// Baseline is the file of the comparison that this one is held against; "" for none.
	Baseline string `json:"baseline,omitempty"`
	Cells    []Cell `json:"cells"` // by lock, guard and fault, in the order of these
	// Verdict of the whole; "" for a part without runs, and in a file that does not say.
	Verdict checker.Verdict `json:"verdict,omitempty"`
}

// About is what the documentation of a lock would say of it.
type About struct {
	Servers int    `json:"servers"`
	Token   string `json:"token,omitempty"` // source of the fencing token; "" for none
	Clock   string `json:"clock"`           // on which mutual exclusion depends
}

// Place is that of a cell in the table.
type Place struct {
	Lock  string `json:"lock"`
	Fault string `json:"fault"`
	Guard string `json:"guard"`
}

// String names the place in words.
func (p Place) String() string { return p.Lock + ", " + p.Fault + ", guard " + p.Guard }

// Cell is one lock under one fault with one guard.
type Cell struct {
	Place
	// Unavailable says why there cannot be a run; "" if there can.
	Unavailable string `json:"unavailable,omitempty"`
	Missing     int    `json:"missing,omitempty"` // runs that were not made yet
	// Attack is the digest of the attack on the cell; "" for random faults, and in a file that does not say. Outdated is
	// how many trials are left out because they were made before the attack was edited.
	Attack   string `json:"attack,omitempty"`
	Outdated int    `json:"outdated,omitempty"`
	Runs     []Run  `json:"runs,omitempty"`
	// Verdict of all runs, "" if there are none: the most telling one, or what the
	// thresholds say.
	Verdict    checker.Verdict   `json:"verdict,omitempty"`
	Thresholds []ThresholdResult `json:"thresholds,omitempty"`
	// Counts is the verdict with which the cell counts for that of the whole: its own, unless
	// it is known not to be valid, or is held against a baseline. It is "" if the cell has none.
	Counts checker.Verdict `json:"counts,omitempty"`
	// OutOfTime is how many of the missing runs were not made for lack of time.
	OutOfTime int `json:"out_of_time,omitempty"`
	// Rounds are the verdicts of the runs of the suite and of each time that they were
	// repeated with other seeds; nil if they never were.
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
	// FirstPool is that of the runs of the suite alone; nil if none was repeated.
	FirstPool *checker.Pool `json:"first_pool,omitempty"`
	// TokensKept and TokensViolated are in how many runs the fencing tokens were seen to
	// keep their order, and not to.
	TokensKept     int `json:"tokens_kept,omitempty"`
	TokensViolated int `json:"tokens_violated,omitempty"`
	// Known is what other runs have shown, nil if that is not worse than what these show.
	Known *Known `json:"known,omitempty"`
	// Repro is the command of a reproduction that shows how an attack breaks the lock; nil where none is known.
	Repro []string `json:"repro,omitempty"`
	// Excused are the properties of which a threshold takes the place.
	Excused []checker.Property `json:"excused,omitempty"`
}

// Known is what other runs have shown of a cell, where that is worse than what a comparison
// saw.
type Known struct {
	Text string `json:"text"` // "failed by itself in 4 of 4 runs: redlock-clock-jump"
	Line string `json:"line"` // repeats one of them
}

// Expected is the verdict other than valid that a cell is known to have.
type Expected struct {
	Verdict    checker.Verdict    `json:"verdict"`
	Properties []checker.Property `json:"properties,omitempty"` // that may be violated; nil for any
	Because    string             `json:"because,omitempty"`
	Met        bool               `json:"met"` // the cell has that verdict, and no other property is violated
}

// Run is one run of a cell.
type Run struct {
	Seed     uint64          `json:"seed"`
	Round    int             `json:"round,omitempty"`  // 0 for a run of the suite, n where it was repeated for the nth time
	Folder   string          `json:"folder,omitempty"` // relative to the comparison; "" if it could not be recorded, or only its results are kept
	Verdict  checker.Verdict `json:"verdict"`
	Sentence string          `json:"sentence"`
	Took     time.Duration   `json:"took_ns,omitempty"` // start and end of the servers included
	// Command repeats the run by itself; nil where that is not known.
	Command []string `json:"command,omitempty"`
	// Sample is what it is compared with other runs by; nil without results.
	Sample *checker.Sample `json:"sample,omitempty"`
	// Violated are the properties that make the verdict a violation.
	Violated []checker.Property `json:"violated,omitempty"`
	// HowViolated says of each of them what happened, and when first.
	HowViolated []string `json:"how_violated,omitempty"`
	// Uncounted are those of which no figure counts all violations, so that no bound excuses them.
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
func (c Comparison) Lack() string {
	switch {
	case c.Shard != "":
		return ""
	case c.Missing() > 0:
		return reports.Many(c.Missing(), "run") + " not made yet"
	case c.made() == 0:
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

// made is how many runs were.
func (c Comparison) made() int {
	n := 0
	for _, cell := range c.Cells {
		n += len(cell.Runs)
	}
	return n
}

// counted is the verdict with which the cell counts. Older files do not say it.
func (c Cell) counted() checker.Verdict {
	if c.Counts == "" {
		return c.Verdict
	}
	return c.Counts
}

// excused says that a cell is not valid and counts as if it were.
func (c Cell) excused() bool { return c.counted() == checker.Valid && c.Verdict != checker.Valid }

// violatedProperties lists those that make the cell a violation, by its runs or by its thresholds.
func (c Cell) violatedProperties() []checker.Property {
	all := append([]checker.Property(nil), c.Violated...)
	for _, t := range c.Thresholds {
		if t.Verdict == checker.Violation && t.Counts != "" {
			all = append(all, t.Counts)
		}
	}
	return all
}

// took is how long the runs of the cell took together.
func (c Cell) took() time.Duration {
	var sum time.Duration
	for _, r := range c.Runs {
		sum += r.Took
	}
	return sum
}

// Line is a comparison in one line of a list, for people: its texts are clean,
// but not escaped.
type Line struct {
	Began time.Time // zero if the start is unknown
	// Verdict is one of the four of a run; "" for a part without any.
	Verdict, Sentence string
}

// NewLine is the line of a comparison.
func NewLine(c Comparison) Line {
	line := Line{Began: c.Began, Sentence: c.summary() + "."}
	if c.Verdict != "" {
		line.Verdict = string(reports.Plain(c.Verdict))
	}
	if c.Shard != "" {
		line.Sentence = "Part " + reports.Clean(c.Shard) + ": " + line.Sentence
	}
	return line
}
