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

// TestAdviceHolds: with the advised lease nothing is lost in 20 runs whose holders are paused
// for as long as was said; with half of it updates are lost.
func TestAdviceHolds(t *testing.T) {
	clustertest.Engine(t, clustertest.Rest)
	const lock = "memory"
	n := Needs{SectionP99: 150 * time.Millisecond, LongestPause: 4 * time.Second, Locks: []string{lock}}
	info, _ := clients.ByName(lock)
	var told, lost, made int64
	var half checker.Pool
	// Others are made in place of runs that tell nothing: longer ones, fewer at a time, as workers
	// may have needed the time of a run to start.
	for _, longer := range []int{1, 2, 4} {
		whole := jobs(t, n, info, false, longer, made, tests-told)
		made += int64(len(whole))
		for _, r := range results(t, slots/longer, whole) {
			if !n.tells(r) {
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
	if told < tests {
		t.Errorf("only %d of %d runs tell anything", told, made)
	}
	t.Logf("%d runs with the advised lease lost %d updates; with half of it %d of %d in %d runs", told, lost, half.Lost, half.Acknowledged, half.Runs)
	if half.Lost == 0 {
		t.Error("half of the advised lease loses nothing")
	}
}

// tells is false of a run that says nothing of the advice. A busy machine ends some pauses later
// than the margin allows: a loss then is none of the advice, and no loss is more than was asked for.
func (n Needs) tells(r checker.Results) bool {
	beyond := longest(r) > withMargin(n.LongestPause) && r.Verdict != checker.Valid
	return !beyond && r.Verdict != checker.Undecided
}

// longest is that of the pauses of a run.
func longest(r checker.Results) (most time.Duration) {
	for _, f := range r.Faults {
		most = max(most, time.Duration(f.End-f.Begin))
	}
	return most
}

// jobs are runs with the advised lease, or with half of it, from a seed on, whose faults may
// take so many times longer.
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

// slots is how many runs are made at a time: all of them wait most of theirs.
const slots = 8

// results makes runs, so many at a time, and returns the results of those that have a history.
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
