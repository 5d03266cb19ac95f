package nemesis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lockcheck/clusters"
	"lockcheck/clusters/clustertest"
	"lockcheck/history"
)

// TestMomentsSeen: a wait for a moment of any worker returns the first such moment, and nothing else.
func TestMomentsSeen(t *testing.T) {
	event := func(worker string, kind history.Type, f history.Function) history.Event {
		return history.Event{Process: worker, Type: kind, F: f, Key: "k", Grant: worker + "-1", Time: 1}
	}
	read := event("w1", history.OK, history.Read)
	asks := event("w2", history.Invoke, history.Acquire)
	refused := event("w2", history.Fail, history.Acquire)
	elsewhere := asks
	elsewhere.Key = "another"
	for _, c := range []struct {
		name, moment string
		events       []history.Event
		want         string // "" for nothing
	}{
		{"read", WhenHolding, []history.Event{read}, "w1 had read"},
		{"asked while nobody is inside", WhenQueued, []history.Event{asks}, ""},
		{"asked while somebody is inside", WhenQueued, []history.Event{read, asks}, "w2 had to wait in the queue"},
		{"asked before somebody is inside", WhenQueued, []history.Event{asks, read}, "w2 had to wait in the queue"},
		{"answered before somebody is inside", WhenQueued, []history.Event{asks, refused, read}, ""},
		{"asked for another lock", WhenQueued, []history.Event{read, elsewhere}, ""},
		{"asked after it was given back", WhenQueued, []history.Event{read, event("w1", history.Invoke, history.Release), asks}, ""},
		{"told", WhenLost, []history.Event{read, event("w1", history.Info, history.Lost)}, "w1 was notified that its lock is lost"},
		{"release refused", WhenLost, []history.Event{read, event("w1", history.Fail, history.Release)}, "w1 was refused its release"},
		{"renewal refused", WhenLost, []history.Event{read, event("w1", history.Fail, history.Renew)}, "w1 was refused its renew"},
		{"release of unknown outcome", WhenLost, []history.Event{read, event("w1", history.Info, history.Release)}, ""},
		{"released", WhenLost, []history.Event{read, event("w1", history.OK, history.Release)}, ""},
		{"refused an attempt", WhenLost, []history.Event{refused}, ""},
		{"of the resource", WhenHolding, []history.Event{{Process: history.Resource, Type: history.OK, F: history.Read, Client: "w1"}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := NewWatch()
			came := make(chan entry, 1)
			w.waiting[&wait{moment: c.moment, came: came}] = true
			for _, e := range c.events {
				w.Observe(e)
			}
			if c.want == "" {
				if len(came) > 0 {
					t.Errorf("%+v", <-came)
				}
				return
			}
			if len(came) == 0 {
				t.Fatal("nothing was told")
			}
			if got := <-came; got.what != c.want {
				t.Errorf("%+v, want %q", got, c.want)
			}
		})
	}
}

// TestLeaseRunsOut: a validity that ends while its holder is inside is a loss, unless the lock was renewed or
// released.
func TestLeaseRunsOut(t *testing.T) {
	granted := history.Event{Process: "w1", Type: history.OK, F: history.Acquire, Key: "k", Grant: "a", Until: history.Now()}
	read := history.Event{Process: "w1", Type: history.OK, F: history.Read, Key: "k", Grant: "a"}
	renewed := granted
	renewed.F, renewed.Until = history.Renew, history.Now()+int64(time.Hour)
	released := history.Event{Process: "w1", Type: history.Invoke, F: history.Release, Key: "k", Grant: "a"}
	for _, c := range []struct {
		name   string
		events []history.Event
		lost   bool
	}{
		{"inside", []history.Event{read}, true},
		{"granted only", nil, false},
		{"renewed", []history.Event{read, renewed}, false},
		{"given back", []history.Event{read, released}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := NewWatch()
			came := make(chan entry, 1)
			w.waiting[&wait{moment: WhenLost, came: came}] = true
			later := granted
			later.Until = history.Now() + int64(time.Hour)
			w.Observe(later) // later's own timer must not fire first
			for _, e := range c.events {
				w.Observe(e)
			}
			w.runOut(later)
			if lost := len(came) > 0; lost != c.lost {
				t.Errorf("lost: %t, want %t", lost, c.lost)
			}
		})
	}
	w := NewWatch()
	came := make(chan entry, 1)
	w.waiting[&wait{moment: WhenLost, came: came}] = true
	w.Observe(read)
	w.Observe(granted)
	if e := <-came; e.what != "w1 was still inside when its lease ran out" {
		t.Errorf("%+v", e)
	}
}

