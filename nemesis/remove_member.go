package nemesis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/history"
)

// removeMember is a planned removal of a server from its cluster, as before its machine is replaced. The service itself
// takes the server out of its list of members, so that a majority is then one of the others. The server ends, and
// returns with an empty disk as a new member.
type removeMember struct {
	restart
	others []*clusters.Node
}

func removeMemberKind() Kind {
	return Kind{
		Name: history.RemoveMember, Summary: "remove a server from its cluster, by the service's own operation, and add it again with an empty disk",
		Target: roleOne, Momentary: true,
		Can: canRemoveMember,
		New: func(env Environment, order Order) (Fault, error) {
			return newRemoval(env, order.Targets[0]), nil
		},
		Random: randomKill,
	}
}

func newRemoval(env Environment, target *clusters.Node) *removeMember {
	r := &removeMember{restart: restart{kill: kill{env: env, targets: []*clusters.Node{target}}}, others: otherMembers(env, target)}
	r.stop = r.remove
	return r
}

// otherMembers lists the servers of the same cluster. The API servers of Kubernetes are no members of etcd.
func otherMembers(env Environment, node *clusters.Node) []*clusters.Node {
	return slices.DeleteFunc(slices.Clone(env.Servers), func(n *clusters.Node) bool { return n == node || n.CanRemove() != nil })
}

// Reasons why no server is removed from its cluster.
var (
	errNoMember   = errors.New("only servers are members of a cluster")
	errFewMembers = errors.New("fewer than two servers would be left in the cluster")
)

func canRemoveMember(env Environment, node *clusters.Node) error {
	if !env.server(node) {
		return errNoMember
	}
	if err := node.CanRemove(); err != nil {
		return err
	}
	if len(otherMembers(env, node)) < 2 {
		return errFewMembers
	}
	return nil
}

// removeLimit is how long the servers may take to remove one. etcd refuses while a member was not connected for 5 s, as
// after the start of the cluster, and a server of Consul takes as long to leave.
const removeLimit = 12 * time.Second

// remove returns when another server has removed the target.
func (r *removeMember) remove(ctx context.Context, node *clusters.Node) (agent.Moment, error) {
	ctx, cancel := context.WithTimeout(ctx, removeLimit)
	defer cancel()
	return node.Remove(ctx, func(ctx context.Context) (agent.Moment, error) {
		return r.persist(ctx, func(ctx context.Context, other *clusters.Node) error {
			return other.Host.RemoveMember(ctx, node.IP)
		})
	})
}

// Prove asks another server for its members. A server that is only dead is still one of them.
func (r *removeMember) Prove(ctx context.Context) (string, error) {
	evidence, err := poll(ctx, func(ctx context.Context) (string, error) {
		evidence, listed, err := r.listed(ctx)
		if err == nil && listed {
			err = errors.New(evidence)
		}
		return evidence, err
	})
	if err != nil {
		return "", err
	}
	dead, err := r.restart.Prove(ctx)
	return evidence + "; " + dead, err
}

// listed asks the other servers, one after another until one answers, whether the target is a member.
func (r *removeMember) listed(ctx context.Context) (evidence string, listed bool, err error) {
	for _, other := range r.others {
		var ips []string
		if ips, err = other.Host.Members(ctx); err != nil {
			continue
		}
		members := slices.DeleteFunc(slices.Clone(r.env.Servers), func(n *clusters.Node) bool { return !slices.Contains(ips, n.IP) })
		return fmt.Sprintf("the members are %s, says %s", describe(members), other.Name), slices.Contains(ips, r.targets[0].IP), nil
	}
	return "", false, err
}

// Heal adds the server as a new member, and starts it. A server that is still a member keeps its disk: it was not removed,
// or an earlier attempt has added it.
func (r *removeMember) Heal(ctx context.Context) (Healing, error) {
	node := r.targets[0]
	_, listed, err := r.listed(ctx)
	switch {
	case err != nil:
		return Healing{}, err
	case listed && !node.Ending(): // the removal was refused
		return Healing{Moment: agent.Moment{From: history.Now(), To: history.Now()}}, nil
	}
	if _, err := noProcess(ctx, node); err != nil {
		if _, err := node.Kill(ctx); err != nil {
			return Healing{}, err
		}
		if _, err := r.kill.Prove(ctx); err != nil {
			return Healing{}, err
		}
	}
	began := history.Now()
	if !listed {
		if _, err := node.WipeToJoin(ctx); err != nil {
			return Healing{}, err
		}
		if _, err := r.persist(ctx, func(ctx context.Context, other *clusters.Node) error {
			return other.Host.AddMember(ctx, node.IP)
		}); err != nil {
			return Healing{}, err
		}
	}
	healing, err := r.restart.Heal(ctx)
	healing.From = began
	return healing, err
}

// ProveHealed waits until the server serves, and another one lists it.
func (r *removeMember) ProveHealed(ctx context.Context) (string, error) {
	serves, err := r.restart.ProveHealed(ctx)
	if err != nil {
		return "", err
	}
	var evidence string
	_, err = r.persist(ctx, func(ctx context.Context, _ *clusters.Node) error {
		said, listed, err := r.listed(ctx)
		if evidence = said; err == nil && !listed {
			err = errors.New(said)
		}
		return err
	})
	return serves + "; " + evidence, err
}

// persist asks the other servers, one after another, until one has done what it is asked for.
func (r *removeMember) persist(ctx context.Context, ask func(context.Context, *clusters.Node) error) (agent.Moment, error) {
	moment := agent.Moment{From: history.Now()}
	var last error
	for {
		for _, other := range r.others {
			err := ask(ctx, other)
			moment.To = history.Now()
			if err == nil {
				return moment, nil
			}
			if last == nil || ctx.Err() == nil {
				last = err
			}
		}
		select {
		case <-ctx.Done():
			return moment, last
		case <-time.After(10 * pollInterval):
		}
	}
}
