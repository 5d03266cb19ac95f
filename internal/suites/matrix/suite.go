// Package matrix compares locks. It fills a table of locks × faults × guards, with several runs for each
// cell. A Suite, given as flags or as a file, says what to run. A comparison on disk consists of the suite,
// the runs and a ledger. So a comparison that was stopped can be resumed, and parts made on several machines
// can be merged. A Comparison is the result, with all its views.
package matrix

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"lockcheck/clients"
	"lockcheck/history"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites/trials"
	"lockcheck/internal/yamlfile"
	"lockcheck/nemesis"
	"lockcheck/workloads"
)

// Suite says what is compared. The zero value of a field means its default.
type Suite struct {
	// Locks by name, such as "redis"; "etcd@3.5.15" for another version of the servers.
	Locks []string `yaml:"locks,flow"`
	// Faults are names of attacks or, for faults at random moments, requests as in --nemesis: "pause:holder".
	// "none" is a run without faults.
	Faults []string `yaml:"faults,flow"`
	Guards []string `yaml:"guards,flow"`
	// Seeds of the runs of each cell; nil for twenty trials of an attack and one run of a random fault.
	Seeds Seeds `yaml:"seeds,omitempty,flow"`
	// ClusterSeeds replace Seeds for locks with several servers, whose runs need more of a machine; nil for
	// the same seeds.
	ClusterSeeds Seeds `yaml:"cluster-seeds,omitempty,flow"`

	// An attack has its own values for the fields from here to MinOps.
	Workload         string          `yaml:"workload"`
	Concurrency      int             `yaml:"concurrency"`
	TTL              time.Duration   `yaml:"ttl,omitempty"`
	Section          workloads.Range `yaml:"section"`
	Renew            bool            `yaml:"renew,omitempty"`
	CheckBeforeWrite bool            `yaml:"check-before-write,omitempty"`
	Interval         time.Duration   `yaml:"nemesis-interval"`
	TimeLimit        time.Duration   `yaml:"time-limit,omitempty"` // 0 for as long as the lease requires
	MinOps           int64           `yaml:"min-ops"`
	Thresholds       Thresholds      `yaml:"thresholds,omitempty"`

	// Confirm is how often all runs of a cell that is not valid are repeated, with other seeds.
	Confirm int `yaml:"confirm,omitempty"`
	// Expected lists cells that are known not to be valid. With MustFail, it is a violation if such a cell is
	// valid.
	Expected []Expectation `yaml:"expected,omitempty"`
	MustFail bool          `yaml:"expected-must-fail,omitempty"`
}

// RandomFaults are the faults at random moments that every lock is compared under: first faults of workers,
// then faults of servers.
func RandomFaults() []string {
	return []string{
		"none", "pause:holder", "partition:holder", "kill:holder",
		"clock", "pause:one server", "pause:leader", "kill:one server",
	}
}

// defaultLocks are all locks except second versions of a library and semaphores, which need a workload of
// their own.
func defaultLocks() []string {
	var names []string
	for _, lock := range clients.Table() {
		if otherVersion := lock.Program != "" && lock.Naive != ""; !otherVersion && !lock.Permits {
			names = append(names, lock.Name)
		}
	}
	return names
}

// DefaultSuite compares all locks under all attacks, without a guard.
func DefaultSuite() Suite {
	return Suite{
		Locks: defaultLocks(), Faults: AttackNames(), Guards: []string{string(workloads.NoGuard)},
		Workload: "set", Concurrency: runs.DefaultConcurrency,
		Section: runs.DefaultSection(), Interval: runs.DefaultInterval, MinOps: runs.DefaultMinOps,
	}
}

// ReadSuite reads a suite as YAML. Omitted keys have the values of DefaultSuite. An unknown key is an error.
// Errors name the line.
func ReadSuite(r io.Reader) (Suite, error) {
	s := DefaultSuite()
	file, err := yamlfile.Parse(r, &s)
	if err != nil {
		return Suite{}, fmt.Errorf("suite: %w", err)
	}
	err = s.Check()
	var wrong *keyError
	if !errors.As(err, &wrong) {
		return s, err
	}
	return s, file.At(fmt.Errorf("suite: %w", err), wrong.path...)
}

