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

// wantsLeader says whether a step needs to know who leads.
func (s Step) wantsLeader() bool {
	wanted := []string{roleLeader, roleFollower}
	return slices.Contains(wanted, s.Target) || slices.Contains(wanted, s.From)
}

// leader returns the node that leads when a step is due. It returns nil if the step names no leader, or if no server leads
// in time. The error says why no replica leads.
func (n *Nemesis) leader(ctx context.Context, step Step) (*clusters.Node, error) {
	switch {
	case !step.wantsLeader():
		return nil, nil
	case n.Environment.Leader != nil:
		return n.leadingReplica(ctx)
	}
	return n.leadingServer(ctx), nil
}

// leadingReplica waits for a leading replica, for as long as a step waits for a replica that holds a lock. The application
// may still name a killed replica, because the replica's lease has not run out.
func (n *Nemesis) leadingReplica(ctx context.Context) (*clusters.Node, error) {
	for {
		name, err := n.Environment.Leader(ctx)
		if err != nil {
			return nil, err
		}
		if replica := n.worker(name); replica != nil && !n.Environment.Watch.killed(name) {
			return replica, nil
		}
	}
}

// leadingServer asks the servers which of them leads, until exactly one says so. A server that was stopped may believe
// for a moment that it still leads.
func (n *Nemesis) leadingServer(ctx context.Context) *clusters.Node {
	ctx, cancel := context.WithTimeout(ctx, leaderLimit)
	defer cancel()
	for {
		if leaders := leadersAmong(ctx, n.Environment.Servers); len(leaders) == 1 {
			return leaders[0]
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(leaderPoll):
		}
	}
}

// leadersAmong returns the servers that report that they lead.
func leadersAmong(ctx context.Context, servers []*clusters.Node) []*clusters.Node {
	ctx, cancel := context.WithTimeout(ctx, leaderAnswer)
	defer cancel()
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