// caller is a Catcher whose workers, except misses, make a call at once. In flight they stop their process as
// real workers do.
type caller struct {
	d      *diary
	watch  *Watch
	groups map[string]int
	misses string
	key    string // key of their calls
	mu     sync.Mutex
	caught map[string]bool
}

func (c *caller) Catch(worker, id string, call history.Function, inFlight bool) error {
	if worker == c.misses {
		return nil
	}
	c.mu.Lock()
	c.caught[worker] = true
	c.mu.Unlock()
	c.d.add("%s: in flight %t", call, inFlight)
	c.watch.Observe(history.Event{Process: worker, Type: history.Info, F: history.Caught, Op: 1, Key: c.key, Note: id, Time: history.Now()})
	if inFlight {
		return syscall.Kill(-c.groups[worker], syscall.SIGSTOP)
	}
	return nil
}

func (c *caller) LetGo(worker, _ string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.caught[worker] {
		c.d.add("let go of %s", worker)
		c.caught[worker] = false
	}
	return nil
}

// callers is an environment of sleeping workers and their calls.
func callers(t *testing.T, d *diary, workers int, steps ...Step) (*Nemesis, *caller) {
	c := &caller{d: d, groups: make(map[string]int), caught: make(map[string]bool)}
	var nodes []*clusters.Node
	for i := range workers {
		name := fmt.Sprintf("w%d", i+1)
		c.groups[name] = family(t, sleeper, 1)
		worker := node(name, c.groups[name])
		worker.Host = recordSignals(worker.Host, d)
		nodes = append(nodes, worker)
	}
	env := ofWorkers(nodes...)
	server := node("n1", family(t, sleeper, 1))
	server.Host = recordSignals(server.Host, d)
	env.Servers = []*clusters.Node{server}
	n := d.nemesis(env, steps...)
	n.Environment.Calls, c.watch = c, n.Environment.Watch
	return n, c
}

// TestCalls: a fault of the worker strikes after it has stopped with its call in flight, and a pause keeps it
// stopped. A fault of a server is applied before the call is sent. The worker is then released before the fault
// is healed.
func TestCalls(t *testing.T) {
	begin := []string{"requested p", "begin p", "stop", "applied p", "proven p", "continue", "healed p", "end p", "proven-healed p"}
	for _, c := range []struct {
		name string
		step Step
		want []string
	}{
		{"pause of the worker", Step{Target: "actor", When: WhenReleasing}, append([]string{"release"}, begin...)},
		{"pause of it by its name", Step{Target: "w1", When: WhenRenewing}, append([]string{"renew"}, begin...)},
		{"by default", Step{When: WhenAcquiring}, append([]string{"acquire"}, begin...)},
		{
			"pause of the server", Step{Target: "n1", When: WhenReleasing},
			[]string{"release", "requested p", "begin p", "stop", "let go of w1", "applied p", "proven p", "continue", "healed p", "end p", "proven-healed p"},
		},
		{
			"what cannot be done", Step{Target: "n1", From: "w1", When: WhenReleasing, Fault: "partition"},
			[]string{"release", "skipped p", "let go of w1"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &diary{t: t}
			c.step.ID, c.step.For = "p", short
			if c.step.Fault == "" {
				c.step.Fault = "pause"
			}
			n, calls := callers(t, d, 1, c.step)
			n.Run(bounded(t), plenty)
			d.expect(c.want...)
			if f := d.stage("p", history.Proven); f.ID != "" && (f.Moment != c.step.When || f.Actor != "w1") {
				t.Errorf("%+v", f)
			}
			if got, err := states(calls.groups["w1"]); err != nil || strings.Contains(got, "T") {
				t.Errorf("the worker is %s, %v", got, err)
			}
		})
	}
}