// keyError says what is wrong with a key of a suite. It wraps an error of usage.
type keyError struct {
	path []any // path to the key, or to a value below it, in the file
	// named: the text of the error already names the key.
	named bool
	err   error
}

func (e *keyError) Error() string {
	if e.named {
		return e.err.Error()
	}
	return fmt.Sprintf("%s: %v", e.path[0], e.err)
}

func (e *keyError) Unwrap() error { return e.err }

// wrongKey is a keyError for the key or value that a path leads to.
func wrongKey(path []any, format string, args ...any) error {
	return &keyError{path: path, err: runs.Usagef(format, args...)}
}

// keyErrorOf says which key of a suite makes the options of a cell wrong.
func (c Place) keyErrorOf(err error) error {
	var usage *runs.UsageError
	if !errors.As(err, &usage) || usage.About == "" {
		return err
	}
	var request *nemesis.RequestError
	if errors.As(err, &request) {
		err = &runs.UsageError{Err: request, About: usage.About} // a suite has no flag of that name
	}
	path := []any{usage.About}
	switch usage.About {
	case "lock", "version", "nodes":
		path = []any{"locks", c.Lock}
	case "guard":
		path = []any{"guards", c.Guard}
	case "nemesis":
		path = []any{"faults", c.Fault}
		if refused, is := errors.AsType[*nemesis.RequestError](err); is {
			err = &runs.UsageError{Err: refused} // without the name of the flag, which a suite has not
		}
	}
	return &keyError{path, true, err}
}

// Write stores the suite as YAML, including default values.
func (s Suite) Write(w io.Writer) error { return yamlfile.Write(w, s) }

// Check returns what is wrong with the suite; nil if nothing is.
func (s Suite) Check() error {
	for _, list := range []struct {
		name   string
		values []string
	}{{"locks", s.Locks}, {"faults", s.Faults}, {"guards", s.Guards}, {"seeds", s.Seeds.texts()}, {clusterSeeds, s.ClusterSeeds.texts()}} {
		optional := list.name == clusterSeeds || list.name == "seeds" && s.Seeds == nil
		if len(list.values) == 0 && !optional {
			return wrongKey([]any{list.name}, "name at least one")
		}
		if twice := repeated(list.values); twice != "" {
			return wrongKey([]any{list.name, twice}, "%s is named twice", twice)
		}
	}
	if key := s.ineffective(); key != "" {
		return wrongKey([]any{key}, "only random faults take it, and the suite has attacks alone")
	}
	var supported []Place
	for _, p := range s.places() {
		switch _, err := p.outline(s); {
		case err == nil:
			supported = append(supported, p)
		case unsupported(err) == "":
			return p.keyErrorOf(err)
		}
	}
	if s.Confirm < 0 || s.Confirm > maxConfirm {
		return wrongKey([]any{"confirm"}, "from 0 to %d", maxConfirm)
	}
	if err := s.Thresholds.check(supported); err != nil {
		return err
	}
	return s.checkExpected(supported)
}

// ineffective names a key that is set but affects no fault of the suite, because an attack has its own value;
// "" if there is none.
func (s Suite) ineffective() string {
	if slices.ContainsFunc(s.Faults, func(fault string) bool { return !Place{Fault: fault}.isAttack() }) {
		return ""
	}
	usual := DefaultSuite()
	for _, key := range []struct {
		name string
		set  bool
	}{
		{"workload", s.Workload != usual.Workload}, {"concurrency", s.Concurrency != usual.Concurrency}, {"ttl", s.TTL != usual.TTL},
		{"section", s.Section != usual.Section}, {"renew", s.Renew}, {"check-before-write", s.CheckBeforeWrite},
		{"nemesis-interval", s.Interval != usual.Interval}, {"time-limit", s.TimeLimit != usual.TimeLimit},
	} {
		if key.set {
			return key.name
		}
	}
	return ""
}

// CheckFlags is Check for a suite given as flags. Its error names the flag.
func (s Suite) CheckFlags() error {
	err := s.Check()
	var wrong *keyError
	if !errors.As(err, &wrong) {
		return err
	}
	key := fmt.Sprint(wrong.path[0])
	var usage *runs.UsageError
	if wrong.named && errors.As(wrong.err, &usage) && usage.About == key {
		return wrong.err // the error names the flag already
	}
	return runs.BadFlag(key, nil, "%w", wrong.err)
}

