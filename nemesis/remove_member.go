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
		return r.persist(ctx, func(ctx context.Context, leader *clusters.Node) error {
			return leader.Host.RemoveMember(ctx, node.IP)
		})
	})
}

// Prove asks another server for its members. A server that is only dead is still one of them.
func (r *removeMember) Prove(ctx context.Context) (string, error) {
	evidence, err := poll(ctx, func(ctx context.Context) (string, error) {
		leader, err := r.leader(ctx)
		if err != nil {
			return "", err
		}
		evidence, listed, err := r.listed(ctx, leader)
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

// askLimit bounds one question to one server.
const askLimit = time.Second

// leader finds the other server that leads, because a server that is cut off may not know the latest members. While the
// target itself leads, it finds one that answers.
func (r *removeMember) leader(ctx context.Context) (*clusters.Node, error) {
	leads := func(node *clusters.Node) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, askLimit)
		defer cancel()
		return node.Host.Leads(ctx)
	}
	var answers *clusters.Node
	for _, other := range r.others {
		is, err := leads(other)
		if err == nil && is {
			return other, nil
		}
		if err == nil {
			answers = other
		}
	}
	if is, err := leads(r.targets[0]); err == nil && is && answers != nil {
		return answers, nil
	}
	return nil, fmt.Errorf("none of %s leads", describe(r.others))
}

// listed asks the leader whether the target is a member.
func (r *removeMember) listed(ctx context.Context, leader *clusters.Node) (evidence string, listed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	ips, err := leader.Host.Members(ctx)
	members := slices.DeleteFunc(slices.Clone(r.env.Servers), func(n *clusters.Node) bool { return !slices.Contains(ips, n.IP) })
	return fmt.Sprintf("the members are %s, says %s", describe(members), leader.Name), slices.Contains(ips, r.targets[0].IP), err
}

// Heal adds the server as a new member, and starts it. A server that is still a member keeps its disk: it was not removed,
// or an earlier attempt has added it.
func (r *removeMember) Heal(ctx context.Context) (Healing, error) {
	node := r.targets[0]
	var listed bool
	_, err := r.persist(ctx, func(ctx context.Context, leader *clusters.Node) (err error) {
		_, listed, err = r.listed(ctx, leader)
		return err
	})
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
		if _, err := r.persist(ctx, func(ctx context.Context, leader *clusters.Node) error {
			return leader.Host.AddMember(ctx, node.IP)
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
	_, err = r.persist(ctx, func(ctx context.Context, leader *clusters.Node) error {
		said, listed, err := r.listed(ctx, leader)
		if evidence = said; err == nil && !listed {
			err = errors.New(said)
		}
		return err
	})
	return serves + "; " + evidence, err
}

// persist asks the leader until it has done what it is asked for. If it has not answered in time, the error is that of the
// context, too: it may do it later.
func (r *removeMember) persist(ctx context.Context, ask func(ctx context.Context, leader *clusters.Node) error) (agent.Moment, error) {
	moment := agent.Moment{From: history.Now()}
	var last error
	for last == nil || ctx.Err() == nil {
		leader, err := r.leader(ctx)
		if err == nil {
			if err = ask(ctx, leader); err != nil && ctx.Err() != nil {
				err = errors.Join(err, ctx.Err())
			}
		}
		moment.To = history.Now()
		if err == nil {
			return moment, nil
		}
		last = err
		sleepUntil(ctx, time.Now().Add(10*pollInterval))
	}
	return moment, last
}
