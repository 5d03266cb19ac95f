package guide

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/runs"
	"lockcheck/internal/stats"
	"lockcheck/internal/suites"
	"lockcheck/internal/suites/claims"
	"lockcheck/internal/suites/findings"
	"lockcheck/internal/suites/matrix"
	"lockcheck/nemesis"
	"lockcheck/reports"
	"lockcheck/workloads"
)

// Collect reads the runs in a store: single tests, comparisons, findings and claims in any mixture.
// Interrupted runs, histories from other programs, and tests of applications are no evidence of a lock.
func Collect(store string) (Evidence, error) {
	c, err := newCollector()
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(store, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != runs.ResultsFile {
			return err
		}
		return c.add(filepath.Dir(path))
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, runs.Usagef("%s: no runs are stored there; name the folder that was given to the runs with --store", store)
	}
	for key, trials := range c.trials {
		c.found = append(c.found, sumTrials(key.id(), trials)...)
	}
	return c.found.With(nil), err
}

type collector struct {
	known       map[string]suites.Experiment // by name
	comparisons map[string]*matrix.Folder    // by folder; nil if the folder has none
	trials      map[trialsOf][]Run
	found       Evidence
}

func newCollector() (*collector, error) {
	c := &collector{known: make(map[string]suites.Experiment), comparisons: make(map[string]*matrix.Folder), trials: make(map[trialsOf][]Run)}
	all, err := findings.Experiments()
	if err != nil {
		return nil, err
	}
	everyClaim, err := claims.Claims()
	if err != nil {
		return nil, err
	}
	series, err := claims.Experiments(everyClaim, regexp.MustCompile(""))
	if err != nil {
		return nil, err
	}
	for _, e := range append(all, series.Experiments...) {
		c.known[e.Name] = e
	}
	return c, nil
}

func (c *collector) add(folder string) error {
	d, err := runs.ReadResults(folder)
	if err != nil {
		return err
	}
	if d.Header.Imported != "" || d.Results.Interrupted || d.Header.Application != nil {
		return nil
	}
	schedule, err := runs.ReadSchedule(folder)
	if err != nil {
		return err
	}
	run := c.run(d, schedule)
	cell := d.Header.Parameters[matrix.CellParameter]
	attack, isTrial := matrix.AttackOf(cell)
	var comparison *matrix.Folder
	if cell != "" {
		comparison = c.comparisonOf(folder)
		if isTrial && (comparison == nil || !comparison.Counts(folder, d.Results)) {
			return nil // a trial that its comparison rejects is no evidence here either
		}
		if isTrial {
			run.Experiment = attackPrefix + attack.Name
		}
		if o, err := optionsOf(comparison, cell); err == nil { // otherwise its lock file may no longer exist
			run.Setup = usedAs(o)
			if o.Arguments() != nil { // otherwise it is a trial, whose command is in its history
				run.Line = testLine(o)
			}
			run.Section, run.Renewed, run.LockDelay = o.Section.Max, o.Renew, o.LockDelay
		}
	}
	run.Lock += otherUse(run.Setup)
	onlyOutlasted := len(run.Faults) == 0 && len(run.Causes) == 1 && run.Causes[checker.CauseOutlasted] > 0
	if onlyOutlasted || run.longWork() || run.outlastsLease() && sawOutlasted(d.Results) {
		run.Faults = append(run.Faults, Fault{Name: LongWork, Asked: 1, Met: 1})
	}
	if isTrial {
		c.addTrial(comparison, cell, run)
	} else {
		c.found = append(c.found, run)
	}
	return nil
}

// sawOutlasted says whether work outlasted its lease while another worker was granted the lock. A guard makes
// this harmless, but the run still counts as a test of such work.
func sawOutlasted(r checker.Results) bool {
	return slices.ContainsFunc(r.Findings, func(f checker.Finding) bool { return f.Causes[checker.CauseOutlasted] > 0 })
}

// comparisonOf is the comparison that a run belongs to, in a folder above the run's; nil if there is none.
func (c *collector) comparisonOf(folder string) *matrix.Folder {
	for above := filepath.Dir(folder); above != filepath.Dir(above); above = filepath.Dir(above) {
		comparison, known := c.comparisons[above]
		if !known {
			if found, err := matrix.Open(above); err == nil { // otherwise there is no comparison, or an unreadable one
				comparison = found
			}
			c.comparisons[above] = comparison
		}
		if comparison != nil {
			return comparison
		}
	}
	return nil
}

func optionsOf(comparison *matrix.Folder, cell string) (runs.Options, error) {
	if comparison == nil {
		return runs.Options{}, errors.New("the comparison that it is of is not there")
	}
	return comparison.Suite.OptionsOf(cell)
}

