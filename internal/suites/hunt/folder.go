package hunt

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lockcheck/checker"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
)

// Names in the folder of a hunt.
const (
	ledgerFile  = "ledger.jsonl"
	runsFolder  = "runs"
	findsFolder = "finds" // the reproductions
	HTMLFile    = "hunt.html"
)

// Folder is a hunt on disk. Its ledger lists every trial made and every finding investigated.
type Folder struct {
	Path string
	Plan Plan

	ledger   *suites.Ledger[heading, entry]
	guide    *guide
	attempts []attempt
	records  []record
	drawn    map[int]bool // numbers of the trials already made
}

// heading is the first line of the ledger.
type heading struct {
	Schema int  `json:"schema"`
	Plan   Plan `json:"plan"`
}

const ledgerSchema = 3

// entry is either a trial that was made or the present record of a finding.
type entry struct {
	Tried *attempt `json:"tried,omitempty"`
	Found *record  `json:"found,omitempty"`
}

// attempt is a trial that was made, and what it showed.
type attempt struct {
	// Number, together with the seed of the hunt, determines a blind trial. Numbers are unique across all
	// parts of a hunt.
	Number int           `json:"number"`
	Trial  Trial         `json:"trial"`
	Blind  bool          `json:"blind,omitempty"`
	Began  time.Time     `json:"began"`
	Took   time.Duration `json:"took_ns"`
	// Failed says why the trial shows nothing about the lock; "" if it shows something.
	Failed string `json:"failed,omitempty"`
	// Proven: at least one fault was proven and exercised.
	Proven   bool       `json:"proven,omitempty"`
	Run      string     `json:"run,omitempty"`   // its folder, relative to the hunt's; "" if the run was not kept
	Fresh    []Cell     `json:"fresh,omitempty"` // cells that no earlier trial covered
	Near     float64    `json:"near"`
	Finds    []sighting `json:"finds,omitempty"`
	Inherent []string   `json:"inherent,omitempty"`
}

// shows says whether the trial showed a finding.
func (a attempt) shows(s Signature) bool {
	return slices.ContainsFunc(a.Finds, func(f sighting) bool { return f.key() == s.key() })
}

// record is what is known of a finding so far.
type record struct {
	Name string `json:"name"`
	Signature
	What string `json:"what"`
	// Source is the number, from 1, of the trial that is reduced. Rerun lists the trials that were rerun to
	// choose it.
	Source int   `json:"first"`
	Rerun  []int `json:"gone_into"`
	// Original is the trial Source, and Reduced the simplest form that still shows the finding. A count of
	// zero runs means that the form was not measured.
	Original     Trial `json:"original"`
	OriginalRuns Count `json:"original_runs"`
	Reduced      Trial `json:"shrunk"`
	ReducedRuns  Count `json:"shrunk_runs"`
	// Partial is the confirmation that showed the finding most often before it was stopped; nil if none
	// showed it. A stopped confirmation proves nothing: the runs may have been stopped because of what they
	// showed.
	Partial *Partial `json:"partial,omitempty"`
	// State is how far the investigation got. Stopped is why it went no further; nil if it came to its end.
	State   State `json:"state,omitempty"`
	Stopped *Stop `json:"stopped,omitempty"`
	// File is the reproduction. Control describes a change under which the finding does not show, and
	// ControlRuns counts the control's runs, none of which showed it.
	File        string        `json:"file,omitempty"`
	Control     string        `json:"control,omitempty"`
	ControlRuns int           `json:"control_runs,omitempty"`
	Run         string        `json:"run,omitempty"` // a run that shows the finding, relative to the hunt's folder
	Runs        int           `json:"runs"`          // how many the investigation made
	Took        time.Duration `json:"took_ns"`
}

// Partial counts the runs of a trial that was stopped before its last run.
type Partial struct {
	Trial Trial `json:"trial"`
	Count
}

// Create makes the folder of a new hunt. The plan must be ready. A folder that already holds a hunt is an
// error of usage.
func Create(path string, p Plan) (*Folder, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, runs.Unusable(err)
	}
	ledger, err := suites.CreateLedger[heading, entry](filepath.Join(path, ledgerFile), heading{ledgerSchema, p})
	if errors.Is(err, os.ErrExist) {
		return nil, runs.Usagef("--out %s: the folder holds a hunt; continue it with --resume %s", path, path)
	}
	if err != nil {
		return nil, runs.Unusable(err)
	}
	return newFolder(path, p, ledger), nil
}