// maxConfirm is an upper limit that catches typos.
const maxConfirm = 100

func repeated(values []string) string {
	for i, v := range values {
		if slices.Contains(values[:i], v) {
			return v
		}
	}
	return ""
}

// places lists all cells, by lock, then guard, then fault.
func (s Suite) places() []Place {
	var all []Place
	for _, lock := range s.Locks {
		for _, guard := range s.Guards {
			for _, fault := range s.Faults {
				all = append(all, Place{lock, fault, guard})
			}
		}
	}
	return all
}

// options are the options of a run of the cell. TTL and Renew are set only for a lock that supports them.
func (c Place) options(s Suite, info clients.Info) runs.Options {
	lock, version := lockfile.CutVersion(c.Lock)
	o := runs.Options{
		Lock: lock, ServerVersion: version, Workload: s.Workload, Guard: c.Guard, Nemesis: c.Fault,
		Interval: s.Interval, TimeLimit: s.TimeLimit, Concurrency: s.Concurrency,
		Use:    workloads.Use{TTL: s.TTL, Section: s.Section, Renew: s.Renew, CheckBeforeWrite: s.CheckBeforeWrite},
		MinOps: s.MinOps, Seed: s.seedsOf(c, 0)[0],
	}
	if info.TTL == 0 {
		o.TTL = 0
	}
	o.Renew = o.Renew && info.Renew
	return o
}

// command is a command line that repeats the run of the cell with a seed. For an attack it repeats the whole
// cell, because a single trial may miss.
func (c Place) command(s Suite, outline runs.Outline, seed uint64) []string {
	if c.isAttack() {
		line := []string{"lockcheck", "compare", "--locks", c.Lock, "--faults", c.Fault}
		if c.Guard != string(workloads.NoGuard) {
			line = append(line, "--guards", c.Guard)
		}
		if seed > trialsOfAttack {
			line = append(line, "--trials", strconv.FormatUint(seed, 10)) // so that the trial with this seed is included
		}
		return line
	}
	o, err := c.runOptions(s, outline, seed)
	if err != nil {
		return nil
	}
	return append([]string{"lockcheck"}, o.Arguments()...)
}

const (
	// minActive is the time for faults in a run whose length the suite does not set. A fault that outlasts a
	// long lease needs more: its own time plus around, because the first fault comes some time after the
	// beginning. The time until the lock is granted again is part of the recovery.
	minActive = 10 * time.Second
	around    = 4 * time.Second
)

// outline says what a run of the cell will be. If the cell must stay empty, the error is a *lackError, a
// cannotApply or a *nemesis.UnsupportedError.
func (c Place) outline(s Suite) (runs.Outline, error) {
	name, version := lockfile.CutVersion(c.Lock)
	lock, err := lockfile.Find(name)
	if err != nil {
		return runs.Outline{}, &runs.UsageError{Err: err, About: "lock"}
	}
	info := lock.Info
	if lacks := workloads.Guard(c.Guard).Lacks(info); lacks != "" {
		return runs.Outline{}, &lackError{Lock: name, What: lacks}
	}
	if attack, is := AttackByName(c.Fault); is {
		return attack.trialOutline(trials.Subject{Lock: lock, Name: name, Version: version}, c.Guard, s.seedsOf(c, 0)[0])
	}
	if s.Workload == history.WorkloadSemaphore && !info.Permits {
		return runs.Outline{}, &lackError{Lock: name, What: "has no permits"}
	}
	o := c.options(s, info)
	outline, err := runs.OutlineOf(o)
	var usage *runs.UsageError
	if errors.As(err, &usage) && o.TTL != 0 && (o.TTL < info.MinTTL || info.MaxTTL != 0 && o.TTL > info.MaxTTL) {
		return outline, &lackError{Lock: name, What: "cannot have a lease of " + o.TTL.String()}
	}
	if err != nil {
		return outline, err
	}
	least, err := s.leastTime(c, o)
	if err == nil && o.TimeLimit == 0 {
		outline.Options.TimeLimit = outline.Recovery + max(minActive, least+around)
	}
	return outline, err
}

