package nemesis

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"lockcheck/clusters/agent"
	"lockcheck/history"
)

// slowHost answers slowly.
type slowHost struct {
	agent.Host
	continues, offers time.Duration
}

func (h slowHost) Signal(context.Context, agent.Signal) (agent.Moment, error) {
	time.Sleep(h.continues)
	return agent.Moment{}, nil
}

func (h slowHost) Offers(context.Context, agent.Cut) error {
	time.Sleep(h.offers)
	return nil
}

// TestSlowOffer: while one node is slow to say what its kernel offers, faults of other nodes continue.
func TestSlowOffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env, wires := badlyWired(1, 2)
		env.Workers[0].Host = slowHost{Host: wires["w1"], offers: applyTimeout / 2}
		begun := time.Now()
		took := make(map[string]time.Duration)
		d := &diary{t: t, on: func(f history.Fault) {
			if f.Stage == history.Applied {
				took[f.ID] = time.Since(begun)
			}
		}}
		d.nemesis(env,
			Step{ID: "slow", Fault: "packet-loss", Loss: 0.3, Target: "w1", For: short},
			Step{ID: "quick", Fault: "partition", Target: "w2", For: short, After: Span{Plus: time.Second}},
		).Run(bounded(t), plenty)
		if took["quick"] != time.Second || took["slow"] != applyTimeout/2 {
			t.Errorf("applied after %v: %v", took, d.order())
		}
	})
}

// TestSlowContinue: while a worker is slow to continue, other workers are handled, and a new pause of this
// worker waits.
func TestSlowContinue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env, wires := wired(1, 2)
		env.Workers[0].Host = slowHost{Host: wires["w1"], continues: healTimeout / 2}
		n := (&diary{t: t}).nemesis(env)
		n.Environment.Calls = &caller{d: &diary{t: t}, caught: make(map[string]bool)}
		n.Run(bounded(t), 0)
		n.setInFlight("p", true)
		begun := time.Now()
		go n.letGo(t.Context(), entry{worker: "w1", caught: true}, "p")
		synctest.Wait()
		pause := func(worker int) time.Duration {
			order := Order{Step: Step{Fault: history.Pause}, Targets: env.Workers[worker : worker+1]}
			n.mu.Lock()
			n.occupy(order, true)
			n.mu.Unlock()
			n.awaitContinued(order)
			return time.Since(begun)
		}
		if took := pause(1); took != 0 {
			t.Errorf("w2 is stopped after %s", took)
		}
		if took := pause(0); took != healTimeout/2 {
			t.Errorf("w1 is stopped after %s, while it is being continued", took)
		}
		n.letGo(t.Context(), entry{worker: "w1", caught: true}, "p")
		if took := time.Since(begun); took != healTimeout/2 {
			t.Errorf("w1 was continued under a pause, after %s", took)
		}
	})
}

// TestWatchClose: Close waits until every caught worker has been handled, and nothing is handled afterwards.
func TestWatchClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dealt := NewWatch(), 0
		w.onStray(func(string, string) {
			time.Sleep(time.Second)
			dealt++
		})
		caught := history.Event{Process: "w1", F: history.Caught, Note: "p"}
		w.Observe(caught)
		w.Close()
		if dealt != 1 {
			t.Error("a worker that was caught has not been dealt with")
		}
		w.Observe(caught)
		synctest.Wait()
		w.Close()
		if dealt != 1 {
			t.Error("a worker was dealt with afterwards")
		}
	})
}