func newFolder(path string, p Plan, ledger *suites.Ledger[heading, entry]) *Folder {
	return &Folder{Path: path, Plan: p, ledger: ledger, guide: newGuide(p), drawn: make(map[int]bool)}
}

// Holds says whether a folder holds a hunt.
func Holds(path string) bool {
	ledger, err := suites.OpenLedger[heading, entry](filepath.Join(path, ledgerFile))
	return err == nil && ledger.Heading.Plan.Lock != ""
}

// Open reads a hunt without changing it.
func Open(path string) (*Folder, error) {
	ledger, err := suites.OpenLedger[heading, entry](filepath.Join(path, ledgerFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, runs.Usagef("%s holds no hunt; name the folder that the hunt printed at its end", path)
	}
	if err != nil {
		return nil, err
	}
	if s := ledger.Heading.Schema; s != ledgerSchema {
		return nil, runs.Usagef("%s: its ledger has schema %d; this version reads %d; go on with the version that began it, or begin a new hunt", path, s, ledgerSchema)
	}
	p, err := ledger.Heading.Plan.Ready()
	if err != nil {
		return nil, err
	}
	f := newFolder(path, p, ledger)
	for i, e := range ledger.Entries() {
		if err := e.validatePaths(); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", filepath.Join(path, ledgerFile), i+2, err)
		}
		f.apply(e)
	}
	return f, nil
}

// validatePaths refuses paths that lead out of the folder of the hunt.
func (e entry) validatePaths() error {
	var names []string
	if e.Tried != nil {
		names = append(names, e.Tried.Run)
	}
	if e.Found != nil {
		names = append(names, e.Found.Run, e.Found.File)
	}
	for _, name := range names {
		if name != "" && !filepath.IsLocal(name) {
			return fmt.Errorf("%q is not within the folder of the hunt", name)
		}
	}
	return nil
}

// add writes an entry into the ledger and applies it.
func (f *Folder) add(e entry) error {
	if err := f.ledger.Add(e); err != nil {
		return err
	}
	f.apply(e)
	return nil
}

// apply updates the state in memory with an entry of the ledger.
func (f *Folder) apply(e entry) {
	if a := e.Tried; a != nil {
		f.attempts = append(f.attempts, *a)
		f.drawn[a.Number] = true
		if a.Failed == "" {
			f.guide.learn(a.Trial, a.Fresh, a.Near, !a.Blind)
		}
		if a.Failed != "" || !a.Proven && len(a.Trial.Steps) > 0 {
			f.guide.retry(a.Trial)
		}
	}
	if r := e.Found; r != nil {
		if last := f.recordOf(r.Signature); last != nil {
			*last = *r
		} else {
			f.records = append(f.records, *r)
		}
	}
}

// recordOf is the record of a finding; nil if the finding was never investigated.
func (f *Folder) recordOf(s Signature) *record {
	i := slices.IndexFunc(f.records, func(r record) bool { return r.key() == s.key() })
	if i < 0 {
		return nil
	}
	return &f.records[i]
}

// nameOf is the name of a finding. The findings of a hunt are numbered.
func (f *Folder) nameOf(s Signature) string {
	if last := f.recordOf(s); last != nil {
		return last.Name
	}
	name := fmt.Sprintf("hunt-%s-%d", f.Plan.subject.Info.Name, len(f.records)+1)
	if f.Plan.Shard.Of > 0 {
		name += fmt.Sprintf("-part%d", f.Plan.Shard.N)
	}
	return name
}

// maxReruns bounds how many trials that showed a finding are rerun in search of one that shows it reliably.
const maxReruns = 3

// findings lists one sighting of each finding, in the order in which trials first showed them.
func (f *Folder) findings() []sighting {
	var all []sighting
	for _, a := range f.attempts {
		for _, s := range a.Finds {
			if !slices.ContainsFunc(all, func(o sighting) bool { return o.key() == s.key() }) {
				all = append(all, s)
			}
		}
	}
	return all
}

