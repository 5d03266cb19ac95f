package nemesis

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
)

// slow is a node that takes time to report its processes.
type slow struct {
	agent.Host // nil: nothing else is called
	proof      time.Duration
	stopped    time.Time // zero while the processes run
	lasted     time.Duration
}

func (s *slow) Signal(_ context.Context, signal agent.Signal) (agent.Moment, error) {
	if signal == agent.Stop {
		s.stopped = time.Now()
	} else {
		s.lasted, s.stopped = time.Since(s.stopped), time.Time{}
	}
	return agent.Moment{}, nil
}

func (s *slow) Processes(context.Context) ([]agent.Process, error) {
	time.Sleep(s.proof)
	return []agent.Process{{PID: 1, Command: "sleep", Stopped: !s.stopped.IsZero()}}, nil
}

// TestLength: a fault lasts as long as asked for, counted from when it was applied. The proof runs meanwhile.
// Only a proof that takes longer makes the fault longer.
func TestLength(t *testing.T) {
	for _, c := range []struct{ asked, proof, want time.Duration }{
		{4 * time.Second, 0, 4 * time.Second},
		{4 * time.Second, time.Second, 4 * time.Second},
		{time.Second, 2 * time.Second, 2 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			host := &slow{proof: c.proof}
			w1 := &clusters.Node{Name: "w1", Host: host}
			d := &diary{t: t}
			n := d.nemesis(ofWorkers(w1), Step{Fault: "pause", Target: "w1", For: Span{Plus: c.asked}})
			n.Run(t.Context(), time.Minute)
			if host.lasted != c.want {
				t.Errorf("%s with a proof of %s lasted %s, want %s", c.asked, c.proof, host.lasted, c.want)
			}
		})
	}
}
