package workloads

import (
	"io"
	"testing"
	"time"

	"lockcheck/history"
)

// TestCaughtUnsent: a caught call waits, after its invocation and before it is sent, until LetGo. The service
// sees it only then.
func TestCaughtUnsent(t *testing.T) {
	r := runResource(t, ResourceConfig{})
	for _, c := range []struct {
		call history.Function
		want string // the events up to the wait
	}{
		{history.Acquire, "acquire invoke, caught info"},
		{history.Release, "acquire invoke, acquire ok, read invoke, read ok, write invoke, write ok, release invoke, caught info"},
	} {
		t.Run(string(c.call), func(t *testing.T) {
			// One service for each case: a worker that ends during an acquire may leave its lock held.
			socket := memoryService(t)
			w := runWorker(t, WorkerConfig{Lock: "memory", Nodes: []string{socket}, Socket: r.socket, Use: Use{TTL: time.Minute}})
			catcher := Catcher{Workers: map[string]io.Writer{"w1": w.input}}
			w.begin().await(1, history.OK, history.Release)
			if err := catcher.Catch("w1", "f1", c.call, false); err != nil {
				t.Fatal(err)
			}
			caught := w.await(1, history.Info, history.Caught)[0]
			events := of(w.out.events(t), caught.Grant)
			if events != c.want || caught.Note != "f1" || caught.Op == 0 {
				t.Errorf("%s; %+v", events, caught)
			}
			if err := catcher.LetGo("w1", "f1"); err != nil {
				t.Fatal(err)
			}
			w.await(len(only(w.out.events(t), history.OK, history.Release))+2, history.OK, history.Release)
			if n := len(only(w.finish(), history.Info, history.Caught)); n != 1 {
				t.Errorf("caught %d times", n)
			}
		})
	}
}

// TestCatchWithdrawn: an order that was withdrawn, or that is for another kind of call, stops no call.
func TestCatchWithdrawn(t *testing.T) {
	for _, c := range []struct {
		name     string
		commands []string
		call     history.Function
		met      bool
	}{
		{"none", nil, history.Release, false},
		{"one", []string{"catch f1 release unsent"}, history.Release, true},
		{"in flight", []string{"catch f1 release in-flight"}, history.Release, true},
		{"of another call", []string{"catch f1 acquire unsent"}, history.Release, false},
		{"withdrawn", []string{"catch f1 release unsent", "let-go f1"}, history.Release, false},
		{"another withdrawn", []string{"catch f1 release unsent", "let-go f2"}, history.Release, true},
		{"too short", []string{"catch f1 release"}, history.Release, false},
		{"another command", []string{"go"}, history.Release, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			catches := newCatches(1)
			for _, command := range c.commands {
				catches.obey(command)
			}
			if order, _ := catches.match(c.call); (order != nil) != c.met || c.met && !catches.take(order) {
				t.Errorf("order %+v", order)
			}
		})
	}
}

// TestUsual: a call in flight is stopped after a fraction of the median of the last durations.
func TestUsual(t *testing.T) {
	catches := newCatches(1)
	if got := median(catches.took[history.Renew]); got != firstCall {
		t.Errorf("before the first call: %s", got)
	}
	for i := range 2 * lastCalls {
		catches.note(history.Renew, time.Duration(i))
	}
	if got, want := median(catches.took[history.Renew]), time.Duration(lastCalls+lastCalls/2); got != want {
		t.Errorf("usual is %d, want %d", got, want)
	}
	catches.obey("catch f1 renew in-flight")
	for range 100 {
		if _, after := catches.match(history.Renew); after < 0 || after >= lastCalls+lastCalls/2 {
			t.Fatalf("after %d", after)
		}
	}
}
