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

// Collect reads the runs in a store: of single tests, comparisons, findings or claims, in
// any mixture. Runs that were interrupted, and histories of others, are no evidence.
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
		return nil, runs.Usagef("%s: no runs are stored there", store)
	}
	return c.found.With(nil), err
}

type collector struct {
	known       map[string]suites.Experiment // by name
	comparisons map[string]*matrix.Folder    // by folder; nil where there is none
	found       Evidence
}

func newCollector() (*collector, error) {
	c := &collector{known: make(map[string]suites.Experiment), comparisons: make(map[string]*matrix.Folder)}
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
	if d.Header.Imported != "" || d.Results.Interrupted {
		return nil
	}
	schedule, err := runs.ReadSchedule(folder)
	if err != nil {
		return err
	}
	run := c.run(d, schedule)
	if cell := d.Header.Parameters[matrix.CellParameter]; cell != "" {
		comparison := c.comparisonOf(folder)
		attack, isTrial := matrix.AttackOf(cell)
		if isTrial && (comparison == nil || !comparison.Counts(folder, d.Results)) {
			return nil // what its comparison throws out is no evidence here either
		}
		if isTrial && attack.Fault != "" {
			run.Experiment = attackPrefix + attack.Name
		}
		if o, err := optionsOf(comparison, cell); err == nil { // else its lock file may be gone
			run.Setup = usedAs(o)
			if o.Arguments() != nil { // else it is a trial, whose command is in its history
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
	c.found = append(c.found, run)
	return nil
}

// sawOutlasted says whether work outlasted a lease, and another worker was granted the lock meanwhile,
// which a guard makes harmless.
func sawOutlasted(r checker.Results) bool {
	return slices.ContainsFunc(r.Findings, func(f checker.Finding) bool { return f.Causes[checker.CauseOutlasted] > 0 })
}

// attackPrefix is how the experiment of an aimed trial begins; the name of its attack follows.
const attackPrefix = "attack/"

// comparisonOf is the comparison that a run is of, in a folder above that of the run; nil if it is not there.
func (c *collector) comparisonOf(folder string) *matrix.Folder {
	for above := filepath.Dir(folder); above != filepath.Dir(above); above = filepath.Dir(above) {
		comparison, known := c.comparisons[above]
		if !known {
			if found, err := matrix.Open(above); err == nil { // else there is none, or none that can be read
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

// optionsOf are those of a run of a comparison.
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
		run.Failover = &Failover{Holders: f.Holders, Stuck: f.Stuck, Median: f.Median, Longest: f.Longest}
	}
	return run
}

func quantile(h stats.Histogram, q float64) time.Duration {
	d, _ := h.Quantile(q)
	return d
}

// otherVersion is what the name of a lock is followed by if its servers have not the usual
// version; "" if they have, or if there is no choice.
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

// endsOf is when a lock ends by itself. Of one that lockcheck does not know it is its lease.
func endsOf(lock string, lease time.Duration, e suites.Experiment) ends {
	found, err := lockfile.Find(lock)
	switch {
	case err != nil:
		return ends{lease: lease}
	case lease == 0:
		return ends{cut: found.Info.Grace}
	}
	delay := found.Info.LockDelay
	if e.Options.LockDelay != nil {
		delay = *e.Options.LockDelay
	}
	return ends{lease: found.Info.Effective(lease, delay)}
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

// causes adds up those of what was violated and required.
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

// setupOf says what a run did otherwise than the lock is usually used: as its experiment has
// it, or the flags of a test.
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

// usedAs says what options ask of a lock otherwise than usual.
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

// use is one by which the program around the lock makes the difference, for better or worse.
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

// otherUse is what the name of a lock is followed by where the program around it decides
// what becomes of the data: what is seen then is no evidence of the lock itself.
func otherUse(setup []string) string {
	suffix := ""
	for _, use := range otherUses() {
		if slices.Contains(setup, use.text) {
			suffix += useSign + use.text
		}
	}
	return suffix
}

// useSign stands before each other use in the name of a lock.
const useSign = ", "
