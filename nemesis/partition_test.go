package nemesis

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/history"
)

// wire is a Host that only has a network, whose cuts are entries of a map. Real cuts are tested on Docker,
// because a test must not cut off its machine.
type wire struct {
	agent.Host
	name        string
	all         map[string]*wire    // by name, which is also the address
	cuts        map[string][]string // id to addresses
	dropped     int64               // reported for each cut
	ineffective bool                // records cuts, but drops nothing
	spares      []string            // addresses that its cuts do not affect
	deaf        []string            // addresses that never answer this node
	deafened    []string            // addresses that no longer answer this node after a cut
	fails       int                 // how many attempts to heal fail
	refuses     bool                // Cut fails
	mute        bool                // heals, but reports a failure
}

func (w *wire) Cut(_ context.Context, cut agent.Cut) (agent.Moment, error) {
	if w.refuses {
		return agent.Moment{}, errNotToday
	}
	w.cuts[cut.ID] = cut.Peers
	w.deaf = append(w.deaf, w.deafened...)
	return agent.Moment{From: history.Now(), To: history.Now()}, nil
}

func (w *wire) Heal(_ context.Context, id string) (agent.Moment, int64, error) {
	if _, there := w.cuts[id]; !there {
		return agent.Moment{}, 0, errors.New("no such cut")
	}
	if w.fails > 0 {
		w.fails--
		return agent.Moment{}, 0, errNotToday
	}
	delete(w.cuts, id)
	if w.mute {
		return agent.Moment{}, 0, errNotToday
	}
	return agent.Moment{From: history.Now(), To: history.Now()}, w.dropped, nil
}

// Dropped returns what our own probes lost: nothing, on this wire.
func (w *wire) Dropped(context.Context, string) (int64, error) { return 0, nil }

func (w *wire) Cuts(context.Context) ([]string, error) {
	return slices.Sorted(maps.Keys(w.cuts)), nil
}

// Answer loses the answer if either node is cut off from the other.
func (w *wire) Answer(_ context.Context, address string, _ time.Duration) (time.Duration, error) {
	host, _, _ := net.SplitHostPort(address)
	switch {
	case slices.Contains(w.deaf, host):
		return 0, agent.ErrNoAnswer
	case w.drops(host), w.all[host].drops(w.name):
		return 0, agent.ErrNoAnswer
	}
	return 0, nil
}

func (w *wire) drops(address string) bool {
	if w.ineffective || slices.Contains(w.spares, address) {
		return false
	}
	for _, peers := range w.cuts {
		if slices.Contains(peers, address) {
			return true
		}
	}
	return false
}

// wired makes servers n1… and workers w1… whose addresses are their names.
func wired(servers, workers int) (Environment, map[string]*wire) {
	env := fiveAndThree()
	env.Servers, env.Workers = env.Servers[:servers], env.Workers[:workers]
	wires := make(map[string]*wire)
	for _, n := range env.Nodes() {
		w := &wire{name: n.Name, all: wires, cuts: make(map[string][]string), dropped: 2}
		n.IP, n.Address, n.Host, wires[n.Name] = n.Name, n.Name, w, w
	}
	return env, wires
}

