package hunt

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lockcheck/checker"
	"lockcheck/internal/runs"
	"lockcheck/internal/stats"
	"lockcheck/internal/suites"
	"lockcheck/reports"
)

// Names of the files of a hunt.
const (
	ledgerFile   = "ledger.jsonl"
	runsFolder   = "runs"
	findsFolder  = "finds"
	jsonFile     = "hunt.json"
	HTMLFile     = "hunt.html"
	MarkdownFile = "hunt.md"
)

// Folder is a hunt on disk.
type Folder struct {
	Path string
	Plan Plan

	ledger *suites.Ledger[heading, entry]
	guide  *guide
	tried  []tried
	finds  []found
	// numbers are those of the trials that were made, see tried.
	numbers map[int]bool
}

// heading is the first line of the ledger.
type heading struct {
	Schema int  `json:"schema"`
	Plan   Plan `json:"plan"`
}

const ledgerSchema = 2

// entry is a trial that was made, or a find that was gone into.
type entry struct {
	Tried *tried `json:"tried,omitempty"`
	Found *found `json:"found,omitempty"`
}

// tried is a trial of the search.
type tried struct {
	// Number is what it was drawn from, with the seed: that of no other trial of the hunt, in
	// whichever part.
	Number int           `json:"number"`
	Trial  Trial         `json:"trial"`
	Blind  bool          `json:"blind,omitempty"`
	Began  time.Time     `json:"began"`
	Took   time.Duration `json:"took_ns"`
	// Failed says why it tells nothing; "" if it does.
	Failed string `json:"failed,omitempty"`
	// Proven: a fault of it was, and met somebody.
	Proven bool `json:"proven,omitempty"`
	// Run is its folder, relative to that of the hunt; "" where it showed nothing, and is
	// not kept.
	Run      string    `json:"run,omitempty"`
	Fresh    []cell    `json:"fresh,omitempty"` // cells that none before had met
	Near     float64   `json:"near"`
	Finds    []sighted `json:"finds,omitempty"`
	Inherent []string  `json:"inherent,omitempty"`
}

// sighted is a sighting on disk.
type sighted struct {
	Signature
	What string `json:"what"`
	// Trial is the one that showed it, as far as it got: it ends with the first violation.
	Trial Trial `json:"trial"`
}

// found is what became of a find.
type found struct {
	Name string `json:"name"`
	Signature
	What string `json:"what"`
	// First is the number of the trial that is made smaller, from 1. GoneInto are those that
	// were made again to choose it.
	First    int   `json:"first"`
	GoneInto []int `json:"gone_into"`
	// Original and Shrunk are that trial and the simplest that still shows it, each with how
	// often it did in runs of its own.
	Original     Trial     `json:"original"`
	OriginalRuns confirmed `json:"original_runs"`
	Shrunk       Trial     `json:"shrunk"`
	ShrunkRuns   confirmed `json:"shrunk_runs"`
	// Waits: more than one of its runs did not show it, and it is not made smaller yet, for another
	// trial may show it more often.
	Waits bool `json:"seldom,omitempty"`
	// Unfinished says what there was no time for; "" for nothing.
	Unfinished string `json:"unfinished,omitempty"`
	// File is the reproduction, Control what its control changes, and ControlRuns how many
	// runs of that were as the file says.
	File        string        `json:"file,omitempty"`
	Control     string        `json:"control,omitempty"`
	ControlRuns int           `json:"control_runs,omitempty"`
	Run         string        `json:"run,omitempty"` // one that shows it
	Runs        int           `json:"runs"`          // that all this took
	Took        time.Duration `json:"took_ns"`
}

// Create makes the folder of a new hunt; it must not hold one yet. The plan must be ready.
func Create(path string, p Plan) (*Folder, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, runs.Unusable(err)
	}
	ledger, err := suites.CreateLedger[heading, entry](filepath.Join(path, ledgerFile), heading{ledgerSchema, p})
	if errors.Is(err, os.ErrExist) {
		return nil, runs.Usagef("--out %s: it holds a hunt; --resume %s goes on with it", path, path)
	}
	if err != nil {
		return nil, runs.Unusable(err)
	}
	return newFolder(path, p, ledger), nil
}

