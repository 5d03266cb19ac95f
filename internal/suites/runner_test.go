package suites

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lockcheck/internal/runs"
)

// recorded keeps the messages of a progress.
type recorded struct {
	mu    sync.Mutex
	lines []string
}

func (l *recorded) Step(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *recorded) Status(string, ...any) {}

// test is a runner whose runs take a moment each and do nothing. It counts how many were in progress at once
// at most.
type test struct {
	Runner
	mu       sync.Mutex
	now      int
	most     int
	finished []int
}

func newTest(slots int, change func(o runs.Options) (runs.Outcome, error)) *test {
	r := &test{Runner: Runner{Slots: slots, Progress: &recorded{}}}
	r.Done = func(i int, _ Made) error {
		r.finished = append(r.finished, i)
		return nil
	}
	r.Test = func(_ context.Context, o runs.Options, _ <-chan struct{}, _ runs.Progress) (runs.Outcome, error) {
		r.mu.Lock()
		r.now++
		r.most = max(r.most, r.now)
		r.mu.Unlock()
		time.Sleep(20 * time.Millisecond)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.now--
		return change(o)
	}
	return r
}

func nothing(runs.Options) (runs.Outcome, error) { return runs.Outcome{}, nil }

// jobs returns jobs with these numbers of slots, with seeds from 0.
func jobs(slots ...int) (all []Job) {
	for i, n := range slots {
		all = append(all, Job{Name: fmt.Sprint(i), Slots: n, Options: runs.Options{Seed: uint64(i)}})
	}
	return all
}

// TestRunnerSlots: as many jobs run at once as there are slots for. A job that must run alone, or that takes
// more slots than there are, runs alone.
func TestRunnerSlots(t *testing.T) {
	for _, c := range []struct {
		slots int
		jobs  []Job
		most  int
	}{
		{0, jobs(0, 0, 0), 1},
		{1, jobs(1, 1, 1), 1},
		{3, jobs(1, 1, 1, 1, 1, 1), 3},
		{4, jobs(2, 2, 2, 2), 2},
		{3, jobs(Alone, Alone), 1},
		{2, jobs(5, 5), 1},
	} {
		r := newTest(c.slots, nothing)
		interrupted, err := r.Run(t.Context(), c.jobs, nil)
		if interrupted || err != nil || r.most != c.most || len(r.finished) != len(c.jobs) {
			t.Errorf("%d slots, %d jobs: %d at once, want %d; done %v, %t, %v", c.slots, len(c.jobs), r.most, c.most, r.finished, interrupted, err)
		}
	}
}

