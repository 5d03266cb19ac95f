package matrix

import (
	"time"

	"lockcheck/checker"
	"lockcheck/reports"
)

// Schema is the version of the format of comparison.json. The fields that NewLine reads have the same names
// in schema 1.
const Schema = 2

// Comparison is the result of running several locks under several faults and guards.
type Comparison struct {
	Schema int           `json:"schema"`
	Shard  string        `json:"shard,omitempty"` // the part, as in "2/8"; "" for a whole comparison
	Began  time.Time     `json:"began"`
	Took   time.Duration `json:"took_ns"` // until the last run ended
	Locks  []string      `json:"locks"`
	// About has what is known of the locks without any run.
	About  map[string]About `json:"about"`
	Faults []string         `json:"faults"`
	Guards []string         `json:"guards"`
	// Thresholds: the cells were judged by thresholds.
	Thresholds bool `json:"thresholds"`
	// Baseline is the file of the comparison that this one was compared with; "" for none.
	Baseline string `json:"baseline,omitempty"`
	Cells    []Cell `json:"cells"` // ordered by lock, then guard, then fault, each in the order above
	// Verdict of the whole comparison; "" for a part without runs, and in files that lack it.
	Verdict checker.Verdict `json:"verdict,omitempty"`
}

// About is what the documentation of a lock says about it.
type About struct {
	Servers int    `json:"servers"`
	Token   string `json:"token,omitempty"` // source of the fencing token; "" for none
	Clock   string `json:"clock"`           // the clock on which mutual exclusion depends
}

// Place identifies a cell in the table.
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
	// Unavailable says why no run is possible; "" if runs are possible.
	Unavailable string `json:"unavailable,omitempty"`
	Missing     int    `json:"missing,omitempty"` // runs that are still to be made
	// Attack is the digest of the cell's attack; "" for random faults, and in files that lack it. Outdated
	// counts trials that are left out because they were made before the attack was edited.
	Attack   string `json:"attack,omitempty"`
	Outdated int    `json:"outdated,omitempty"`
	Runs     []Run  `json:"runs,omitempty"`
	// Verdict is the most serious verdict of the runs, or what the thresholds say; "" without runs.
	Verdict    checker.Verdict   `json:"verdict,omitempty"`
	Thresholds []ThresholdResult `json:"thresholds,omitempty"`
	// Counts is the verdict with which the cell affects the verdict of the whole comparison. It differs from
	// Verdict if an expectation or a baseline applies; "" if the cell has no verdict.
	Counts checker.Verdict `json:"counts,omitempty"`
	// OutOfTime is how many of the missing runs were left out for lack of time.
	OutOfTime int `json:"out_of_time,omitempty"`
	// Rounds are the verdicts of the suite's own runs and of each repetition with other seeds; nil if the
	// runs were not repeated.
	Rounds   []checker.Verdict `json:"rounds,omitempty"`
	Expected *Expected         `json:"expected,omitempty"` // nil without an expectation
	Compared *Compared         `json:"compared,omitempty"` // nil without a baseline
	// OfRuns is the verdict of the runs without the thresholds; "" without runs. Violated are the properties
	// that the runs violate and that no threshold replaces.
	OfRuns   checker.Verdict    `json:"of_runs,omitempty"`
	Violated []checker.Property `json:"violated,omitempty"`
	Lease    time.Duration      `json:"lease_ns"`
	Versions map[string]string  `json:"versions,omitempty"`
	Source   string             `json:"source,omitempty"` // origin of the servers; "" for embedded servers
	Pool     checker.Pool       `json:"pool"`             // of all runs with results
	// FirstPool is the pool of the suite's own runs; nil if the cell was not repeated.
	FirstPool *checker.Pool `json:"first_pool,omitempty"`
	// TokensKept counts the runs in which fencing tokens kept their order, and TokensViolated those in which
	// they did not.
	TokensKept     int `json:"tokens_kept,omitempty"`
	TokensViolated int `json:"tokens_violated,omitempty"`
	// Known is what other runs have shown; nil if that is no worse than what these runs show.
	Known *Known `json:"known,omitempty"`
	// Repro is the command of a reproduction that shows how the attack breaks the lock; nil if none is known.
	Repro []string `json:"repro,omitempty"`
	// Excused are the properties that a threshold replaces.
	Excused []checker.Property `json:"excused,omitempty"`
}