func newFolder(path string, p Plan, ledger *suites.Ledger[heading, entry]) *Folder {
	return &Folder{Path: path, Plan: p, ledger: ledger, guide: newGuide(p), numbers: make(map[int]bool)}
}

// Holds says whether a folder is that of a hunt: a ledger that tells of one.
func Holds(path string) bool {
	ledger, err := suites.OpenLedger[heading, entry](filepath.Join(path, ledgerFile))
	return err == nil && ledger.Heading.Plan.Lock != ""
}

// Open reads a hunt, and changes nothing of it.
func Open(path string) (*Folder, error) {
	ledger, err := suites.OpenLedger[heading, entry](filepath.Join(path, ledgerFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, runs.Usagef("%s holds no hunt", path)
	}
	if err != nil {
		return nil, err
	}
	if ledger.Heading.Schema != ledgerSchema {
		return nil, runs.Usagef("%s: the ledger is of schema %d, which is not known", path, ledger.Heading.Schema)
	}
	p, err := ledger.Heading.Plan.Ready()
	if err != nil {
		return nil, err
	}
	f := newFolder(path, p, ledger)
	for i, e := range ledger.Entries() {
		if err := e.local(); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", filepath.Join(path, ledgerFile), i+2, err)
		}
		f.know(e)
	}
	return f, nil
}

// local says whether all that an entry names is within the folder of its hunt.
func (e entry) local() error {
	var names []string
	if e.Tried != nil {
		names = append(names, e.Tried.Run)
	}
	if e.Found != nil {
		names = append(names, e.Found.Run, e.Found.File)
	}
	for _, name := range names {
		if name != "" && !filepath.IsLocal(name) {
			return fmt.Errorf("%q is not within the hunt", name)
		}
	}
	return nil
}

// add puts an entry into the ledger.
func (f *Folder) add(e entry) error {
	if err := f.ledger.Add(e); err != nil {
		return err
	}
	f.know(e)
	return nil
}

// know adds an entry to what is known.
func (f *Folder) know(e entry) {
	if e.Tried != nil {
		f.tried = append(f.tried, *e.Tried)
		f.numbers[e.Tried.Number] = true
		if e.Tried.Failed == "" {
			f.guide.told(e.Tried.Trial, e.Tried.Fresh, e.Tried.Near, !e.Tried.Blind)
		}
		if e.Tried.Failed != "" || !e.Tried.Proven && len(e.Tried.Trial.Steps) > 0 {
			f.guide.again(e.Tried.Trial)
		}
	}
	if e.Found != nil {
		if last := f.last(e.Found.Signature); last != nil {
			*last = *e.Found
		} else {
			f.finds = append(f.finds, *e.Found)
		}
	}
}

// mostTries is how many trials that showed a find are made again until one of them shows it well.
const mostTries = 3

// open lists the finds that there is still something to do for. One that shows seldom waits for
// another trial that shows it, as long as there is patience. The second opinion on its own is
// gone into only where nothing else was found.
func (f *Folder) open(patient bool) []found {
	var all []found
	for _, t := range f.tried {
		for _, s := range t.Finds {
			listed := slices.ContainsFunc(all, func(o found) bool { return o.key() == s.key() })
			if listed || f.explained(s.Signature) != "" {
				continue
			}
			fresh := found{Signature: s.Signature}
			switch last := f.last(s.Signature); {
			case last == nil:
			case last.Waits:
				fresh = *last
				fresh.Unfinished = ""
			case last.Unfinished != "" && last.OriginalRuns.Shown > 0: // it goes on where it was
				fresh = *last
				fresh.Unfinished = ""
				all = append(all, fresh)
				continue
			case last.Unfinished != "":
			case last.OriginalRuns.Shown > 0:
				continue
			default:
				fresh.GoneInto, fresh.Runs, fresh.Took = last.GoneInto, last.Runs, last.Took
			}
			if len(f.sightings(fresh)) > 0 || fresh.Waits && !patient {
				all = append(all, fresh)
			}
		}
	}
	return all
}

