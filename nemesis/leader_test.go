package nemesis

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// answering is Environment.Leader of an application that gives these answers, and then no more; "" is that nobody led until
// the end.
func answering(answers ...string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		if len(answers) == 0 || answers[0] == "" {
			return "", errors.New("no replica led: the answer was empty")
		}
		answer := answers[0]
		answers = answers[1:]
		return answer, nil
	}
}

// TestLeadingReplica: where an application says which replica leads, the roles leader and follower are of replicas. One that
// was killed is named until its lease has run out, and is not hit.
func TestLeadingReplica(t *testing.T) {
	for _, c := range []struct {
		name, target, answers string // separated by blanks
		want                  string // the possible targets; "" for nobody, for the reason
	}{
		{"leader", "leader", "w2", "w2"},
		{"nobody", "leader", "", ""},
		{"one that was killed", "leader", "w1 w1 w3", "w3"},
		{"only one that was killed", "leader", "w1", ""},
		{"follower", "follower", "w2", "w3"},
		{"nobody is asked", "one worker", "", "w2 w3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := fiveAndThree()
			env.Watch, env.Leader = NewWatch(), answering(strings.Fields(c.answers)...)
			env.Watch.Forget("w1")
			n := &Nemesis{Environment: env}
			step := Step{Fault: "pause", Target: c.target}
			leader, err := n.leader(t.Context(), step)
			if err != nil {
				if c.want != "" || !strings.Contains(err.Error(), "the answer was empty") {
					t.Error(err)
				}
				return
			}
			r := resolver{env: env, rng: n.anyOrder(), leader: leader, gone: env.Watch.killed}
			nodes, err := r.targets(c.target)
			if err != nil || len(nodes) != 1 || !strings.Contains(c.want, nodes[0].Name) {
				t.Errorf("%v, %v; want %q", names(nodes), err, c.want)
			}
		})
	}
}

// TestNobodyLeads: a step for the replica that leads is left out, with why, when there is none until the end.
func TestNobodyLeads(t *testing.T) {
	env := fiveAndThree()
	env.Leader = answering()
	if err := planOf(env, Step{Fault: "pause", Target: "leader", For: Span{Plus: 1}}); err != nil {
		t.Error(err)
	}
	env.Leader = nil
	var unsupported *UnsupportedError
	if err := planOf(env, Step{Fault: "pause", Target: "leader", For: Span{Plus: 1}}); !errors.As(err, &unsupported) {
		t.Errorf("%v, want that none of the servers leads", err)
	}
}

// TestNames: replicas and services of an application are targets by their names, and a slip in a role is none.
func TestNames(t *testing.T) {
	for text, means := range map[string]bool{
		"redis": true, "biller-2": true, "worker-1, worker-2": true, "my_service.db": true, "redis,postgres": true,
		"holdr": false, "all worker s": false, "one duck": false, "": false, "redis,": false,
	} {
		if canMean(text) != means {
			t.Errorf("%q can mean something: %t, want %t", text, !means, means)
		}
	}
}