func TestPartition(t *testing.T) {
	healed := []string{"healed p", "end p", "proven-healed p"}
	for _, c := range []struct {
		name         string
		target, from string
		spoil        func(map[string]*wire)
		want         []string // after it was requested
		at           history.Stage
		evidence     string
		dropped      int64 // -1 for unknown
	}{
		{
			name: "a worker from two servers", target: "w1", from: "n1,n2",
			want: append([]string{"applied p", "proven p"}, healed...),
			at:   history.Proven, evidence: "w1 cannot reach n1, n2; n1, n2 cannot reach w1", dropped: 2,
		},
		{
			name: "servers from the workers", target: "n1,n2",
			want: append([]string{"applied p", "proven p"}, healed...),
			at:   history.ProvenHealed, evidence: "rules gone; n1, n2 can reach w1, w2; w1, w2 can reach n1, n2", dropped: 4,
		},
		{
			name: "workers from each other, where nobody serves a port", target: "w1", from: "w2",
			want: append([]string{"applied p", "proven p"}, healed...),
			at:   history.Proven, evidence: "w1 cannot reach w2; w2 cannot reach w1", dropped: 2,
		},
		{
			name: "rules that do not work", target: "w1", from: "n1",
			spoil: func(w map[string]*wire) { w["w1"].ineffective = true },
			want:  append([]string{"applied p", "unproven p"}, healed...),
			at:    history.Unproven, evidence: "w1 can still reach n1; n1 can still reach w1", dropped: 2,
		},
		{
			// One pair of four: a probe of any other pair would have proven the cut.
			name: "one pair is not cut", target: "w1,w2", from: "n1,n2",
			spoil: func(w map[string]*wire) { w["w2"].spares = []string{"n2"} },
			want:  append([]string{"applied p", "unproven p"}, healed...),
			at:    history.Unproven, evidence: "w2 can still reach n2; n2 can still reach w2", dropped: 4,
		},
		{
			name: "a pair that never answered is cut by the rules alone", target: "w1", from: "n1,n2",
			spoil: func(w map[string]*wire) { w["w1"].deaf = []string{"n2"} },
			want:  append([]string{"applied p", "proven p"}, healed...),
			at:    history.Proven, evidence: "w1 cannot reach n1; n1, n2 cannot reach w1; rules in place, although w1 could not reach n2 before", dropped: 2,
		},
		{
			name: "what never answered need not answer once it is healed", target: "w1", from: "n1,n2",
			spoil: func(w map[string]*wire) { w["w1"].deaf = []string{"n2"} },
			want:  append([]string{"applied p", "proven p"}, healed...),
			at:    history.ProvenHealed, evidence: "rules gone; w1 can reach n1; n1, n2 can reach w1", dropped: 2,
		},
		{
			name: "one pair does not answer once it is healed", target: "w1", from: "n1,n2",
			spoil: func(w map[string]*wire) { w["w1"].deafened = []string{"n2"} },
			want:  []string{"applied p", "proven p", "healed p", "unhealed p"},
			at:    history.Unhealed, evidence: "w1 cannot reach n2: no answer", dropped: 2,
		},
		{
			name: "another cut stays on one of two peers", target: "w1", from: "n1,n2",
			spoil: func(w map[string]*wire) { w["n1"].cuts["other"] = []string{"w1"} },
			want:  append([]string{"applied p", "proven p"}, healed...),
			at:    history.ProvenHealed, evidence: "rules gone; w1 can reach n2; n2 can reach w1", dropped: 2,
		},
		{
			// The count of w1 is kept although w2 had to be asked again.
			name: "healed at the second attempt", target: "w1,w2",
			spoil: func(w map[string]*wire) { w["w2"].fails = 1 },
			want:  append([]string{"applied p", "proven p"}, healed...),
			at:    history.ProvenHealed, evidence: "rules gone; w1, w2 can reach n1, n2; n1, n2 can reach w1, w2", dropped: 4,
		},
		{
			name: "healed without a word", target: "w1,w2",
			spoil: func(w map[string]*wire) { w["w2"].mute = true },
			want:  append([]string{"applied p", "proven p"}, healed...),
			at:    history.ProvenHealed, evidence: "rules gone; w1, w2 can reach n1, n2; n1, n2 can reach w1, w2", dropped: -1,
		},
		{
			name: "half of it fails", target: "w1,w2", from: "n1",
			spoil: func(w map[string]*wire) { w["w2"].refuses = true },
			want:  append([]string{"applied p", "unproven p"}, healed...),
			at:    history.Unproven, evidence: "not today", dropped: 2,
		},
		{
			name: "not healed", target: "w1",
			spoil: func(w map[string]*wire) { w["w1"].fails = healAttempts },
			want:  []string{"applied p", "proven p", "unhealed p"},
			at:    history.Unhealed, evidence: "w1: not today", dropped: -1,
		},
		{
			name: "another cut stays", target: "w1",
			spoil: func(w map[string]*wire) { w["w1"].cuts["other"] = []string{"n1"} },
			want:  append([]string{"applied p", "proven p"}, healed...),
			at:    history.ProvenHealed, evidence: "rules gone", dropped: 2,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env, wires := wired(2, 2)
				if c.spoil != nil {
					c.spoil(wires)
				}
				d := &diary{t: t}
				d.nemesis(env, Step{ID: "p", Fault: "partition", Target: c.target, From: c.from, For: short}).Run(bounded(t), plenty)
				d.expect(append([]string{"requested p", "begin p"}, c.want...)...)
				if f := d.stage("p", c.at); f.Evidence != c.evidence {
					t.Errorf("%s: %q, want %q", c.at, f.Evidence, c.evidence)
				}
				f := d.stage("p", history.Healed)
				if c.dropped >= 0 && (f.Dropped == nil || *f.Dropped != c.dropped) || c.dropped < 0 && f.Dropped != nil {
					t.Errorf("dropped %v, want %d", f.Dropped, c.dropped)
				}
				if c.dropped >= 0 && f.To < f.From {
					t.Errorf("healed in [%d, %d]", f.From, f.To)
				}
			})
		})
	}
}