// open lists the findings that can be investigated now. If the search is patient, a finding that shows seldom
// waits for another trial that shows it.
func (f *Folder) open(patient bool) []record {
	var all []record
	for _, s := range f.findings() {
		if f.skipped(s.Signature) != nil {
			continue
		}
		r := record{Signature: s.Signature}
		if last := f.recordOf(s.Signature); last != nil {
			r.Partial = last.Partial
			switch {
			case last.OriginalRuns.Shown > 0 && (last.Stopped != nil || last.State == Waiting):
				r = *last
			case last.OriginalRuns.Shown > 0:
				continue
			case last.State == notSeenAgain:
				r.Rerun, r.Runs, r.Took = last.Rerun, last.Runs, last.Took
			}
		}
		resumes := r.Stopped != nil && r.State != Waiting
		if resumes || len(f.sightings(r)) > 0 || r.State == Waiting && !patient {
			r.Stopped = nil
			all = append(all, r)
		}
	}
	return all
}

// sightings lists the trials to rerun next for a finding, those with the fewest faults first.
func (f *Folder) sightings(of record) []record {
	var all []record
	for i, a := range f.attempts {
		at := slices.IndexFunc(a.Finds, func(s sighting) bool { return s.key() == of.key() })
		if at < 0 || slices.Contains(of.Rerun, i+1) {
			continue
		}
		s := a.Finds[at]
		all = append(all, record{Signature: s.Signature, What: s.What, Source: i + 1, Original: s.Trial, Run: a.Run})
	}
	slices.SortStableFunc(all, func(a, b record) int { return cmp.Compare(len(a.Original.Steps), len(b.Original.Steps)) })
	return all[:min(len(all), max(0, maxReruns-len(of.Rerun)))]
}

// skipped says why a finding is not investigated; nil if it is investigated. The linearizability check, a
// second opinion, accuses a lock only if no other finding does. A lock that fails without any fault has many
// findings, and one of them is enough.
func (f *Folder) skipped(s Signature) *Stop {
	if s.Property == checker.Linearizability && f.hasOther(s) {
		return &Stop{Kind: superseded}
	}
	roots := append(consequences(), checker.NoWrongRelease, checker.NoWrongRenewal, checker.NoExpiredGrant)
	for _, other := range f.records {
		needsNoFault := other.ReducedRuns.Shown > 0 && len(other.Reduced.Steps) == 0
		if needsNoFault && other.key() != s.key() && slices.Contains(consequences(), s.Property) && slices.Contains(roots, other.Property) {
			return &Stop{Kind: needsNone}
		}
	}
	return nil
}

// hasOther says whether there is another finding that is confirmed or may still be.
func (f *Folder) hasOther(s Signature) bool {
	return slices.ContainsFunc(f.findings(), func(o sighting) bool {
		last := f.recordOf(o.Signature)
		return o.key() != s.key() && (last == nil || last.OriginalRuns.Shown > 0 || last.Partial != nil || last.State != notSeenAgain)
	})
}

// replaces says whether a new record supersedes the last record of its finding. A hunt that is resumed for a
// moment must not forget what it knew.
func (r record) replaces(last *record) bool {
	if last == nil || last.State == Waiting || last.OriginalRuns.Shown == 0 {
		return true
	}
	wentOn := r.OriginalRuns.Shown > 0 && r.Runs > last.Runs
	return wentOn || r.isFurtherThan(*last)
}

// isFurtherThan says whether an investigation of a finding got further than another investigation of it.
func (r record) isFurtherThan(other record) bool {
	reached := func(r record) int {
		switch {
		case r.Control != "":
			return 4
		case r.File != "":
			return 3
		case r.OriginalRuns.Shown > 0:
			return 2
		case r.Partial != nil:
			return 1
		}
		return 0
	}
	// If no rerun showed the finding, the stopped investigation wins, because its question is still open.
	if reached(r) == 0 && reached(other) == 0 && (r.Stopped == nil) != (other.Stopped == nil) {
		return r.Stopped != nil
	}
	return cmp.Or(cmp.Compare(reached(r), reached(other)), cmp.Compare(len(other.Reduced.Steps), len(r.Reduced.Steps))) > 0
}
