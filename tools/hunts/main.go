// Command hunts measures how long "lockcheck hunt" takes to find what locks are known to fail by,
// from the name of the lock alone. It runs what was made of each find, and its control, several
// times. Every hunt that ended is a line of a file, which stays there when another one is made with the same seed,
// such as by a later program; without -again none is.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites/hunt"
	"lockcheck/reports"
)

// known is a lock that fails, and what of its finds is what it is known for.
type known struct {
	lock, version string
	what          string
	is            func(reports.HuntFind) bool
	// again: it counts only if it was seen again, for time alone tells it.
	again bool
}

func track() []known {
	overlap := func(f reports.HuntFind) bool {
		return slices.Contains([]checker.Property{checker.MutualExclusion, checker.NoStaleWrite, checker.NoLostUpdate}, f.Property)
	}
	property := func(p checker.Property) func(reports.HuntFind) bool {
		return func(f reports.HuntFind) bool { return f.Property == p }
	}
	return []known{
		{lock: "redis-unsafe-release", what: "releases the lock of another one", is: property(checker.NoWrongRelease)},
		{lock: "postgres-pgbouncer", what: "the pool gives a session to another one", is: func(f reports.HuntFind) bool {
			return f.Property == checker.NoWrongRelease || overlap(f)
		}},
		{lock: "redlock", what: "a clock of the servers", is: func(f reports.HuntFind) bool {
			return overlap(f) && f.Cause == checker.CauseClock
		}},
		{lock: "redsync-4.12.0", what: "a renewal without one of the servers", is: func(f reports.HuntFind) bool {
			// Without persistence, which it has not, each lock is lost with a majority of its servers.
			lost := strings.Contains(f.Trial, "of majority") || strings.Contains(f.Trial, "of all")
			return overlap(f) && f.Cause != checker.CauseClock && !lost
		}},
		{lock: "redis-failover", what: "a failover loses the grant", is: func(f reports.HuntFind) bool {
			return overlap(f) && f.Cause != checker.CauseClock // a failover may come when the fault is over, which explains nothing then
		}},
		{lock: "examples/kazoo/lock.yaml", what: "an abandoned attempt keeps its place in the queue (#732)", is: func(f reports.HuntFind) bool {
			return f.Property == checker.Liveness && !f.DataLost // with which the queue is gone
		}, again: true},
		{lock: "consul", what: "a holder that was cut off is not notified", is: func(f reports.HuntFind) bool { return f.NotNotified }},
		{lock: "k8s-lease", what: "gives back the lease of its successor", is: property(checker.NoWrongRelease)},
		{lock: "etcd-v3lock", version: "3.4.3", what: "expired grants (#11456)", is: property(checker.NoExpiredGrant)},
	}
}

// ended is a hunt that is over.
type ended struct {
	Lock    string `json:"lock"`
	Version string `json:"version,omitempty"`
	Seed    uint64 `json:"seed"`
	Blind   bool   `json:"blind,omitempty"` // all trials, not a share
	// Found: it ended with the first trial that showed what the lock is known for.
	Found  bool          `json:"found,omitempty"`
	Began  time.Time     `json:"began"`
	Took   time.Duration `json:"took_ns"`
	Budget time.Duration `json:"budget_ns"`
	Trials int           `json:"trials"`
	// Find is what the lock is known for; nil if it was not found.
	Find *reports.HuntFind `json:"find,omitempty"`
	// Others are what else was found.
	Others []string `json:"others,omitempty"`
	// Again counts the runs of the reproduction and of its control that were as expected, of so
	// many each. Those of the control are 0 where there is none.
	Again, Controls, Made int
}

func (e ended) isOf(k known, seed uint64, blind bool) bool {
	return e.Lock == k.lock && e.Version == k.version && e.Seed == seed && e.Blind == blind
}

type tool struct {
	binary, results, store string
	budget                 time.Duration
	parallel, times, small int
	only                   string
	repeat                 bool
}

