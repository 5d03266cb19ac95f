package clusters

import (
	"context"
	"errors"
	"fmt"

	"lockcheck/clusters/agent"
)

// Reasons why servers cannot be restarted with an empty disk.
var (
	errNothingOnDisk = errors.New("it keeps nothing on disk: a kill takes all that it knows")
	errMemberForGood = errors.New("a member that lost its disk must be removed and added anew by an administrator")
	errOtherDatabase = errors.New("a database without its files is another database")
	errNoState       = errors.New("an API server keeps its data in etcd")
)

// CanWipe says why a server cannot be restarted with an empty disk; nil if it can.
func (n *Node) CanWipe() error {
	if err := n.CanRestart(); err != nil {
		return err
	}
	return n.Server.NoWipe
}

// Wipe resets the disk of a stopped server to its state before the first start: its folder with only its
// initial files.
func (n *Node) Wipe(ctx context.Context) (agent.Moment, error) {
	moment, err := n.Host.Wipe(ctx, n.folder)
	if err != nil || len(n.files) == 0 {
		return moment, err
	}
	return moment, n.write(ctx, n.files)
}

// WipeToJoin is Wipe for a server that was removed from its cluster. With its next start it joins the cluster as a new
// member.
func (n *Node) WipeToJoin(ctx context.Context) (agent.Moment, error) {
	n.files = n.joins
	return n.Wipe(ctx)
}

// CanRemove says why a server cannot be removed from its cluster and added again; nil if it can.
func (n *Node) CanRemove() error {
	if _, can := n.Server.Probes.(agent.Membership); !can {
		return agent.ErrNoMembers
	}
	return n.CanRestart()
}

// Wiped returns an error if a server has more on disk than its initial files.
func (n *Node) Wiped(ctx context.Context) error {
	names, err := n.Host.Files(ctx, n.folder)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, given := n.files[name]; !given {
			return fmt.Errorf("%s still has %s", n.Name, name)
		}
	}
	return nil
}