// Trial says what a trial of the attack on the cell will be. Its error is like that of outline.
func (c Place) Trial() (runs.Outline, error) { return c.outline(DefaultSuite()) }

// withSeed is the outline with another seed. The seed may choose the fault of a trial.
func (c Place) withSeed(outline runs.Outline, seed uint64) (runs.Outline, error) {
	attack, is := AttackByName(c.Fault)
	if !is {
		outline.Options.Seed = seed
		return outline, nil
	}
	lock, err := lockfile.Find(outline.Options.Lock)
	if err != nil { // the lock file no longer exists
		return outline, err
	}
	return attack.trialOutline(trials.Subject{Lock: lock, Name: outline.Options.Lock, Version: outline.Options.ServerVersion}, c.Guard, seed)
}

// leastTime is how long the faults of the cell's runs need at least, over all its seeds.
func (s Suite) leastTime(p Place, o runs.Options) (least time.Duration, err error) {
	for round := range s.Confirm + 1 {
		for _, seed := range s.seedsOf(p, round) {
			o.Seed = seed
			outline, err := runs.OutlineOf(o)
			if err != nil {
				return 0, err
			}
			least = max(least, outline.Least)
		}
	}
	return least, nil
}

// lackError says what a lock lacks for a cell: a token for the guard, or a lease of that length.
type lackError struct{ Lock, What string }

func (e *lackError) Error() string { return "the lock " + e.What }

// unsupported returns why a cell must stay empty; "" for any other error.
func unsupported(err error) string {
	var lack *lackError
	var word cannotApply
	var fault *nemesis.UnsupportedError
	switch {
	case errors.As(err, &word):
		return word.Error()
	case errors.As(err, &lack):
		return lack.Error()
	case errors.As(err, &fault):
		return fault.Fault + ": " + fault.Err.Error()
	}
	return ""
}

// Seeds of the runs of a cell. A suite file has a list, or a number n for the seeds 1 to n.
type Seeds []uint64

// CountSeeds returns the seeds 1 to n.
func CountSeeds(n int) Seeds {
	var seeds Seeds
	for i := range max(n, 0) {
		seeds = append(seeds, uint64(i)+1)
	}
	return seeds
}

// maxSeeds is an upper limit that catches typos.
const maxSeeds = 10_000

// UnmarshalYAML reads a list or a count.
func (s *Seeds) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.SequenceNode {
		return node.Decode((*[]uint64)(s))
	}
	var n int
	if err := node.Decode(&n); err != nil {
		return err
	}
	if n < 1 || n > maxSeeds {
		return fmt.Errorf("line %d: seeds: from 1 to %d of them", node.Line, maxSeeds)
	}
	*s = CountSeeds(n)
	return nil
}

// trialsOfAttack is the default number of trials in a cell. If none of them breaks the lock, the true rate is
// at most 17 % (95 % interval).
const trialsOfAttack = 20

// clusterSeeds is the key of Suite.ClusterSeeds.
const clusterSeeds = "cluster-seeds"

// seedsOf are the seeds of a round of a cell's runs. Round 0 has the suite's own seeds. Each confirmation
// round has the seeds that follow.
func (s Suite) seedsOf(c Place, round int) Seeds {
	own := s.Seeds
	if s.ClusterSeeds != nil && about(c.Lock).Servers > 1 {
		own = s.ClusterSeeds
	}
	switch {
	case own != nil:
	case c.isAttack():
		own = CountSeeds(trialsOfAttack)
	default:
		own = CountSeeds(1)
	}
	if round == 0 {
		return own
	}
	last := slices.Max(own) + uint64((round-1)*len(own))
	var seeds Seeds
	for i := range own {
		seeds = append(seeds, last+uint64(i)+1)
	}
	return seeds
}

func (s Seeds) texts() []string {
	var texts []string
	for _, seed := range s {
		texts = append(texts, fmt.Sprint(seed))
	}
	return texts
}

// faultsOf parses the faults of a cell, which Check has validated.
func (c Place) faultsOf() []nemesis.Request {
	requests, err := nemesis.ParseRequests(Nemesis(c.Fault))
	if err != nil {
		return nil
	}
	for i := range requests {
		kind, _ := nemesis.KindByName(requests[i].Fault)
		requests[i].Target = cmp.Or(requests[i].Target, kind.Target)
	}
	return requests
}
