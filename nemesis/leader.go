package nemesis

import (
	"context"
	"slices"
	"time"

	"lockcheck/clusters"
)

const (
	// leaderLimit is how long servers may take to agree on a leader.
	leaderLimit = 5 * time.Second
	leaderPoll  = 50 * time.Millisecond
	// leaderAnswer bounds a server's answer, because a stopped server never answers.
	leaderAnswer = 500 * time.Millisecond
)

// leader asks the servers which of them leads, until exactly one says so. A server that was stopped may believe
// for a moment that it still leads. leader returns nil if the step names no leader, or if none is found in
// time.
func (n *Nemesis) leader(ctx context.Context, step Step) *clusters.Node {
	wanted := []string{roleLeader, roleFollower}
	if !slices.Contains(wanted, step.Target) && !slices.Contains(wanted, step.From) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, leaderLimit)
	defer cancel()
	for {
		if leaders := n.leaders(ctx); len(leaders) == 1 {
			return leaders[0]
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(leaderPoll):
		}
	}
}

// leaders returns the servers that report that they lead.
func (n *Nemesis) leaders(ctx context.Context) []*clusters.Node {
	ctx, cancel := context.WithTimeout(ctx, leaderAnswer)
	defer cancel()
	servers := n.Environment.Servers
	answers := make(chan *clusters.Node, len(servers))
	for _, node := range servers {
		go func() {
			if yes, err := node.Host.Leads(ctx); err != nil || !yes {
				node = nil
			}
			answers <- node
		}()
	}
	var leaders []*clusters.Node
	for range servers {
		if node := <-answers; node != nil {
			leaders = append(leaders, node)
		}
	}
	return leaders
}
