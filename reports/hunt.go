package reports

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
)

// HuntSchema is the version of the form of hunt.json, see DocumentSchema.
const HuntSchema = 1

// Hunt is what a search for schedules that break a lock has tried and found.
type Hunt struct {
	Schema  int           `json:"schema"`
	Lock    string        `json:"lock"`
	Version string        `json:"version,omitempty"` // of the servers
	Seed    uint64        `json:"seed"`
	Shard   string        `json:"shard,omitempty"`   // of a part: "2/8"
	Missing []string      `json:"missing,omitempty"` // parts of which nothing came back
	Lease   time.Duration `json:"lease_ns"`          // what trials asked for; 0 for a lock without one
	Began   time.Time     `json:"began"`
	// Arms are the trials that earlier ones guided, and those drawn blindly.
	Arms  []HuntArm  `json:"arms"`
	Finds []HuntFind `json:"finds"`
	// Inherent counts the trials that showed what no lock with leases can prevent, by cause.
	Inherent map[string]int `json:"inherent,omitempty"`
	// Met are the cells that any trial met, each once. There is one for each of the Roles,
	// Phases, States and Moments.
	Met     []HuntCell `json:"met"`
	Roles   []string   `json:"roles"`
	Phases  []string   `json:"phases"`
	States  []string   `json:"states"`
	Moments []string   `json:"moments"`
	// Unsupported says of kinds of faults that this lock does not support why.
	Unsupported []string `json:"unsupported,omitempty"`
}

// HuntCell is something that a trial can meet: with a fault of a role about to begin, in force
// or healed, in a state of the lock by the record, at a moment of a worker's calls.
type HuntCell struct {
	Role   string `json:"role"`
	Phase  string `json:"phase"`
	State  string `json:"state"`
	Moment string `json:"moment"`
}

// HuntArm is a part of the trials.
type HuntArm struct {
	Name   string        `json:"name"`
	Trials int           `json:"trials"`
	Failed int           `json:"failed,omitempty"` // of them, those that tell nothing
	Proven int           `json:"proven"`           // of them, those in which a fault was proven and met somebody
	Took   time.Duration `json:"took_ns"`          // one after the other
	Cells  int           `json:"cells"`            // that it was the first to meet
	// Showing is how many trials showed any find, Finds how many different ones the arm saw,
	// and First the number of the trial, of both arms, that showed its first; 0 for none.
	Showing int      `json:"showing"`
	Finds   []string `json:"finds,omitempty"`
	First   int      `json:"first,omitempty"`
}

// HuntTrial is what a trial adds to its arm. Finds are told apart by name.
type HuntTrial struct {
	Took   time.Duration
	Failed bool
	Proven bool // a fault was, and met somebody
	Cells  int
	Finds  []string
}

// Add counts a trial, given its number.
func (a *HuntArm) Add(number int, t HuntTrial) {
	a.Trials++
	a.Took += t.Took
	a.Cells += t.Cells
	if t.Failed {
		a.Failed++
	}
	if t.Proven {
		a.Proven++
	}
	if len(t.Finds) == 0 {
		return
	}
	a.Showing++
	if a.First == 0 {
		a.First = number
	}
	for _, find := range t.Finds {
		if !slices.Contains(a.Finds, find) {
			a.Finds = append(a.Finds, find)
		}
	}
}

// perHour is how many trials of an hour showed a find, if they are made one after the other.
func (a HuntArm) perHour() string {
	if a.Took == 0 {
		return "–"
	}
	return trimmed(float64(a.Showing)/a.Took.Hours(), 1)
}

