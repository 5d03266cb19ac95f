package nemesis

import (
	"cmp"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/history"
)

// slowEnd is a Host whose process needs some time to end after it was asked to.
type slowEnd struct {
	agent.Host
	needs   time.Duration
	asked   agent.Signal
	endedAt time.Time // zero while the process has not been told to end
}

func (e *slowEnd) Signal(_ context.Context, signal agent.Signal) (agent.Moment, error) {
	switch signal {
	case agent.Kill:
		e.endedAt = time.Now()
	default:
		e.asked, e.endedAt = signal, time.Now().Add(e.needs)
	}
	return agent.Moment{From: history.Now(), To: history.Now()}, nil
}

func (e *slowEnd) Processes(context.Context) ([]agent.Process, error) {
	if !e.endedAt.IsZero() && !time.Now().Before(e.endedAt) {
		return nil, nil
	}
	return []agent.Process{{PID: 1, Command: "server"}}, nil
}

// TestRestartEnds: a server gets its own signal, and is killed if it takes too long.
func TestRestartEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		needs  time.Duration
		signal agent.Signal
		proven string
	}{
		{"at once", 0, "", "n1 has no process"},
		{"after a while", endLimit / 2, agent.Interrupt, "n1 has no process"},
		{"never", time.Hour, "", "n1 has no process; n1 killed, because it did not end within 10s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				host := &slowEnd{needs: c.needs}
				node := &clusters.Node{Name: "n1", Host: host, Server: clusters.Server{EndSignal: c.signal}}
				r := &restart{kill: kill{targets: []*clusters.Node{node}}}
				if _, err := r.Apply(t.Context()); err != nil {
					t.Fatal(err)
				}
				if evidence, err := r.Prove(t.Context()); err != nil || evidence != c.proven {
					t.Errorf("%q, %v, want %q", evidence, err, c.proven)
				}
				if want := cmp.Or(c.signal, agent.Terminate); host.asked != want {
					t.Errorf("it was asked by %s, want %s", host.asked, want)
				}
			})
		})
	}
}

// TestRestartVersions upgrades etcd server by server. A server that comes back in its old version is no upgrade.
func TestRestartVersions(t *testing.T) {
	t.Parallel()
	spec, _ := clusters.ByName("etcd")
	const before, after = "3.5.16", "3.6.16"
	m := newMatrix(t, clusters.Request{Spec: spec, Version: before, Versions: []string{after}})
	for _, server := range m.env.Servers {
		step := Step{ID: "upgrade-" + server.Name, Fault: history.Restart, Target: server.Name, Version: after, For: Span{Plus: 100 * time.Millisecond}}
		d := m.inflict(t, step)
		if f := d.stage(step.ID, history.ProvenHealed); !strings.HasSuffix(f.Evidence, ", version "+after) {
			t.Errorf("%s: %q", server.Name, f.Evidence)
		}
	}
	same := &restart{kill: kill{env: m.env, targets: m.env.Servers[:1]}, version: before}
	if evidence, err := same.ProveHealed(t.Context()); err == nil || !strings.Contains(err.Error(), "has version "+after+" instead of "+before) {
		t.Errorf("%q, %v", evidence, err)
	}
}