// TestUncontended: an acquire of a held lock continues, and the next acquire of a free lock is struck.
func TestUncontended(t *testing.T) {
	event := func(kind history.Type, f history.Function) history.Event {
		return history.Event{Process: "w2", Type: kind, F: f, Key: "k", Grant: "w2-1", Time: history.Now()}
	}
	for _, c := range []struct {
		target        string
		refused, then []string
	}{
		{"actor", []string{"acquire", "let go of w1", "continue"}, []string{"acquire", "requested p", "begin p", "stop", "applied p", "proven p", "continue", "healed p", "end p", "proven-healed p"}},
		{"n1", []string{"acquire", "let go of w1"}, []string{"acquire", "requested p", "begin p", "stop", "let go of w1", "applied p", "proven p", "continue", "healed p", "end p", "proven-healed p"}},
	} {
		t.Run(c.target, func(t *testing.T) {
			d := &diary{t: t}
			n, calls := callers(t, d, 1, Step{ID: "p", Fault: "pause", Target: c.target, When: WhenUncontended, For: short})
			calls.key = "k"
			n.Environment.Watch.Observe(event(history.OK, history.Acquire))
			done := make(chan struct{})
			go func() {
				defer close(done)
				n.Run(bounded(t), plenty)
			}()
			clustertest.Eventually(t, 10*time.Second, func() error {
				if got := d.order(); !slices.Equal(got, c.refused) {
					return fmt.Errorf("%q, want %q", got, c.refused)
				}
				return nil
			})
			n.Environment.Watch.Observe(event(history.Invoke, history.Release))
			n.Environment.Watch.Observe(event(history.OK, history.Release))
			<-done
			d.expect(append(c.refused, c.then...)...)
			if f := d.stage("p", history.Applied); !strings.HasSuffix(f.Evidence, ", while nobody had the lock") || f.Moment != WhenUncontended || f.Actor != "w1" {
				t.Errorf("%+v", f)
			}
		})
	}
}

// TestFree: whether a lock is free according to the record.
func TestFree(t *testing.T) {
	event := func(grant string, kind history.Type, f history.Function, until int64) history.Event {
		return history.Event{Process: grant[:2], Type: kind, F: f, Key: "k", Grant: grant, Until: until, Time: 1}
	}
	granted, other := event("w1-1", history.OK, history.Acquire, 0), event("w2-1", history.OK, history.Acquire, 0)
	const at = 100
	for _, c := range []struct {
		name   string
		events []history.Event
		free   bool
	}{
		{"nobody asked", nil, true},
		{"asked for", []history.Event{event("w1-1", history.Invoke, history.Acquire, 0)}, true},
		{"refused", []history.Event{event("w1-1", history.Fail, history.Acquire, 0)}, true},
		{"granted", []history.Event{granted}, false},
		{"being released", []history.Event{granted, event("w1-1", history.Invoke, history.Release, 0)}, false},
		{"released", []history.Event{granted, event("w1-1", history.OK, history.Release, 0)}, true},
		{"was not held any more", []history.Event{granted, event("w1-1", history.Fail, history.Release, 0)}, true},
		{"perhaps released", []history.Event{granted, event("w1-1", history.Info, history.Release, 0)}, false},
		{"lost", []history.Event{granted, event("w1-1", history.Info, history.Lost, 0)}, true},
		{"its validity is over", []history.Event{event("w1-1", history.OK, history.Acquire, at)}, true},
		{"its validity lasts", []history.Event{event("w1-1", history.OK, history.Acquire, at+1)}, false},
		{"renewed", []history.Event{event("w1-1", history.OK, history.Acquire, at), event("w1-1", history.OK, history.Renew, at+1)}, false},
		{"granted again, and released late by the first", []history.Event{granted, other, event("w1-1", history.OK, history.Release, 0)}, false},
		{"granted again, and renewed late by the first", []history.Event{granted, other, event("w1-1", history.OK, history.Renew, at), event("w2-1", history.OK, history.Release, 0)}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := NewWatch()
			for _, e := range c.events {
				w.Observe(e)
			}
			if got := w.free("k", at); got != c.free {
				t.Errorf("free: %t, want %t", got, c.free)
			}
		})
	}
}

