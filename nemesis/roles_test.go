package nemesis

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/clusters"
)

// fiveAndThree has five servers and three workers, each with a network and a movable clock.
func fiveAndThree() Environment {
	env := Environment{Lease: time.Second}
	for i := range 5 {
		env.Servers = append(env.Servers, &clusters.Node{Name: fmt.Sprintf("n%d", i+1), IP: fmt.Sprintf("10.0.0.%d", i+1)})
	}
	for i := range 3 {
		env.Workers = append(env.Workers, &clusters.Node{Name: fmt.Sprintf("w%d", i+1), IP: fmt.Sprintf("10.0.1.%d", i+1)})
	}
	return env
}

// TestRoles resolves each role with many seeds. A role always resolves to the right number of permitted nodes,
// and over many seeds to each of them.
func TestRoles(t *testing.T) {
	const servers, workers = "n1 n2 n3 n4 n5", "w1 w2 w3"
	for _, c := range []struct {
		role, holder string
		size         int
		from         string
	}{
		{"holder", "w2", 1, "w2"},
		{"waiter", "w2", 1, "w1 w3"},
		{"waiter", "", 1, workers},
		{"one", "", 1, servers},
		{"one server", "", 1, servers},
		{"one worker", "", 1, workers},
		{"minority", "", 2, servers},
		{"minority workers", "", 1, workers},
		{"majority", "", 3, servers},
		{"majority servers", "", 3, servers},
		{"majority workers", "", 2, workers},
		{"all", "", 5, servers},
		{"all workers", "", 3, workers},
		{"servers", "", 5, servers},
		{"workers", "", 3, workers},
		{"halves", "", 4, servers + " " + workers},
		{"n3", "", 1, "n3"},
		{"w1", "w2", 1, "w1"},
		{"n4,n5", "", 2, "n4 n5"},
		{"n4, w1", "", 2, "n4 w1"},
	} {
		t.Run(c.role, func(t *testing.T) {
			met := make(map[string]bool)
			for seed := range uint64(300) {
				r := resolver{env: fiveAndThree(), rng: rand.New(rand.NewPCG(seed, 1)), actor: c.holder, entered: c.holder != ""}
				nodes, err := r.targets(c.role)
				if err != nil {
					t.Fatal(err)
				}
				chosen := names(nodes)
				if len(chosen) != c.size || len(slices.Compact(slices.Sorted(slices.Values(chosen)))) != c.size {
					t.Fatalf("seed %d: %v, want %d different nodes", seed, chosen, c.size)
				}
				for _, name := range chosen {
					met[name] = true
				}
			}
			var all []string
			for name := range met {
				all = append(all, name)
			}
			slices.Sort(all)
			if got := strings.Join(all, " "); got != c.from {
				t.Errorf("over many seeds it meant %s, want %s", got, c.from)
			}
		})
	}
}

func TestRolesOfNobody(t *testing.T) {
	single := fiveAndThree()
	single.Servers, single.Workers = single.Servers[:1], single.Workers[:1]
	none := Environment{}
	for _, c := range []struct {
		role, holder string
		env          Environment
		nobody       bool // as opposed to an unknown name
	}{
		{"holder", "", fiveAndThree(), true},
		{"waiter", "w1", single, true},
		{"minority", "", single, true},
		{"one", "", none, true},
		{"all workers", "", none, true},
		{"halves", "", none, true},
		{"workers", "", none, true},
		{"n6", "", fiveAndThree(), false},
		{"n1,,n2", "", fiveAndThree(), false},
		{"", "", fiveAndThree(), false},
		{"leader", "", fiveAndThree(), true},
		{"two servers", "", fiveAndThree(), false},
		{"one duck", "", fiveAndThree(), false},
		{"holder", "w9", fiveAndThree(), false},
	} {
		r := resolver{env: c.env, rng: rand.New(rand.NewPCG(1, 1)), actor: c.holder, entered: c.holder != ""}
		if nodes, err := r.targets(c.role); err == nil || errors.Is(err, errNobody) != c.nobody {
			t.Errorf("%q of %d servers with holder %q is %v, %v", c.role, len(c.env.Servers), c.holder, names(nodes), err)
		}
	}
}

