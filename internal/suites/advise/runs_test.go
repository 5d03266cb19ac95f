package advise

import (
	"os"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clients"
	"lockcheck/clusters/clustertest"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
)

func TestMain(m *testing.M) { os.Exit(clustertest.Main(m)) }

// TestAdviceHolds: with the advised lease, 20 runs whose holders pause for the stated time lose nothing. With
// half of the lease, updates are lost.
func TestAdviceHolds(t *testing.T) {
	clustertest.Engine(t, clustertest.Rest)
	const lock = "memory"
	n := Needs{SectionP99: 150 * time.Millisecond, LongestPause: 4 * time.Second, Locks: []string{lock}}
	info, _ := clients.ByName(lock)
	var told, lost, made int64
	var half checker.Pool
	// Inconclusive runs are replaced by longer runs, fewer at a time, because workers may have needed the
	// time of a run to start.
	for _, longer := range []int{1, 2, 4} {
		whole := jobs(t, n, info, false, longer, made, testRuns-told)
		made += int64(len(whole))
		for _, r := range results(t, slots/longer, whole) {
			if !n.isConclusive(r) {
				t.Logf("left out: a pause of %s; %s", longest(r), r.Sentence)
				continue
			}
			told++
			lost += r.Updates.Lost
			if r.Verdict != checker.Valid {
				t.Errorf("with the advised lease: %s", r.Sentence)
			}
		}
		if half.Lost == 0 {
			half = checker.PoolOf(results(t, slots/longer, jobs(t, n, info, true, longer, 0, 6)))
		}
	}
	if told < testRuns {
		t.Errorf("only %d of %d runs tell anything", told, made)
	}
	t.Logf("%d runs with the advised lease lost %d updates; with half of it %d of %d in %d runs", told, lost, half.Lost, half.Acknowledged, half.Runs)
	if half.Lost == 0 {
		t.Error("half of the advised lease loses nothing")
	}
}

// isConclusive says whether a run is conclusive. A busy machine ends some pauses later than the margin allows. A
// loss then does not contradict the advice, and no loss is more than the advice promised.
func (n Needs) isConclusive(r checker.Results) bool {
	beyond := longest(r) > withMargin(n.LongestPause) && r.Verdict != checker.Valid
	return !beyond && r.Verdict != checker.Undecided
}

// longest is the longest pause of a run.
func longest(r checker.Results) (most time.Duration) {
	for _, f := range r.Faults {
		most = max(most, time.Duration(f.End-f.Begin))
	}
	return most
}

// jobs are runs with the advised lease, or with half of it, beginning with a seed. Their time for faults is
// multiplied by longer.
func jobs(t *testing.T, n Needs, info clients.Info, half bool, longer int, first, count int64) (all []suites.Job) {
	t.Helper()
	o, tells := n.Options(info.Name, info, half)
	if !tells {
		t.Fatal("half of the lease need not lose anything")
	}
	o.Interval, o.Concurrency = 100*time.Millisecond, 3
	outline, err := runs.OutlineOf(o)
	if err != nil {
		t.Fatal(err)
	}
	o.TimeLimit = outline.Recovery + time.Duration(longer)*3*n.LongestPause/2
	if outline, err = runs.OutlineOf(o); err != nil {
		t.Fatal(err)
	}
	for i := range count {
		o.Seed = uint64(first + i + 1)
		all = append(all, suites.Job{Name: info.Name, Options: o, Outline: outline})
	}
	return all
}

// slots is how many runs are made in parallel. Runs wait most of the time.
const slots = 8

// results makes runs, a few in parallel, and returns the results of those that have a history.
func results(t *testing.T, slots int, jobs []suites.Job) (all []checker.Results) {
	t.Helper()
	runner := suites.Runner{
		Machine: runs.Machine{Binary: clustertest.Binary(t), Store: t.TempDir()}, Slots: slots, Progress: runs.Silent{},
		Done: func(_ int, m suites.Made) error {
			if m.Outcome.History != nil {
				all = append(all, m.Outcome.Results)
			}
			return m.Err
		},
	}
	if _, err := runner.Run(t.Context(), jobs, nil); err != nil {
		t.Fatal(err)
	}
	return all
}