func main() {
	var t tool
	flag.StringVar(&t.binary, "lockcheck", "./lockcheck", "the binary whose processes do the work")
	flag.StringVar(&t.results, "results", "tools/hunts/results.jsonl", "file of the hunts that ended")
	flag.StringVar(&t.store, "store", "store/hunts", "folder for hunts")
	flag.DurationVar(&t.budget, "budget", time.Hour, "how long one hunt may take")
	flag.IntVar(&t.parallel, "parallel", 4, "how many trials to make at a time")
	flag.IntVar(&t.times, "times", 5, "how often to run a reproduction, and its control")
	flag.StringVar(&t.only, "only", "", "hunt for this lock alone")
	flag.BoolVar(&t.repeat, "again", false, "make also those hunts that were made before")
	seeds := flag.Int("seeds", 5, "how many hunts to make of each lock")
	flag.IntVar(&t.small, "small", 1, "how many of them make small what they find; the others end with the first trial that shows what the lock is known for")
	blind := flag.Bool("blind", false, "draw all trials blindly, and make nothing small")
	table := flag.Bool("table", false, "print the table of the hunts that ended, and make none")
	flag.Parse()
	err := error(nil)
	if !*table {
		err = t.run(context.Background(), *seeds, *blind)
	}
	if err = errors.Join(err, t.table(os.Stdout)); err != nil {
		fmt.Fprintln(os.Stderr, "hunts:", err)
		os.Exit(1)
	}
}