// TestSeveralInside: of several workers inside, the holder is the one that entered last, whatever the seed, and
// none of them is a waiter. A worker that has just entered may have left. Of the other workers those that ask
// are waiters, or all if none asks.
func TestSeveralInside(t *testing.T) {
	for _, c := range []struct {
		entered, inside, asking string
		holder, waiter          string // "" for nobody
	}{
		{"", "", "", "", "w1 w2 w3"},
		{"", "w1", "", "w1", "w2 w3"},
		{"", "w2 w1", "", "w1", "w3"},
		{"", "w1 w2", "", "w2", "w3"},
		{"w1", "w1 w2", "", "w1", "w3"},
		{"w1", "w2", "", "w1", "w3"},
		{"", "w1 w2 w3", "", "w3", ""},
		{"", "", "w2 w3", "", "w2 w3"},
		{"", "w1", "w3", "w1", "w3"},
		{"w1", "w1", "w1", "w1", "w2 w3"}, // w1 asks for another lock
	} {
		for role, want := range map[string]string{roleHolder: c.holder, roleWaiter: c.waiter} {
			met := make(map[string]bool)
			for seed := range uint64(100) {
				r := resolver{env: fiveAndThree(), rng: rand.New(rand.NewPCG(seed, 1)), actor: c.entered, entered: c.entered != "", inside: strings.Fields(c.inside)}
				r.asks = func(worker string) bool { return slices.Contains(strings.Fields(c.asking), worker) }
				nodes, err := r.targets(role)
				if (want == "") != errors.Is(err, errNobody) {
					t.Fatalf("%s of %+v: %v", role, c, err)
				}
				for _, name := range names(nodes) {
					met[name] = true
				}
			}
			if got := strings.Join(slices.Sorted(maps.Keys(met)), " "); got != want {
				t.Errorf("%s of %+v is %s", role, c, got)
			}
		}
	}
}

// peersOf lists the nodes that any of the targets is separated from.
func peersOf(r resolver, step Step, targets []*clusters.Node) ([]*clusters.Node, error) {
	cuts, err := r.cuts(step, targets)
	return peersIn(cuts, targets), err
}

func TestPeers(t *testing.T) {
	for _, c := range []struct{ target, from, want string }{
		{"n1", "", "w1 w2 w3"}, // servers are separated from all workers
		{"n1,n2", "", "w1 w2 w3"},
		{"w1", "", "n1 n2 n3 n4 n5"}, // workers are separated from all servers
		{"w1,w2", "", "n1 n2 n3 n4 n5"},
		{"w1", "n4,n5", "n4 n5"},
		{"n1", "n2", "n2"},
		{"n1", "servers", "n2 n3 n4 n5"}, // no node is cut off from itself
	} {
		r := resolver{env: fiveAndThree(), rng: rand.New(rand.NewPCG(1, 1))}
		targets, err := r.targets(c.target)
		if err != nil {
			t.Fatal(err)
		}
		peers, err := peersOf(r, Step{Fault: "partition", Target: c.target, From: c.from}, targets)
		if got := strings.Join(names(peers), " "); err != nil || got != c.want {
			t.Errorf("%s from %q is cut off from %s, %v, want %s", c.target, c.from, got, err, c.want)
		}
		if peers, err := peersOf(r, Step{Fault: "pause", Target: c.target}, targets); err != nil || len(peers) != 0 {
			t.Errorf("a pause of %s has the peers %v, %v", c.target, names(peers), err)
		}
	}
}

// TestPeersOfEach: of a server and a worker in one step, the server is separated from workers and the worker
// from servers.
func TestPeersOfEach(t *testing.T) {
	for _, target := range []string{"n1,w1", "w1,n1"} {
		r := resolver{env: fiveAndThree(), rng: rand.New(rand.NewPCG(1, 1))}
		targets, err := r.targets(target)
		if err != nil {
			t.Fatal(err)
		}
		cuts, err := r.cuts(Step{Fault: "partition", Target: target}, targets)
		if err != nil {
			t.Fatal(err)
		}
		for _, node := range targets {
			want := map[string]string{"n1": "w2 w3", "w1": "n2 n3 n4 n5"}[node.Name]
			if got := strings.Join(names(cuts[node]), " "); got != want {
				t.Errorf("%s: %s is cut off from %s, want %s", target, node.Name, got, want)
			}
		}
	}
}

// TestHalves: the two sides together are all nodes, and no node is on both.
func TestHalves(t *testing.T) {
	env := fiveAndThree()
	everything := slices.Sorted(slices.Values(names(env.Nodes())))
	mixed := false
	for seed := range uint64(300) {
		r := resolver{env: env, rng: rand.New(rand.NewPCG(seed, 1))}
		targets, err := r.targets(roleHalves)
		if err != nil {
			t.Fatal(err)
		}
		peers, err := peersOf(r, Step{Fault: "partition", Target: roleHalves}, targets)
		if err != nil {
			t.Fatal(err)
		}
		both := slices.Sorted(slices.Values(append(names(targets), names(peers)...)))
		if !slices.Equal(both, everything) {
			t.Fatalf("seed %d: %v from %v", seed, names(targets), names(peers))
		}
		mixed = mixed || env.server(targets[0]) && !env.server(targets[len(targets)-1])
	}
	if !mixed {
		t.Error("no half had servers and workers")
	}
}