// sightings are the next trials to go into for a find: those with the fewest faults first.
func (f *Folder) sightings(of found) []found {
	var all []found
	for i, t := range f.tried {
		at := slices.IndexFunc(t.Finds, func(s sighted) bool { return s.key() == of.key() })
		if at < 0 || slices.Contains(of.GoneInto, i+1) {
			continue
		}
		all = append(all, found{Signature: t.Finds[at].Signature, What: t.Finds[at].What, First: i + 1, Original: t.Finds[at].Trial, Run: t.Run})
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(len(a.Original.Steps), len(b.Original.Steps)) })
	return all[:min(len(all), max(0, mostTries-len(of.GoneInto)))]
}

// explained says why there is no need to go into a find; "" if there is.
func (f *Folder) explained(s Signature) string {
	if s.Property == checker.Linearizability && f.others(s) {
		return "not gone into, for something else was found, too"
	}
	leads := append(consequences(), checker.NoWrongRelease, checker.NoExpiredGrant)
	for _, other := range f.finds {
		needsNone := other.ShrunkRuns.Shown > 0 && len(other.Shrunk.Steps) == 0
		if needsNone && other.key() != s.key() && slices.Contains(consequences(), s.Property) && slices.Contains(leads, other.Property) {
			return "not gone into, for this lock needs no fault to fail"
		}
	}
	return ""
}

// others says whether anything else was found, and was seen again or may be.
func (f *Folder) others(s Signature) bool {
	return slices.ContainsFunc(f.tried, func(t tried) bool {
		return slices.ContainsFunc(t.Finds, func(o sighted) bool {
			last := f.last(o.Signature)
			return o.key() != s.key() && (last == nil || last.OriginalRuns.Shown > 0)
		})
	})
}

// replaces says whether what became of a find now counts for more than what is known of it from
// before, when a hunt that was out of time goes on.
func (f found) replaces(last *found) bool {
	if last == nil || last.Waits || last.OriginalRuns.Shown == 0 {
		return true
	}
	wentOn := f.OriginalRuns.Shown > 0 && f.Runs > last.Runs
	return wentOn || f.further(*last)
}

