package nemesis

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/history"
)

// leading is a Host of one of several servers, whose leaders all of them share.
type leading struct {
	agent.Host
	name    string
	leaders *atomic.Pointer[[]string]
	becomes []string // the leaders after a request to hand over; nil if it is without effect
}

func (l leading) Leads(context.Context) (bool, error) {
	return slices.Contains(*l.leaders.Load(), l.name), nil
}

func (l leading) TransferLeader(context.Context) (agent.Moment, error) {
	if l.becomes != nil {
		l.leaders.Store(&l.becomes)
	}
	return agent.Moment{From: history.Now(), To: history.Now()}, nil
}

func (leading) Cuts(context.Context) ([]string, error) { return nil, nil }

func (leading) Processes(context.Context) ([]agent.Process, error) {
	return []agent.Process{{PID: 1}}, nil
}

// led is an environment of three servers of etcd's kind, of which n1 leads.
func led(becomes ...string) (env Environment, leaders *atomic.Pointer[[]string]) {
	spec, _ := clusters.ByName("etcd")
	env.Servers, env.Workers = spec.Plan(3, 1)
	leaders = new(atomic.Pointer[[]string])
	leaders.Store(&[]string{"n1"})
	for _, n := range env.Servers {
		n.Host = leading{name: n.Name, leaders: leaders, becomes: becomes}
	}
	return env, leaders
}

// TestTransferLeaderStages: the evidence is who led before and who leads now. Two leaders are a change, which is over when
// one of them is left.
func TestTransferLeaderStages(t *testing.T) {
	for _, c := range []struct {
		name, proven string
		becomes      []string
	}{
		{"one leader", "n1 led before, n2 leads now", []string{"n2"}},
		{"two leaders for a while", "n1 led before, n2 leads now, and n1 still does", []string{"n1", "n2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			env, leaders := led(c.becomes...)
			d := &diary{t: t}
			d.on = func(f history.Fault) {
				if f.Stage == history.Proven {
					leaders.Store(&[]string{"n2"})
				}
			}
			d.nemesis(env, Step{ID: "change", Fault: history.TransferLeader}).Run(bounded(t), plenty)
			d.expect("requested change", "begin change", "applied change", "proven change", "healed change", "end change", "proven-healed change")
			if f := d.stage("change", history.Proven); f.Evidence != c.proven || !slices.Equal(f.Targets, []string{"n1"}) {
				t.Errorf("proven of %v: %q, want %q", f.Targets, f.Evidence, c.proven)
			}
			if f := d.stage("change", history.ProvenHealed); f.Evidence != "n2 leads" {
				t.Errorf("proven healed: %q", f.Evidence)
			}
		})
	}
}

// TestTransferLeaderUnproven: a request that changes nothing is no fault, nor is one to a server that does not lead.
func TestTransferLeaderUnproven(t *testing.T) {
	for leader, want := range map[string]string{"n1": "no server other than n1 leads", "n2": "n2 was to hand over its leadership and did not lead"} {
		synctest.Test(t, func(t *testing.T) {
			env, _ := led()
			i := slices.IndexFunc(env.Servers, func(n *clusters.Node) bool { return n.Name == leader })
			f := &transferLeader{servers: env.Servers, leader: env.Servers[i]}
			if _, err := f.Apply(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
			if evidence, err := f.Heal(t.Context()); err != nil {
				t.Errorf("healed: %v, %v", evidence, err)
			}
		})
	}
}

// TestTransferLeaderSupport: servers without a leader, without such an operation, or without a second server are refused
// when the schedule is planned, with the reason.
func TestTransferLeaderSupport(t *testing.T) {
	for _, c := range []struct {
		servers string
		count   int
		want    error
	}{
		{"etcd", 3, nil},
		{"consul", 3, nil},
		{"nats", 3, nil},
		{"redis-failover", 5, nil},
		{"redis-cluster", 6, nil},
		{"valkey-cluster", 6, nil},
		{"etcd", 1, errNoSuccessor},
		{"zookeeper", 3, agent.ErrNoTransfer},
		{"redis", 1, agent.ErrNoLeader},
		{"postgres", 1, agent.ErrNoLeader},
		{"galera", 3, agent.ErrNoLeader},
	} {
		t.Run(c.servers, func(t *testing.T) {
			spec, _ := clusters.ByName(c.servers)
			var env Environment
			env.Servers, env.Workers = spec.Plan(c.count, 2)
			var unsupported *UnsupportedError
			err := planOf(env, Step{Fault: history.TransferLeader})
			if c.want == nil && err != nil || c.want != nil && (!errors.As(err, &unsupported) || !errors.Is(err, c.want)) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

// TestTransferLeader: real servers hand over, by the operation of their service.
func TestTransferLeader(t *testing.T) {
	for _, servers := range []string{"etcd", "redis-failover"} {
		t.Run(servers, func(t *testing.T) {
			t.Parallel()
			spec, _ := clusters.ByName(servers)
			m := newMatrix(t, clusters.Request{Spec: spec})
			m.healthy("before any fault")
			before := (&Nemesis{Environment: m.env}).leadingServer(t.Context())
			if before == nil {
				t.Fatal("no server leads")
			}
			f := &transferLeader{servers: m.env.Servers, leader: before}
			if evidence, err := f.changed(t.Context()); err == nil {
				t.Errorf("before any request there is evidence: %s", evidence)
			}
			d := m.inflict(t, m.step(transferLeaderKind(), roleLeader))
			proven, after := d.stage("transfer-leader-leader", history.Proven), d.stage("transfer-leader-leader", history.ProvenHealed)
			if !strings.HasPrefix(proven.Evidence, before.Name+" led before, ") || strings.HasPrefix(after.Evidence, before.Name) {
				t.Errorf("%s led; %q, then %q", before.Name, proven.Evidence, after.Evidence)
			}
		})
	}
}
