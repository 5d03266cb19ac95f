package nemesis

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/history"
)

// crash is a machine that dies, which other machines are not told. Its network is cut before its
// processes are killed, so that the kernel cannot close their connections visibly. A server returns with its
// network. A worker stays dead, but after healing its address refuses connections.
type crash struct {
	cut  *partition
	kill *kill
}

func crashKind() Kind {
	killed := killKind()
	return Kind{
		Name: history.Crash, Summary: "cut the target off from everybody, then end all of its processes (SIGKILL)",
		Target: roleOne,
		Can: func(env Environment, node *clusters.Node) error {
			if err := hasNetwork(env, node); err != nil {
				return err
			}
			return killed.Can(env, node)
		},
		New:    func(env Environment, order Order) (Fault, error) { return newCrash(env, order), nil },
		Random: randomPause,
	}
}

func newCrash(env Environment, order Order) *crash {
	order.Cuts = make(map[*clusters.Node][]*clusters.Node)
	for _, target := range order.Targets {
		order.Cuts[target] = slices.DeleteFunc(env.Nodes(), func(n *clusters.Node) bool { return n == target })
	}
	return &crash{cut: cutBy(env, order), kill: &kill{env: env, targets: order.Targets}}
}

func (c *crash) Apply(ctx context.Context) (agent.Moment, error) {
	cut, err := c.cut.Apply(ctx)
	if err != nil {
		return cut, err
	}
	killed, err := c.kill.Apply(ctx)
	return agent.Moment{From: cut.From, To: killed.To}, err
}

func (c *crash) Prove(ctx context.Context) (string, error) {
	cut, err := c.cut.Prove(ctx)
	if err != nil {
		return "", err
	}
	dead, err := c.kill.Prove(ctx)
	return fmt.Sprintf("%s; %s", cut, dead), err
}

func (c *crash) Heal(ctx context.Context) (Healing, error) {
	healing, err := c.cut.Heal(ctx)
	if err != nil {
		return healing, err
	}
	started, err := c.kill.Heal(ctx)
	// The cut's counters are left out, because packets to a dead server say nothing about the cut.
	return Healing{Moment: agent.Moment{From: cmp.Or(healing.From, started.From), To: max(healing.To, started.To)}}, err
}

func (c *crash) ProveHealed(ctx context.Context) (string, error) {
	open, err := c.cut.ProveHealed(ctx)
	if err != nil {
		return "", err
	}
	back, err := c.kill.ProveHealed(ctx)
	return fmt.Sprintf("%s; %s", open, back), err
}