// further says whether more is known of a find than of another one that is the same.
func (f found) further(than found) bool {
	known := func(f found) int {
		switch {
		case f.Control != "":
			return 3
		case f.File != "":
			return 2
		case f.OriginalRuns.Shown > 0:
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(known(f), known(than)), cmp.Compare(len(than.Shrunk.Steps), len(f.Shrunk.Steps))) > 0
}

// last is what became of a find so far; nil if nothing did.
func (f *Folder) last(s Signature) *found {
	i := slices.IndexFunc(f.finds, func(o found) bool { return o.key() == s.key() })
	if i < 0 {
		return nil
	}
	return &f.finds[i]
}

// nameOf is the name of a find: those of one hunt are numbered.
func (f *Folder) nameOf(s Signature) string {
	if last := f.last(s); last != nil {
		return last.Name
	}
	name := fmt.Sprintf("hunt-%s-%d", f.Plan.info.Name, len(f.finds)+1)
	if f.Plan.Shard.Of > 0 {
		name += fmt.Sprintf("-part%d", f.Plan.Shard.N)
	}
	return name
}

// Hunt puts together what is known.
func (f *Folder) Hunt() reports.Hunt {
	h := reports.Hunt{
		Schema: reports.HuntSchema, Lock: f.Plan.Lock, Version: f.Plan.Version, Seed: f.Plan.Seed, Lease: f.Plan.lease(),
		Unsupported: f.Plan.space.unsupported, Inherent: make(map[string]int),
		States: states(), Moments: calls(), Phases: phases(),
		Shard: f.Plan.Shard.String(),
	}
	for _, part := range f.Plan.Missing {
		h.Missing = append(h.Missing, part.String())
	}
	arms := []*reports.HuntArm{{Name: "guided"}, {Name: "blind"}}
	for i, t := range f.tried {
		arm := arms[0]
		if t.Blind {
			arm = arms[1]
		}
		arm.Add(i+1, t.tell())
		if h.Began.IsZero() || t.Began.Before(h.Began) {
			h.Began = t.Began
		}
		for _, cause := range t.Inherent {
			h.Inherent[cause]++
		}
		h.Met = append(h.Met, t.Fresh...)
	}
	for _, arm := range arms {
		h.Arms = append(h.Arms, *arm)
	}
	for _, find := range append(slices.Clone(f.finds), f.left()...) {
		h.Finds = append(h.Finds, f.tell(find, h.Began))
	}
	for _, kind := range f.Plan.space.kinds {
		for _, a := range f.Plan.space.aims[kind] {
			h.Roles = append(h.Roles, Step{Fault: a.fault, Target: a.target}.role())
		}
	}
	slices.Sort(h.Roles)
	h.Roles = append([]string{noFault}, slices.Compact(h.Roles)...)
	return h
}

// left lists the finds that nobody has gone into, with the reason.
func (f *Folder) left() []found {
	var all []found
	for i, t := range f.tried {
		for _, s := range t.Finds {
			if f.last(s.Signature) != nil || slices.ContainsFunc(all, func(o found) bool { return o.key() == s.key() }) {
				continue
			}
			all = append(all, found{
				Signature: s.Signature, What: s.What, First: i + 1, Original: s.Trial, Run: t.Run,
				Unfinished: cmp.Or(f.explained(s.Signature), "there was no time to go into it"),
			})
		}
	}
	return all
}

// NotSmallerYet is what is still to be done for a find that waits for a trial that shows it more often.
const NotSmallerYet = "it was not made smaller yet"

// unfinished says what is still to be done for a find; "" for nothing.
func (f *Folder) unfinished(find found) string {
	switch {
	case find.Unfinished != "":
		return find.Unfinished
	case find.Waits:
		return cmp.Or(f.explained(find.Signature), NotSmallerYet)
	case find.OriginalRuns.Shown == 0 && len(f.sightings(find)) > 0:
		return "another trial that showed it was not made again"
	}
	return ""
}

// tell is a find for a report of a hunt that began then.
func (f *Folder) tell(find found, began time.Time) reports.HuntFind {
	out := reports.HuntFind{
		Name: find.Name, Headline: find.Signature.String(), Property: find.Property, Cause: find.Cause, NotNotified: find.NotNotified, DataLost: find.DataLost, What: find.What,
		Trial: find.Original.String(), Steps: len(find.Original.Steps),
		Shown: find.OriginalRuns.Shown, Made: find.OriginalRuns.Made, Unfinished: f.unfinished(find),
		SeenAgain: find.OriginalRuns.Shown+find.ShrunkRuns.Shown > 0,
		File:      find.File, Control: find.Control, ControlRuns: find.ControlRuns, Run: find.Run, Runs: find.Runs, Took: find.Took,
	}
	for i, t := range f.tried {
		if !slices.ContainsFunc(t.Finds, func(s sighted) bool { return s.key() == find.key() }) {
			continue
		}
		if out.Seen++; out.Seen == 1 {
			out.First, out.Blind, out.After = i+1, t.Blind, t.Began.Add(t.Took).Sub(began)
		}
	}
	if find.ShrunkRuns.Made > 0 {
		out.Trial, out.Steps = find.Shrunk.String(), len(find.Shrunk.Steps)
		out.Shown, out.Made = find.ShrunkRuns.Shown, find.ShrunkRuns.Made
	}
	out.Low, out.High = stats.Wilson(int64(out.Shown), int64(out.Made))
	return out
}

// tell is a trial for a report.
func (t tried) tell() reports.HuntTrial {
	out := reports.HuntTrial{Took: t.Took, Failed: t.Failed != "", Proven: t.Proven, Cells: len(t.Fresh)}
	for _, s := range t.Finds {
		out.Finds = append(out.Finds, s.key())
	}
	return out
}

// WriteReports writes the hunt for people and for programs into its folder.
func (f *Folder) WriteReports(h reports.Hunt) error {
	var errs []error
	for name, write := range map[string]func(io.Writer, reports.Hunt) error{
		jsonFile: reports.HuntJSON, HTMLFile: reports.HuntHTML, MarkdownFile: reports.HuntMarkdown,
	} {
		errs = append(errs, runs.WriteFile(f.Path, name, func(w io.Writer) error { return write(w, h) }))
	}
	return errors.Join(errs...)
}
