package nemesis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"lockcheck/clusters/agent"
	"lockcheck/history"
)

// namedWire is a wire with a name for each server, at its address or at the unused one.
type namedWire struct {
	*wire
	servers []string
	moved   []string
	removes bool // moved lists servers without names
	stuck   bool // names stay as they are
	moves   int  // how many names move or go; 0 for all
	answers bool // the name server answers
	keeps   bool // the first name is not restored
}

func (w *namedWire) Cut(ctx context.Context, cut agent.Cut) (agent.Moment, error) {
	if !w.stuck {
		w.removes = len(cut.Unnamed) > 0
		renamed := slices.Concat(cut.Moved, cut.Unnamed)
		w.moved = renamed[:cmp.Or(w.moves, len(renamed))]
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
		switch {
		case i < len(w.moved) && w.removes:
			continue
		case i < len(w.moved):
			server = agent.UnusedAddress
		}
		lines = append(lines, fmt.Sprintf("%s redis%d", server, i+1))
	}
	return lines, nil
}

func (w *namedWire) AskDNS(context.Context, string, time.Duration) error {
	if w.answers {
		return nil
	}
	return agent.ErrNoAnswer
}

func TestDNS(t *testing.T) {
	for _, c := range []struct {
		name     string
		fault    string
		spoil    func(*namedWire)
		stage    history.Stage
		evidence string
	}{
		{"two names", history.StaleDNS, func(*namedWire) {}, history.Proven, "w1 resolves redis1 to 192.0.2.1; w1 resolves redis2 to 192.0.2.1"},
		{"restored", history.StaleDNS, func(*namedWire) {}, history.ProvenHealed, "rules gone; names resolve as before"},
		{"names that stay", history.StaleDNS, func(w *namedWire) { w.stuck = true }, history.Unproven, "w1 does not resolve redis1 to 192.0.2.1"},
		{"one name that stays", history.StaleDNS, func(w *namedWire) { w.moves = 1 }, history.Unproven, "w1 does not resolve redis2 to 192.0.2.1"},
		{"no names", history.StaleDNS, func(w *namedWire) { w.servers = nil }, history.Unproven, "w1: it has no names of n1, n2"},
		{"a name that is not restored", history.StaleDNS, func(w *namedWire) { w.keeps = true }, history.Unhealed, "w1 does not resolve the names of n1, n2 as before"},
		{"two names gone", history.DNSFailure, func(*namedWire) {}, history.Proven, "w1 gets no answer to a lookup of redis1"},
		{"gone and restored", history.DNSFailure, func(*namedWire) {}, history.ProvenHealed, "rules gone; names resolve as before"},
		{"a lookup", history.DNSFailure, func(w *namedWire) { w.dropped = 3 }, history.Healed, "2 packets to name servers"},
		{"a question that only we asked", history.DNSFailure, func(w *namedWire) { w.dropped = 1 }, history.Healed, "0 packets to name servers"},
		{"a name that is not gone", history.DNSFailure, func(w *namedWire) { w.moves = 1 }, history.Unproven, "w1: it still resolves n2 redis2"},
		{"a name server that answers", history.DNSFailure, func(w *namedWire) { w.answers = true }, history.Unproven, "the name server of w1 still answers"},
		{"a name that stays gone", history.DNSFailure, func(w *namedWire) { w.keeps = true }, history.Unhealed, "w1 does not resolve the names of n1, n2 as before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env, wires := wired(2, 2)
				env.Names = true
				w := &namedWire{wire: wires["w1"], servers: []string{"n1", "n2"}}
				c.spoil(w)
				env.Workers[0].Host = w
				d := &diary{t: t}
				d.nemesis(env, Step{ID: "p", Fault: c.fault, Target: "w1", For: short}).Run(bounded(t), plenty)
				if f := d.stage("p", c.stage); f.Evidence != c.evidence {
					t.Errorf("%q, want %q; %s", f.Evidence, c.evidence, d.order())
				}
			})
		})
	}
	env, _ := wired(1, 1)
	for _, kind := range []Kind{staleDNSKind(), dnsFailureKind()} {
		if err := kind.Can(env, env.Workers[0]); err == nil {
			t.Errorf("%s: a worker that is given addresses looks up names", kind.Name)
		}
	}
}
