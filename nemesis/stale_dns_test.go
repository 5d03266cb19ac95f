package nemesis

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"lockcheck/clusters/agent"
	"lockcheck/history"
)

// namedWire is a wire with a name for each server, at its address or at the unused one.
type namedWire struct {
	*wire
	servers []string
	moved   []string
	stuck   bool // names stay as they are
	moves   int  // how many names move; 0 for all
	keeps   bool // the first name is not restored
}

func (w *namedWire) Cut(ctx context.Context, cut agent.Cut) (agent.Moment, error) {
	if !w.stuck {
		w.moved = cut.Moved[:cmp.Or(w.moves, len(cut.Moved))]
	}
	return w.wire.Cut(ctx, cut)
}

func (w *namedWire) Heal(ctx context.Context, id string) (agent.Moment, int64, error) {
	if w.moved = nil; w.keeps {
		w.moved = w.servers[:1]
	}
	return w.wire.Heal(ctx, id)
}

func (w *namedWire) Names(context.Context) ([]string, error) {
	lines := []string{"127.0.0.1 localhost"}
	for i, server := range w.servers {
		if i < len(w.moved) {
			server = agent.UnusedAddress
		}
		lines = append(lines, fmt.Sprintf("%s redis%d", server, i+1))
	}
	return lines, nil
}

func TestStaleDNS(t *testing.T) {
	for _, c := range []struct {
		name     string
		spoil    func(*namedWire)
		stage    history.Stage
		evidence string
	}{
		{"two names", func(*namedWire) {}, history.Proven, "w1 resolves redis1 to 192.0.2.1; w1 resolves redis2 to 192.0.2.1"},
		{"restored", func(*namedWire) {}, history.ProvenHealed, "rules gone; names resolve as before"},
		{"names that stay", func(w *namedWire) { w.stuck = true }, history.Unproven, "w1 does not resolve redis1 to 192.0.2.1"},
		{"one name that stays", func(w *namedWire) { w.moves = 1 }, history.Unproven, "w1 does not resolve redis2 to 192.0.2.1"},
		{"no names", func(w *namedWire) { w.servers = nil }, history.Unproven, "w1: it has no names of n1, n2"},
		{"a name that is not restored", func(w *namedWire) { w.keeps = true }, history.Unhealed, "w1 does not resolve the names of n1, n2 as before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env, wires := wired(2, 2)
				env.Names = true
				w := &namedWire{wire: wires["w1"], servers: []string{"n1", "n2"}}
				c.spoil(w)
				env.Workers[0].Host = w
				d := &diary{t: t}
				d.nemesis(env, Step{ID: "p", Fault: history.StaleDNS, Target: "w1", For: short}).Run(bounded(t), plenty)
				if f := d.stage("p", c.stage); f.Evidence != c.evidence {
					t.Errorf("%q, want %q; %s", f.Evidence, c.evidence, d.order())
				}
			})
		})
	}
	env, _ := wired(1, 1)
	if err := staleDNSKind().Can(env, env.Workers[0]); err == nil {
		t.Error("a worker that is given addresses can look up stale names")
	}
}