func (c *collector) run(d reports.Document, schedule nemesis.Schedule) Run {
	h, r := d.Header, d.Results
	e, builtIn := c.known[h.Parameters[suites.ExperimentParameter]]
	run := Run{
		ID: h.Run, When: h.Started, Lockcheck: h.Version,
		Lock: h.Lock + otherVersion(h.Lock, h.Versions), Servers: len(h.Servers), Versions: h.Versions,
		Workload: h.Workload, Guard: h.Guard, Lease: h.Lease, Seed: h.Seed,
		Experiment: h.Parameters[suites.ExperimentParameter], Setup: setupOf(e, h.Parameters),
		Faults:  faultsOf(d, schedule, endsOf(h.Lock, h.Lease, e)),
		Verdict: r.Verdict, Sentence: r.Sentence, Violated: violated(r), Causes: causes(r),
		DoubleGrants: r.Overlaps.DoubleGrants, UsesAfterExpiry: r.Overlaps.UsesAfterExpiry,
	}
	if section, err := workloads.ParseRange(h.Parameters["section"]); err == nil {
		run.Section = section.Max
	}
	if run.Renewed = h.Renewed; builtIn {
		run.Renewed, run.LockDelay = e.Options.Renew, e.Options.LockDelay
		if strings.HasPrefix(run.Experiment, "lock/") {
			run.Line = testLine(e.Options)
		}
	} else {
		run.Line = lineOf(h)
		if delay, err := time.ParseDuration(h.Parameters["lock-delay"]); err == nil {
			run.LockDelay = &delay
		}
	}
	if u := r.Updates; u.Acknowledged > 0 {
		run.Updates = &Updates{Acknowledged: u.Acknowledged, Lost: u.Lost, Over: u.LostOver, Units: r.Losses}
	}
	if alone := r.Measures.Uncontended; alone.N > 0 && len(run.Faults) == 0 {
		run.Acquire = &Acquire{N: alone.N, P50: quantile(alone, 0.5), P99: quantile(alone, 0.99)}
	}
	if f := r.Failovers; f.Holders > 0 {
		run.Failover = &Failover{Holders: f.Holders, Stuck: f.Stuck, Longest: f.Longest}
	}
	return run
}

func quantile(h stats.Histogram, q float64) time.Duration {
	d, _ := h.Quantile(q)
	return d
}

// otherVersion is the suffix of a lock's name if its servers do not have the default version; "" if they do,
// or if there is only one version.
func otherVersion(lock string, versions map[string]string) string {
	found, err := lockfile.Find(lock)
	if err != nil || len(found.Servers.Versions) < 2 {
		return ""
	}
	for _, version := range versions {
		if version != found.Servers.Version("") && found.Servers.HasVersion(version) {
			return "@" + version
		}
	}
	return ""
}

// endsOf says when a lock ends without a release. For a lock that lockcheck does not know, this is its lease.
func endsOf(lock string, lease time.Duration, e suites.Experiment) lockEnds {
	found, err := lockfile.Find(lock)
	switch {
	case err != nil:
		return lockEnds{lease: lease}
	case lease == 0:
		return lockEnds{cut: found.Info.Grace}
	}
	delay := found.Info.LockDelay
	if e.Options.LockDelay != nil {
		delay = *e.Options.LockDelay
	}
	return lockEnds{lease: found.Info.Effective(lease, delay)}
}

func violated(r checker.Results) []checker.Property {
	var all []checker.Property
	for _, f := range r.Findings {
		if f.Required && f.Verdict == checker.Violation {
			all = append(all, f.Property)
		}
	}
	return all
}

// causes adds up the causes of the required properties that were violated.
func causes(r checker.Results) map[string]int64 {
	var all map[string]int64
	for _, f := range r.Findings {
		if !f.Required || f.Verdict != checker.Violation {
			continue
		}
		for cause, n := range f.Causes {
			if all == nil {
				all = make(map[string]int64)
			}
			all[cause] += n
		}
	}
	return all
}

// setupOf lists the unusual settings of a run, from its experiment or from the flags of a test.
func setupOf(e suites.Experiment, parameters map[string]string) []string {
	all := usedAs(e.Options)
	for _, flag := range []string{"nodes", "pin", "renew"} {
		if value, set := parameters[flag]; set {
			all = append(all, "--"+flag+"="+value)
		}
	}
	for _, use := range otherUses() {
		if parameters[use.flag] == "true" {
			all = append(all, use.text)
		}
	}
	slices.Sort(all)
	return all
}

// usedAs describes in words where options differ from the normal use of a lock.
func usedAs(o runs.Options) []string {
	var all []string
	add := func(when bool, format string, args ...any) {
		if when {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	add(o.Nodes == 1, "1 server")
	add(o.Nodes > 1, "%d servers", o.Nodes)
	add(o.Pin, "workers tied to one server each")
	add(o.Renew, "renewed")
	for _, use := range otherUses() {
		add(o.AnyUse(use.is), "%s", use.text)
	}
	add(o.AnyUse(func(u workloads.Use) bool { return u.NoKeepAlive }), "the lease of a waiter not renewed")
	return all
}

// use is a way in which the program around the lock makes a difference, for better or worse.
type use struct {
	flag, text string
	is         func(workloads.Use) bool
}

func otherUses() []use {
	return []use{
		{"check-before-write", "deadline checked before each write", func(u workloads.Use) bool { return u.CheckBeforeWrite }},
		{"exit-on-loss", "holders that end when notified of a loss", func(u workloads.Use) bool { return u.ExitOnLoss }},
		{"ignore-failed-acquire", "failed acquires ignored", func(u workloads.Use) bool { return u.IgnoreFailedAcquire }},
	}
}

// otherUse is the suffix of a lock's name if the program around the lock decides what happens to the data.
// Such a run is no evidence about the lock itself.
func otherUse(setup []string) string {
	suffix := ""
	for _, use := range otherUses() {
		if slices.Contains(setup, use.text) {
			suffix += useSign + use.text
		}
	}
	return suffix
}

// useSign precedes each use in the name of a lock.
const useSign = ", "