// HuntFind is a violation that is not inherent in leases.
type HuntFind struct {
	Name        string           `json:"name,omitempty"`
	Headline    string           `json:"headline"` // what it is, in a clause
	Property    checker.Property `json:"property"`
	Cause       string           `json:"cause,omitempty"`
	NotNotified bool             `json:"not_notified,omitempty"` // a holder that was replaced
	DataLost    bool             `json:"data_lost,omitempty"`    // by a server, before
	What        string           `json:"what"`
	First       int              `json:"first"`    // the trial that showed it first, from 1
	After       time.Duration    `json:"after_ns"` // from the begin of the hunt to the end of that trial
	Blind       bool             `json:"blind"`    // that was drawn blindly
	Seen        int              `json:"seen"`     // how many trials showed it
	// Trial is the simplest that is known to show it, with so many steps: in so many of the runs
	// that were made to see that. Low and High bound their share: 95 % Wilson interval.
	Trial string `json:"trial"`
	Steps int    `json:"steps"`
	Shown int    `json:"shown"`
	Made  int    `json:"made"`
	// SeenAgain: runs that were made for that showed it, of this form or of an earlier one.
	SeenAgain bool    `json:"seen_again"`
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
	// Unfinished says what there was no time for.
	Unfinished string `json:"unfinished,omitempty"`
	// File is the reproduction, Control what makes the difference, as none of ControlRuns
	// showed the find, and Run one that does; paths are relative to the folder of the hunt.
	File        string        `json:"file,omitempty"`
	Control     string        `json:"control,omitempty"`
	ControlRuns int           `json:"control_runs,omitempty"`
	Run         string        `json:"run,omitempty"`
	Runs        int           `json:"runs"` // made to go into it
	Took        time.Duration `json:"took_ns"`
}

// HuntJSON writes a hunt for programs.
func HuntJSON(w io.Writer, h Hunt) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(h)
}

// Confirmed counts the finds that were seen again in a run made for that.
func (h Hunt) Confirmed() (n int) {
	for _, f := range h.Finds {
		if f.SeenAgain {
			n++
		}
	}
	return n
}

func (h Hunt) title() string { return "What breaks " + clean(h.Lock) }

func (h Hunt) trials() (made, told, proven int) {
	for _, arm := range h.Arms {
		made, told, proven = made+arm.Trials, told+arm.Trials-arm.Failed, proven+arm.Proven
	}
	return made, told, proven
}

// summary says in sentences what was tried and found.
func (h Hunt) summary() string {
	found := "Nothing was found that is not inherent in leases"
	switch n := len(h.Finds); {
	case n == 1:
		found = "1 find"
	case n > 1:
		found = fmt.Sprintf("%d finds", n)
	}
	if n := len(h.Finds); n > 0 {
		found += fmt.Sprintf(", of which %d showed again in runs of their own", h.Confirmed())
	}
	leases := "without a lease"
	if h.Lease > 0 {
		leases = "with leases of " + length(h.Lease)
	}
	made, _, proven := h.trials()
	text := fmt.Sprintf("%s, in %s %s (seed %d). In %d of them a fault was proven and met somebody. They met %d of %d cells of coverage.",
		found, many(int64(made), "trial"), leases, h.Seed, proven, len(h.Met), h.cells())
	if h.Shard != "" {
		text += " This is part " + clean(h.Shard) + " of the hunt."
	}
	if len(h.Missing) > 0 {
		text += " Nothing came back of " + clean(strings.Join(h.Missing, ", ")) + " of the hunt."
	}
	return text
}

// cells is how many there are. Without a fault there are no phases.
func (h Hunt) cells() int {
	return ((len(h.Roles)-1)*len(h.Phases) + 1) * len(h.States) * len(h.Moments)
}