// TestStray: of two workers that stop for one fault the second is released at once. So is a worker that stops
// after its step was given up.
func TestStray(t *testing.T) {
	d := &diary{t: t}
	n, calls := callers(t, d, 2, Step{ID: "p", Fault: "pause", Target: "actor", When: WhenReleasing, For: short})
	n.Run(bounded(t), plenty)
	awake := func(worker string) {
		t.Helper()
		clustertest.Eventually(t, 10*time.Second, func() error {
			if got, err := states(calls.groups[worker]); err != nil || strings.Contains(got, "T") {
				return fmt.Errorf("%s is %s, %v", worker, got, err)
			}
			return nil
		})
	}
	awake("w1")
	awake("w2")
	if f := d.stage("p", history.Proven); f.Actor != "w1" || len(f.Targets) != 1 || f.Targets[0] != "w1" {
		t.Errorf("%+v", f)
	}
	if err := calls.Catch("w2", "p", history.Release, true); err != nil {
		t.Fatal(err)
	}
	awake("w2")
}

// TestStopsDuringHealing: a worker stops at a call for a step that does not happen. Another pause in force
// keeps it stopped, and only that pause's healing continues it.
func TestStopsDuringHealing(t *testing.T) {
	for _, healing := range []bool{false, true} {
		d := &diary{t: t}
		n, calls := callers(t, d, 1)
		n.Run(bounded(t), 0) // without steps
		n.setInFlight("second", true)
		order := Order{Step: Step{Fault: history.Pause}, Targets: n.Environment.Workers}
		n.occupy(order, true)
		if healing {
			n.beginHealing(order)
		}
		if err := syscall.Kill(-calls.groups["w1"], syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		n.awaitStop(t.Context(), "w1")
		n.letGo(t.Context(), entry{worker: "w1", caught: true}, "second")
		want := []string{}
		if healing {
			want = append(want, "continue")
		}
		d.expect(want...)
		n.free(order)
		if n.letGo(t.Context(), entry{worker: "w1", caught: true}, "second"); len(n.healing) > 0 {
			t.Errorf("still being healed: %v", n.healing)
		}
	}
}

// TestNoCall: a step whose moment does not come says so, and no worker stops for it any more.
func TestNoCall(t *testing.T) {
	for _, c := range []struct {
		step Step
		why  string
	}{
		{Step{When: WhenReleasing}, "no release was caught in flight in time"},
		{Step{When: WhenReleasing, Target: "n1"}, "no release was caught in time"},
		{Step{When: WhenUncontended}, "no acquire of a free lock was caught in time"},
		{Step{When: WhenLost}, "nobody lost a lock in time"},
		{Step{When: WhenQueued}, "nobody had to wait in the queue in time"},
		{Step{When: WhenHolding}, "nobody entered the section in time"},
		{Step{When: WhenFailover, Target: "n1"}, "no failover was seen in time"},
	} {
		t.Run(c.step.When+" "+c.step.Target, func(t *testing.T) {
			c.step.ID, c.step.Fault, c.step.For = "p", "pause", short
			var d *diary
			var n *Nemesis
			// On a busy machine a run can end before its step began to wait: then it takes a longer one.
			for limit := 20 * time.Millisecond; limit < time.Minute; limit *= 4 {
				var calls *caller
				d = &diary{t: t}
				n, calls = callers(t, d, 1, c.step)
				calls.misses = "w1"
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				n.Run(ctx, plenty)
				cancel()
				if d.stage("p", history.Skipped).Evidence == c.why {
					break
				}
			}
			d.expect("skipped p")
			if f := d.stage("p", history.Skipped); f.Evidence != c.why || f.Moment != c.step.When {
				t.Errorf("%+v", f)
			}
			if got := len(n.Environment.Watch.waiters()); got != 0 {
				t.Errorf("%d still wait", got)
			}
		})
	}
}

// TestFailover: a failover begins when the leader stops leading, or another server leads. It ends some time
// after a new leader has begun.
func TestFailover(t *testing.T) {
	type answer struct {
		server string
		leads  bool
		err    error
	}
	yes := func(server string) answer { return answer{server: server, leads: true} }
	no := func(server string) answer { return answer{server: server} }
	none := func(server string) answer { return answer{server: server, err: context.DeadlineExceeded} }
	for _, c := range []struct {
		name    string
		answers []answer
		want    string
	}{
		{"nobody has led yet", []answer{no("n1")}, ""},
		{"a first leader", []answer{no("n1"), yes("n2")}, ""},
		{"it leads on", []answer{yes("n2"), yes("n2")}, ""},
		{"it leads no more", []answer{yes("n2"), no("n2")}, "n2 led no more"},
		{"another one does", []answer{yes("n2"), no("n2"), yes("n1")}, "n1 had begun to lead"},
		{"another one, too", []answer{yes("n2"), yes("n1")}, "n1 had begun to lead"},
		{"it leads again", []answer{yes("n2"), no("n2"), yes("n2")}, "n2 led no more"},
		{"it answers late once", []answer{yes("n2"), none("n2"), yes("n2"), none("n2")}, ""},
		{"it answers no more", []answer{yes("n2"), none("n2"), none("n2")}, "n2 had left 2 questions whether it leads without an answer"},
		{"another one does not answer", []answer{yes("n2"), none("n1"), none("n1")}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFailover()
			for _, a := range c.answers {
				f.answer(a.server, a.leads, a.err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			if c.want == "" {
				cancel()
			}
			defer cancel()
			e, err := f.await(ctx)
			if c.want == "" && !errors.Is(err, context.Canceled) || c.want != "" && err != nil || e.what != c.want {
				t.Errorf("%+v, %v; want %q", e, err, c.want)
			}
		})
	}
	f := newFailover()
	f.answer("n1", true, nil)
	came := make(chan entry)
	go func() {
		e, _ := f.await(t.Context())
		came <- e
	}()
	f.answer("n1", false, nil)
	if e := <-came; e.what != "n1 led no more" {
		t.Errorf("who waited for it got %+v", e)
	}
	f.answer("n1", true, nil)
	f.since -= 2 * justBegun.Nanoseconds()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if e, err := f.await(over); err == nil {
		t.Errorf("it is over: %+v", e)
	}
}

// TestMomentsSupported: a moment that can never come is known before a run.
func TestMomentsSupported(t *testing.T) {
	for _, c := range []struct {
		when string
		env  Environment
		want error
	}{
		{WhenQueued, Environment{}, errNoQueue},
		{WhenQueued, Environment{Queues: true}, nil},
		{WhenRenewing, Environment{}, ErrNoRenewals},
		{WhenRenewing, Environment{Renews: true}, nil},
		{WhenReleasing, Environment{}, nil},
		{WhenLost, Environment{}, nil},
	} {
		env := sleepers(t, 2)
		env.Queues, env.Renews = c.env.Queues, c.env.Renews
		d := &diary{t: t}
		if err := d.nemesis(env, Step{Fault: "pause", When: c.when, For: short}).Plan(); !errors.Is(err, c.want) {
			t.Errorf("%s, %+v: %v, want %v", c.when, c.env, err, c.want)
		}
	}
}