// Known is what other runs have shown of a cell, if that is worse than what the comparison saw.
type Known struct {
	Text string `json:"text"` // for example "failed by itself in 4 of 4 runs: redlock-clock-jump"
	Line string `json:"line"` // a command that repeats one of these runs
}

// Expected is the verdict, other than valid, that a cell is known to have.
type Expected struct {
	Verdict    checker.Verdict    `json:"verdict"`
	Properties []checker.Property `json:"properties,omitempty"` // the properties that may be violated; nil for any
	Because    string             `json:"because,omitempty"`
	Met        bool               `json:"met"` // the cell has this verdict, and no other property is violated
}

// Run is one run of a cell.
type Run struct {
	Seed     uint64          `json:"seed"`
	Round    int             `json:"round,omitempty"`  // 0 for a run of the suite, n for its nth repetition
	Folder   string          `json:"folder,omitempty"` // relative to the comparison; "" if the run was not recorded or only its results were kept
	Verdict  checker.Verdict `json:"verdict"`
	Sentence string          `json:"sentence"`
	Took     time.Duration   `json:"took_ns,omitempty"` // including the start and end of the servers
	// Command repeats this run alone; nil if unknown.
	Command []string `json:"command,omitempty"`
	// Sample has the figures for comparing the run with other runs; nil without results.
	Sample *checker.Sample `json:"sample,omitempty"`
	// Violated are the properties that make the verdict a violation.
	Violated []checker.Property `json:"violated,omitempty"`
	// HowViolated says, for each property in Violated, what happened and when it first happened.
	HowViolated []string `json:"how_violated,omitempty"`
	// Uncounted are violated properties whose violations no figure fully counts, so that no threshold excuses
	// them.
	Uncounted []checker.Property `json:"uncounted,omitempty"`
	// Rest is the verdict without the violated properties; "" if the run has no results. A violation outranks
	// undecided and broken findings, so Rest is needed once a threshold excuses the violation.
	Rest checker.Verdict `json:"rest,omitempty"`
}

// ThresholdResult is a threshold and the observed value of a cell.
type ThresholdResult struct {
	Name string `json:"name"`
	// Counts is the property whose violations the threshold bounds; "" for none.
	Counts  checker.Property `json:"counts,omitempty"`
	Bound   string           `json:"bound"`
	Value   string           `json:"value"`
	Verdict checker.Verdict  `json:"verdict"` // Undecided without data
}

// Lack says which runs a whole comparison lacks to be decided; "" if it lacks none, and for a part.
func (c Comparison) Lack() string {
	switch {
	case c.Shard != "":
		return ""
	case c.Missing() > 0:
		return reports.Many(c.Missing(), "run") + " not made yet"
	case c.runsMade() == 0:
		return "no run can be made of any of the cells"
	}
	return ""
}

// Missing is how many runs are still to be made.
func (c Comparison) Missing() int {
	n := 0
	for _, cell := range c.Cells {
		n += cell.Missing
	}
	return n
}

// runsMade is how many runs were made.
func (c Comparison) runsMade() int {
	n := 0
	for _, cell := range c.Cells {
		n += len(cell.Runs)
	}
	return n
}

// countedVerdict is the verdict with which the cell counts. Older files lack Counts.
func (c Cell) countedVerdict() checker.Verdict {
	if c.Counts == "" {
		return c.Verdict
	}
	return c.Counts
}

// excused says whether the cell is not valid but counts as valid.
func (c Cell) excused() bool {
	return c.countedVerdict() == checker.Valid && c.Verdict != checker.Valid
}

// violatedProperties lists the properties that make the cell a violation, by its runs or by its thresholds.
func (c Cell) violatedProperties() []checker.Property {
	all := append([]checker.Property(nil), c.Violated...)
	for _, t := range c.Thresholds {
		if t.Verdict == checker.Violation && t.Counts != "" {
			all = append(all, t.Counts)
		}
	}
	return all
}

// totalTime is the total time of the cell's runs.
func (c Cell) totalTime() time.Duration {
	var sum time.Duration
	for _, r := range c.Runs {
		sum += r.Took
	}
	return sum
}

// Line is a comparison as one line of a list for people. Its texts are cleaned but not escaped.
type Line struct {
	Began time.Time // zero if unknown
	// Verdict is one of the four verdicts of a run; "" for a part without runs.
	Verdict, Sentence string
}

// NewLine summarizes a comparison in one line.
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
