package nemesis

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/history"
)

// membership is a list of members that several servers share.
type membership struct {
	mu      sync.Mutex
	ips     []string
	dead    []string
	killed  []string
	refuses error // why a removal is refused; nil if it is not
	ignores bool  // a removal is accepted, and has no effect
	closed  error // why no member is added; nil if one is
}

// member is the Host of one of them.
type member struct {
	agent.Host
	ip string
	of *membership
}

func (m member) lock() func() { m.of.mu.Lock(); return m.of.mu.Unlock }

func (m member) Members(context.Context) ([]string, error) {
	defer m.lock()()
	return slices.Clone(m.of.ips), nil
}

// Leads says that the first member leads that was not killed.
func (m member) Leads(context.Context) (bool, error) {
	defer m.lock()()
	alive := slices.DeleteFunc(slices.Clone(m.of.ips), func(ip string) bool { return slices.Contains(m.of.dead, ip) })
	return len(alive) > 0 && alive[0] == m.ip, nil
}

func (m member) RemoveMember(_ context.Context, ip string) error {
	defer m.lock()()
	if !m.of.ignores {
		m.of.ips = slices.DeleteFunc(slices.Clone(m.of.ips), func(other string) bool { return other == ip })
		m.of.dead = append(m.of.dead, ip)
	}
	return m.of.refuses
}

func (m member) AddMember(_ context.Context, ip string) error {
	defer m.lock()()
	if m.of.closed == nil {
		m.of.ips = append(m.of.ips, ip)
	}
	return m.of.closed
}

func (m member) Signal(context.Context, agent.Signal) (agent.Moment, error) {
	defer m.lock()()
	m.of.dead, m.of.killed = append(m.of.dead, m.ip), append(m.of.killed, m.ip)
	return agent.Moment{From: history.Now(), To: history.Now()}, nil
}

func (m member) Processes(context.Context) ([]agent.Process, error) {
	defer m.lock()()
	if slices.Contains(m.of.dead, m.ip) {
		return nil, nil
	}
	return []agent.Process{{PID: 1, Command: "server"}}, nil
}

func (member) Wipe(context.Context, string) (agent.Moment, error) { return agent.Moment{}, nil }
func (member) Cuts(context.Context) ([]string, error)             { return nil, nil }
func (member) Ready(context.Context) error                        { return nil }

// united is an environment of servers of etcd's kind.
func united(count int) (env Environment, of *membership) {
	spec, _ := clusters.ByName("etcd")
	env.Servers, env.Workers = spec.Plan(count, 1)
	of = new(membership)
	for _, n := range env.Servers {
		n.IP = n.Name + ".example"
		of.ips = append(of.ips, n.IP)
		m := member{ip: n.IP, of: of}
		n.Host = m
		n.Again = func(context.Context) error {
			defer m.lock()()
			of.dead = slices.DeleteFunc(of.dead, func(ip string) bool { return ip == m.ip })
			return nil
		}
	}
	return env, of
}

// TestRemoveMemberStages: the evidence is the list of another server, before and after the healing.
func TestRemoveMemberStages(t *testing.T) {
	env, of := united(3)
	d := &diary{t: t}
	d.nemesis(env, Step{ID: "out", Fault: history.RemoveMember, Target: "n1"}).Run(bounded(t), plenty)
	d.expect("requested out", "begin out", "applied out", "proven out", "healed out", "end out", "proven-healed out")
	if f := d.stage("out", history.Proven); f.Evidence != "the members are n2, n3, says n2; n1 has no process" {
		t.Errorf("proven: %q", f.Evidence)
	}
	if f := d.stage("out", history.ProvenHealed); !strings.HasSuffix(f.Evidence, "; the members are n1, n2, n3, says n2") {
		t.Errorf("proven healed: %q", f.Evidence)
	}
	if len(of.killed) > 0 {
		t.Errorf("%v killed, although a removed server ends by itself", of.killed)
	}
}

// TestRemoveMemberUnproven: a removal that is refused is no fault and ends no server, nor is one a fault that is accepted
// and without effect. A server that is still a member keeps its disk.
func TestRemoveMemberUnproven(t *testing.T) {
	for _, c := range []struct {
		name    string
		refuses error
		want    string
		killed  int
	}{
		{"refused", errors.New("unhealthy cluster"), "unhealthy cluster", 0},
		{"without effect", nil, "the members are n1, n2, n3, says n2", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env, of := united(3)
				of.refuses, of.ignores, of.closed = c.refuses, true, errors.New("it is a member")
				d := &diary{t: t}
				d.nemesis(env, Step{ID: "out", Fault: history.RemoveMember, Target: "n1"}).Run(bounded(t), plenty)
				d.expect("requested out", "begin out", "applied out", "unproven out", "healed out", "end out", "proven-healed out")
				if f := d.stage("out", history.Unproven); !strings.Contains(f.Evidence, c.want) {
					t.Errorf("unproven: %q, want %q", f.Evidence, c.want)
				}
				if len(of.killed) != c.killed || len(of.dead) > 0 {
					t.Errorf("%v killed, %v dead", of.killed, of.dead)
				}
			})
		})
	}
}