// TestRunnerInterrupted: Done is not called for interrupted jobs, and no job begins after them. The error
// says what an interrupted run could not remove.
func TestRunnerInterrupted(t *testing.T) {
	stop, left := make(chan struct{}), errors.New("something is left")
	r := newTest(1, func(o runs.Options) (runs.Outcome, error) {
		if o.Seed == 1 {
			close(stop)
			return runs.Outcome{Interrupted: true}, left
		}
		return runs.Outcome{}, nil
	})
	interrupted, err := r.Run(t.Context(), jobs(1, 1, 1), stop)
	if !interrupted || !errors.Is(err, left) || !slices.Equal(r.finished, []int{0}) {
		t.Errorf("interrupted %t, %v, done %v: want the first alone", interrupted, err, r.finished)
	}
	r = newTest(1, nothing)
	if interrupted, err := r.Run(t.Context(), jobs(1), stop); !interrupted || err != nil || len(r.finished) != 0 {
		t.Errorf("interrupted before: %t, %v, done %v", interrupted, err, r.finished)
	}
	if interrupted, err := r.Run(t.Context(), nil, nil); interrupted || err != nil {
		t.Errorf("nothing to do: %t, %v", interrupted, err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if interrupted, err := r.Run(cancelled, jobs(1), nil); !interrupted || !errors.Is(err, context.Canceled) || len(r.finished) != 0 {
		t.Errorf("cancelled: %t, %v, done %v", interrupted, err, r.finished)
	}
}

// TestRunnerDeadline: a job that would end after the deadline does not begin, and is reported as skipped. A
// shorter job runs.
func TestRunnerDeadline(t *testing.T) {
	all := jobs(1, 1, 1)
	all[1].Outline.Options.TimeLimit = 100 * time.Hour
	for _, c := range []struct {
		name          string
		deadline      time.Time
		done, skipped []int
	}{
		{"none", time.Time{}, []int{0, 1, 2}, nil},
		{"far away", time.Now().Add(1000 * time.Hour), []int{0, 1, 2}, nil},
		{"too near for a long one", time.Now().Add(time.Hour), []int{0, 2}, []int{1}},
		{"over", time.Now().Add(-time.Hour), nil, []int{0, 1, 2}},
	} {
		r := newTest(1, nothing)
		var skipped []int
		r.Deadline, r.Skipped = c.deadline, func(i int) error { skipped = append(skipped, i); return nil }
		if interrupted, err := r.Run(t.Context(), all, nil); interrupted || err != nil || !slices.Equal(r.finished, c.done) || !slices.Equal(skipped, c.skipped) {
			t.Errorf("%s: done %v, skipped %v, %t, %v", c.name, r.finished, skipped, interrupted, err)
		}
	}
	for slots, want := range map[int]time.Duration{1: 100*time.Hour + 3*startAndEnd, 2: 100*time.Hour + startAndEnd, 4: 100*time.Hour + startAndEnd} {
		if got := (Runner{Slots: slots}).Length(all); got != want {
			t.Errorf("with %d slots they take %s, want %s", slots, got, want)
		}
	}
	onDocker := Job{Outline: runs.Outline{Recipe: "redis", Servers: 5, Options: runs.Options{Concurrency: 3}}}
	if got := (Runner{}).Length([]Job{onDocker}); got != startAndEnd+13*eachContainer {
		t.Errorf("with five servers and three workers it takes %s", got)
	}
	if got := (Runner{Slots: 2}).Length(all[:1]); got != startAndEnd {
		t.Errorf("one job takes %s", got)
	}
	if got := (Runner{Slots: 2}).Length(jobs(1, 1, 1)); got != 2*startAndEnd { // one of them runs alone at the end
		t.Errorf("three jobs, two at a time, take %s", got)
	}
	if got := (Runner{Slots: 2}).Length(jobs(1, 2, 1)); got != 3*startAndEnd { // the second waits for both slots
		t.Errorf("three jobs, of which one takes both slots, take %s", got)
	}
	long := jobs(1)
	long[0].Options.Section.Max, long[0].Outline.Options.Section.Max = time.Hour, time.Hour
	if got := long[0].Length(); got != time.Hour+startAndEnd {
		t.Errorf("a job with a section of an hour takes %s", got)
	}
}

// TestRunnerFails: a failed run is reported, and the other jobs run. After an error of Done no job begins.
func TestRunnerFails(t *testing.T) {
	failed := errors.New("failed")
	r := newTest(1, func(runs.Options) (runs.Outcome, error) { return runs.Outcome{}, failed })
	var errs []error
	r.Done = func(_ int, m Made) error { errs = append(errs, m.Err); return nil }
	if interrupted, err := r.Run(t.Context(), jobs(1, 1), nil); interrupted || err != nil || len(errs) != 2 || !errors.Is(errs[1], failed) {
		t.Errorf("%t, %v, told of %v", interrupted, err, errs)
	}
	errs = nil
	r.Done = func(_ int, m Made) error { errs = append(errs, m.Err); return failed }
	if interrupted, err := r.Run(t.Context(), jobs(1, 1), nil); interrupted || !errors.Is(err, failed) || len(errs) != 1 {
		t.Errorf("%t, %v, told of %v", interrupted, err, errs)
	}
}

// TestRunnerProgress: each job is announced with the time that is left, and the progress of single runs is
// passed on.
func TestRunnerProgress(t *testing.T) {
	r := newTest(1, nothing)
	each, stores := &recorded{}, []string{}
	r.Each, r.Machine.Store = each, "somewhere"
	run := r.Test
	r.Test = func(ctx context.Context, o runs.Options, stop <-chan struct{}, p runs.Progress) (runs.Outcome, error) {
		stores = append(stores, o.Store)
		p.Step("run %d", o.Seed)
		return run(ctx, o, stop, p)
	}
	var begun []string
	r.Begin = func(i int, left string) { begun = append(begun, fmt.Sprint(i, " ", left)) }
	if _, err := r.Run(t.Context(), jobs(1, 1), nil); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(each.lines, ", "); got != "run 0, run 1" || !slices.Equal(stores, []string{"somewhere", "somewhere"}) {
		t.Errorf("told %q, stored in %q", got, stores)
	}
	if len(begun) != 2 || !strings.HasPrefix(begun[0], "0 at most ") || strings.Contains(begun[1], "at most") {
		t.Errorf("announced %q", begun)
	}
}

// TestRemaining: until a job is finished, the estimate is an upper limit from the lengths. Then it follows
// the time that jobs took. Jobs in progress count as half done.
func TestRemaining(t *testing.T) {
	minute := Job{Outline: runs.Outline{Options: runs.Options{TimeLimit: time.Minute - startAndEnd}}}
	for _, c := range []struct {
		slots                int64
		spent, running, left time.Duration
		took                 time.Duration
		want                 string
	}{
		{1, 0, 0, 10 * time.Minute, 0, "at most about 10 min left"},
		{2, 0, 0, 10 * time.Minute, 0, "at most about 5 min left"},
		{2, 0, 4 * time.Minute, 10 * time.Minute, 0, "at most about 4 min left"},
		{1, time.Minute, 0, 10 * time.Minute, 30 * time.Second, "about 5 min left"},
		{1, time.Minute, 2 * time.Minute, 10 * time.Minute, 2 * time.Minute, "about 9 min left"},
	} {
		w := &work{slots: c.slots, spent: c.spent, running: c.running, left: c.left, began: time.Now().Add(-c.took)}
		if got := w.remaining(); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	w := &work{slots: 3}
	for slots, want := range map[int]time.Duration{0: time.Minute, 1: time.Minute, 2: 2 * time.Minute, Alone: 3 * time.Minute} {
		minute.Slots = slots
		if got := w.cost(minute); got != want {
			t.Errorf("%d slots: %s, want %s", slots, got, want)
		}
	}
}

// TestRunnerApplication: a job of an application is no test of a lock, and has the machine of the runner.
func TestRunnerApplication(t *testing.T) {
	var errs []error
	r := newTest(1, func(runs.Options) (runs.Outcome, error) { return runs.Outcome{}, errors.New("a lock") })
	r.Done = func(_ int, m Made) error {
		errs = append(errs, m.Err)
		return nil
	}
	unusable := &runs.ApplicationOptions{Interval: -time.Second} // so that nothing is started
	if _, err := r.Run(t.Context(), []Job{{Application: unusable}, {}}, nil); err != nil {
		t.Fatal(err)
	}
	var usage *runs.UsageError
	if len(errs) != 2 || !errors.As(errs[0], &usage) || usage.About != "nemesis-interval" || errs[1].Error() != "a lock" {
		t.Errorf("got %v", errs)
	}
}