// run makes the hunts that are missing, seed by seed, those that take longest last.
func (t *tool) run(ctx context.Context, seeds int, blind bool) error {
	var err error
	if t.binary, err = filepath.Abs(t.binary); err != nil {
		return err
	}
	for seed := uint64(seeds); seed > 0; seed-- {
		for _, k := range track() {
			if t.only != "" && t.only != k.lock {
				continue
			}
			all, err := t.ended()
			if err != nil {
				return err
			}
			if !t.repeat && slices.ContainsFunc(all, func(e ended) bool { return e.isOf(k, seed, blind) }) {
				continue
			}
			e, err := t.hunt(ctx, k, seed, blind)
			if err != nil {
				return fmt.Errorf("%s, seed %d: %w", k.lock, seed, err)
			}
			if err := t.add(e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *tool) hunt(ctx context.Context, k known, seed uint64, blind bool) (ended, error) {
	p := hunt.Plan{Lock: k.lock, Version: k.version, Seed: seed, Blind: hunt.DefaultBlind}
	m := hunt.Machine{Machine: runs.Machine{Binary: t.binary}, Parallel: t.parallel, Budget: t.budget, Progress: lines{}, Enough: k.small}
	if blind {
		p.Blind = 1
	}
	first := blind || seed > uint64(t.small)
	if first {
		m.Enough, m.TrialsOnly = k.seen, !k.again
	}
	p, err := p.Ready()
	if err != nil {
		return ended{}, err
	}
	path, err := runs.NewFolder(t.store)
	if err != nil {
		return ended{}, err
	}
	folder, err := hunt.Create(path, p)
	if err != nil {
		return ended{}, err
	}
	fmt.Fprintf(os.Stderr, "\n%s %s, seed %d, blind %v: %s\n", k.lock, k.version, seed, blind, path)
	e := ended{Lock: k.lock, Version: k.version, Seed: seed, Blind: blind, Found: first, Began: time.Now().UTC(), Budget: t.budget}
	if _, err := folder.Run(ctx, m, nil); err != nil {
		return e, err
	}
	e.Took = time.Since(e.Began)
	h := folder.Hunt()
	k.tell(&e, h)
	if err := folder.WriteReports(h); err != nil || e.Find == nil || e.Find.File == "" {
		return e, err
	}
	return e, t.again(ctx, &e, filepath.Join(path, e.Find.File))
}

// seen says whether a hunt saw what the lock is known for.
func (k known) seen(h reports.Hunt) bool { return slices.ContainsFunc(h.Finds, k.counts) }

func (k known) counts(f reports.HuntFind) bool { return k.is(f) && f.Counts() }

// small says whether a hunt is done with it, or had no time to be.
func (k known) small(h reports.Hunt) bool {
	return slices.ContainsFunc(h.Finds, func(f reports.HuntFind) bool {
		return k.is(f) && f.Shown > 0 && (f.File != "" || f.Unfinished != "" && f.Unfinished != hunt.NotSmallerYet)
	})
}

// tell fills in what was found. One find that showed again counts for more than others of its kind.
func (k known) tell(e *ended, h reports.Hunt) {
	for _, arm := range h.Arms {
		e.Trials += arm.Trials
	}
	for _, f := range h.Finds {
		switch {
		case k.counts(f) && (e.Find == nil || e.Find.Shown == 0 && f.Shown > 0):
			if e.Find != nil {
				e.Others = append(e.Others, named(*e.Find))
			}
			e.Find = &f
		default:
			e.Others = append(e.Others, named(f))
		}
	}
}

func named(f reports.HuntFind) string { return string(f.Property) + ": " + f.Cause }

// again runs the reproduction and its control as a user would.
func (t *tool) again(ctx context.Context, e *ended, file string) error {
	e.Made = t.times
	for range t.times {
		for count, args := range map[*int][]string{&e.Again: nil, &e.Controls: {"--control"}} {
			if args != nil && e.Find.Control == "" {
				continue
			}
			err := exec.CommandContext(ctx, t.binary, append([]string{"repro", file, "--store", t.store}, args...)...).Run()
			var code *exec.ExitError
			switch {
			case err == nil:
				*count++
			case !errors.As(err, &code):
				return err
			}
		}
	}
	return nil
}

func (t *tool) ended() ([]ended, error) {
	data, err := os.ReadFile(t.results)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []ended
	for line := range bytes.Lines(data) {
		var e ended
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

func (t *tool) add(e ended) error {
	f, err := os.OpenFile(t.results, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	return errors.Join(json.NewEncoder(w).Encode(e), w.Flush(), f.Close())
}

// table compares what hunts found with all trials drawn blindly: the last hunt with each seed, and in how many of
// all. What was made small is told of each hunt that did, the first of them first.
func (t *tool) table(out io.Writer) error {
	all, err := t.ended()
	if err != nil {
		return err
	}
	fmt.Fprint(out, "| lock | known for | found | after | trials | small: steps, as expected, control | all trials by chance |\n", "| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, k := range track() {
		of := func(blind bool) []ended {
			return slices.DeleteFunc(slices.Clone(all), func(e ended) bool { return !e.isOf(k, e.Seed, blind) })
		}
		guided, blind := of(false), of(true)
		made, blind := last(guided), last(blind)
		small := slices.DeleteFunc(slices.Clone(guided), func(e ended) bool { return e.Find == nil || e.Find.File == "" })
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %s | %s |\n", strings.TrimSpace("`"+k.lock+"` "+k.version), k.what, k.shares(made, guided),
			k.each(made, func(e ended) string { return clock(e.Find.After) }), k.each(made, func(e ended) string { return fmt.Sprint(e.Find.First) }),
			k.each(small, ended.repeated),
			strings.TrimSpace(k.share(blind)+" "+k.each(blind, func(e ended) string { return fmt.Sprintf("%s (%d)", clock(e.Find.After), e.Find.First) })))
	}
	return nil
}

// last are the last hunts with each seed, in the order of seeds.
func last(all []ended) []ended {
	var made []ended
	for _, e := range all {
		made = append(slices.DeleteFunc(made, func(before ended) bool { return before.Seed == e.Seed }), e)
	}
	slices.SortFunc(made, func(a, b ended) int { return cmp.Compare(a.Seed, b.Seed) })
	return made
}

func (e ended) repeated() string {
	if e.Find.Control == "" {
		return fmt.Sprintf("%d, %d/%d, none", e.Find.Steps, e.Again, e.Made)
	}
	return fmt.Sprintf("%d, %d/%d, %d/%d (%s)", e.Find.Steps, e.Again, e.Made, e.Controls, e.Made, strings.TrimPrefix(e.Find.Control, "the same "))
}

func (k known) share(all []ended) string {
	if len(all) == 0 {
		return "not hunted for"
	}
	found := 0
	for _, e := range all {
		if k.found(e) {
			found++
		}
	}
	return fmt.Sprintf("%d of %d", found, len(all))
}

// shares are in how many of the last hunts it was found, and in how many of all if they are more.
func (k known) shares(last, all []ended) string {
	if len(all) == len(last) {
		return k.share(all)
	}
	return fmt.Sprintf("%s; of all %s", k.share(last), k.share(all))
}

// found says whether a hunt found it: seen once does not count where time alone tells it.
func (k known) found(e ended) bool { return e.Find != nil && (!k.again || e.Find.Shown > 0) }

// each tells something of each hunt.
func (k known) each(all []ended, tell func(ended) string) string {
	var texts []string
	for _, e := range all {
		switch {
		case e.Find == nil:
			texts = append(texts, fmt.Sprintf("none in %s (%d)", clock(e.Took), e.Trials))
		case !k.found(e):
			texts = append(texts, tell(e)+" once")
		default:
			texts = append(texts, tell(e))
		}
	}
	return strings.Join(texts, "; ")
}

func clock(d time.Duration) string {
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

// lines are the steps of a hunt, for a log.
type lines struct{}

// Step implements runs.Progress.
func (lines) Step(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// Status implements runs.Progress.
func (lines) Status(string, ...any) {}