// TestRemoveMemberUnhealed: a server that is not added again is reported.
func TestRemoveMemberUnhealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env, of := united(3)
		of.closed = errors.New("not enough started members")
		d := &diary{t: t}
		d.nemesis(env, Step{ID: "out", Fault: history.RemoveMember, Target: "n1"}).Run(bounded(t), plenty)
		d.expect("requested out", "begin out", "applied out", "proven out", "unhealed out")
		if f := d.stage("out", history.Unhealed); f.Evidence != of.closed.Error() {
			t.Errorf("unhealed: %q", f.Evidence)
		}
	})
}

// TestRemoveMemberNotBack: a server that runs again and is no member has not returned.
func TestRemoveMemberNotBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env, of := united(3)
		of.ips = of.ips[1:]
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		evidence, err := newRemoval(env, env.Servers[0]).ProveHealed(ctx)
		if err == nil || err.Error() != "the members are n2, n3, says n2" {
			t.Errorf("%q, %v", evidence, err)
		}
	})
}

// TestRemoveMemberOneAtATime: of two removals at the same time the later one is skipped, whatever its target.
func TestRemoveMemberOneAtATime(t *testing.T) {
	env, _ := united(5)
	d := &diary{t: t}
	d.nemesis(env, Step{ID: "first", Fault: history.RemoveMember, Target: "n1", For: Span{Plus: 100 * time.Millisecond}},
		Step{ID: "second", Fault: history.RemoveMember, Target: "n2", Needs: []string{"first"}}).Run(bounded(t), plenty)
	if f := d.stage("second", history.Skipped); f.Evidence != "n1 is already removed from the cluster; only one server may be removed at a time" {
		t.Errorf("%q, %v", f.Evidence, d.order())
	}
}

// TestRemoveMemberSupport: what cannot be removed is refused when the schedule is planned, with the reason.
func TestRemoveMemberSupport(t *testing.T) {
	for _, c := range []struct {
		servers, target string
		count           int
		want            error
	}{
		{"etcd", "follower", 3, nil},
		{"etcd", "leader", 5, nil},
		{"consul", "follower", 3, nil},
		{"consul", "one", 1, errFewMembers},
		{"kubernetes", "one", 4, nil}, // a member of etcd, not the API server
		{"kubernetes", "n4", 4, agent.ErrNoMembers},
		{"etcd", "one", 1, errFewMembers},
		{"etcd", "w1", 3, errNoMember},
		{"zookeeper", "one", 3, agent.ErrNoMembers},
		{"redis", "one", 1, agent.ErrNoMembers},
	} {
		t.Run(c.servers+" "+c.target, func(t *testing.T) {
			spec, _ := clusters.ByName(c.servers)
			var env Environment
			env.Servers, env.Workers = spec.Plan(c.count, 2)
			var unsupported *UnsupportedError
			err := planOf(env, Step{Fault: history.RemoveMember, Target: c.target})
			if c.want == nil && err != nil || c.want != nil && (!errors.As(err, &unsupported) || !errors.Is(err, c.want)) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

// TestRemoveMember: a real cluster loses its leader for good, and gets it back as a new member.
func TestRemoveMember(t *testing.T) {
	for _, servers := range []string{"etcd", "consul"} {
		t.Run(servers, func(t *testing.T) {
			t.Parallel()
			spec, _ := clusters.ByName(servers)
			m := newMatrix(t, clusters.Request{Spec: spec})
			m.healthy("before any fault")
			if evidence, err := newRemoval(m.env, m.env.Servers[0]).Prove(t.Context()); err == nil {
				t.Errorf("before any request there is evidence: %s", evidence)
			}
			d := m.inflict(t, m.step(removeMemberKind(), roleLeader))
			for stage, members := range map[history.Stage]string{history.Proven: "the members are n", history.ProvenHealed: "the members are n1, n2, n3, says n"} {
				if f := d.stage("remove-member-leader", stage); !strings.Contains(f.Evidence, members) {
					t.Errorf("%s: %q", stage, f.Evidence)
				}
			}
		})
	}
}