// compared says how the two arms did, in a sentence.
func (h Hunt) compared() string {
	var parts []string
	for _, a := range h.Arms {
		if a.Trials == 0 {
			continue
		}
		text := fmt.Sprintf("%s: %s, %s with a find (%s an hour), %s", a.Name, many(int64(a.Trials), "trial"),
			grouped(int64(a.Showing)), a.perHour(), many(int64(len(a.Finds)), "different one"))
		if a.First > 0 {
			text += fmt.Sprintf(", the first in trial %d", a.First)
		}
		if a.Failed > 0 {
			text += fmt.Sprintf("; %d told nothing", a.Failed)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ". ") + ". Hours are those of trials, one after the other."
}

// setAside lists what is inherent, with how many trials showed it.
func (h Hunt) setAside() []string {
	var all []string
	for _, cause := range slices.Sorted(maps.Keys(h.Inherent)) {
		all = append(all, fmt.Sprintf("%s (%s)", clean(cause), many(int64(h.Inherent[cause]), "trial")))
	}
	return all
}

// facts are sentences about a find.
func (f HuntFind) facts() []string {
	arm := "guided"
	if f.Blind {
		arm = "blind"
	}
	facts := []string{
		clean(f.What),
		fmt.Sprintf("first seen in trial %d (%s); %s showed it", f.First, arm, many(int64(f.Seen), "trial")),
		"simplest: " + clean(f.Trial),
	}
	switch {
	case f.Counts():
	case f.isOpen():
		facts = append(facts, "does not count yet: it may have taken so long by chance, and was not seen again so far")
	default:
		facts = append(facts, "does not count: that it took too long was not seen again")
	}
	if f.Made > 0 {
		facts = append(facts, fmt.Sprintf("shows in %d of %d runs (%.2f–%.2f)", f.Shown, f.Made, f.Low, f.High))
	}
	switch {
	case f.Control != "":
		facts = append(facts, fmt.Sprintf("control: %s; as expected in all of %d runs", clean(f.Control), f.ControlRuns))
	case f.Unfinished != "": // it says so
	case f.File != "" && f.Steps == 0:
		facts = append(facts, "it needs no fault, and no control was found")
	case f.File != "":
		facts = append(facts, "no control was found")
	}
	if f.Unfinished != "" {
		facts = append(facts, clean(f.Unfinished))
	}
	return facts
}

// HuntTerminal writes a hunt for people.
func HuntTerminal(w io.Writer, h Hunt, o TerminalOptions) error {
	t := newTerminal(o)
	t.line(t.paint(bold, h.title()))
	t.hang("", "", h.summary())
	for _, f := range h.Finds {
		t.blank()
		t.hang("", "", t.paint(colorOf(checker.Violation), clean(f.Headline)))
		for _, fact := range f.facts() {
			t.hang("  ", "– ", fact)
		}
		if f.File != "" {
			t.hang("  ", "– ", o.CommandLine("lockcheck repro "+printable(o.Folder+"/"+f.File)))
		}
	}
	t.blank()
	t.hang("", "", h.compared())
	for _, cause := range h.setAside() {
		t.hang("  ", "– ", "inherent, and set aside: "+cause)
	}
	for _, why := range h.Unsupported {
		t.hang("  ", "– ", "not supported: "+clean(why))
	}
	_, err := w.Write(t.out.Bytes())
	return err
}

// Counts says whether a find counts. That the lock got stuck is told by time alone: on a busy
// machine it counts only if it was seen again.
func (f HuntFind) Counts() bool {
	return f.Property != checker.Liveness || f.SeenAgain
}

// isOpen says that it may count once there was time to make it again.
func (f HuntFind) isOpen() bool { return !f.Counts() && (f.Made == 0 || f.Unfinished != "") }

// Verdict is violation if anything was found that counts, undecided if no trial told anything, no
// fault was proven, a part is missing or there was no time to see again what was found, and else valid:
// as far as the trials went.
func (h Hunt) Verdict() checker.Verdict {
	_, told, proven := h.trials()
	faults := len(h.Roles) > 1 // the first one is for none
	switch {
	case slices.ContainsFunc(h.Finds, HuntFind.Counts):
		return checker.Violation
	case told == 0, faults && proven == 0, len(h.Missing) > 0, slices.ContainsFunc(h.Finds, HuntFind.isOpen):
		return checker.Undecided
	}
	return checker.Valid
}