// TestPlan refuses before a run what cannot be done, and nothing else.
func TestPlan(t *testing.T) {
	cut, clock, pause := Step{Fault: "partition"}, Step{Fault: "clock", Step: Span{Plus: time.Minute}}, Step{Fault: "pause"}
	on := func(s Step, target, from string) Step {
		s.Target, s.From = target, from
		return s
	}
	for _, c := range []struct {
		name  string
		step  Step
		spoil func(*Environment)
		// node that does not support the fault; "" if all do, or if another error is expected
		node string
		want string // part of the error; "" for none
	}{
		{name: "pause of a holder", step: on(pause, "holder", "")},
		{name: "pause of a server", step: on(pause, "n1", "")},
		{name: "clock of a server", step: on(clock, "n3", "")},
		{name: "clock of a worker", step: on(clock, "w2", ""), node: "w2"},
		{name: "clock of the holder", step: on(clock, "holder", ""), node: "w1"},
		{
			name: "clock that cannot be moved", step: on(clock, "n3", ""), node: "n3", want: "no libfaketime",
			spoil: func(e *Environment) { e.Servers[2].Clock = errors.New("no libfaketime") },
		},
		{name: "partition", step: on(cut, "one", "")},
		{name: "partition of the holder", step: on(cut, "holder", "")},
		{name: "partition from the holder", step: on(cut, "n1", "holder")},
		{name: "partition from a waiter", step: on(cut, "one", "waiter")},
		{
			name: "partition of a node without network", step: on(cut, "n3", ""), node: "n3",
			spoil: func(e *Environment) { e.Servers[2].IP = "" },
		},
		{
			name: "partition from a node without network", step: on(cut, "n3", ""), node: "w2",
			spoil: func(e *Environment) { e.Workers[1].IP = "" },
		},
		{
			name: "pause of a node without network and clock", step: on(pause, "n3", ""),
			spoil: func(e *Environment) { e.Servers[2].IP, e.Servers[2].Clock = "", errors.New("no clock") },
		},
		{name: "nobody of that name", step: on(pause, "n6", ""), want: `"n6"`},
		{name: "from nobody of that name", step: on(cut, "holder", "n6"), want: `"n6"`},
		{
			name: "no minority of one", step: on(pause, "minority", ""), want: "nobody",
			spoil: func(e *Environment) { e.Servers = e.Servers[:1] },
		},
		{
			name: "partition of a follower without servers", step: on(cut, "follower", ""), want: "nobody",
			spoil: func(e *Environment) { e.Servers = nil },
		},
		{
			name: "shorter than nothing", step: Step{Fault: "pause", Target: "n1", For: Span{1, -time.Second}}, want: "for: lease-1s is 0s",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := fiveAndThree()
			if c.spoil != nil {
				c.spoil(&env)
			}
			if c.step.For.IsZero() {
				c.step.For = Span{Leases: 1}
			}
			n := Nemesis{Environment: env, Schedule: Schedule{Steps: []Step{c.step}}}
			err := n.Plan()
			var unsupported *UnsupportedError
			switch {
			case c.node != "" && (!errors.As(err, &unsupported) || unsupported.Where != c.node || unsupported.Fault != c.step.Fault):
				t.Errorf("error %v, want that it is not supported on %s", err, c.node)
			case c.node == "" && c.want == "" && err != nil:
				t.Errorf("error %v, want none", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestKinds(t *testing.T) {
	for _, name := range KindNames() {
		kind, known := KindByName(name)
		if !known || kind.Name != name || kind.Summary == "" || kind.Target == "" || kind.Random == nil {
			t.Errorf("%s is incomplete: %+v", name, kind)
		}
	}
	if kind, known := KindByName("rain"); known {
		t.Errorf("there is a kind %+v", kind)
	}
	unknown := Nemesis{Schedule: Schedule{Steps: []Step{{Fault: "rain"}}}}
	var err *UnknownKindError
	if !errors.As(unknown.Plan(), &err) {
		t.Error("a plan with an unknown kind is accepted")
	}
}