// TestPartitionAddresses: a node among its own peers is not cut off from itself.
func TestPartitionAddresses(t *testing.T) {
	env, _ := wired(3, 1)
	cuts, err := resolver{env: env, rng: rand.New(rand.NewPCG(1, 1))}.cuts(Step{Fault: history.Partition, From: "servers"}, env.Servers[1:2])
	if err != nil {
		t.Fatal(err)
	}
	p := &partition{env: env, cuts: cuts}
	if got := p.addresses(env.Servers[1]); !slices.Equal(got, []string{"n1", "n3"}) {
		t.Errorf("n2 is cut off from %v", got)
	}
	if _, err := newPartition(env, Order{Targets: []*clusters.Node{env.Servers[0]}}); err == nil {
		t.Error("a cut from nobody is accepted")
	}
}

// TestOneWayMet: without other traffic a target has met no cut, however often the kernels repeat our own probe.
// With other traffic it has.
func TestOneWayMet(t *testing.T) {
	spec, _ := clusters.ByName("redis")
	m := newMatrix(t, clusters.Request{Spec: spec})
	for _, c := range []struct {
		name string
		busy bool
	}{{"idle", false}, {"busy", true}} {
		t.Run(c.name, func(t *testing.T) {
			d := &diary{t: t}
			d.on = func(f history.Fault) {
				if !c.busy || f.Stage != history.Proven {
					return
				}
				if err := m.env.Workers[0].Host.Dial(t.Context(), m.env.Servers[0].Address, probeTimeout); !errors.Is(err, agent.ErrNoAnswer) {
					t.Errorf("who is cut off gets %v", err)
				}
			}
			// Longer than until an answer is retransmitted.
			step := Step{ID: "p", Fault: history.OneWay, Target: "w1", For: Span{Plus: 2*retransmission + 500*time.Millisecond}}
			d.nemesis(m.env, step).Run(bounded(t), plenty)
			if f := d.stage("p", history.Proven); f.Evidence != "w1 cannot reach n1" {
				t.Errorf("proven by %q: %v", f.Evidence, d.order())
			}
			if f := d.stage("p", history.ProvenHealed); f.Evidence != "rules gone; w1 can reach n1" {
				t.Errorf("healed by %q", f.Evidence)
			}
			if f := d.stage("p", history.Healed); f.Dropped == nil || (*f.Dropped > 0) != c.busy {
				t.Errorf("%+v has met the cut", f)
			}
		})
	}
}
